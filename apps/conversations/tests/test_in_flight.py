"""Open conversations while what runs changes: which release each message is accepted for."""

import uuid
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.conversations import services
from apps.conversations.choosing import release_target
from apps.conversations.in_flight import open_conversations, turn_rates
from apps.conversations.models import Session, TurnRecord
from apps.conversations.services import OtherEnvironment, UnknownAgent
from apps.conversations.tests.conftest import ENVIRONMENT, Say, save
from apps.conversations.tests.test_run_turn import take, walked
from apps.releases.change_models import DeploymentEvent
from apps.releases.environments.canaries import canaries_watch
from apps.releases.environments.pointers import Pointer, pointer_text
from apps.releases.environments.services import (
    binding_set,
    canary_change,
    canary_finish,
    canary_start,
    canary_stop,
    release_deploy,
    release_roll_back,
)
from apps.releases.models import ConfigItem, Deployment, Release
from apps.releases.selectors import caches_clear, deployed_pointer
from apps.releases.services import item_archive, release_publish
from apps.runtime.canonical import canonical_json
from apps.runtime.outcomes import Answered, Blocked, Ended, Failed, Outcome, Waiting
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_scope, tenant_transaction

pytestmark = pytest.mark.django_db


class Talk:
    """A conversation: ``says`` accepts and answers one message and returns the release's number."""

    def __init__(self, say: Say, tenant: Tenant, session: str = "s1") -> None:
        self._say, self._tenant, self.session, self._number = say, tenant, session, 0

    def accepts(self, agent: str | None = None) -> services.Accepted:
        self._number += 1
        return self._say("oi", session=self.session, message_id=f"m{self._number}", agent=agent)

    def says(
        self,
        outcome: Outcome | None = None,
        *,
        state: str = "",
        agent: str | None = None,
    ) -> int:
        accepted = self.accepts(agent)
        taken = take(self._tenant, accepted.turn_id)
        turn = walked(taken).evolve(outcome=outcome or Answered("Olá!"), next_state=state)
        services.turn_settle(turn=turn, tenant_id=self._tenant.pk)
        services.turn_deliver(tenant_id=self._tenant.pk, turn_id=taken.turn_id)
        return release_of(accepted.turn_id)


def release_of(turn_id: uuid.UUID) -> int:
    with tenant_transaction():
        numbers = TurnRecord.objects.filter(pk=turn_id)
        return int(numbers.values_list("release__number", flat=True).get())


def publish(text: str) -> Release:
    save("prompt", "main", system=text)
    return release_publish(actor="test")


def arrive(release: Release, in_flight: str = "follow", hours: int = 72) -> None:
    release_deploy(
        release=release,
        environment=ENVIRONMENT,
        actor="test",
        in_flight=in_flight,
        max_pin_hours=hours,
    )


def pointer_now() -> Pointer:
    with tenant_transaction():
        pointer = deployed_pointer(ENVIRONMENT)
    assert pointer is not None
    return pointer


def back_in_time(hours: float) -> None:
    """Let what runs have arrived, and what was kept have been left, ``hours`` ago."""
    with tenant_transaction():
        pointer = pointer_now()
        earlier = replace(
            pointer,
            kept={key: at - hours * 3600 for key, at in pointer.kept.items()},
            canary_at=pointer.canary_at - hours * 3600,
        )
        Deployment.objects.update(pointer=pointer_text(earlier))


@pytest.fixture
def talk(say: Say, deployed: Tenant) -> Talk:
    return Talk(say, deployed)


# -- policies -----------------------------------------------------------------------------------


def test_follow__open_conversation__takes_the_new_release_with_its_next_message(talk: Talk):
    assert talk.says() == 1
    arrive(publish("Two."), "follow")
    assert talk.says() == 2


