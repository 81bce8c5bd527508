"""Gates that look across apps, through the service that asks them."""

from typing import Any

import pytest

from apps.releases.services import GateRefused, InvalidContent, item_save, release_publish

pytestmark = pytest.mark.django_db


def save(kind: str, slug: str, **content: Any) -> None:
    item_save(kind=kind, slug=slug, content=content, actor="test")


@pytest.fixture
def configured(in_acme: Any) -> None:
    save("prompt", "main", system="You help.")
    save("model_profile", "default", provider="scripted")
    for kind in ("memory_policy", "rail_policy", "judge_policy"):
        save(kind, "default")
    save("agent", "helper", prompt="main")


@pytest.mark.parametrize("kind", ["agent", "intent"])
def test_publish__next_state_no_policy_answers__is_refused_by_name(configured: None, kind: str):
    required = {"agent": {"prompt": "main"}, "intent": {"agent": "helper"}}[kind]
    save(kind, "leads", next_state={"waiting": "WAITING_NOBODY"}, **required)
    with pytest.raises(GateRefused) as refused:
        release_publish(actor="test")
    (problem,) = refused.value.problems
    assert (problem.kind, problem.slug, problem.path) == (kind, "leads", "next_state.waiting")
    assert problem.missing == "state_policy:WAITING_NOBODY"
    save("state_policy", "waiting", state="WAITING_NOBODY", agent="helper")
    assert release_publish(actor="test").number == 1


def test_save__outcome_there_is_not__is_an_error_at_its_field(configured: None):
    with pytest.raises(InvalidContent) as invalid:
        save("agent", "leads", prompt="main", next_state={"foo": "WAITING"})
    assert [error["field"] for error in invalid.value.errors] == ["next_state"]
