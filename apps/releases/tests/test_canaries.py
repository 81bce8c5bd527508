"""A canary: who starts it where, how its share changes, and how it ends, also by itself."""

import json
from typing import Any

import pytest
from django.utils import timezone

from apps.releases.authority import setting_up
from apps.releases.change_models import DeploymentEvent
from apps.releases.content import InvalidContent
from apps.releases.environments.canaries import WATCH, CanaryRules, canaries_watch
from apps.releases.environments.in_flight import TurnRates
from apps.releases.environments.services import (
    CanaryRefused,
    Frozen,
    HopSkipped,
    NotResponsible,
    UnknownEnvironment,
    canary_change,
    canary_finish,
    canary_start,
    canary_stop,
    freeze_add,
    release_promote,
    release_roll_back,
)
from apps.releases.models import Deployment, Release
from apps.releases.tests.environments import (
    ALICE,
    ANA,
    BOB,
    OTTO,
    last_audited,
    releases,
    requested,
    running,
    runs,
    stand,
    verbs,
)
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction

__all__ = ["releases"]
pytestmark = [pytest.mark.django_db, pytest.mark.governed]


@pytest.fixture
def ready(releases: list[Release]) -> list[Release]:
    """Production runs the first release, staging the second."""
    stand(releases[0], "production")
    stand(releases[1], "staging")
    return releases


def start(release: Release, share: int = 10, actor: str = OTTO, **given: Any) -> Deployment:
    return canary_start(
        release=release,
        environment=given.pop("environment", "production"),
        share=share,
        actor=actor,
        **given,
    )


def test_canary__of_what_staging_runs__answers_its_share(ready: list[Release]) -> None:
    start(ready[1], rules={"min_turns": 5, "max_error_rate": 0.5}, reason="carefully")
    pointer = runs("production")
    assert (pointer.release, pointer.canary, pointer.share) == (ready[0].pk, ready[1].pk, 10)
    assert pointer.canary_at > 0
    actor, action, detail = last_audited()
    assert (actor, action) == (OTTO, "environment.canary_started")
    assert (detail["canary"], detail["canary_share"], detail["release"]) == (2, 10, 1)
    event = DeploymentEvent.objects.latest("at")
    assert json.loads(event.terms)["canary_rules"] == {
        "min_turns": 5, "max_error_rate": 0.5, "max_block_rate": 0.2, "max_cost_per_turn": None,
    }  # fmt: skip


def test_canary__past_a_hop__is_refused(ready: list[Release]) -> None:
    with pytest.raises(HopSkipped):
        start(ready[2])
    # To an entry environment any release goes.
    start(ready[2], environment="staging")
    assert runs("staging").canary == ready[2].pk


def test_canary__by_who_may_not_promote_it__is_refused(ready: list[Release]) -> None:
    requested(ready[1], editors=(OTTO,), environment="production")
    for actor in (ALICE, BOB, OTTO, "user:proxy", "key:ab"):
        with pytest.raises(NotResponsible):
            start(ready[1], actor=actor)
    start(ready[1], actor=ANA)
    with pytest.raises(NotResponsible):
        canary_change(environment="production", share=50, actor=OTTO)
    with pytest.raises(NotResponsible):
        canary_finish(environment="production", actor=OTTO)
    # Less of it, or none, is the safe way.
    canary_change(environment="production", share=5, actor=OTTO)
    canary_stop(environment="production", actor=OTTO, reason="mine, and wrong")
    with pytest.raises(CanaryRefused):
        canary_stop(environment="production", actor=BOB, reason="x")


def test_canary__in_a_frozen_window__only_shrinks_and_stops(ready: list[Release]) -> None:
    start(ready[1])
    now = timezone.now()
    freeze_add(
        environment="production",
        starts_at=now,
        ends_at=now.replace(year=now.year + 1),
        reason="holiday",
        actor=OTTO,
    )
    for call in (
        lambda: canary_change(environment="production", share=20, actor=OTTO),
        lambda: canary_finish(environment="production", actor=OTTO),
    ):
        with pytest.raises(Frozen):
            call()
    canary_change(environment="production", share=1, actor=OTTO)
    canary_stop(environment="production", actor=OTTO, reason="x")
    with pytest.raises(Frozen):
        start(ready[1])


