"""Environments in the admin: Otto moves them, Ana too, Olga edits and moves nothing, Bob reads,
Charlie sees nothing of it."""

import json
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from apps.releases.authority import setting_up
from apps.releases.change_models import (
    Approval,
    BindingProposal,
    ChangePatch,
    ChangeRequest,
    DeploymentEvent,
    FreezeWindow,
)
from apps.releases.environments.in_flight import OpenConversation, TurnRates
from apps.releases.environments.services import binding_set, release_deploy
from apps.releases.evidence.record import record_verify
from apps.releases.models import Binding, Deployment, Release
from apps.releases.services import item_archive, item_save, release_publish
from apps.releases.tests.conftest import item, small_world
from apps.runtime.canonical import canonical_json
from apps.tenants.models import Role, User
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import membership_grant
from conftest import World

pytestmark = [pytest.mark.django_db, pytest.mark.governed]
PEOPLE = {"olga": Role.BUSINESS_OWNER, "ana": Role.APPROVER, "otto": Role.OPERATOR}
ENVIRONMENTS = ("dev", "staging", "production")
TERMS = {"in_flight": "follow", "max_pin_hours": "72", "reason": "It is time"}


@pytest.fixture
def acme(world: World) -> World:
    """Acme with three releases: production runs the first, staging the second, dev the third."""
    with tenant_transaction(world.acme), setting_up("a test's world"):
        for name, role in PEOPLE.items():
            user = User.objects.create_user(name, f"{name}@example.com", "x")
            membership_grant(user=user, role=role, actor="test")
        small_world()
        bind(*ENVIRONMENTS)
        publish("First")
        stand("First", "production")
        for note in ("Second", "Third"):
            item_save(kind="prompt", slug="billing", content={"system": note}, actor="user:olga")
            publish(note)
        stand("Second", "dev", "staging")
        stand("Third", "dev")
    return world


def bind(*environments: str) -> None:
    for environment in environments:
        binding_set(
            environment=environment,
            what="address",
            name="telecom_mcp",
            value="http://127.0.0.1:9001/mcp",
            actor="user:alice",
        )


def publish(note: str) -> Release:
    return release_publish(actor="user:ana", note=note)


def stand(note: str, *environments: str) -> None:
    for environment in environments:
        release = Release.objects.get(note=note)
        release_deploy(release=release, environment=environment, actor="user:otto")


def signed_in(name: str) -> Client:
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client


def release(world: World, number: int) -> Release:
    with tenant_transaction(world.acme):
        found: Release = Release.objects.get(number=number)
        return found


def running(world: World, environment: str = "production") -> int:
    with tenant_transaction(world.acme):
        row = Deployment.objects.filter(environment=environment)
        return int(row.values_list("release__number", flat=True).first() or 0)


def going(world: World, number: int) -> str:
    return reverse("admin:releases_deploy", args=[release(world, number).pk])


def page(environment: str = "production") -> str:
    return reverse("admin:releases_environment", args=[environment])


def text(response: Any) -> str:
    return str(response.content.decode())


def act(client: Client, does: str, environment: str = "production", **typed: Any) -> Any:
    return client.post(page(environment), {"act": does, **typed})


def test_promote__an_older_release_than_runs__is_not_held_out_first(acme: World) -> None:
    # An emergency went past staging: what staging runs would take it back.
    with tenant_transaction(acme.acme), setting_up("a test's world"):
        stand("Third", "production")
    shown = text(signed_in("otto").get(page()))
    assert "Promote #2 from staging" not in shown
    assert "Promote this" in shown, "who means it still finds it in the list"


# -- promote, deploy, roll back --------------------------------------------------------------------
def test_promote__what_staging_runs__by_an_operator__runs_in_production(acme: World) -> None:
    otto = signed_in("otto")
    assert "Promote #2 from staging" in text(otto.get(page()))
    shown = text(otto.get(going(acme, 2), {"environment": "production"}))
    assert "production runs release #1 and will run release #2" in shown
    assert "Promote to production" in shown
    typed = {**TERMS, "environment": "production", "act": "promote", "in_flight": "pin"}
    response = otto.post(going(acme, 2), {**typed, "max_pin_hours": "5"}, follow=True)
    assert "Release #2 runs in production from the next message on." in text(response)
    assert "they finish on what they began with, for at most 5 hours" in text(response)
    assert running(acme) == 2
    with tenant_transaction(acme.acme):
        event = DeploymentEvent.objects.latest("at")
    assert (event.verb, event.actor, event.reason) == ("promote", "user:otto", "It is time")


