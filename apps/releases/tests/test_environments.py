"""Deploying, promoting one hop, rolling back; who may, when, and what is written."""

import json
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from apps.releases.authority import authority, setting_up
from apps.releases.change_models import DeploymentEvent, FreezeWindow
from apps.releases.content import InvalidContent
from apps.releases.environments.selectors import (
    bindings_at,
    release_promotable,
    requests_awaiting,
)
from apps.releases.environments.services import (
    Frozen,
    HopSkipped,
    NeverRan,
    NotResponsible,
    UnboundBindings,
    UnknownEnvironment,
    binding_remove,
    binding_set,
    freeze_add,
    freeze_end,
    frozen_until,
    release_deploy,
    release_promote,
    release_roll_back,
)
from apps.releases.models import Deployment, Release
from apps.releases.selectors import deployed_pointer
from apps.releases.services import release_publish
from apps.releases.tests.conftest import save
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


def refused(call: Any, **arguments: Any) -> dict[str, str]:
    with pytest.raises(InvalidContent) as invalid:
        call(**arguments)
    return {error["field"]: error["message"] for error in invalid.value.errors}


# -- hops ---------------------------------------------------------------------------------------


def test_release__from_dev_to_production__goes_one_hop_at_a_time(releases: list[Release]) -> None:
    first = releases[0]
    release_deploy(release=first, environment="dev", actor=ALICE)
    release_promote(release=first, environment="staging", actor=ALICE)
    release_promote(release=first, environment="production", actor=OTTO, reason="tested")
    assert [running(name) for name in ("dev", "staging", "production")] == [1, 1, 1]
    assert verbs("production") == ["promote"]
    actor, action, detail = last_audited()
    assert (actor, action) == (OTTO, "environment.promoted")
    assert (detail["release"], detail["previous"], detail["reason"]) == (1, None, "tested")


@pytest.mark.parametrize("environment", ["production"])
def test_deploy__past_staging__is_refused(releases: list[Release], environment: str) -> None:
    stand(releases[0], "staging", "production")
    with pytest.raises(HopSkipped, match="one hop at a time"):
        release_deploy(release=releases[1], environment=environment, actor=OTTO)
    assert running(environment) == 1


@pytest.mark.parametrize("verb", ["break_glass", "revert", "promote", "roll_back"])
def test_deploy__calling_itself_something_else__is_refused(
    releases: list[Release], verb: str
) -> None:
    with pytest.raises(HopSkipped):
        release_deploy(release=releases[0], environment="staging", actor=OTTO, verb=verb)
    assert running("staging") == 0


def test_promote__what_the_environment_before_does_not_run__is_refused(
    releases: list[Release],
) -> None:
    stand(releases[0], "dev", "staging", "production")
    stand(releases[1], "dev")
    with pytest.raises(HopSkipped, match="staging"):
        release_promote(release=releases[1], environment="production", actor=OTTO)
    # It ran in staging once, and no longer does.
    stand(releases[2], "staging")
    with pytest.raises(HopSkipped):
        release_promote(release=releases[0], environment="production", actor=OTTO)
    with pytest.raises(HopSkipped, match="Nothing comes before dev"):
        release_promote(release=releases[0], environment="dev", actor=OTTO)
    assert running("production") == 1


def test_promote__a_canary_of_staging__is_refused(releases: list[Release]) -> None:
    from apps.releases.environments.services import canary_start

    stand(releases[0], "staging", "production")
    canary_start(release=releases[1], environment="staging", share=50, actor=OTTO)
    with pytest.raises(HopSkipped, match="canary"):
        release_promote(release=releases[1], environment="production", actor=OTTO)


def test_deploy__under_an_authority__reaches_any_environment(releases: list[Release]) -> None:
    with authority("change request 1"):
        release_deploy(release=releases[0], environment="production", actor=BOB, verb="break_glass")
    assert running("production") == 1
    assert verbs("production") == ["break_glass"]


