"""Agents in code: what their runtime gives them, and what it keeps from them."""

import asyncio
import re
import sys
from dataclasses import replace
from typing import Any

import pytest
from django.test import override_settings

from apps.agents.code.base import Answer, CodeAgent
from apps.agents.code.registry import (
    AgentNotAllowed,
    AgentUnusable,
    _foreign_imports,
    agent_class,
)
from apps.agents.code.running import FAILED, CodeAgentExit, CodeAgentRunner, NoAnswer
from apps.agents.config import AgentConfig
from apps.agents.evidence import Mask
from apps.agents.tests.builders import agent_release, routed_turn
from apps.runtime.outcomes import Failed
from apps.runtime.ports import LeaseLost, ModelFailed, ModelReply
from apps.runtime.testing import FakeModel, FakeTools
from apps.runtime.turn import (
    BusinessContext,
    Caller,
    ChatMessage,
    Draft,
    Inbound,
    Turn,
)

CPF = "529.982.247-25"
SCHEMA = {"type": "object", "properties": {"customer_id": {}, "query": {}, "contract_id": {}}}
INFOS: dict[str, dict[str, Any]] = {
    "ver": {"json_schema": SCHEMA},
    "listar": {"json_schema": SCHEMA},
    "pagar": {"action": True, "json_schema": SCHEMA},
    "estornar": {"action": True, "confirmation_required": True},
    "alheia": {},
}


def masked(turn: Turn) -> Mask:
    return lambda text: re.sub(r"\d{3}\.\d{3}\.\d{3}-\d{2}", "<CPF>", text)


class Tools(FakeTools):
    """Refuses what needs a yes, as the real port does."""

    async def call(self, turn, requests):
        calls = await super().call(turn, requests)
        return [
            replace(call, status="refused", metadata={"reason": "confirmation_required"})
            if call.tool == "estornar"
            else replace(call, action=call.tool == "pagar")
            for call in calls
        ]


class Cache:
    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    async def get(self, turn, key):
        return self.kept.get(key)

    async def put(self, turn, key, text, seconds):
        assert seconds == 300
        self.kept[key] = text


class Proposes:
    async def propose(self, turn, call):
        return turn.evolve(prepared=Draft(text=f"Confirma {call.tool}?", agent="billing"))


def talk(text: str = "quero pagar", tools=("ver", "listar"), **changes: Any) -> Turn:
    record = {"tools": ["ver", "listar", "pagar", "estornar"], "implementation": "mine"}
    return routed_turn(text, release=agent_release(agent=record), tools=tools, **changes)


class Run:
    """One run of an agent that is just a function of its runtime."""

    def __init__(self, function: Any, turn: Turn | None = None, **ports: Any) -> None:
        self.errors: list[tuple[str, BaseException]] = []
        self.tools = ports.pop("tools", None) or Tools({"ver": {"v": 1}, "listar": [], "pagar": 1})
        self.models = ports.pop("models", None) or FakeModel("resposta")
        made = type("Made", (CodeAgent,), {"run": lambda self, runtime: function(runtime)})
        self.turn = turn or talk()
        self.runner = CodeAgentRunner(
            self.tools,
            self.models,
            find=ports.pop("find", lambda name: made),
            tool_info=lambda release, slug: INFOS.get(slug),
            failure_text=lambda turn: "Não consegui agora.",
            on_error=lambda turn, error_id, error: self.errors.append((error_id, error)),
            mask_for=masked,
            **ports,
        )

    async def __call__(self) -> Any:
        agent = self.turn.release.get(AgentConfig, "billing")
        return await self.runner(self.turn, "billing", agent)


async def saying(function: Any, turn: Turn | None = None, **ports: Any) -> Any:
    return await Run(function, turn, **ports)()


# -- an answer ---------------------------------------------------------------------------------


async def test_run__text__is_a_draft_of_the_agent_and_no_outcome():
    async def run(runtime):
        return "  Olá.  "

    done = await saying(run)
    assert done.draft == Draft(text="Olá.", agent="billing", outcome="answered")
    assert done.outcome is None