@pytest.mark.parametrize("name", ["promote", "deploy", "canary_start", "roll_back"])
def test_production__past_staging__is_reached_by_no_act_of_the_page(acme: World, name: str) -> None:
    """Release #3 runs in dev only: the hop over staging is refused, with the reason."""
    otto = signed_in("otto")
    shown = text(otto.get(going(acme, 3), {"environment": "production"}))
    assert "one hop at a time" in shown
    assert "Promote to production" not in shown
    typed = {**TERMS, "environment": "production", "act": name, "share": "10", "min_turns": "1"}
    response = otto.post(going(acme, 3), typed)
    assert response.status_code == 200
    assert any(w in text(response) for w in ("one hop", "never ran in production"))
    assert 'role="alert"' in text(response)
    assert running(acme) == 1
    with tenant_transaction(acme.acme):
        assert not Deployment.objects.filter(canary__isnull=False).exists()


def test_production__by_who_edited_what_arrives__is_refused(acme: World) -> None:
    with tenant_transaction(acme.acme):
        ChangeRequest.objects.create(
            number=1,
            title="x",
            status="published",
            author="user:otto",
            editors=json.dumps(["user:otto"]),
            release=Release.objects.get(number=2),
            environment="production",
        )
    typed = {**TERMS, "environment": "production", "act": "promote"}
    assert "You edited what would reach production" in text(
        signed_in("otto").post(going(acme, 2), typed)
    )
    assert running(acme) == 1
    assert signed_in("ana").post(going(acme, 2), typed).status_code == 302
    assert running(acme) == 2


def test_roll_back__needs_a_reason_and_returns_to_what_ran(acme: World) -> None:
    otto = signed_in("otto")
    otto.post(going(acme, 2), {**TERMS, "environment": "production", "act": "promote"})
    assert "Roll back to this" in text(otto.get(page()))
    shown = text(otto.get(going(acme, 1), {"environment": "production"}))
    assert "This rolls production back from release #2 to release #1." in shown
    typed = {"environment": "production", "act": "roll_back", "reason": ""}
    assert "This field is required" in text(otto.post(going(acme, 1), typed))
    assert running(acme) == 2
    assert otto.post(going(acme, 1), {**typed, "reason": "Wrong prices"}).status_code == 302
    assert running(acme) == 1
    assert "Wrong prices" in text(otto.get(page()))


def test_deploy__to_staging__works_by_hand_and_says_what_is_removed(
    acme: World, settings: Any
) -> None:
    settings.OPEN_CONVERSATIONS = f"{__name__}.talking"
    with tenant_transaction(acme.acme), setting_up("a test's world"):
        for kind, slug in (("intent", "bill_explain"), ("agent", "billing_agent")):
            item_archive(item=item(kind, slug), actor="a")
        item_save(kind="prompt", slug="billing", content={"system": "Fourth"}, actor="a")
        publish("Fourth")
    otto = signed_in("otto")
    shown = text(otto.get(going(acme, 4), {"environment": "staging"}))
    assert "412 conversations are open." in shown
    assert "3 use something that was removed." in shown
    assert "agent:billing_agent" in shown
    assert "staging-talk-0" in shown
    typed = {**TERMS, "environment": "staging", "act": "deploy"}
    assert otto.post(going(acme, 4), typed).status_code == 302
    assert running(acme, "staging") == 4


def talking(*, environment: str, using: Any = (), limit: int = 200) -> Any:
    """412 open conversations, of which three stand on what is asked for."""
    if not using:
        return 412, []
    talks = [
        OpenConversation(
            uuid4(),
            f"{environment}-talk-{n}",
            None,
            False,
            timezone.now(),
            ("agent:billing_agent",),
        )
        for n in range(3)
    ]
    return 3, talks


