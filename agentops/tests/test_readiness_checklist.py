"""An agent's checklist: what the product knows, what people answer, what it may go without."""

import datetime as dt
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.governance.evidence import evidence_record
from apps.governance.readiness import (
    NoSuchCheck,
    ReadinessRefused,
    SelfExemption,
    exemption_approve,
    exemption_ask,
    readiness_of,
    readiness_set,
)
from apps.governance.readiness_checklist import CHECKLIST, EXEMPTIBLE, TOPICS
from apps.releases.services import item_save, release_publish
from apps.tenants.models import AuditEntry, Role, User
from apps.tenants.services import membership_grant

pytestmark = pytest.mark.django_db
ALICE = "user:alice"


def save(kind: str, slug: str, **content: Any) -> None:
    labels = {k: content.pop(k) for k in ("owner", "technical_owner") if k in content}
    item_save(kind=kind, slug=slug, content=content, actor="test", **labels)


@pytest.fixture
def agent(in_acme: Any) -> str:
    """A published agent with an owner and a tool, and a second person who holds a duty."""
    ana = User.objects.create_user("ana", "ana@example.com", "ana knows")
    membership_grant(user=ana, role=Role.APPROVER, actor="test")
    save("prompt", "main", system="You help.")
    save("model_profile", "default", provider="scripted")
    for kind in ("memory_policy", "rail_policy", "judge_policy"):
        save(kind, "default")
    save("tool_server", "crm", endpoint="crm")
    save("tool", "read", mcp_server="crm", owner="otto")
    save("agent", "helper", prompt="main", tools=["read"], owner="olga", objective="Helps.")
    save("intent", "help", agent="helper", keywords=["help"])
    release_publish(actor="test")
    return "helper"


def state(agent: str, check: str) -> str:
    return readiness_of(agent).topics[check].state


def soon(days: int = 30) -> dt.datetime:
    return timezone.now() + dt.timedelta(days=days)


# -- the data ----------------------------------------------------------------------------------
def test_checklist__sections__name_topics_there_are_and_every_topic_stands_somewhere() -> None:
    named = {topic for section in CHECKLIST for topic in section.topics}
    assert named == set(TOPICS)
    assert set(EXEMPTIBLE) <= named
    assert len({section.code for section in CHECKLIST}) == len(CHECKLIST)


@pytest.mark.parametrize(
    ("source", "sections", "points"),
    [("13.3", 8, 53), ("13.4", 12, 50), ("13.5", 5, 25), ("13.8", 1, 12)],
)
def test_checklist__each_part_of_the_reference__is_there(
    source: str, sections: int, points: int
) -> None:
    found = [section for section in CHECKLIST if section.source == source]
    assert len(found) == sections
    assert sum(len(section.topics) for section in found) == points


def test_checklist__adoption__has_eleven_points() -> None:
    (adoption,) = [section for section in CHECKLIST if section.code == "adoption"]
    assert len(adoption.topics) == 11


# -- what the product knows ----------------------------------------------------------------------
def test_facts__of_a_published_agent__answer_what_the_product_sees(agent: str) -> None:
    done = {code for code, topic in readiness_of(agent).topics.items() if topic.state == "done"}
    assert {
        "owner", "goal", "registered", "routes", "intents", "tools", "mapping", "mcp_owner",
        "mcp_timeout", "mcp_mutable", "prompt", "guardrails", "judges", "pii_mask", "contracts",
    } <= done  # fmt: skip
    assert {"technical_owner", "rollback", "approved_deploy", "dataset"}.isdisjoint(done)


def test_facts__rollback_and_deployment__follow_what_environments_did(agent: str) -> None:
    from apps.releases.change_models import DeploymentEvent
    from apps.releases.models import Deployment, Release

    first = Release.objects.get()
    DeploymentEvent.objects.create(
        environment="staging", verb="roll_back", release=first, actor="user:otto"
    )
    Deployment.objects.create(environment="production", release=first, deployed_by="test")
    assert state(agent, "rollback") == "done"
    assert state(agent, "approved_deploy") == "done"


def test_facts__result_about_the_newest_release__answers_and_a_failed_one_opens_again(
    agent: str,
) -> None:
    from apps.releases.models import Release

    sha = Release.objects.get().sha256
    given: dict[str, Any] = {"manifest_sha256": sha, "what": "certification", "actor": "key:ci"}
    assert state(agent, "certification") == "open"
    evidence_record(passed=True, result_sha256="a" * 64, **given)
    assert state(agent, "certification") == "done"
    evidence_record(passed=False, result_sha256="b" * 64, **given)
    assert state(agent, "certification") == "open"


def test_facts__of_an_agent_that_is_not_published__leave_the_rest_to_people(agent: str) -> None:
    save("agent", "draft", prompt="main")
    assert state("draft", "registered") == "open"
    assert state("draft", "goal") == "open"