async def test_run__question__waits_for_the_customer():
    async def run(runtime):
        return Answer("Qual é o contrato?", waiting=True)

    assert (await saying(run)).draft.outcome == "waiting"


async def test_run__tools_memory_and_model__are_one_request_with_evidence():
    seen: dict[str, Any] = {}

    async def run(runtime):
        results = await runtime.call_tools()
        seen["memory"] = [line.text for line in runtime.memory]
        seen["results"] = [call.tool for call in runtime.results]
        assert [call.ok for call in results] == [True, True]
        return await runtime.ask_model(runtime.build_messages(notes=["Seja breve."]))

    before = (ChatMessage("user", f"meu cpf é {CPF}"), ChatMessage("assistant", "ok"))
    models = FakeModel("Pago.")
    done = await saying(run, talk(memory=before), models=models)
    assert done.draft.text == "Pago."
    assert seen["results"] == ["ver", "listar"]
    assert seen["memory"] == ["meu cpf é <CPF>", "ok"]
    messages = models.requests[0].messages
    assert "Seja breve." in messages[0].content
    assert [m.role for m in messages] == ["system", "user", "assistant", "user", "assistant", "tool", "tool"]  # fmt: skip
    assert CPF not in "".join(message.content for message in messages)
    assert models.requests[0].profile == "default"
    assert [call.tool for call in done.tool_calls] == ["ver", "listar"]
    assert len(done.model_calls) == 1


# -- the order of trust ------------------------------------------------------------------------


def given(*places: str, text: str = "o contrato é C-77", **more: Any) -> Turn:
    """Return a turn with the value ``k`` in each of ``places``."""
    payload: dict[str, Any] = {"context": {"session": {"metadata": {}}}}
    context = payload["context"]
    if "context" in places:
        context["k"] = "context"
    if "session" in places:
        context["session"]["k"] = "session"
    if "metadata" in places:
        context["session"]["metadata"]["k"] = "metadata"
    arguments = {"k": "argument"} if "tool_arguments" in places else {}
    business = {"k": "business"} if "business_context" in places else {}
    inbound = Inbound(
        channel="web", text=text, agent=None, message_id="m1", session="s1", payload=payload,
        tool_arguments={**arguments, **more.get("arguments", {})}, caller=Caller(),
    )  # fmt: skip
    return talk(text, inbound=inbound, business_context=BusinessContext(values=business))


ORDER = ("tool_arguments", "business_context", "context", "session", "metadata")
NAMES = ("argument", "business", "context", "session", "metadata")


@pytest.mark.parametrize("first", range(5))
async def test_pick__value_in_several_places__is_the_most_trusted(first):
    seen = []

    async def run(runtime):
        seen.append(runtime.pick("k", "channel", extract=r"C-\d+"))
        return "ok"

    await saying(run, given(*ORDER[first:]))
    assert seen == [NAMES[first]]


async def test_pick__nothing_under_the_name__state_alias_then_text():
    seen = []

    async def run(runtime):
        seen.append(runtime.pick("k", "channel", extract=r"C-\d+"))
        seen.append(runtime.pick("k", extract=r"é (C-\d+)"))
        seen.append(runtime.pick("k", extract=lambda text: len(text)))
        seen.append(runtime.pick("k", extract="nada"))
        seen.append(runtime.pick("k"))
        seen.append(runtime.pick("zero", "k"))
        return "ok"

    await saying(run, given(arguments={"zero": 0}))
    assert seen == ["web", "C-77", 17, None, None, 0]


async def test_pick__name_before_alias__whatever_place_the_alias_is_in():
    seen = []

    async def run(runtime):
        seen.append(runtime.pick("k", "cpf"))
        return "ok"

    await saying(run, given("metadata", arguments={"cpf": "outro"}))
    assert seen == ["metadata"]