@pytest.mark.parametrize("who", ["olga", "bob"])
def test_environment__for_who_may_not_move_it__offers_no_act_and_refuses_all(
    acme: World, who: str
) -> None:
    client = signed_in(who)
    shown = text(client.get(page()))
    assert "Promote #2" not in shown
    assert 'name="act"' not in shown
    assert client.get(going(acme, 2)).status_code == 403
    for name in ("canary_stop", "freeze_add", "binding_propose", "binding_approve"):
        assert act(client, name, reason="x").status_code == 403
    typed = {**TERMS, "environment": "production", "act": "promote"}
    assert client.post(going(acme, 2), typed).status_code == 403
    assert running(acme) == 1


def test_environment__for_another_tenant__shows_nothing_and_takes_nothing(
    acme: World, as_charlie: Client
) -> None:
    shown = text(as_charlie.get(page()))
    assert release(acme, 1).sha256[:12] not in shown
    assert "telecom_mcp" not in shown
    for url in (
        going(acme, 2),
        reverse("admin:releases_record", args=[release(acme, 2).pk]),
        reverse("admin:releases_release_change", args=[release(acme, 2).pk]),
    ):
        assert as_charlie.get(url).status_code == 404
    typed = {**TERMS, "environment": "production", "act": "promote"}
    assert as_charlie.post(going(acme, 2), typed).status_code == 404
    assert running(acme) == 1
    with tenant_transaction(acme.acme):
        window = FreezeWindow.objects.create(
            environment="production",
            starts_at=timezone.now(),
            ends_at=timezone.now() + timedelta(hours=1),
            reason="x",
        )
    assert act(as_charlie, "freeze_end", key=str(window.pk)).status_code == 404


@pytest.mark.parametrize("name", ["moon", "PRODUCTION", "dev%20"])
def test_environment__that_is_none__is_absent(acme: World, as_alice: Client, name: str) -> None:
    for url in (f"/admin/releases/deployment/environment/{name}/", "history/"):
        address = (
            url if url.startswith("/") else f"/admin/releases/deployment/environment/{name}/{url}"
        )
        assert as_alice.get(address).status_code == 404


@pytest.mark.parametrize("name", ["", "promote", "nonsense", "deploy"])
def test_environment__an_act_that_is_not_of_its_page__is_absent(acme: World, name: str) -> None:
    assert act(signed_in("otto"), name).status_code == 404


# -- canaries --------------------------------------------------------------------------------------
CANARY = {**TERMS, "environment": "production", "act": "canary_start", "share": "10",
          "min_turns": "20", "max_error_rate": "0.05", "max_block_rate": "", "max_cost_per_turn": ""}  # fmt: skip


def test_canary__from_start_to_finish__is_shown_with_its_rules_and_rates(
    acme: World, settings: Any
) -> None:
    settings.TURN_RATES = f"{__name__}.rates"
    otto = signed_in("otto")
    shown = text(otto.post(going(acme, 2), CANARY, follow=True))
    assert "Release #2 answers 10 % of the conversations of production." in shown
    assert "Stops above error rate: 5 %" in shown
    assert "Stops above block rate" not in shown
    assert "Turns: 40 · Failed: 2 (5 %) · Blocked: 4 (10 %) · Cost per turn: US$ 0.0050" in shown
    assert "Turns: 0" in shown
    assert "The canary answers 30 % now." in text(
        otto.post(page(), {"act": "canary_change", "share": "30"}, follow=True)
    )
    shown = text(otto.post(page(), {"act": "canary_finish"}, follow=True))
    assert "Release #2 answers everybody now." in shown
    assert running(acme) == 2


def rates(*, release_id: Any, environment: str = "", since: Any = None) -> TurnRates:
    """Release #2 answered forty turns."""
    number = Release.objects.values_list("number", flat=True).get(pk=release_id)
    return TurnRates(40, 2, 4, 0.2) if number == 2 else TurnRates()


def test_canary__stopped__needs_a_reason(acme: World) -> None:
    otto = signed_in("otto")
    otto.post(going(acme, 2), CANARY)
    shown = text(act(otto, "canary_stop", reason=""))
    assert 'role="alert"' in shown
    assert "This field is required" in shown
    assert act(otto, "canary_stop", reason="Odd answers").status_code == 302
    with tenant_transaction(acme.acme):
        assert Deployment.objects.get(environment="production").canary_id is None
    assert "No canary runs in production." in text(act(otto, "canary_stop", reason="again"))