# -- what people answer --------------------------------------------------------------------------
def test_answer__with_a_link__is_done_in_every_section_and_audited(agent: str) -> None:
    before = readiness_of(agent).settled
    readiness_set(
        agent=agent, check="dataset", state="done", link="https://x.example/set", actor=ALICE
    )
    shown = readiness_of(agent)
    assert shown.settled == before + 1
    places = [t for s in shown.sections for t in s.topics if t.code == "dataset"]
    assert [topic.state for topic in places] == ["done"] * 5
    entry = AuditEntry.objects.get(action="readiness.answered")
    assert entry.entity == "readiness:helper:dataset"
    readiness_set(agent=agent, check="dataset", state="open", actor=ALICE)
    assert state(agent, "dataset") == "open"


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("note", {}),
        ("note", {"note": " "}),
        ("note", {"note": "x" * 4_001}),
        ("link", {"link": "ftp://x.example"}),
        ("state", {"state": "exempt", "note": "x"}),
        ("check", {"check": "owner", "note": "x"}),
        ("check", {"check": "nothing", "note": "x"}),
        ("agent", {"agent": "nobody", "note": "x"}),
    ],
)
def test_answer__that_does_not_fit__names_the_field(
    agent: str, field: str, fields: dict[str, str]
) -> None:
    given = {"agent": agent, "check": "dataset", "state": "done", "actor": ALICE}
    with pytest.raises(ReadinessRefused) as refused:
        readiness_set(**{**given, **fields})
    assert list(refused.value.errors) == [field]


# -- what it may go without ------------------------------------------------------------------------
def test_exemption__approved_by_another_person_with_a_duty__holds_until_it_ends(
    agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exemption_ask(agent=agent, check="rag", reason="No documents.", expires_at=soon(), actor=ALICE)
    assert state(agent, "rag") == "asked"
    row = exemption_approve(agent=agent, check="rag", actor="user:ana")
    assert (row.reason, row.approved_by) == ("No documents.", "user:ana")
    assert state(agent, "rag") == "exempt"
    row.expires_at = timezone.now() - dt.timedelta(seconds=1)
    row.save()
    assert state(agent, "rag") == "open"


@pytest.mark.governed
@pytest.mark.parametrize("actor", [ALICE, "user:bob", "user:charlie", "key:ab12cd34"])
def test_exemption__by_oneself_without_a_duty_or_by_an_outsider__is_refused(
    world: Any, actor: str
) -> None:
    from apps.releases.authority import setting_up
    from apps.tenants.scope import tenant_transaction

    with tenant_transaction(world.acme), setting_up("a test's agent"):
        save("prompt", "main", system="You help.")
        save("agent", "helper", prompt="main")
    with tenant_transaction(world.acme):
        given: dict[str, Any] = {"agent": "helper", "check": "rag"}
        exemption_ask(**given, reason="None.", expires_at=soon(), actor=ALICE)
        with pytest.raises(SelfExemption):
            exemption_approve(**given, actor=actor)
        assert state("helper", "rag") == "asked"


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("check", {"check": "dataset"}),
        ("reason", {"reason": " "}),
        ("expires_at", {"expires_at": dt.datetime(2020, 1, 1, tzinfo=dt.UTC)}),
        ("actor", {"actor": "key:ab12cd34"}),
    ],
)
def test_exemption__that_may_not_be__names_the_field(
    agent: str, field: str, fields: dict[str, Any]
) -> None:
    given: dict[str, Any] = {
        "agent": agent, "check": "rag", "reason": "x", "expires_at": soon(), "actor": ALICE,
    }  # fmt: skip
    with pytest.raises(ReadinessRefused) as refused:
        exemption_ask(**{**given, **fields})
    assert list(refused.value.errors) == [field]


def test_exemption__asked_for_anew_since_it_was_seen__is_not_approved(agent: str) -> None:
    given: dict[str, Any] = {"agent": agent, "check": "rag"}
    ask = {**given, "expires_at": soon(), "actor": ALICE}
    seen = exemption_ask(**ask, reason="No documents.").updated_at
    exemption_ask(**ask, reason="Because.")
    with pytest.raises(ReadinessRefused, match="anew"):
        exemption_approve(**given, actor="user:ana", seen=seen)
    assert state(agent, "rag") == "asked"


def test_exemption__nobody_asked_for__is_not_approved(agent: str) -> None:
    with pytest.raises(ReadinessRefused):
        exemption_approve(agent=agent, check="rag", actor="user:ana")


def test_checklist__of_another_tenants_agent__is_absent(agent: str, world: Any) -> None:
    from apps.tenants.scope import tenant_transaction

    with tenant_transaction(world.other), pytest.raises(NoSuchCheck):
        readiness_of("helper")


def test_facts__of_an_agent_with_more_tools_and_a_larger_tenant__ask_as_many_queries(
    agent: str,
) -> None:
    readiness_of(agent)
    with CaptureQueriesContext(connection) as few:
        readiness_of(agent)
    for number in range(30):
        save("tool", f"t{number}", mcp_server="crm", owner="otto")
        save("prompt", f"p{number}", system="x")
    tools = ["read", *(f"t{number}" for number in range(30))]
    save("agent", "helper", prompt="main", tools=tools)
    release_publish(actor="test")
    readiness_of(agent)
    with CaptureQueriesContext(connection) as many:
        readiness_of(agent)
    assert len(many) == len(few) <= 16, [query["sql"] for query in many]