# -- tools -------------------------------------------------------------------------------------


async def test_tools_by_intent__of_the_route__once_in_order_and_only_allowed_ones():
    seen = []

    async def run(runtime):
        seen.append(runtime.tools_by_intent())
        seen.append(runtime.tools_by_intent({"invoice": ["pagar", "alheia", "pagar"]}))
        return "ok"

    await saying(run, talk(tools=("listar", "ver", "listar", "alheia")))
    await saying(run, talk(tools=()))
    assert seen == [("listar", "ver"), ("listar", "ver"), (), ("pagar",)]


async def test_build_arguments__declared_ones_only__by_trust_and_alias():
    seen = []

    async def run(runtime):
        aliases = {"customer_key": ["customer_id", "cpf"], "contract_key": ["contract_id"]}
        seen.append(runtime.build_arguments("ver", aliases=aliases, contract_id="C-1", senha="x"))
        return "ok"

    business = BusinessContext(values={"customer_key": "1199"})
    await saying(run, talk("paguei?", business_context=business))
    assert seen == [{"customer_id": "1199", "contract_id": "C-1", "query": "paguei?"}]


async def test_call_tool__not_of_the_agents_record__is_refused_and_never_sent():
    async def run(runtime):
        refused = await runtime.call_tool("alheia", customer_id="1")
        unknown = await runtime.call_tool("nenhuma")
        assert (refused.status, unknown.status) == ("refused", "refused")
        return "não posso"

    tools = Tools({"alheia": 1})
    done = await saying(run, tools=tools)
    assert tools.requests == []
    assert [call.status for call in done.tool_calls] == ["refused", "refused"]


async def test_call_tools__of_the_intent__never_calls_an_action_by_itself():
    async def run(runtime):
        await runtime.call_tools()
        return "ok"

    tools = Tools({"ver": 1, "pagar": 1})
    await saying(run, talk(tools=("pagar", "ver")), tools=tools)
    assert [request.tool for request in tools.requests] == ["ver"]


async def test_call_tool__second_action_of_a_turn__is_refused():
    async def run(runtime):
        first = await runtime.call_tool("pagar", customer_id="1")
        second = await runtime.call_tool("pagar", customer_id="2")
        assert (first.status, second.status) == ("ok", "refused")
        return "pago"

    tools = Tools({"pagar": 1})
    await saying(run, tools=tools)
    assert len(tools.requests) == 1


async def test_call_tool__that_needs_a_yes__is_not_sent_and_the_question_is_the_answer():
    async def run(runtime):
        call = await runtime.call_tool("estornar")
        assert call.status == "refused"
        return "Estornado com sucesso!"

    done = await saying(run, transactions=Proposes())
    assert done.draft.text == "Confirma estornar?"
    alone = await saying(run)
    assert alone.tool_calls[0].status == "refused"


async def test_requests__of_an_agent__carry_no_confirmation_and_no_workflow():
    async def run(runtime):
        await runtime.call_tool("pagar", confirmed=True, confirmation="q1", node="x")
        return "ok"

    tools = Tools({"pagar": 1})
    await saying(run, tools=tools)
    [request] = tools.requests
    assert (request.confirmation, request.node) == ("", None)


# -- models ------------------------------------------------------------------------------------


async def cached(runtime):
    return await runtime.ask_model(cached=True)


async def test_cached_answer__of_an_equal_request__asks_no_model_and_costs_nothing():
    cache, models = Cache(), FakeModel("um", "dois")
    first = await saying(cached, models=models, cache=cache)
    again = await saying(cached, talk(id="t2"), models=models, cache=cache)
    assert (first.draft.text, again.draft.text, len(models.requests)) == ("um", "um", 1)
    [call] = again.model_calls
    assert (call.provider, call.usage.cost, call.replayed) == ("cache", 0.0, True)


