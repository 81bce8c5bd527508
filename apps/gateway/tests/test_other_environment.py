"""A conversation belongs to one environment: a key of another one does not go on with it."""

import asyncio

import pytest

from apps.conversations import services
from apps.gateway.api import accept
from apps.gateway.problems import Problem
from apps.runtime.turn import Inbound
from apps.tenants.auth import Principal


def test_message__into_a_session_of_another_environment__is_a_conflict_that_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def elsewhere(**given: object) -> None:
        assert given["environment"] == "staging"
        raise services.OtherEnvironment("production")

    monkeypatch.setattr(services, "turn_accept", elsewhere)
    key = Principal(
        tenant_id=1,
        tenant_slug="acme",
        name="key:ab12cd34",
        scopes=frozenset({"message:write"}),
        environment="staging",
    )
    inbound = Inbound(channel="web", text="oi", agent=None, message_id="m1", session="s1")
    with pytest.raises(Problem) as problem:
        asyncio.run(accept(key, inbound))
    assert (problem.value.status, problem.value.code) == (409, "SESSION_OF_ANOTHER_ENVIRONMENT")
    assert problem.value.errors == [
        {
            "field": "payload.session_id",
            "message": "belongs to the environment production; use another session",
        }
    ]