def test_pin__open_conversation__stays_until_it_ends(talk: Talk, say: Say, deployed: Tenant):
    assert talk.says() == 1
    arrive(publish("Two."), "pin")
    assert [talk.says(), talk.says(Waiting("?", "parameter")), talk.says()] == [1, 1, 1]
    assert Talk(say, deployed, "new").says() == 2
    assert talk.says(Ended("Tchau")) == 1
    assert talk.says() == 2


def test_pin__longer_than_the_longest_pin__moves(talk: Talk):
    talk.says()
    arrive(publish("Two."), "pin", hours=5)
    back_in_time(4.9)
    assert talk.says() == 1
    back_in_time(0.2)
    assert talk.says() == 2


def test_migrate__conversation_with_something_pending__moves_at_its_boundary(talk: Talk):
    talk.says(Waiting("Qual o contrato?", "parameter"))
    arrive(publish("Two."), "migrate")
    assert talk.says(state="CONFIRMING") == 1
    assert talk.says(state="CONFIRMING") == 1
    assert talk.says(state="") == 1
    assert talk.says() == 2


def test_migrate__while_a_message_is_being_answered__is_no_boundary(talk: Talk):
    talk.says()
    first = talk.accepts()
    arrive(publish("Two."), "migrate")
    assert release_of(first.turn_id) == 1
    assert release_of(talk.accepts().turn_id) == 1


def test_force__messages_that_wait__run_on_the_new_release(talk: Talk, deployed: Tenant):
    talk.says(Waiting("?", "parameter"), state="CONFIRMING")
    waits = talk.accepts()
    assert release_of(waits.turn_id) == 1
    with tenant_transaction():
        binding_set(
            environment=ENVIRONMENT, what="address", name="x", value="http://y.test", actor="test"
        )
        version = Deployment.objects.get().bindings_version
    arrive(publish("Two."), "force")
    taken = take(deployed, waits.turn_id)
    with tenant_transaction():
        session = Session.objects.get()
        row = TurnRecord.objects.get(pk=waits.turn_id)
    assert taken.release_id == row.release_id == session.release_id
    assert release_of(waits.turn_id) == 2
    assert taken.bindings_version == row.bindings_version == version


def test_force__a_turn_that_had_begun__keeps_its_release(talk: Talk, deployed: Tenant):
    begun = talk.accepts()
    take(deployed, begun.turn_id)
    with tenant_transaction():
        TurnRecord.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    arrive(publish("Two."), "force")
    services.tenant_sweep(tenant_id=deployed.pk, idle_seconds=0)
    taken = take(deployed, begun.turn_id)
    assert release_of(taken.turn_id) == 1


def test_pin__then_follow__lets_everybody_go(talk: Talk):
    talk.says()
    arrive(publish("Two."), "pin")
    assert talk.says() == 1
    arrive(publish("Three."), "follow")
    assert talk.says() == 3


def test_pin__after_pin__leaves_each_on_its_own(talk: Talk, say: Say, deployed: Tenant):
    talk.says()
    arrive(publish("Two."), "pin")
    second = Talk(say, deployed, "s2")
    second.says()
    arrive(publish("Three."), "pin")
    assert (talk.says(), second.says(), Talk(say, deployed, "s3").says()) == (1, 2, 3)


def test_roll_back__conversations_on_what_is_taken_back__move_and_others_stay(
    talk: Talk, say: Say, deployed: Tenant
):
    talk.says()
    two, three = publish("Two."), publish("Three.")
    arrive(two, "pin")
    on_two = Talk(say, deployed, "s2")
    on_two.says()
    arrive(three, "pin")
    on_three = Talk(say, deployed, "s3")
    assert on_three.says() == 3
    release_roll_back(release=two, environment=ENVIRONMENT, actor="test", reason="worse")
    assert (talk.says(), on_two.says(), on_three.says()) == (1, 2, 2)


# -- canary -------------------------------------------------------------------------------------