@pytest.mark.parametrize(
    "changes",
    [
        {"tenant": "other"},
        {"business_context": BusinessContext(values={"customer_key": "2"})},
        {"business_context": BusinessContext(values={"contract_key": "2"})},
        {"business_context": BusinessContext(values={"interaction_key": "2"})},
        {"text": "outra coisa"},
        {"memory": (ChatMessage("user", "a"), ChatMessage("assistant", "b"))},
        {"attempt": 1},
    ],
)
async def test_cached_answer__of_another_tenant_customer_or_message__is_not_given(changes):
    cache, models = Cache(), FakeModel("um", "dois")
    await saying(cached, models=models, cache=cache)
    text = changes.pop("text", "quero pagar")
    again = await saying(cached, talk(text, id="t2", **changes), models=models, cache=cache)
    assert again.draft.text == "dois"


async def test_cached_answer__after_an_action_or_cut_off__is_not_kept():
    async def acts(runtime):
        await runtime.call_tool("pagar")
        return await runtime.ask_model(cached=True)

    cache = Cache()
    await saying(acts, cache=cache)
    cut = ModelReply(text="metade", finish_reason="length", provider="f", model="f")
    await saying(cached, models=FakeModel(cut), cache=cache)
    assert cache.kept == {}


async def test_messages__that_an_agent_writes_itself__reach_a_model_masked():
    from apps.runtime.ports import ModelMessage

    async def run(runtime):
        mine = [ModelMessage("system", "x"), ModelMessage("user", f"cpf {CPF}, <V> real-secret")]
        return await runtime.ask_model(mine)

    models = FakeModel("ok")
    await saying(run, talk(vault={"<V>": "real-secret"}), models=models)
    said = models.requests[0].messages[1].content
    assert said == "cpf <CPF>, <V> <V>"


# -- events ------------------------------------------------------------------------------------


async def test_events__are_signals_with_masked_data_of_their_family():
    async def run(runtime):
        assert runtime.emit_ic("IC.FINANCEIRO_AGENT_STARTED", document=CPF, nested=[{"a": CPF}])
        assert runtime.emit_ic("AGA.010", valor=1)
        assert runtime.emit_noc("NOC.SLOW", milliseconds=12)
        assert runtime.emit_grl("GRL.DOMAIN_RULE")
        return "ok"

    done = await saying(run)
    assert [signal.code for signal in done.signals] == [
        "IC.FINANCEIRO_AGENT_STARTED", "IC.AGA.010", "NOC.SLOW", "GRL.DOMAIN_RULE",
    ]  # fmt: skip
    assert {signal.component for signal in done.signals} == {"agent.billing"}
    assert done.signals[0].data == {"document": "<CPF>", "nested": [{"a": "<CPF>"}]}


async def test_events__that_cannot_be_written__never_stop_the_agent():
    loop: list[Any] = []
    loop.append(loop)

    async def run(runtime):
        assert not runtime.emit_ic("GRL.NOT_MINE")
        assert not runtime.emit_ic("no code!")
        assert not runtime.emit_noc("")
        assert runtime.emit_ic("IC.BIG", text="x" * 10_000)
        assert runtime.emit_ic("IC.ODD", thing=object())
        runtime.emit_ic("IC.LOOP", loop=loop)
        return "ok"

    done = await saying(run)
    assert done.draft.text == "ok"
    assert done.signals[0].data == {"data_left_out": True}


async def test_events__without_an_end__are_bounded():
    async def run(runtime):
        written = [runtime.emit_ic("IC.AGAIN") for _number in range(200)]
        assert sum(written) == 50
        return "ok"

    assert len((await saying(run)).signals) == 50


async def test_retrieval__without_knowledge__says_that_there_is_none():
    async def run(runtime):
        found = await runtime.retrieve()
        assert (found.passages, found.enabled) == ((), False)
        return "ok"

    assert (await saying(run)).draft.text == "ok"


