"""Refreshing a real server that changes: what is held, what is proposed, what stays as it is."""

import copy
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.management import CommandError, call_command
from django.utils import timezone

from apps.releases.change_models import ChangeRequest
from apps.releases.changes.selectors import patched_content
from apps.releases.changes.services import request_withdraw
from apps.releases.models import ConfigItem, Deployment, Release
from apps.releases.services import item_save
from apps.tenants.models import AuditEntry
from apps.tools.config import ToolConfig
from apps.tools.contract_models import SeenTool, ServerState, ToolQuarantine
from apps.tools.contracts.chores import tools_due
from apps.tools.contracts.hashing import pin_holds
from apps.tools.contracts.refreshing import changed_noticed
from apps.tools.contracts.selectors import (
    UnknownServer,
    quarantine_diff,
    server_listed,
    servers_list,
    tool_rows,
)
from apps.tools.contracts.services import NothingToPropose, server_changed, tools_take
from apps.tools.tests.changing_server import BALANCE, BLOCK, ChangingServer, changing
from apps.tools.tests.drifting import ENVIRONMENT, refresh, tenant_make

pytestmark = pytest.mark.django_db
NEW = {"name": "segunda_via", "description": "Emite.", "inputSchema": {"type": "object", "properties": {}}}  # fmt: skip


