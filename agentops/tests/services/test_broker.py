"""Redis carries doorbells and wake-ups only: while it is down messages are accepted all the same.

Broker and channel layer are one Redis here, as in a small deployment; both go at once.
"""

import signal
import time

import httpx2
import pytest

from agentops.tests.services.conftest import QUICK
from agentops.tests.services.deployment import PrivateRedis, Web, deployed
from agentops.tests.services.processes import until
from agentops.tests.services.tenant import READS, Shop, message
from apps.conversations.models import TurnRecord
from apps.gateway.streams import POLL_SECONDS
from apps.tenants.scope import tenant_transaction

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]
DOWN, FROZEN = 8, 3
# A caller waits at most so long for "accepted" while nobody answers the doorbell.
ACCEPT_SECONDS = 6.0


def post(web: Web, shop: Shop, name: str, *, wait: int = 0) -> tuple[httpx2.Response, float]:
    started = time.monotonic()
    answer = httpx2.post(
        f"{web.url}/gateway/message",
        json=message(READS, session=name, message_id=name),
        headers={**shop.headers, "Prefer": f"wait={wait}"},
        timeout=60,
    )
    return answer, time.monotonic() - started


@pytest.fixture
def broker(tmp_path):
    """A Redis of the test's own."""
    redis = PrivateRedis(tmp_path)
    redis.start()
    yield redis
    redis.process.signal(signal.SIGCONT)
    redis.stop()


def test_broker__down_and_back__every_accepted_message_is_answered(shop, broker, tmp_path, capsys):
    with deployed(tmp_path / "broker", **QUICK, REDIS_URL=broker.url) as deployment:
        web = deployment.web()
        worker = deployment.worker()
        beat = deployment.beat()
        assert post(web, shop, "up", wait=30)[0].status_code == 200

        broker.stop()
        down = [post(web, shop, f"down-{number}") for number in range(DOWN)]
        broker.start()
        back_at = time.time()
        until(lambda: shop.sent() == 1 + DOWN, "the turns accepted meanwhile", seconds=60)
        found_after = last_settled(shop) - back_at

        # One that accepts connections and answers nothing is worse than one that is gone.
        broker.process.signal(signal.SIGSTOP)
        frozen = [post(web, shop, f"frozen-{number}") for number in range(FROZEN)]
        broker.process.signal(signal.SIGCONT)
        until(lambda: shop.sent() == 1 + DOWN + FROZEN, "the turns of a deaf broker", seconds=60)
        # Callers are woken again, and do not only find their answer by looking every two seconds.
        again = [post(web, shop, f"again-{number}", wait=30) for number in range(5)]
        assert {answer.status_code for answer, _seconds in again} == {200}
        assert min(seconds for _answer, seconds in again) < POLL_SECONDS
        with capsys.disabled():
            print(f"\n\nRedis down: {DOWN} accepted, slowest {slowest(down):.2f} s; ", end="")
            print(f"answered {found_after:.1f} s after it was back; ", end="")
            print(f"Redis deaf: {FROZEN} accepted, slowest {slowest(frozen):.2f} s")
        assert {answer.status_code for answer, _seconds in (*down, *frozen)} == {202}
        assert slowest([*down, *frozen]) < ACCEPT_SECONDS
        with tenant_transaction(shop.tenant):
            outcomes = set(TurnRecord.objects.values_list("outcome", "attempts"))
        assert outcomes == {("answered", 1)}
        assert worker.running
        assert beat.running
        assert "a door broke" not in web.process.said()


def slowest(posts: list[tuple[httpx2.Response, float]]) -> float:
    return max(seconds for _answer, seconds in posts)


def last_settled(shop: Shop) -> float:
    with tenant_transaction(shop.tenant):
        [at] = TurnRecord.objects.order_by("-settled_at").values_list("settled_at", flat=True)[:1]
    assert at is not None
    return float(at.timestamp())