@pytest.mark.parametrize("wrong", [{"share": "0"}, {"share": "100"}, {"max_error_rate": "7"}, {"min_turns": ""}])  # fmt: skip
def test_canary__with_what_cannot_be__keeps_what_was_typed(acme: World, wrong: Any) -> None:
    otto = signed_in("otto")
    shown = text(otto.post(going(acme, 2), {**CANARY, **wrong}))
    assert 'role="alert"' in shown
    assert 'value="It is time"' in shown
    with tenant_transaction(acme.acme):
        assert not Deployment.objects.filter(canary__isnull=False).exists()


# -- windows ---------------------------------------------------------------------------------------
def local(moment: Any) -> str:
    return f"{timezone.localtime(moment):%Y-%m-%dT%H:%M}"


def test_freeze__added__stops_promotion_until_it_is_ended(acme: World) -> None:
    otto, now = signed_in("otto"), timezone.now()
    typed = {
        "starts": local(now - timedelta(hours=1)),
        "ends": local(now + timedelta(hours=1)),
        "zone": "America/Sao_Paulo",
        "reason": "Black Friday",
    }
    shown = text(otto.post(page(), {"act": "freeze_add", **typed}, follow=True))
    assert "Frozen until" in shown
    assert "Black Friday" in shown
    promote = {**TERMS, "environment": "production", "act": "promote"}
    assert "production is frozen until" in text(otto.post(going(acme, 2), promote))
    assert running(acme) == 1
    with tenant_transaction(acme.acme):
        key = str(FreezeWindow.objects.get().pk)
    assert act(otto, "freeze_end", "staging", key=key).status_code == 404  # another environment's
    assert act(otto, "freeze_end", key=key).status_code == 302
    assert otto.post(going(acme, 2), promote).status_code == 302
    assert running(acme) == 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"ends": "2020-01-01T00:00"}, "It ends after it starts."),
        ({"zone": "Mars"}, "There is no time zone Mars"),
        ({"reason": ""}, "This field is required"),
        ({"starts": "soon"}, "Give a date and a time"),
    ],
)
def test_freeze__with_times_that_cannot_be__is_refused(
    acme: World, wrong: dict[str, str], message: str
) -> None:
    now = timezone.now()
    typed = {
        "starts": local(now),
        "ends": local(now + timedelta(hours=1)),
        "zone": "",
        "reason": "x",
        **wrong,
    }
    shown = text(act(signed_in("otto"), "freeze_add", **typed))
    assert message in shown
    assert "ends_at" not in shown, "a field is called what the form calls it"
    with tenant_transaction(acme.acme):
        assert not FreezeWindow.objects.exists()


# -- bindings --------------------------------------------------------------------------------------
PROPOSAL = {
    "what": "address",
    "name": "telecom_mcp",
    "value": "http://127.0.0.1:9002/mcp",
    "reason": "The server moves",
}


def test_binding_of_production__is_proposed_by_one_and_let_in_by_another(acme: World) -> None:
    otto, alice = signed_in("otto"), signed_in("alice")
    shown = text(otto.post(page(), {"act": "binding_propose", **PROPOSAL}, follow=True))
    assert "Proposed. It holds once a second person approves it." in shown
    assert "http://127.0.0.1:9002/mcp" in shown
    assert "Take it back" in shown
    key = proposal(acme)
    assert "You proposed it: somebody else has to decide." in text(
        act(otto, "binding_approve", key=key)
    )
    assert bound(acme) == "http://127.0.0.1:9001/mcp"
    assert act(alice, "binding_approve", key=key).status_code == 302
    assert bound(acme) == "http://127.0.0.1:9002/mcp"


def test_binding_of_production__rejected_or_taken_back__stays(acme: World) -> None:
    otto, alice = signed_in("otto"), signed_in("alice")
    act(otto, "binding_propose", **PROPOSAL)
    key = proposal(acme)
    assert "Say why." in text(act(alice, "binding_reject", key=key))
    assert act(alice, "binding_reject", key=key, comment="Not yet").status_code == 302
    act(otto, "binding_propose", **PROPOSAL)
    assert "Only who proposed it takes it back." in text(
        act(alice, "binding_withdraw", key=proposal(acme))
    )
    assert act(otto, "binding_withdraw", key=proposal(acme)).status_code == 302
    assert bound(acme) == "http://127.0.0.1:9001/mcp"