# -- what it may not ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["turn", "vault", "release", "_work", "outcome", "tenant", "work"])
async def test_runtime__of_turn_vault_release_or_tenant__has_nothing(name):
    async def run(runtime):
        getattr(runtime, name)
        return "li tudo"

    done = await saying(run, talk(vault={"<CPF_1>": CPF}))
    assert isinstance(done.outcome, Failed)
    assert done.draft is None


async def test_context__of_a_turn_with_a_vault__has_placeholders_only():
    seen = []

    async def run(runtime):
        seen.append(repr(runtime.context) + repr(runtime.memory))
        return "ok"

    inbound = Inbound(
        channel="web", text=f"cpf {CPF}", agent=None, message_id="m", session="s",
        payload={"context": {"cpf": CPF}}, tool_arguments={"cpf": CPF},
    )  # fmt: skip
    now = talk(
        f"cpf {CPF}", inbound=inbound, vault={"<CPF_1>": CPF}, memory=(ChatMessage("user", CPF),)
    )
    await saying(run, now)
    assert CPF not in seen[0]
    assert "<CPF_1>" in seen[0]


async def test_agent__that_changes_its_turn__changes_nothing_but_calls_and_events():
    from apps.runtime.outcomes import Answered

    async def run(runtime):
        work = runtime._AgentRuntime__work
        work.turn = work.turn.evolve(
            outcome=Answered("sem rails"), tenant="other", text="x", vault={}, next_state="Y"
        )
        for change in ("outcome", "context"):
            with pytest.raises((AttributeError, TypeError)):
                setattr(runtime, change, "x")
        return "ok"

    now = talk(vault={"<V>": "v"})
    done = await saying(run, now)
    assert (done.outcome, done.tenant, done.text, done.vault, done.next_state) == (
        None, now.tenant, now.text, now.vault, None,
    )  # fmt: skip


@pytest.mark.django_db
def test_agent__that_reaches_for_rows__finds_no_tenant(world):
    from asgiref.sync import async_to_sync, sync_to_async

    from apps.conversations.models import Session
    from apps.tenants.scope import tenant_scope

    async def run(runtime):
        await sync_to_async(lambda: list(Session.objects.all()))()
        return "li as sessões"

    failing = Run(run)
    with tenant_scope(world.acme):
        done = async_to_sync(failing)()
    assert isinstance(done.outcome, Failed)
    assert "scope" in str(failing.errors[0][1]).lower() or "NoTenant" in repr(failing.errors[0][1])


async def test_platforms_own_work__keeps_the_context_it_was_called_in():
    from contextvars import ContextVar

    inside: ContextVar[str] = ContextVar("inside", default="nothing")
    seen = []

    class Looking(Tools):
        async def call(self, turn, requests):
            seen.append(inside.get())
            return await super().call(turn, requests)

    async def run(runtime):
        seen.append(inside.get())
        await runtime.call_tools()
        return "ok"

    inside.set("tenant")
    await saying(run, tools=Looking({"ver": 1, "listar": 1}))
    assert seen == ["nothing", "tenant"]


# -- failures ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("boom"), ValueError),
        (SystemExit(1), CodeAgentExit),
        (KeyboardInterrupt(), CodeAgentExit),
    ],
)
async def test_exception__of_an_agent__is_a_failed_turn_with_an_error_id_and_its_calls(error, kind):
    async def run(runtime):
        await runtime.call_tool("pagar")
        raise error

    failing = Run(run)
    done = await failing()
    assert (done.outcome.text, done.outcome.code) == ("Não consegui agora.", FAILED)
    [(error_id, told)] = failing.errors
    assert done.outcome.error_id == error_id
    assert isinstance(told, kind)
    assert "boom" not in done.outcome.text
    assert [call.tool for call in done.tool_calls] == ["pagar"]


async def test_lease__lost_inside_an_agent_that_catches_everything__still_stops_the_turn():
    class Lost(Tools):
        async def call(self, turn, requests):
            raise LeaseLost("t1")

    async def quiet(runtime):
        try:
            await runtime.call_tools()
        except Exception:
            return "está tudo bem"

    async def loud(runtime):
        try:
            await runtime.call_tools()
        except Exception:
            raise ValueError from None

    for run in (quiet, loud):
        with pytest.raises(LeaseLost):
            await saying(run, tools=Lost({}))