# -- who ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("actor", [ALICE, BOB, "user:stranger", "key:ab12", "command:x", "", "ana"])
def test_promote__without_the_duty__is_refused(releases: list[Release], actor: str) -> None:
    stand(releases[0], "staging")
    with pytest.raises(NotResponsible, match="sre"):
        release_promote(release=releases[0], environment="production", actor=actor)
    assert running("production") == 0


def test_deploy__without_any_duty__is_refused(releases: list[Release]) -> None:
    with pytest.raises(NotResponsible):
        release_deploy(release=releases[0], environment="staging", actor=BOB)


def test_promote__by_an_editor_of_what_would_arrive__is_refused(releases: list[Release]) -> None:
    stand(releases[0], "production")
    requested(releases[1], editors=(OTTO, BOB), environment="production")
    requested(releases[2], editors=(BOB,), environment="production")
    stand(releases[2], "staging")
    # otto edited what came in with the release before: production does not run that either.
    with pytest.raises(NotResponsible, match="You edited"):
        release_promote(release=releases[2], environment="production", actor=OTTO)
    # proxy holds the duty for otto only.
    with pytest.raises(NotResponsible):
        release_promote(release=releases[2], environment="production", actor="user:proxy")
    release_promote(release=releases[2], environment="production", actor=ANA)
    assert running("production") == 3


def test_promote__by_an_editor_of_what_runs_there_already__is_done(
    releases: list[Release],
) -> None:
    requested(releases[0], editors=(OTTO,), environment="production")
    stand(releases[0], "production")
    stand(releases[1], "staging")
    release_promote(release=releases[1], environment="production", actor=OTTO)
    assert running("production") == 2


def test_promote__of_what_another_tenant_has__finds_nothing(releases: list[Release]) -> None:
    other = Tenant.objects.create(slug="other-environments", name="Other")
    with tenant_transaction(other):
        for call in (release_promote, release_deploy, release_roll_back):
            with pytest.raises(Release.DoesNotExist):
                call(release=releases[0], environment="staging", actor=OTTO, reason="mine")
        assert not Deployment.objects.exists()


# -- requests -----------------------------------------------------------------------------------


def test_requests__when_their_environment_runs_them__are_deployed(
    releases: list[Release],
) -> None:
    aimed = requested(releases[1], editors=(BOB,), environment="production")
    nearer = requested(releases[2], editors=(BOB,), environment="staging")
    stand(releases[2], "staging")
    for row in (aimed, nearer):
        row.refresh_from_db()
    assert (aimed.status, nearer.status) == ("published", "deployed")
    assert list(requests_awaiting()) == [nearer, aimed]
    assert release_promotable("production") == releases[2]
    release_promote(release=releases[2], environment="production", actor=OTTO)
    aimed.refresh_from_db()
    assert aimed.status == "deployed"
    assert last_audited()[1] == "change.deployed"
    assert list(requests_awaiting()) == []
    assert release_promotable("production") is None


# -- roll back ----------------------------------------------------------------------------------


def test_roll_back__to_what_ran_before__runs_it_again(releases: list[Release]) -> None:
    stand(releases[0], "production")
    stand(releases[1], "production")
    release_roll_back(release=releases[0], environment="production", actor=OTTO, reason="worse")
    assert running("production") == 1
    assert verbs("production") == ["deploy", "deploy", "roll_back"]
    actor, action, detail = last_audited()
    assert (actor, action, detail["reason"]) == (OTTO, "release.rolled_back", "worse")
    release_roll_back(release=releases[1], environment="production", actor=OTTO, reason="better")
    assert running("production") == 2


def test_roll_back__to_what_never_ran_there__is_refused(releases: list[Release]) -> None:
    stand(releases[0], "production")
    stand(releases[1], "staging")
    with pytest.raises(NeverRan, match="#2"):
        release_roll_back(
            release=releases[1], environment="production", actor=OTTO, reason="a way round"
        )
    with pytest.raises(NeverRan):
        release_roll_back(release=releases[0], environment="dev", actor=OTTO, reason="x")
    assert running("production") == 1


