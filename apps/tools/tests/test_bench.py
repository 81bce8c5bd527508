"""The bench: a real server tried by people with and without permission, and mocks in its place."""

import html
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import reverse

from apps.releases.models import ConfigItem
from apps.releases.services import item_save
from apps.runtime.ports import RemoteTool, ToolUnavailable
from apps.runtime.testing import FakeTransport
from apps.tenants.models import AuditEntry, Role, User
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import membership_grant
from apps.tools.bench.mocking import (
    MockRefused,
    MockStep,
    MockTransport,
    steps_check,
    steps_read,
    steps_write,
)
from apps.tools.bench.running import _Watched
from apps.tools.config import Argument, ToolConfig
from apps.tools.contract_models import ToolMock
from apps.tools.restricted import value_scrub
from apps.tools.tests.changing_server import BALANCE, BLOCK, ChangingServer, changing
from apps.tools.tests.drifting import ENVIRONMENT, tenant_make
from conftest import World

CPF = "529.982.247-25"
REMOTE = RemoteTool(server="crm", transport="http", address="http://x", name="saldo", timeout_seconds=1)  # fmt: skip


# -- mocks, without a database -----------------------------------------------------------------
async def answer(*steps: MockStep, **arguments: Any) -> Any:
    return await MockTransport({"saldo": steps}).call(REMOTE, arguments, idempotency_key="k")


async def test_mock__with_a_fixed_result__answers_everything():
    found = await answer(MockStep(result={"saldo": 1}), msisdn="2")
    assert (found.ok, found.result) == (True, {"saldo": 1})


async def test_mock__with_patterns__answers_with_the_first_that_fits():
    steps = (
        MockStep(when={"msisdn": "119*"}, result="eleven"),
        MockStep(when={"mes": 3}, error="Não há fatura."),
        MockStep(when={"msisdn": "?1*", "mes": 4}, unavailable=True),
    )
    assert (await answer(*steps, msisdn="11999", mes=3)).result == "eleven"
    assert (await answer(*steps, msisdn="21999", mes=3)).error == "Não há fatura."
    with pytest.raises(ToolUnavailable):
        await answer(*steps, msisdn="21999", mes=4)
    # "3" is not 3, and what is not given fits no pattern.
    for arguments in ({"msisdn": "2", "mes": "3"}, {}):
        found = await answer(*steps, **arguments)
        assert (found.ok, found.error) == (False, "No step of the mock fits these arguments.")


async def test_mock__that_waits_longer_than_the_deadline__does_not_answer_in_time():
    with pytest.raises(ToolUnavailable) as late:
        await answer(MockStep(result=1, delay_ms=5_000))
    assert (late.value.code, late.value.sent) == ("timeout", True)


async def test_mock__keeps_what_it_was_asked():
    mock = MockTransport({}, listed=[{"name": "saldo"}])
    await mock.call(REMOTE, {"a": 2**63 - 1}, idempotency_key="k")
    assert mock.calls == [("saldo", {"a": 2**63 - 1})]
    assert await mock.list_tools(REMOTE) == [{"name": "saldo"}]


def test_mock__written_and_read__is_the_same():
    steps = [
        MockStep(when={"a": 1}, result={"x": None}, delay_ms=5), MockStep(error="no"), MockStep(unavailable=True),
    ]  # fmt: skip
    assert steps_read(steps_write(steps)) == steps


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ({}, "A mock is a list of steps."),
        ([1], "Step 1 is no object."),
        ([{"resultado": 1}], "Step 1 has the unknown field resultado."),
        ([{"when": []}], "Step 1: when must be an object of arguments."),
        ([{"error": 1}], "Step 1: error must be text."),
        ([{"unavailable": "yes"}], "Step 1: unavailable must be true or false."),
        ([{"delay_ms": -1}], "Step 1: delay_ms must be a whole number from 0 to 30000."),
        ([{"delay_ms": True}], "Step 1: delay_ms must be a whole number from 0 to 30000."),
        ([{"result": 1, "error": "x"}], "Step 1 has more than one of result, error, unavailable."),
        ([{}] * 51, "At most 50 steps."),
        (
            [{"result": {"saldo": "muito"}}],
            "Step 1: the result is not as the output schema says at $.saldo: 'muito' is not of type 'number'",
        ),
    ],
)
def test_mock__that_is_none__says_why(steps, said):
    with pytest.raises(MockRefused) as refused:
        steps_check(steps, BALANCE["outputSchema"])
    assert said in str(refused.value)


