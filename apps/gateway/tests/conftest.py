"""Clients of the running product whose every answer is held to the OpenAPI document."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx2
import pytest

from agentops.tests.live import Live
from apps.gateway.tests.documented import answer_check, document


@pytest.fixture
def client_of(live: Live) -> Iterator[Callable[..., httpx2.Client]]:
    """Return a function: the client of a key's name, of a token, or ("") of the demo's caller."""
    document()  # made once, before threads ask for it
    with ExitStack() as stack:
        yield lambda key="": stack.enter_context(
            live.client(key, event_hooks={"response": [answer_check]})
        )


@pytest.fixture
def client(client_of: Callable[..., httpx2.Client]) -> httpx2.Client:
    """The demo's keyless caller."""
    return client_of()


@pytest.fixture
def session() -> str:
    """A session name nobody else uses."""
    return f"t-{uuid.uuid4().hex[:16]}"


@pytest.fixture
def quiet(live: Live) -> Live:
    """The product with no turn under way, so that rows can be counted."""
    until = time.monotonic() + 30
    while live.rows(
        "SELECT (SELECT count(*) FROM conversations_turnrecord WHERE status <> 'settled')"
        " + (SELECT count(*) FROM conversations_outboundmessage WHERE sent_at IS NULL)"
    ) != [(0,)]:
        assert time.monotonic() < until, "turns do not settle"
        time.sleep(0.05)
    return live