def test_roll_back__by_an_editor__is_done_and_by_a_stranger_is_not(
    releases: list[Release],
) -> None:
    requested(releases[1], editors=(OTTO,), environment="production")
    stand(releases[0], "production")
    stand(releases[1], "production")
    with pytest.raises(NotResponsible):
        release_roll_back(release=releases[0], environment="production", actor=BOB, reason="x")
    release_roll_back(release=releases[0], environment="production", actor=OTTO, reason="x")
    assert running("production") == 1


@pytest.mark.parametrize("reason", ["", "   ", "x" * 501, "nul\x00"])
def test_roll_back__without_a_fitting_reason__is_refused(
    releases: list[Release], reason: str
) -> None:
    stand(releases[0], "production")
    stand(releases[1], "production")
    found = refused(
        release_roll_back, release=releases[0], environment="production", actor=OTTO, reason=reason
    )
    assert set(found) == {"reason"}
    assert running("production") == 2


def test_roll_back__keeps_who_is_pinned_elsewhere__and_nobody_on_what_is_taken_back(
    releases: list[Release],
) -> None:
    first, second, third = releases
    stand(first, "production")
    stand(second, "production", in_flight="pin")
    stand(third, "production", in_flight="pin")
    assert set(runs("production").kept) == {first.pk, second.pk}
    release_roll_back(release=second, environment="production", actor=OTTO, reason="worse")
    pointer = runs("production")
    assert (pointer.release, set(pointer.kept)) == (second.pk, {first.pk})


def test_roll_back__forced__lets_everybody_go(releases: list[Release]) -> None:
    stand(releases[0], "production")
    stand(releases[1], "production", in_flight="pin")
    release_roll_back(
        release=releases[0], environment="production", actor=OTTO, reason="unsafe", force=True
    )
    pointer = runs("production")
    assert (pointer.in_flight, dict(pointer.kept)) == ("force", {})
    assert pointer.forced_at > 0


# -- terms --------------------------------------------------------------------------------------


def test_deploy__same_release_and_terms__writes_nothing(releases: list[Release]) -> None:
    release_deploy(release=releases[0], environment="dev", actor=OTTO, in_flight="pin")
    before = Deployment.objects.get()
    release_deploy(release=releases[0], environment="dev", actor=ALICE, in_flight="pin")
    after = Deployment.objects.get()
    assert (after.deployed_at, after.deployed_by) == (before.deployed_at, OTTO)
    assert DeploymentEvent.objects.count() == 1


def test_deploy__same_release_on_other_terms__changes_the_terms_only(
    releases: list[Release],
) -> None:
    release_deploy(release=releases[0], environment="dev", actor=OTTO)
    since = Deployment.objects.get().since
    release_deploy(
        release=releases[0], environment="dev", actor=OTTO, in_flight="pin", max_pin_hours=5
    )
    row = Deployment.objects.get()
    assert (row.in_flight, row.max_pin_hours, row.since) == ("pin", 5, since)
    event = DeploymentEvent.objects.first()
    assert event is not None
    assert json.loads(event.terms) == {"in_flight": "pin", "max_pin_hours": 5}
    assert (runs("dev").in_flight, runs("dev").max_pin_hours) == ("pin", 5)


@pytest.mark.parametrize(
    ("terms", "fields"),
    [
        ({"in_flight": "jump"}, {"in_flight"}),
        ({"in_flight": ""}, {"in_flight"}),
        ({"max_pin_hours": 0}, {"max_pin_hours"}),
        ({"max_pin_hours": -1}, {"max_pin_hours"}),
        ({"max_pin_hours": 100_000}, {"max_pin_hours"}),
        ({"max_pin_hours": True}, {"max_pin_hours"}),
        ({"max_pin_hours": "72"}, {"max_pin_hours"}),
        ({"reason": "x" * 501}, {"reason"}),
        ({"in_flight": "x", "max_pin_hours": 0}, {"in_flight", "max_pin_hours"}),
    ],
)
def test_deploy__bad_terms__are_refused_by_name(
    releases: list[Release], terms: dict[str, Any], fields: set[str]
) -> None:
    given = {"release": releases[0], "environment": "dev", "actor": OTTO, **terms}
    assert set(refused(release_deploy, **given)) == fields
    assert set(refused(release_promote, **{**given, "environment": "staging"})) == fields
    assert not Deployment.objects.exists()