@pytest.fixture(scope="module")
def process(tmp_path_factory) -> Iterator[ChangingServer]:
    """One server for the module: its tools are what the running test says."""
    with changing(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture
def server(process: ChangingServer) -> ChangingServer:
    process.offer(BALANCE, BLOCK)
    return process


@pytest.fixture
def crm(server: ChangingServer, in_acme: Any) -> ChangingServer:
    tenant_make(server)
    return server


def balance(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(BALANCE), **changes}


def with_property(
    name: str, inner: dict[str, Any] | None, required: list[str] | None = None
) -> Any:
    tool = balance()
    if inner is None:
        del tool["inputSchema"]["properties"][name]
    else:
        tool["inputSchema"]["properties"][name] = inner
    if required is not None:
        tool["inputSchema"]["required"] = required
    return tool


def everything() -> dict[str, Any]:
    """Everything that a refresh must leave as it was, but the server's own row."""
    return {
        "heads": list(ConfigItem.objects.order_by("pk").values_list("slug", "head__digest")),
        "releases": list(Release.objects.values_list("sha256", flat=True)),
        "deployed": list(Deployment.objects.values_list("environment", "release_id")),
        "requests": list(ChangeRequest.objects.order_by("pk").values_list("number", "status")),
        "held": list(ToolQuarantine.objects.order_by("pk").values_list("tool", "closed_at")),
        "seen": list(SeenTool.objects.order_by("pk").values_list("name", "sha256", "gone_at")),
    }


# -- drift -------------------------------------------------------------------------------------
CHANGES = {
    "description": (balance(description="Consulta o saldo. Antes, peça o CPF."), "description"),
    "title": (balance(title="Outro título"), "title"),
    "schema": (
        with_property("msisdn", {"type": "integer", "description": "Número da linha"}),
        "input_schema.properties.msisdn.type",
    ),
    "enum": (
        with_property("periodo", {"type": "string", "enum": ["hoje", "ano"], "description": "De quando"}),
        "input_schema.properties.periodo.enum",
    ),
    "output": (
        balance(outputSchema={"type": "object", "properties": {"saldo": {"type": "string"}}, "required": ["saldo"]}),
        "output_schema.properties.saldo.type",
    ),
    "annotations": (balance(annotations={"readOnlyHint": False}), "annotations.readOnlyHint"),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_refresh__of_a_changed_tool__quarantines_shows_and_proposes(crm, change):
    assert refresh().drifted == ()
    before = everything()
    tool, path = CHANGES[change]
    crm.offer(tool, BLOCK)
    done = refresh()
    assert (done.state, done.drifted, done.gone, done.count) == (
        "listed",
        ("consultar_saldo",),
        (),
        2,
    )
    held = ToolQuarantine.objects.get(closed_at=None)
    assert (held.tool, held.reason, held.opened_by) == ("consultar_saldo", "changed", "user:alice")
    assert path in [entry["path"] for entry in quarantine_diff(held)]
    assert {f"{u['kind']}:{u['slug']}" for u in json.loads(held.affected)} == {
        "agent:saldo", "intent:saldo", "parameter_mapping:saldo",
    }  # fmt: skip
    request = ChangeRequest.objects.get()
    assert (request.number, request.status, request.author) == (done.request, "draft", "user:alice")
    content = patched_content(request, "tool", "consultar_saldo")
    assert content is not None
    proposed = ToolConfig.model_validate(content)
    assert proposed.contract.sha256 == held.seen_sha256
    assert pin_holds("consultar_saldo", proposed)
    after = everything()
    # Nothing that is accepted or runs has moved.
    assert [after[k] for k in ("heads", "releases", "deployed")] == [
        before[k] for k in ("heads", "releases", "deployed")
    ]
    assert AuditEntry.objects.filter(action="tool.quarantined").count() == 1
    print(
        f"\n{change}: quarantined, at {path}, draft #{request.number}, heads and release untouched"
    )


def test_refresh__of_a_narrower_enum__adjusts_the_argument(crm):
    crm.offer(CHANGES["enum"][0], BLOCK)
    done = refresh()
    content = patched_content(
        ChangeRequest.objects.get(number=done.request), "tool", "consultar_saldo"
    )
    assert content is not None
    assert content["args_schema"]["periodo"]["enum"] == ["hoje", "ano"]


def test_refresh__of_a_renamed_argument__names_the_mapping_that_fills_it_in_vain(crm):
    tool = with_property("msisdn", None, required=["linha"])
    tool["inputSchema"]["properties"]["linha"] = {"type": "string"}
    crm.offer(tool, BLOCK)
    refresh()
    notes = [text % words for text, words in json.loads(ToolQuarantine.objects.get().notes)]
    assert notes == [
        "The server requires a new argument, linha: say what fills it.",
        "Parameter mapping saldo fills msisdn, which is gone.",
    ]


def test_refresh__twice_of_the_same_change__makes_one_draft(crm):
    crm.offer(CHANGES["enum"][0], BLOCK)
    first, second = refresh(), refresh(actor="user:bob")
    assert (first.request, second.request) == (1, None)
    assert second.drifted == ("consultar_saldo",)
    assert ChangeRequest.objects.count() == 1
    assert ToolQuarantine.objects.count() == 1


def test_refresh__of_a_further_change__edits_the_same_draft(crm):
    crm.offer(CHANGES["enum"][0], BLOCK)
    refresh()
    crm.offer(CHANGES["description"][0], BLOCK)
    assert refresh().request == 1
    content = patched_content(ChangeRequest.objects.get(), "tool", "consultar_saldo")
    held = ToolQuarantine.objects.get()
    assert content is not None
    assert content["contract"]["sha256"] == held.seen_sha256
    assert content["args_schema"]["periodo"]["enum"] == ["hoje", "mes"]


def test_refresh__after_the_draft_was_withdrawn__does_not_ask_again(crm):
    crm.offer(CHANGES["enum"][0], BLOCK)
    refresh()
    request_withdraw(request=ChangeRequest.objects.get(), actor="user:alice")
    assert refresh().request is None
    assert ToolQuarantine.objects.get().closed_at is None


def test_refresh__with_a_draft_of_somebodys_own__leaves_it_alone(crm):
    from apps.releases.changes.services import request_open

    own = request_open(actor="user:alice", title="Mine")
    crm.offer(CHANGES["enum"][0], BLOCK)
    assert refresh().request == own.number + 1
    assert not own.patches.exists()


def test_refresh__of_a_tool_that_is_as_accepted_again__releases_it(crm):
    crm.offer(CHANGES["enum"][0], BLOCK)
    refresh()
    crm.offer(BALANCE, BLOCK)
    assert refresh().released == ("consultar_saldo",)
    assert ToolQuarantine.objects.get().closed_at is not None
    comment = ChangeRequest.objects.get().comments.get()
    assert "declares again what was accepted" in comment.text


def test_refresh__of_what_runs__is_no_drift_while_the_next_pin_waits(crm, in_acme):
    """What was approved already, and what still runs, are both accepted."""
    crm.offer(CHANGES["description"][0], BLOCK)
    done = refresh()
    content = patched_content(
        ChangeRequest.objects.get(number=done.request), "tool", "consultar_saldo"
    )
    assert content is not None
    item_save(kind="tool", slug="consultar_saldo", content=content, actor="test")
    assert refresh().released == ("consultar_saldo",)
    crm.offer(BALANCE, BLOCK)
    assert refresh().drifted == ()


# -- gone, empty, unreachable ------------------------------------------------------------------
def test_refresh__without_a_tool_of_a_list__holds_it_as_gone(crm):
    refresh()
    crm.offer(BLOCK)
    done = refresh()
    assert (done.gone, done.drifted, done.request) == (("consultar_saldo",), (), None)
    assert ToolQuarantine.objects.get().reason == "gone"
    assert not ChangeRequest.objects.exists()
    crm.offer(BALANCE, BLOCK)
    assert refresh().released == ("consultar_saldo",)


def test_refresh__of_an_empty_list__changes_nothing(crm):
    refresh()
    before = everything()
    crm.offer()
    done = refresh()
    assert (done.state, done.count) == ("empty", 2)
    assert everything() == before
    state = ServerState.objects.get()
    assert (state.code, state.count) == ("empty", 2)


def test_refresh__of_a_server_that_is_down__changes_nothing(crm):
    refresh()
    before = everything()
    crm.kill()
    done = refresh()
    assert (done.state, done.count) == ("unreachable", 2)
    assert everything() == before
    state = ServerState.objects.get()
    assert (state.code, state.count, bool(state.error)) == ("unreachable", 2, True)
    crm.start()
    assert refresh().state == "listed"
    assert ServerState.objects.get().error == ""


def test_refresh__without_an_address__says_so(crm):
    done = refresh(environment="dev")
    assert (done.state, done.count) == ("unbound", 0)
    assert not server_listed("crm", "dev").is_bound


def test_refresh__of_no_server__is_refused(crm):
    from apps.tools.contracts.refreshing import server_refresh

    with pytest.raises(UnknownServer):
        server_refresh(server="nothing", environment=ENVIRONMENT, actor="user:alice")


def test_refresh__of_unpinned_tools__holds_none(server, in_acme):
    tenant_make(server, pinned=False)
    server.offer(CHANGES["enum"][0], BLOCK)
    done = refresh()
    assert (done.drifted, done.added, done.count) == ((), (), 2)
    assert [row.status for row in tool_rows("crm", ENVIRONMENT)] == ["unpinned", "unpinned"]


# -- pages, new tools --------------------------------------------------------------------------
def test_refresh__of_101_tools_on_three_pages__counts_101(crm):
    many = [{**NEW, "name": f"tool_{number:03}"} for number in range(99)]
    crm.offer(BALANCE, BLOCK, *many, page=50)
    done = refresh()
    assert (done.count, len(done.added)) == (101, 99)
    [listed] = servers_list()
    assert (listed.count, listed.drifted, listed.error) == (101, 0, "")


def test_new_tool__taken_over__is_a_draft_and_nothing_more(crm):
    crm.offer(BALANCE, BLOCK, NEW)
    assert refresh().added == ("segunda_via",)
    assert not ChangeRequest.objects.exists()
    request = tools_take(
        server="crm", environment=ENVIRONMENT, names=["segunda_via"], actor="user:bob"
    )
    assert (request.status, request.author) == ("draft", "user:bob")
    content = patched_content(request, "tool", "segunda_via")
    assert content is not None
    assert (content["tool_type"], content["confirmation_required"]) == ("action", True)
    assert not ConfigItem.objects.filter(slug="segunda_via").exists()


def test_new_tool__of_a_name_that_is_taken__is_qualified_by_its_server(crm):
    item_save(kind="tool_server", slug="erp", content={"endpoint": "crm_url"}, actor="test")
    from apps.tools.contracts.refreshing import server_refresh

    assert server_refresh(server="erp", environment=ENVIRONMENT, actor="x").added == (
        "bloquear_linha", "consultar_saldo",
    )  # fmt: skip
    request = tools_take(
        server="erp", environment=ENVIRONMENT, names=["consultar_saldo"], actor="x"
    )
    [patch] = request.patches.all()
    assert patch.slug == "erp.consultar_saldo"
    content = patched_content(request, "tool", patch.slug)
    assert content is not None
    assert content["remote_name"] == "consultar_saldo"
    assert pin_holds(patch.slug, ToolConfig.model_validate(content))


def test_known_tool__without_a_pin__is_pinned_by_taking_it_over(server, in_acme):
    tenant_make(server, pinned=False)
    refresh()
    request = tools_take(server="crm", environment=ENVIRONMENT, names=["consultar_saldo", "nothing"], actor="x")  # fmt: skip
    content = patched_content(request, "tool", "consultar_saldo")
    assert content is not None
    assert pin_holds("consultar_saldo", ToolConfig.model_validate(content))
    assert content["contract"]["sha256"]
    with pytest.raises(NothingToPropose):
        tools_take(server="crm", environment=ENVIRONMENT, names=["nothing"], actor="x")


# -- by the clock, by command ------------------------------------------------------------------
def test_chore__asks_what_is_due__and_nothing_twice(crm, settings):
    now = timezone.now()
    tools_due(now)
    first = ServerState.objects.get().checked_at
    assert first is not None
    tools_due(now + timedelta(seconds=5))
    assert ServerState.objects.get().checked_at == first
    server_changed(server="crm")
    tools_due(now + timedelta(seconds=10))
    again = ServerState.objects.get()
    assert again.checked_at > first
    assert again.changed_at is None
    settings.TOOLS_REFRESH_SECONDS = 0
    tools_due(now + timedelta(days=2))
    assert ServerState.objects.get().checked_at == again.checked_at


def test_notice__of_a_server_that_was_never_asked__has_it_asked(crm, world, settings):
    settings.TOOLS_REFRESH_SECONDS = 0
    tools_due(timezone.now())
    assert not ServerState.objects.exists()
    async_to_sync(changed_noticed)(str(world.acme.pk), "crm")
    assert ServerState.objects.get().changed_at is not None
    crm.offer(CHANGES["enum"][0], BLOCK)
    tools_due(timezone.now())
    assert ToolQuarantine.objects.get().tool == "consultar_saldo"
    assert ServerState.objects.get().changed_at is None


def test_chore__finding_a_drift__drafts_as_nobody_in_person(crm):
    crm.offer(CHANGES["enum"][0], BLOCK)
    tools_due(timezone.now())
    assert ChangeRequest.objects.get().author == "command:tools_refresh"


def test_command__prints_what_it_found(crm, capsys):
    crm.offer(CHANGES["enum"][0], BLOCK, NEW)
    call_command("tools_refresh", tenant="acme")
    said = capsys.readouterr().out
    assert "crm production: 3 tools" in said
    assert "drifted: consultar_saldo" in said
    assert "new: segunda_via" in said
    assert "change request #1" in said


def test_command__for_what_is_not_there__says_so(crm):
    with pytest.raises(CommandError, match="no tenant"):
        call_command("tools_refresh", tenant="nobody")
    with pytest.raises(CommandError, match="no tool server"):
        call_command("tools_refresh", tenant="acme", server="nothing")


def test_servers__of_one_tenant__are_not_anothers(crm, world):
    from apps.tenants.scope import tenant_transaction

    refresh()
    with tenant_transaction(world.other):
        assert servers_list() == []
        with pytest.raises(UnknownServer):
            server_listed("crm", ENVIRONMENT)