def test_binding_of_production__on_its_own_form__is_refused_with_the_way(acme: World) -> None:
    with tenant_transaction(acme.acme):
        key = Binding.objects.get(environment="production").pk
    alice = signed_in("alice")
    change = reverse("admin:releases_binding_change", args=[key])
    shown = text(alice.post(change, {"value": "http://127.0.0.1:9002/mcp"}))
    assert "Bindings of production change by a proposal that a second person approves" in shown
    remove = reverse("admin:releases_binding_remove", args=[key])
    assert "Not removed." in text(alice.post(remove))
    add = reverse("admin:releases_binding_add")
    shown = text(alice.post(add, {**PROPOSAL, "environment": "production", "name": "new"}))
    assert "change by a proposal" in shown
    assert bound(acme) == "http://127.0.0.1:9001/mcp"
    # Elsewhere nobody has to wait.
    with tenant_transaction(acme.acme):
        key = Binding.objects.get(environment="dev").pk
    change = reverse("admin:releases_binding_change", args=[key])
    assert alice.post(change, {"value": "http://127.0.0.1:9002/mcp"}).status_code == 302


def test_binding_form__opened_from_a_refusal__is_filled_in(acme: World) -> None:
    shown = text(signed_in("otto").get(page(), {"what": "credential", "name": "telecom_key"}))
    assert 'value="telecom_key"' in shown
    assert '<details class="ao-box-body" id="propose" open>' in shown


def proposal(world: World) -> str:
    with tenant_transaction(world.acme):
        return str(BindingProposal.objects.get(status="open").pk)


def bound(world: World) -> str:
    with tenant_transaction(world.acme):
        return str(Binding.objects.get(environment="production", name="telecom_mcp").value)


# -- history ---------------------------------------------------------------------------------------
def test_environment_history__at_a_moment__tells_what_ran(acme: World, as_bob: Client) -> None:
    between = timezone.now()
    signed_in("otto").post(going(acme, 2), {**TERMS, "environment": "production", "act": "promote"})
    url = reverse("admin:releases_environment_history", args=["production"])
    shown = text(as_bob.get(url, {"at": between.isoformat(), "zone": ""}))
    told = shown[shown.index('role="status"') :]
    assert "#1</a>" in told[: told.index("</div>")]
    assert "It is time" in shown
    bound_then = shown[shown.index('id="bound"') :]
    assert "http://127.0.0.1:9001/mcp" in bound_then[: bound_then.index("</div>")]
    shown = text(as_bob.get(url, {"at": "2020-01-01T00:00", "zone": "UTC"}))
    assert "production ran nothing." in shown
    assert "lies ahead" in text(as_bob.get(url, {"at": "2999-01-01T00:00", "zone": "UTC"}))


def test_release__at_a_moment__tells_where_it_ran(acme: World, as_bob: Client) -> None:
    url = reverse("admin:releases_release_change", args=[release(acme, 2).pk])
    with tenant_transaction(acme.acme):
        moved = DeploymentEvent.objects.filter(environment="dev").latest("at").at
    for moment, there in ((moved - timedelta(microseconds=1), 2), (timezone.now(), 1)):
        shown = text(as_bob.get(url, {"at": moment.isoformat(), "zone": ""}))
        told = shown[shown.index("it ran in:") :]
        assert told[: told.index("</p>")].count("ao-badge-good") == there
    early = text(as_bob.get(url, {"at": "2020-01-01T00:00", "zone": "UTC"}))
    assert "this release was not published yet" in early


def test_configuration__at_a_moment__is_compared_with_now(acme: World, as_bob: Client) -> None:
    moment = timezone.now()
    with tenant_transaction(acme.acme), setting_up("a test's world"):
        item_save(kind="prompt", slug="billing", content={"system": "Later words"}, actor="a")
        item_save(kind="prompt", slug="later", content={"system": "x"}, actor="a")
    url = reverse("admin:releases_as_of")
    shown = text(as_bob.get(url, {"at": moment.isoformat(), "zone": ""}))
    assert "there were 9 items." in shown
    assert "What changed since then (2)" in shown
    assert "Later words" in shown