@pytest.mark.parametrize("call", [release_deploy, release_promote, release_roll_back])
def test_environment__unknown__is_refused(releases: list[Release], call: Any) -> None:
    with pytest.raises(UnknownEnvironment, match="moon"):
        call(release=releases[0], environment="moon", actor=OTTO, reason="x")


def test_promote__without_bindings__is_refused_and_changes_nothing(
    releases: list[Release],
) -> None:
    with setting_up("a test's world"):
        save("tool_server", "telecom", endpoint="telecom_mcp")
        needing = release_publish(actor="test")
        address = "http://127.0.0.1:1/mcp"
        binding_set(
            environment="staging", what="address", name="telecom_mcp", value=address, actor="test"
        )
    stand(releases[0], "production")
    stand(needing, "staging")
    with pytest.raises(UnboundBindings, match="telecom_mcp"):
        release_promote(release=needing, environment="production", actor=OTTO)
    assert running("production") == 1
    assert verbs("production") == ["deploy"]


def test_deployment__from_before_the_pointer__is_followed_by_everybody(
    releases: list[Release],
) -> None:
    Deployment.objects.create(environment="production", release=releases[0], deployed_by="old")
    assert Deployment.objects.get().pointer == "{}"
    pointer = runs("production")
    assert (pointer.release, pointer.in_flight, dict(pointer.kept)) == (
        releases[0].pk,
        "follow",
        {},
    )
    release_roll_back(release=releases[0], environment="production", actor=OTTO, reason="same")
    stand(releases[1], "production", in_flight="pin")
    assert set(runs("production").kept) == {releases[0].pk}


def test_deployed_pointer__of_another_tenant__is_none(releases: list[Release]) -> None:
    stand(releases[0], "production")
    with tenant_transaction(Tenant.objects.create(slug="other-pointer", name="Other")):
        assert deployed_pointer("production") is None


# -- frozen times -------------------------------------------------------------------------------


def freeze(environment: str = "production", hours: float = 1, **given: Any) -> FreezeWindow:
    now = timezone.now()
    return freeze_add(
        environment=environment,
        starts_at=given.get("starts_at", now - timedelta(hours=1)),
        ends_at=given.get("ends_at", now + timedelta(hours=hours)),
        reason=given.get("reason", "Black Friday"),
        actor=given.get("actor", OTTO),
    )


def test_freeze__while_it_lasts__stops_promotion_and_not_rolling_back(
    releases: list[Release],
) -> None:
    stand(releases[0], "production")
    stand(releases[1], "production", "staging")
    stand(releases[2], "staging")
    window = freeze()
    with pytest.raises(Frozen, match="Black Friday") as frozen:
        release_promote(release=releases[2], environment="production", actor=OTTO)
    assert frozen.value.window == window
    release_roll_back(release=releases[0], environment="production", actor=OTTO, reason="worse")
    with authority("emergency 1"):
        release_deploy(
            release=releases[2], environment="production", actor=OTTO, verb="break_glass"
        )
    assert running("production") == 3
    freeze_end(window=window, actor=OTTO)
    assert frozen_until("production", timezone.now()) is None


def test_freeze__of_staging__stops_a_deployment_of_a_request_too(releases: list[Release]) -> None:
    freeze("staging")
    with authority("change request 1"), pytest.raises(Frozen):
        release_deploy(release=releases[0], environment="staging", actor=OTTO)
    release_deploy(release=releases[0], environment="dev", actor=OTTO)