def test_canary__of_half_the_conversations__answers_the_same_ones_until_it_stops(
    say: Say, deployed: Tenant
):
    two = publish("Two.")
    talks = [Talk(say, deployed, f"c{number}") for number in range(40)]
    canary_start(release=two, environment=ENVIRONMENT, share=50, actor="test", in_flight="pin")
    first = [talk.says() for talk in talks]
    assert 10 <= first.count(2) <= 30
    pointer = pointer_now()
    expected = [release_target(pointer, deployed.pk, talk.session) for talk in talks]
    assert [number == 2 for number in first] == [release == two.pk for release in expected]
    # A lower share takes nobody away who is pinned; a stop does.
    canary_change(environment=ENVIRONMENT, share=1, actor="test")
    assert [talk.says() for talk in talks] == first
    canary_stop(environment=ENVIRONMENT, actor="test", reason="worse")
    assert {talk.says() for talk in talks} == {1}


@pytest.mark.parametrize(
    ("bad", "rules", "says"),
    [
        (Failed("!", "X", "e1"), {"max_error_rate": 0.2}, "error rate 1"),
        (Blocked("não", "TOX"), {"max_block_rate": 0.2}, "block rate 1"),
        (None, {"max_cost_per_turn": 0.01}, "cost per turn 0.5"),
    ],
)
def test_canary__whose_turns_go_wrong__stops_by_itself_and_its_pinned_conversations_go_back(
    say: Say, deployed: Tenant, bad: Outcome | None, rules: dict[str, Any], says: str
):
    limits = {"min_turns": 3, "max_error_rate": None, "max_block_rate": None, **rules}
    canary_start(
        release=publish("Two."),
        environment=ENVIRONMENT,
        share=99,
        actor="test",
        rules=limits,
        in_flight="pin",
    )
    talks = [Talk(say, deployed, f"c{number}") for number in range(4)]
    assert [talk.says(bad) for talk in talks[:2]] == [2, 2]
    assert canaries_watch(timezone.now()) == 0
    assert [talk.says(bad) for talk in talks[2:]] == [2, 2]
    with tenant_transaction():
        usage = canonical_json({"usage": {"cost_usd": 0.5}})
        TurnRecord.objects.update(record=usage if bad is None else "{}")
    assert canaries_watch(timezone.now()) == 1
    assert {talk.says() for talk in talks} == {1}
    with tenant_transaction():
        event = DeploymentEvent.objects.latest("at")
    assert (event.verb, event.actor) == ("canary_stop", "system:canaries_watch")
    assert says in event.reason


def test_canary__finished__keeps_pinned_conversations_where_they_are(say: Say, deployed: Tenant):
    before = Talk(say, deployed, "before")
    before.says()
    two = publish("Two.")
    canary_start(release=two, environment=ENVIRONMENT, share=99, actor="test", in_flight="pin")
    assert before.says() == 1
    canary_finish(environment=ENVIRONMENT, actor="test")
    assert before.says() == 1
    assert Talk(say, deployed, "after").says() == 2


# -- agents that differ -------------------------------------------------------------------------


def other_default(in_flight: str) -> None:
    save("routing_policy", "default", default_agent="other")
    arrive(release_publish(actor="test"), in_flight)


def test_pin__release_with_another_default_agent__goes_on_with_the_conversation_that_is_there(
    talk: Talk, say: Say, deployed: Tenant
):
    assert talk.accepts().session_key == "acme:helper:s1"
    other_default("pin")
    assert talk.accepts().session_key == "acme:helper:s1"
    assert Talk(say, deployed, "s2").accepts().session_key == "acme:other:s2"
    caches_clear()
    assert talk.accepts().session_key == "acme:helper:s1"
    assert [row.release_id for row in turns()][:3] == [turns()[0].release_id] * 3


def turns() -> list[TurnRecord]:
    with tenant_transaction():
        return list(TurnRecord.objects.filter(session__name="s1").order_by("number"))