def test_item__at_a_moment__shows_its_content_and_what_changed_since(
    acme: World, as_bob: Client, as_charlie: Client
) -> None:
    with tenant_transaction(acme.acme):
        prompt = item("prompt", "billing")
        moment = Release.objects.get(number=1).published_at
    url = reverse("admin:agents_prompt_as_of", args=[prompt.pk])
    shown = text(as_bob.get(url, {"at": moment.isoformat(), "zone": ""}))
    assert "revision 1 of user:alice was the head" in shown
    assert "You explain bills." in shown
    assert "What changed since then" in shown
    assert "There is no time zone" in text(as_bob.get(url, {"at": "2026-01-01T00:00", "zone": "x"}))
    assert as_charlie.get(url).status_code == 404


def test_reach__of_a_tool__names_agents_environments_and_releases(
    acme: World, as_bob: Client, as_charlie: Client
) -> None:
    with tenant_transaction(acme.acme):
        key = item("tool", "get_bill").pk
    url = reverse("admin:tools_tool_reach", args=[key])
    shown = text(as_bob.get(url))
    for name in ENVIRONMENTS:
        assert page(name) in shown
    assert reverse("admin:agents_agent_by_slug", args=["billing_agent"]) in shown
    assert "(3)" in shown
    assert as_charlie.get(url).status_code == 404


# -- one release -----------------------------------------------------------------------------------
@pytest.fixture
def approved(acme: World) -> ChangeRequest:
    """Release #2 came by a request that Ana approved, after a void approval of something else."""
    with tenant_transaction(acme.acme):
        found = Release.objects.get(number=2)
        made: ChangeRequest = ChangeRequest.objects.create(
            number=4,
            title="Kinder words",
            reason="Customers asked",
            status="published",
            author="user:olga",
            editors=canonical_json(["user:olga"]),
            manifest_sha256=found.sha256,
            release=found,
        )
        ChangePatch.objects.create(
            request=made, kind="prompt", slug="billing", action="change", edited_by="user:olga"
        )
        for sha256, duties, behalf in (
            ("0" * 64, ["domain"], ""),
            (found.sha256, ["domain", "sre"], "user:zoe"),
        ):
            Approval.objects.create(
                request=made,
                person="user:ana",
                decision="approve",
                manifest_sha256=sha256,
                terms="1" * 64,
                duties=canonical_json(duties),
                on_behalf_of=behalf,
            )
    return made


def test_release_page__shows_request_approvals_by_hash_notes_and_deployments(
    acme: World, approved: ChangeRequest, as_bob: Client
) -> None:
    shown = text(as_bob.get(reverse("admin:releases_release_change", args=[release(acme, 2).pk])))
    requests = shown[shown.index('id="requests"') : shown.index('id="evidence"')]
    assert "#4 Kinder words" in requests
    assert "on behalf of zoe" in requests
    assert "Domain, SRE" in requests
    assert requests.count("this release") == 1
    assert requests.count("another manifest: void") == 1
    notes = shown[shown.index('id="notes"') : shown.index('id="requests"')]
    assert "Prompt billing: " in notes
    ran = shown[shown.index('id="deployments"') : shown.index('id="contents"')]
    assert ran.count("Deployed · ") == 2  # dev and staging
    assert "verified" in shown


def test_release_page__with_an_emergency__shows_it_for_ever(
    acme: World, approved: ChangeRequest, as_bob: Client
) -> None:
    with tenant_transaction(acme.acme):
        approved.broken_glass_by, approved.broken_glass_reason = "user:otto", "Prices were wrong"
        approved.broken_glass_until = timezone.now() + timedelta(hours=24)
        approved.save()
    url = reverse("admin:releases_release_change", args=[release(acme, 2).pk])
    shown = text(as_bob.get(url))
    assert "Emergency: user:otto published request #4 without approvals." in shown
    assert "Prices were wrong" in shown
    assert "A second person has to ratify it by" in shown