def test_freeze__overlapping_windows__last_to_the_end_of_the_last(
    releases: list[Release],
) -> None:
    short, long = freeze(hours=1), freeze(hours=3)
    now = timezone.now()
    assert frozen_until("production", now) == long
    assert frozen_until("production", now + timedelta(hours=2)) == long
    assert frozen_until("production", now + timedelta(hours=4)) is None
    assert frozen_until("production", now - timedelta(hours=2)) is None
    assert frozen_until("staging", now) is None
    freeze_end(window=long, actor=ANA)
    assert frozen_until("production", timezone.now()) == short


def test_freeze__given_in_a_time_zone__holds_at_that_moment(releases: list[Release]) -> None:
    zone = ZoneInfo("America/Sao_Paulo")
    year = timezone.now().year + 1
    freeze(
        starts_at=datetime(year, 12, 24, 18, tzinfo=zone),
        ends_at=datetime(year, 12, 26, 8, tzinfo=zone),
    )
    utc = ZoneInfo("UTC")
    assert frozen_until("production", datetime(year, 12, 24, 20, 59, tzinfo=utc)) is None
    assert frozen_until("production", datetime(year, 12, 24, 21, 0, tzinfo=utc)) is not None
    assert frozen_until("production", datetime(year, 12, 26, 10, 59, tzinfo=utc)) is not None
    assert frozen_until("production", datetime(year, 12, 26, 11, 0, tzinfo=utc)) is None


def test_freeze__that_has_not_begun__can_be_ended_and_never_holds(
    releases: list[Release],
) -> None:
    now = timezone.now()
    window = freeze(starts_at=now + timedelta(hours=1), ends_at=now + timedelta(hours=2))
    freeze_end(window=window, actor=OTTO)
    assert frozen_until("production", now + timedelta(minutes=90)) is None
    assert last_audited()[2]["ended"] is True


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"reason": ""}, "reason"),
        ({"reason": "x" * 501}, "reason"),
        ({"ends_at": timezone.now() - timedelta(hours=2)}, "ends_at"),
        ({"ends_at": timezone.now() - timedelta(minutes=1)}, "ends_at"),
        ({"ends_at": datetime(2999, 1, 1)}, "ends_at"),
        ({"starts_at": datetime(2020, 1, 1)}, "starts_at"),
    ],
)
def test_freeze__bad_window__is_refused_by_name(
    releases: list[Release], given: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidContent) as invalid:
        freeze(**given)
    assert [error["field"] for error in invalid.value.errors] == [field]
    assert not FreezeWindow.objects.exists()


def test_freeze__by_somebody_without_a_duty__is_refused(releases: list[Release]) -> None:
    with pytest.raises(NotResponsible):
        freeze(actor=BOB)
    window = freeze()
    with pytest.raises(NotResponsible):
        freeze_end(window=window, actor=BOB)
    assert frozen_until("production", timezone.now()) == window


def test_freeze__another_tenants__is_as_absent(releases: list[Release]) -> None:
    window = freeze()
    with tenant_transaction(Tenant.objects.create(slug="other-freeze", name="Other")):
        assert frozen_until("production", timezone.now()) is None
        with pytest.raises(FreezeWindow.DoesNotExist):
            freeze_end(window=window, actor=OTTO)


# -- time ---------------------------------------------------------------------------------------


def test_bindings__at_a_moment__are_those_that_held_then(releases: list[Release]) -> None:
    moments = [timezone.now()]
    for value in ("http://a.test", "http://b.test"):
        bound = binding_set(environment="dev", what="address", name="x", value=value, actor=OTTO)
        moments.append(timezone.now())
    binding_remove(binding=bound, actor=OTTO)
    moments.append(timezone.now())
    key = ("address", "x")
    assert [bindings_at("dev", moment).get(key) for moment in moments] == [
        None, "http://a.test", "http://b.test", None,
    ]  # fmt: skip
    assert bindings_at("staging", moments[2]) == {}