# -- the page ----------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def process(tmp_path_factory) -> Iterator[ChangingServer]:
    with changing(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture
def crm(process: ChangingServer, world: World) -> ChangingServer:
    process.offer(BALANCE, BLOCK)
    process.forget()
    with tenant_transaction(world.acme):
        tenant_make(process)
        operator = User.objects.create_user("otto", "otto@example.com", "x")
        membership_grant(user=operator, role=Role.OPERATOR, actor="test")
        owner = User.objects.create_user("olga", "olga@example.com", "x")
        membership_grant(user=owner, role=Role.BUSINESS_OWNER, actor="test")
    return process


def page(world: World, slug: str = "consultar_saldo", name: str = "bench", query: str = "") -> str:
    with tenant_transaction(world.acme):
        key = ConfigItem.objects.get(kind="tool", slug=slug).pk
    return reverse(f"admin:tools_tool_{name}", args=[key]) + query


def run(browser: Any, address: str, **data: Any) -> str:
    """Send the bench's form and return the page as text."""
    response = browser.post(address, {"mode": "live", "run": "r1", **data})
    assert response.status_code == 200
    return html.unescape(response.content.decode())


def shown(text: str, title: str) -> Any:
    """Return the JSON that the page shows under ``title``."""
    found = re.search(rf"<summary>{title}</summary><div[^>]*>(.*?)</div>", text, re.S)
    assert found is not None, title
    return json.loads(found[1])


def by(name: str, client: Any) -> Any:
    client.force_login(User.objects.get(username=name))
    return client


def trail(world: World) -> list[dict[str, Any]]:
    with tenant_transaction(world.acme):
        rows = AuditEntry.objects.filter(action="tool.tried").order_by("sequence")
        return [json.loads(row.detail) for row in rows]


@pytest.mark.django_db
def test_bench__with_sample_arguments__shows_what_was_sent_and_answered(crm, world, as_alice):
    form = as_alice.get(page(world)).content.decode()
    for expected in ("msisdn *", "Número da linha", '<option value="hoje"', "Run the tool"):
        assert expected in form
    text = run(as_alice, page(world), arg_0="11999999999", arg_1="mes")
    sent = shown(text, "Raw request")
    assert (sent["tool"], sent["arguments"]) == (
        "consultar_saldo", {"msisdn": "11999999999", "periodo": "mes"},
    )  # fmt: skip
    raw = shown(text, "Raw result")
    assert raw["structuredContent"] == {"saldo": 12.5, "titular": f"Maria, CPF {CPF}"}
    assert raw["content"][0]["type"] == "text"
    assert shown(text, "Normalised result")["result"]["saldo"] == 12.5
    assert "answered" in text
    assert crm.calls() == [
        {"name": "consultar_saldo", "arguments": {"msisdn": "11999999999", "periodo": "mes"}}
    ]


@pytest.mark.django_db
def test_bench__fills_arguments_from_the_business_context(crm, world, as_alice):
    text = run(as_alice, page(world), customer_key="11888887777")
    assert shown(text, "Raw request")["arguments"] == {"msisdn": "11888887777"}


@pytest.mark.django_db
def test_bench__without_a_required_argument__says_so_at_its_field(crm, world, as_alice):
    text = run(as_alice, page(world))
    assert "It was not sent." in text
    assert 'id="id_arg_0_error"' in text
    assert "This field is required." in text
    assert crm.calls() == []


@pytest.mark.django_db
def test_bench__for_who_may_not_see_personal_data__masks_it(crm, world, client):
    text = run(by("otto", client), page(world), arg_0="11999999999")
    assert CPF not in text
    assert "Personal data is masked." in text
    assert crm.calls()[0]["arguments"] == {"msisdn": "11999999999"}  # the server gets the real one


@pytest.mark.django_db
def test_bench__that_was_run__is_in_the_trail_without_values(crm, world, as_alice):
    run(as_alice, page(world), arg_0="11999999999")
    [entry] = trail(world)
    assert (entry["mode"], entry["status"], entry["arguments"]) == ("live", "ok", ["msisdn"])
    with tenant_transaction(world.acme):
        everything = "".join(AuditEntry.objects.values_list("detail", flat=True))
    assert "11999999999" not in everything
    assert CPF not in everything


@pytest.mark.django_db
def test_bench__of_no_conversation__leaves_none(crm, world, as_alice):
    from django.apps import apps

    run(as_alice, page(world), arg_0="11999999999")
    with tenant_transaction(world.acme):
        for model in ("Session", "TurnRecord", "LedgerEntry", "Message"):
            assert not apps.get_model("conversations", model).objects.exists(), model


@pytest.mark.django_db
def test_action__without_the_tick__is_not_sent(crm, world, as_alice):
    address = page(world, "bloquear_linha")
    assert "This really changes something" in as_alice.get(address).content.decode()
    text = run(as_alice, address, arg_0="11999999999")
    assert "Tick this to send a call that changes something." in text
    assert crm.calls() == []
    assert trail(world) == []


@pytest.mark.django_db
def test_action__with_the_tick__is_sent_once__however_often_the_page_is_loaded_again(
    crm, world, as_alice
):
    address = page(world, "bloquear_linha")
    for _again in range(2):
        text = run(as_alice, address, arg_0="11999999999", really="on", run="same")
    assert "This was sent already." in text
    assert [call["name"] for call in crm.calls()] == ["bloquear_linha"]
    run(as_alice, address, arg_0="11999999999", really="on", run="another")
    assert len(crm.calls()) == 2
    assert [entry["changes_something"] for entry in trail(world)] == [True, True]


@pytest.mark.django_db
def test_action__by_who_may_only_read__cannot_be_run_live(crm, world, client):
    olga = by("olga", client)
    address = page(world, "bloquear_linha")
    assert "Live: the server is asked" not in olga.get(address).content.decode()
    run(olga, address, arg_0="11999999999", really="on")
    assert crm.calls() == []
    run(olga, page(world), arg_0="11999999999")  # one that only reads
    assert len(crm.calls()) == 1


@pytest.mark.django_db
def test_bench__for_an_auditor__shows_the_form_and_runs_nothing(crm, world, as_bob):
    assert "do not let you run" in as_bob.get(page(world)).content.decode()
    assert as_bob.post(page(world), {"mode": "live", "arg_0": "1"}).status_code == 403
    assert crm.calls() == []


@pytest.mark.django_db
def test_bench__of_a_server_that_is_down__shows_the_failure(crm, world, as_alice):
    crm.kill()
    try:
        text = run(as_alice, page(world), arg_0="11999999999")
    finally:
        crm.start()
    assert "the tool said no" in text
    assert shown(text, "Raw result")["code"] == "unreachable"


@pytest.mark.django_db
def test_bench__of_what_runs__is_another_than_what_is_configured(crm, world, as_alice):
    with tenant_transaction(world.acme):
        item = ConfigItem.objects.get(kind="tool", slug="consultar_saldo")
        content = json.loads(item.head.content)
        content["args_schema"]["novo"] = {"description": "Só no rascunho"}
        item_save(kind="tool", slug="consultar_saldo", content=content, actor="test")
    assert "Só no rascunho" in as_alice.get(page(world)).content.decode()
    running = as_alice.get(page(world, query="?configuration=running")).content.decode()
    assert "Só no rascunho" not in running
    for query in (
        "?configuration=running&environment=dev",
        "?configuration=request:99",
        "?configuration=x",
    ):
        answered = as_alice.get(page(world, query=query))
        assert answered.status_code == 200
    assert as_alice.get(page(world, query="?environment=moon")).status_code == 404


@pytest.mark.django_db
def test_bench__with_text_where_a_number_belongs__shows_the_field_error(crm, world, as_alice):
    with tenant_transaction(world.acme):
        content = {
            "mcp_server": "crm",
            "args_schema": {
                "n": {"type": "integer"}, "o": {"type": "object"}, "l": {"type": "array", "items": "integer"},
                "b": {"type": "boolean"},
            },
        }  # fmt: skip
        item_save(kind="tool", slug="tipos", content=content, actor="test")
    address = page(world, "tipos")
    # Fields stand in the order of their names: b, l, n, o.
    text = run(as_alice, address, arg_2="muito")
    assert 'id="id_arg_2_error"' in text
    assert "whole number" in text
    text = run(as_alice, address, arg_3="{nada")
    assert "This is not valid JSON." in text
    run(
        as_alice,
        address,
        arg_2="9223372036854775807",
        arg_3='{"a": 1}',
        arg_1="1\n2",
        arg_0="false",
    )
    assert crm.calls()[-1]["arguments"] == {
        "n": 9223372036854775807, "o": {"a": 1}, "l": [1, 2], "b": False,
    }  # fmt: skip


@pytest.mark.django_db
def test_bench__of_a_secret_argument__neither_asks_nor_shows_it(crm, world, as_alice, monkeypatch):
    from apps.releases.environments.services import binding_set

    monkeypatch.setenv("AGENTOPS_SECRET__ACME__CRM_PIN", "s3cr3t-value")
    with tenant_transaction(world.acme):
        content = {
            "mcp_server": "crm",
            "args_schema": {
                "pin": {"source": "secret", "secret": "pin"},
                "cpf": {"restricted": True},
            },
        }
        item_save(kind="tool", slug="segredo", content=content, actor="test")
        binding_set(
            environment=ENVIRONMENT, what="credential", name="pin", value="CRM_PIN", actor="t"
        )
    address = page(world, "segredo")
    assert "Filled by the platform: pin." in as_alice.get(address).content.decode()
    text = run(as_alice, address, arg_0=CPF)
    assert "s3cr3t-value" not in text
    assert shown(text, "Raw request")["arguments"] == {"cpf": "***", "pin": "***"}
    assert crm.calls()[-1]["arguments"] == {"cpf": CPF, "pin": "s3cr3t-value"}


# -- mocks on the page -------------------------------------------------------------------------
def steps(*rows: dict[str, str]) -> dict[str, str]:
    """Return the mock's form with ``rows`` filled in."""
    data = {"step-TOTAL_FORMS": str(len(rows)), "step-INITIAL_FORMS": "0"}
    for number, row in enumerate(rows):
        data |= {
            f"step-{number}-{name}": value for name, value in {"kind": "result", **row}.items()
        }
    return data


@pytest.mark.django_db
def test_mock__saved_on_the_page__answers_on_the_bench_and_nowhere_else(crm, world, as_alice):
    address = page(world, name="mock")
    form = steps(
        {"when": "msisdn = 119*", "value": '{"saldo": 99.5}'},
        {"when": "msisdn = 21*", "kind": "error", "value": "Linha bloqueada."},
        {},
    )
    assert as_alice.post(address, form).status_code == 302
    with tenant_transaction(world.acme):
        assert len(steps_read(ToolMock.objects.get().steps)) == 2
    text = run(as_alice, page(world), mode="mock", arg_0="11999999999")
    assert shown(text, "Normalised result")["result"] == {"saldo": 99.5}
    assert "Linha bloqueada." in run(as_alice, page(world), mode="mock", arg_0="2199")
    assert crm.calls() == []
    assert [entry["mode"] for entry in trail(world)] == ["mock", "mock"]
    assert (
        shown(run(as_alice, page(world), arg_0="1"), "Normalised result")["result"]["saldo"] == 12.5
    )


@pytest.mark.django_db
def test_mock__of_an_action__runs_without_the_tick(crm, world, client):
    olga = by("olga", client)
    olga.post(page(world, "bloquear_linha", "mock"), steps({"value": '{"protocolo": "1"}'}))
    text = run(olga, page(world, "bloquear_linha"), mode="mock", arg_0="1")
    assert shown(text, "Normalised result")["result"] == {"protocolo": "1"}
    assert crm.calls() == []


@pytest.mark.django_db
def test_mock__of_a_result_the_tool_could_not_have__is_refused(crm, world, as_alice):
    address = page(world, name="mock")
    said = as_alice.post(address, steps({"value": '{"saldo": "muito"}'})).content.decode()
    assert "not as the output schema says" in said
    said = as_alice.post(address, steps({"value": "{nada", "when": "sem igual"})).content.decode()
    assert "This is not valid JSON." in said
    assert "Write argument = value" in said
    assert as_alice.post(address, {"step-TOTAL_FORMS": "x"}).status_code == 200
    with tenant_transaction(world.acme):
        assert not ToolMock.objects.exists()


@pytest.mark.django_db
def test_mock__emptied__is_gone(crm, world, as_alice):
    address = page(world, name="mock")
    as_alice.post(address, steps({"value": '{"saldo": 1}'}))
    assert "1 step" in as_alice.get(page(world)).content.decode()
    as_alice.post(address, steps({}))
    with tenant_transaction(world.acme):
        assert not ToolMock.objects.exists()


@pytest.mark.django_db
def test_mock__by_an_auditor__is_not_saved(crm, world, as_bob):
    assert as_bob.post(page(world, name="mock"), steps({"value": "1"})).status_code == 403
    assert as_bob.get(page(world, name="mock")).status_code == 200


async def test_bench__server_that_repeats_a_secret__has_it_hidden_in_the_raw_answer():
    pin = Argument(source="secret", secret="pin")
    tool = ToolConfig(mcp_server="crm", args_schema={"pin": pin})
    seen = _Watched(FakeTransport({}))
    remote = RemoteTool("crm", "http", "http://crm", "x", credential="t0ken-of-crm")
    seen.sent = (remote, {"pin": "s3cr3t-value"}, "k")

    raw = value_scrub({"error": ["s3cr3t-value", "Bearer t0ken-of-crm"]}, seen.secrets(tool))

    assert raw == {"error": ["***", "Bearer ***"]}
