"""Many callers at once against a web process."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import httpx2

from agentops.tests.services.tenant import Shop

Post = Callable[..., Coroutine[Any, Any, httpx2.Response]]


def callers(
    url: str, shop: Shop, talk: Callable[[Post], Coroutine[Any, Any, Any]], count: int
) -> list[Any]:
    """Run ``talk(post)`` for ``count`` callers at once; return what each gives.

    ``post(body, wait=N)`` sends one message.
    """
    return asyncio.run(_callers(url, shop, [talk] * count))


async def _callers(
    url: str, shop: Shop, talks: Sequence[Callable[[Post], Coroutine[Any, Any, Any]]]
) -> list[Any]:
    limits = httpx2.Limits(max_connections=200, max_keepalive_connections=200)
    async with httpx2.AsyncClient(
        base_url=url, headers=shop.headers, timeout=60, limits=limits
    ) as client:

        async def post(body: dict[str, Any], *, wait: int) -> httpx2.Response:
            return await client.post(
                "/gateway/message", json=body, headers={"Prefer": f"wait={wait}"}
            )

        return await asyncio.gather(*(talk(post) for talk in talks))


def turn_id_of(answer: httpx2.Response) -> str:
    """Return the turn that an answer is of: 200 with it, or 202 with where it will be."""
    assert answer.status_code in (200, 202), answer.text
    turn_id = str(answer.json()["metadata"]["turn_id"])
    if answer.status_code == 202:
        assert answer.headers["Location"] == f"/gateway/turns/{turn_id}"
    return turn_id