def test_release_page__with_a_weakening__marks_it(acme: World, as_bob: Client) -> None:
    with tenant_transaction(acme.acme), setting_up("a test's world"):
        rails = {"input": [{"code": "MSK"}, {"code": "PINJ"}]}
        item_save(kind="rail_policy", slug="default", content=rails, actor="a")
        publish("Strict")
        item_save(
            kind="rail_policy", slug="default", content={"input": [{"code": "MSK"}]}, actor="a"
        )
        publish("Loose")
    url = reverse("admin:releases_release_change", args=[release(acme, 5).pk])
    shown = text(as_bob.get(url))
    notes = shown[shown.index('id="notes"') : shown.index('id="requests"')]
    assert notes.index("Weakens safety") < notes.index("Changed")
    difference = shown[shown.index('id="changes"') : shown.index('id="deployments"')]
    assert '<p class="ao-finding"><strong>Weakens safety:</strong>' in difference
    reworded = reverse("admin:releases_release_change", args=[release(acme, 3).pk])
    assert "Weakens safety" not in text(as_bob.get(reworded))


def test_record__downloaded_by_an_auditor__verifies(
    acme: World, approved: ChangeRequest, as_bob: Client
) -> None:
    response = as_bob.get(reverse("admin:releases_record", args=[release(acme, 2).pk]))
    assert response.headers["Content-Disposition"].endswith('.record.json"')
    record = record_verify(response.content)
    assert record["tenant"] == "acme"
    assert record["requests"][0]["approvals"][1]["is_of_this_manifest"]


@pytest.mark.parametrize("who", ["alice", "ana", "olga", "otto", "bob"])
def test_release__edited_through_any_address__is_refused(acme: World, who: str) -> None:
    client, found = signed_in(who), release(acme, 2)
    typed = {"manifest": "{}", "sha256": "0" * 64, "note": "Forged", "number": "9"}
    change = reverse("admin:releases_release_change", args=[found.pk])
    client.post(change, typed)
    assert client.post(f"{change}?_popup=1", typed).status_code in (200, 403, 404, 405)
    for name in ("releases_release_delete", "releases_manifest", "releases_record"):
        client.post(reverse(f"admin:{name}", args=[found.pk]), typed)
    assert client.post(reverse("admin:releases_release_add"), typed).status_code == 403
    after = release(acme, 2)
    assert (after.manifest, after.sha256, after.note) == (found.manifest, found.sha256, "Second")
    assert 'name="manifest"' not in text(client.get(change))


@pytest.mark.once  # It changes rows, which the application's role may not.
@pytest.mark.parametrize("manifest", ["{}", "no json", '{"format":1,"items":{"prompt":{}}}'])
def test_release_pages__with_changed_bytes__say_so_and_break_nothing(
    acme: World, as_bob: Client, manifest: str
) -> None:
    found = release(acme, 2)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE releases_release SET manifest = %s WHERE number = 2 AND tenant_id = %s",
            [manifest, acme.acme.pk],
        )
    for number in (2, 3):  # itself, and the one that follows it
        url = reverse("admin:releases_release_change", args=[release(acme, number).pk])
        shown = text(as_bob.get(url))
        assert ("The stored bytes no longer have this sha256" in shown) == (number == 2)
    record = reverse("admin:releases_record", args=[found.pk])
    assert "does not have the sha256" in text(as_bob.get(record, follow=True))
    item_url = reverse("admin:releases_release_item", args=[found.pk, "prompt", "billing"])
    assert as_bob.get(item_url).status_code == 404
    otto = signed_in("otto")
    assert otto.get(going(acme, 2), {"environment": "production"}).status_code == 200
    typed = {**TERMS, "environment": "production", "act": "promote"}
    assert "does not have the sha256" in text(otto.post(going(acme, 2), typed))
    assert running(acme) == 1


def test_pages__with_more_releases_and_items__ask_as_many_queries(
    acme: World, as_bob: Client
) -> None:
    urls = [
        page("staging"),
        reverse("admin:releases_environment_history", args=["staging"]),
        reverse("admin:releases_release_change", args=[release(acme, 3).pk]),
        reverse("admin:releases_release_changelist"),
    ]

    def queries() -> list[int]:
        counts = []
        for url in urls:
            assert as_bob.get(url).status_code == 200
            with CaptureQueriesContext(connection) as captured:
                as_bob.get(url)
            counts.append(len(captured))
        return counts

    few = queries()
    with tenant_transaction(acme.acme), setting_up("a test's world"):
        for number in range(15):
            item_save(kind="prompt", slug=f"p{number}", content={"system": "x"}, actor="a")
            stand(publish(f"More {number}").note, "staging")
    assert queries() == few