def test_canary__a_second_one__is_refused(ready: list[Release]) -> None:
    start(ready[1])
    with pytest.raises(CanaryRefused, match="#2"):
        start(ready[1], 20)
    canary_stop(environment="production", actor=OTTO, reason="x")
    stand(ready[0], "staging")
    with pytest.raises(CanaryRefused, match="another release"):
        start(ready[0])
    with pytest.raises(CanaryRefused):
        start(ready[0], environment="dev")


def test_canary__finished__is_what_runs(ready: list[Release]) -> None:
    requested(ready[1], editors=(BOB,), environment="production")
    start(ready[1], 50)
    canary_change(environment="production", share=90, actor=OTTO)
    assert last_audited()[1] == "environment.canary_changed"
    canary_finish(environment="production", actor=OTTO)
    row = Deployment.objects.get(environment="production")
    assert (row.release_id, row.canary_id, row.canary_share) == (ready[1].pk, None, 0)
    assert verbs("production") == ["deploy", "canary_start", "canary_change", "canary_finish"]
    assert last_audited()[1] == "change.deployed"
    with pytest.raises(CanaryRefused, match="No canary"):
        canary_finish(environment="production", actor=OTTO)


def test_canary__finished_after_staging_moved_on__is_refused(ready: list[Release]) -> None:
    start(ready[1])
    stand(ready[2], "staging")
    with pytest.raises(HopSkipped):
        canary_finish(environment="production", actor=OTTO)
    assert runs("production").canary == ready[1].pk


def test_canary__finished_with_pins__keeps_what_ran(ready: list[Release]) -> None:
    start(ready[1], 50, in_flight="pin", max_pin_hours=9)
    canary_finish(environment="production", actor=OTTO)
    pointer = runs("production")
    assert (pointer.in_flight, pointer.max_pin_hours) == ("pin", 9)
    assert set(pointer.kept) == {ready[0].pk}


def test_canary__stopped__is_kept_for_nobody(ready: list[Release]) -> None:
    start(ready[1], 50, in_flight="pin")
    canary_stop(environment="production", actor=OTTO, reason="worse")
    pointer = runs("production")
    assert (pointer.release, pointer.canary, dict(pointer.kept)) == (ready[0].pk, None, {})
    actor, action, detail = last_audited()
    assert (actor, action) == (OTTO, "environment.canary_stopped")
    assert (detail["stopped"], detail["reason"]) == (2, "worse")


def test_canary__when_something_else_arrives__ends(ready: list[Release]) -> None:
    start(ready[1], 50)
    stand(ready[2], "staging")
    release_promote(release=ready[2], environment="production", actor=OTTO, in_flight="pin")
    pointer = runs("production")
    assert (pointer.release, pointer.canary) == (ready[2].pk, None)
    # Its conversations were pinned as the others were: it was not found bad.
    assert set(pointer.kept) == {ready[0].pk, ready[1].pk}


def test_canary__when_its_environment_rolls_back__ends_and_is_taken_back(
    ready: list[Release],
) -> None:
    stand(ready[2], "production", in_flight="pin")
    start(ready[1], 50)
    release_roll_back(release=ready[0], environment="production", actor=OTTO, reason="x")
    pointer = runs("production")
    assert (pointer.release, pointer.canary, dict(pointer.kept)) == (ready[0].pk, None, {})


def test_canary__promoted__takes_over(ready: list[Release]) -> None:
    start(ready[1], 50)
    release_promote(release=ready[1], environment="production", actor=OTTO)
    assert (running("production"), runs("production").canary) == (2, None)


# -- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0, 100, -1, 101, True, 5.5, "10", None])
def test_share__outside_1_to_99__is_refused(ready: list[Release], share: Any) -> None:
    with pytest.raises(InvalidContent, match="1 to 99"):
        start(ready[1], share)
    start(ready[1])
    with pytest.raises(InvalidContent):
        canary_change(environment="production", share=share, actor=OTTO)
    assert runs("production").share == 10


@pytest.mark.parametrize(
    ("rules", "field"),
    [
        ({"min_turns": 0}, "min_turns"),
        ({"min_turns": 1.5}, "min_turns"),
        ({"max_error_rate": -0.1}, "max_error_rate"),
        ({"max_error_rate": 1.1}, "max_error_rate"),
        ({"max_block_rate": float("nan")}, "max_block_rate"),
        ({"max_cost_per_turn": float("inf")}, "max_cost_per_turn"),
        ({"max_cost_per_turn": "much"}, "max_cost_per_turn"),
        ({"max_latency": 3}, "max_latency"),
    ],
)
def test_rules__that_do_not_fit__are_refused_by_name(
    ready: list[Release], rules: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidContent) as invalid:
        start(ready[1], rules=rules)
    assert [field in error["field"] for error in invalid.value.errors] == [True]
    assert runs("production").canary is None