@pytest.mark.parametrize("said", ["", "   ", None, 5, {"answer": "x"}])
async def test_answer__that_is_none__fails_visibly(said):
    async def run(runtime):
        return said

    failing = Run(run)
    done = await failing()
    assert isinstance(done.outcome, Failed)
    assert isinstance(failing.errors[0][1], NoAnswer)


async def test_agent__that_never_ends__is_stopped():
    async def run(runtime):
        await asyncio.sleep(30)
        return "tarde"

    done = await saying(run, seconds=0.05)
    assert isinstance(done.outcome, Failed)


async def test_model__that_fails__is_the_agents_to_handle_or_the_turns_failure():
    class Broken(FakeModel):
        async def complete(self, turn, request):
            raise ModelFailed("no", code="timeout")

    async def handles(runtime):
        try:
            return await runtime.ask_model()
        except ModelFailed:
            return "Tente mais tarde."

    async def ignores(runtime):
        return await runtime.ask_model()

    assert (await saying(handles, models=Broken())).draft.text == "Tente mais tarde."
    assert isinstance((await saying(ignores, models=Broken())).outcome, Failed)


# -- which classes may be agents ---------------------------------------------------------------

FINANCEIRO = "examples.agents.financeiro.FinanceiroAgent"


def test_class__that_the_operator_allows__is_found():
    from examples.agents.financeiro import FinanceiroAgent

    with override_settings(AGENT_CLASSES={"financeiro": FINANCEIRO}):
        assert agent_class("financeiro") is FinanceiroAgent
        with pytest.raises(AgentNotAllowed):
            agent_class("outro")


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("gone", "examples.agents.financeiro.Nobody"),
        ("nowhere", "no.such.module.Agent"),
        ("other", "apps.agents.config.AgentConfig"),
        ("base", "apps.agents.code.base.CodeAgent"),
        ("absent_entry", ""),
        ("rows", "apps.agents.tests.bad_agent.ReadsRows"),
    ],
)
def test_class__that_is_no_agent__is_never_replaced_by_another(name, path):
    from apps.agents.code.checks import agents_load

    allowed = {name: path, "financeiro": FINANCEIRO}
    with override_settings(AGENT_CLASSES=allowed):
        with pytest.raises(AgentUnusable):
            agent_class(name)
        assert [error.id for error in agents_load()] == ["agents.E001"]


def test_class__that_imports_past_its_runtime__is_told_by_name():
    from apps.agents.tests.bad_agent import ReadsRows

    assert _foreign_imports(ReadsRows) == [
        "apps.conversations.models.Session", "django.db.connection",
    ]  # fmt: skip


def test_entry_point__of_an_installed_package__is_found_by_its_name(tmp_path, monkeypatch):
    package = tmp_path / "shop_agents-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: shop-agents\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(
        "[agentops.agents]\nshop_agent = shop_agents_module:ShopAgent\n"
    )
    (tmp_path / "shop_agents_module.py").write_text(
        "from apps.agents.code.base import CodeAgent\n\n\nclass ShopAgent(CodeAgent):\n    pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with override_settings(AGENT_CLASSES={"shop_agent": ""}):
        assert agent_class("shop_agent").__name__ == "ShopAgent"
    sys.modules.pop("shop_agents_module", None)


async def test_implementation__that_is_not_allowed__fails_the_turn_and_asks_nobody():
    tools, models = Tools({"ver": 1}), FakeModel("resposta")
    with override_settings(AGENT_CLASSES={}):
        failing = Run(None, tools=tools, models=models, find=agent_class)
        done = await failing()
    assert isinstance(done.outcome, Failed)
    assert isinstance(failing.errors[0][1], AgentNotAllowed)
    assert (tools.requests, models.requests) == ([], [])