@pytest.mark.parametrize("share", [1, 50, 99])
def test_canary__with_another_default_agent__each_conversation_has_one_agent(
    say: Say, deployed: Tenant, share: int
):
    save("routing_policy", "default", default_agent="other")
    two = release_publish(actor="test")
    canary_start(release=two, environment=ENVIRONMENT, share=share, actor="test")
    pointer = pointer_now()
    for number in range(10):
        talk = Talk(say, deployed, f"c{number}")
        inside = release_target(pointer, deployed.pk, talk.session) == two.pk
        agent = "other" if inside else "helper"
        assert talk.accepts().session_key == f"acme:{agent}:c{number}"
        assert talk.accepts().session_key == f"acme:{agent}:c{number}"


def test_pin__agent_that_the_new_release_lacks__answers_its_open_conversation_only(
    talk: Talk, say: Say, deployed: Tenant
):
    talk.says(agent="other")
    with tenant_transaction():
        item_archive(item=ConfigItem.objects.get(kind="agent", slug="other"), actor="test")
    arrive(release_publish(actor="test"), "pin")
    assert talk.says(agent="other") == 1
    with pytest.raises(UnknownAgent):
        Talk(say, deployed, "s2").accepts(agent="other")
    with tenant_transaction():
        assert not Session.objects.filter(name="s2").exists()
    arrive(publish("Three."), "follow")
    with pytest.raises(UnknownAgent):
        talk.accepts(agent="other")


def test_agent__that_came_with_a_release_this_process_has_not_seen__is_found(talk: Talk):
    talk.says()
    save("agent", "newcomer", prompt="main")
    arrive(release_publish(actor="test"))
    assert talk.accepts(agent="newcomer").session_key == "acme:newcomer:s1"


# -- environments, old rows, queries ------------------------------------------------------------


def test_session__of_another_environment__is_refused_by_name(talk: Talk, deployed: Tenant):
    talk.accepts()
    with tenant_transaction():
        release = Release.objects.get()
    release_deploy(release=release, environment="staging", actor="test")
    accepted = TurnRecord.objects.count()
    with pytest.raises(OtherEnvironment, match=ENVIRONMENT):
        services.turn_accept(
            inbound=walked(take(deployed, turns()[0].pk)).inbound,
            tenant_slug="acme",
            environment="staging",
        )
    assert TurnRecord.objects.count() == accepted


@pytest.mark.parametrize("in_flight", ["follow", "pin", "force"])
def test_deployment__from_before_the_pointer__answers_and_moves_on(talk: Talk, in_flight: str):
    with tenant_transaction():
        Deployment.objects.update(pointer="{}")
    caches_clear()
    assert talk.says() == 1
    assert talk.says() == 1
    arrive(publish("Two."), in_flight)
    assert talk.says() == (1 if in_flight == "pin" else 2)


@pytest.mark.parametrize("in_flight", ["follow", "pin", "migrate", "force"])
def test_message__warm__costs_the_same_whatever_the_policy(
    talk: Talk, deployed: Tenant, in_flight: str
):
    talk.says()
    arrive(publish("Two."), in_flight)
    canary_start(release=publish("Three."), environment=ENVIRONMENT, share=50, actor="test")
    talk.says()
    with CaptureQueriesContext(connection) as accepting:
        accepted = talk.accepts()
    with CaptureQueriesContext(connection) as taking:
        take(deployed, accepted.turn_id)
    assert (statements(accepting), statements(taking)) == (5, 4)


def statements(captured: CaptureQueriesContext) -> int:
    """Return how many statements read or wrote, and that none read configuration by itself."""
    found = [
        query["sql"]
        for query in captured.captured_queries
        if query["sql"].split(" ", 1)[0] in ("SELECT", "UPDATE", "INSERT")
        and "set_config" not in query["sql"]
    ]
    assert not any(' FROM "releases_' in sql.split("(", 1)[0][:2000] for sql in found)
    return len(found)


# -- what conversations know of a release -------------------------------------------------------