def test_terms__of_a_canary_that_do_not_fit__are_refused(ready: list[Release]) -> None:
    with pytest.raises(InvalidContent):
        start(ready[1], in_flight="jump")
    with pytest.raises(InvalidContent):
        start(ready[1], max_pin_hours=-3)
    with pytest.raises(InvalidContent):
        start(ready[1], reason="x" * 501)
    with pytest.raises(UnknownEnvironment):
        start(ready[1], environment="moon")
    start(ready[1])
    with pytest.raises(InvalidContent):
        canary_stop(environment="production", actor=OTTO, reason=" ")
    assert verbs("production") == ["deploy", "canary_start"]


# -- by itself ----------------------------------------------------------------------------------

RULES = {
    "min_turns": 10, "max_error_rate": 0.1, "max_block_rate": 0.2, "max_cost_per_turn": 0.01,
}  # fmt: skip


@pytest.mark.parametrize(
    ("rates", "says"),
    [
        (TurnRates(turns=20, failed=3), "error rate 0.15, limit 0.1, of 20 turns"),
        (TurnRates(turns=20, blocked=5), "block rate 0.25, limit 0.2, of 20 turns"),
        (TurnRates(turns=20, cost_usd=0.4), "cost per turn 0.02, limit 0.01, of 20 turns"),
        (TurnRates(turns=9, failed=9), ""),
        (TurnRates(turns=20, failed=2, blocked=4, cost_usd=0.2), ""),
        (TurnRates(turns=20, cost_usd=None), ""),
        (TurnRates(), ""),
    ],
)
def test_watch__a_rate_above_its_limit__stops_the_canary_and_says_which(
    ready: list[Release], monkeypatch: pytest.MonkeyPatch, rates: TurnRates, says: str
) -> None:
    start(ready[1], 50, rules=RULES, in_flight="pin")
    asked: list[dict[str, Any]] = []

    def found(**what: Any) -> TurnRates:
        asked.append(what)
        return rates

    monkeypatch.setattr("apps.releases.environments.in_flight.turn_rates", found)
    since = Deployment.objects.get(environment="production").canary_started_at
    assert canaries_watch(timezone.now()) == bool(says)
    assert asked == [{"release_id": ready[1].pk, "environment": "production", "since": since}]
    assert (runs("production").canary is None) == bool(says)
    if says:
        actor, action, detail = last_audited()
        assert (actor, action) == (WATCH, "environment.canary_stopped")
        assert says in detail["reason"]
        assert detail["rates"]["turns"] == 20
        assert DeploymentEvent.objects.latest("at").reason == detail["reason"]
        assert canaries_watch(timezone.now()) == 0


def test_watch__a_canary_that_somebody_changed_meanwhile__is_left(
    ready: list[Release], monkeypatch: pytest.MonkeyPatch
) -> None:
    start(ready[1], 50, rules=RULES)

    def found(**what: Any) -> TurnRates:
        with setting_up("somebody is quicker"):
            canary_stop(environment="production", actor=OTTO, reason="by hand")
            start(ready[1], 5, rules=RULES)
        return TurnRates(turns=20, failed=20)

    monkeypatch.setattr("apps.releases.environments.in_flight.turn_rates", found)
    assert canaries_watch(timezone.now()) == 0
    assert runs("production").share == 5


def test_watch__another_tenants_canary__is_not_seen(
    ready: list[Release], monkeypatch: pytest.MonkeyPatch
) -> None:
    start(ready[1], 50, rules=RULES)
    bad = TurnRates(turns=20, failed=20)
    monkeypatch.setattr("apps.releases.environments.in_flight.turn_rates", lambda **what: bad)
    with tenant_transaction(Tenant.objects.create(slug="other-canary", name="Other")):
        assert canaries_watch(timezone.now()) == 0
    assert runs("production").share == 50


def test_rules__without_any__have_limits_for_errors_and_blocks() -> None:
    assert "error rate" in CanaryRules().broken_by(TurnRates(turns=20, failed=2))
    assert "block rate" in CanaryRules().broken_by(TurnRates(turns=20, blocked=5))
    assert CanaryRules().broken_by(TurnRates(turns=20, cost_usd=1e6)) == ""
