"""Without workers the web process does what is due, on a thread that turns do not wait for."""

import asyncio
import contextlib
import threading

import pytest

from agentops.lifespan import chores_forever
from apps.tenants.scope import current_tenant_id, has_tenant

seen: list[tuple[int, str]] = []
enough = threading.Event()


def chore_noting(now):
    seen.append((current_tenant_id(), threading.current_thread().name))
    if len(seen) == 6:
        enough.set()
    if len(seen) == 1:
        raise ValueError("the first one breaks")


@pytest.mark.django_db(transaction=True)
def test_embedded_process__while_it_serves__runs_the_chores_of_every_tenant_again_and_again(
    world, settings
):
    seen.clear()
    enough.clear()
    settings.TENANT_CHORES = [f"{__name__}.chore_noting"]
    settings.CHORES_SECONDS = 0.05

    async def serve() -> None:
        running = asyncio.create_task(chores_forever())
        assert await asyncio.to_thread(enough.wait, 20)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running

    asyncio.run(serve())
    assert {tenant for tenant, _thread in seen} == {world.acme.pk, world.other.pk}
    assert all(thread.startswith("chores") for _tenant, thread in seen)
    assert not has_tenant()