def test_open_conversations__of_an_environment__are_those_that_did_not_end(
    talk: Talk, say: Say, deployed: Tenant
):
    talk.says(Waiting("?", "parameter"))
    ended, old = Talk(say, deployed, "ended"), Talk(say, deployed, "old")
    ended.says(Ended("Tchau"))
    old.says()
    with tenant_transaction():
        Session.objects.filter(name="old").update(updated_at=timezone.now() - timedelta(hours=25))
    count, found = open_conversations(environment=ENVIRONMENT)
    assert count == 1
    with tenant_transaction():
        release_id = Release.objects.get().pk
    assert [(c.key, c.release_id, c.pending) for c in found] == [
        ("acme:helper:s1", release_id, True)
    ]
    assert open_conversations(environment="staging") == (0, [])


def test_open_conversations__using_an_agent_or_a_state__are_those_that_stand_on_it(
    say: Say, deployed: Tenant
):
    save("state_policy", "confirming", state="CONFIRMING", agent="other")
    arrive(release_publish(actor="test"))
    Talk(say, deployed, "plain").says()
    Talk(say, deployed, "asked").says(agent="other")
    Talk(say, deployed, "state").says(state="CONFIRMING")
    using: list[tuple[list[tuple[str, str]], set[str]]] = [
        # The state's policy names the agent that answers next.
        ([("agent", "other")], {"acme:other:asked", "acme:helper:state"}),
        ([("state_policy", "confirming")], {"acme:helper:state"}),
        (
            [("agent", "other"), ("state_policy", "confirming")],
            {"acme:other:asked", "acme:helper:state"},
        ),
        ([("agent", "helper")], {"acme:helper:plain", "acme:helper:state"}),
        # Through its agent: whoever is answered from a prompt stands on it.
        ([("prompt", "main")], {"acme:helper:plain", "acme:other:asked", "acme:helper:state"}),
        ([("prompt", "nobody")], set()),
        ([("agent", "nobody")], set()),
    ]
    for what, keys in using:
        count, found = open_conversations(environment=ENVIRONMENT, using=what)
        assert ({c.key for c in found}, count) == (keys, len(keys))
    count, found = open_conversations(environment=ENVIRONMENT, using=[("agent", "helper")], limit=1)
    assert (count, len(found)) == (2, 1)


def test_open_conversations__another_tenants__are_not_seen(talk: Talk, world: Any):
    talk.says()
    with tenant_scope(world.other):
        assert open_conversations(environment=ENVIRONMENT) == (0, [])


def test_turn_rates__of_a_release__count_its_settled_turns_since(
    talk: Talk, deployed: Tenant, world: Any
):
    with tenant_transaction():
        first = Release.objects.get().pk
    talk.says(Failed("!", "X", "e1"))
    since = timezone.now()
    for outcome in (None, Blocked("não", "TOX"), Failed("!", "X", "e2"), None):
        talk.says(outcome)
    arrive(publish("Two."))
    talk.says()
    talk.accepts()
    everything = turn_rates(release_id=first, environment=ENVIRONMENT)
    assert (everything.turns, everything.failed, everything.blocked) == (5, 2, 1)
    later = turn_rates(release_id=first, environment=ENVIRONMENT, since=since)
    assert (later.turns, later.failed, later.blocked) == (4, 1, 1)
    assert turn_rates(release_id=first, environment="staging").turns == 0
    with tenant_scope(world.other):
        assert turn_rates(release_id=first).turns == 0


def test_turn_rates__cost__is_that_of_the_turns_whose_price_is_known(talk: Talk):
    with tenant_transaction():
        release_id = Release.objects.get().pk
    for _number in range(4):
        talk.says()
    with tenant_transaction():
        for number, cost in ((1, 0.02), (2, 0.04), (3, None)):
            record = canonical_json({"usage": {"cost_usd": cost}})
            TurnRecord.objects.filter(number=number).update(record=record)
        TurnRecord.objects.filter(number=4).update(record="{}")
    assert turn_rates(release_id=release_id).cost_usd == pytest.approx(0.03 * 4)
    with tenant_transaction():
        TurnRecord.objects.update(record="{}")
    assert turn_rates(release_id=release_id).cost_usd is None
