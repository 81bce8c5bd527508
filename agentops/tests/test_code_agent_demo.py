"""The demo's financial agent in Python beside the one that is data: the same facts, the same guards."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from agentops.pipeline import turn_pipeline
from agentops.policies import failure_text
from agentops.tests.test_demo_routing import release
from apps.agents.calling import ModelCaller
from apps.agents.code.registry import agent_class
from apps.agents.code.running import CodeAgentParts
from apps.agents.config import AgentConfig
from apps.agents.providers.registry import Providers
from apps.runtime.outcomes import Answered, Failed, HandedOver, Waiting
from apps.runtime.release import Release
from apps.runtime.testing import FakeConfirmations, FakeHistory, FakeLedger, FakeStore
from apps.runtime.turn import Caller, Inbound, SessionState, Turn
from apps.tools.calling import ToolCaller
from apps.tools.tests.servers import LOCAL, DemoServer, running
from apps.tools.tests.talk import NoWorkflows
from apps.tools.transports.dispatch import Transports

AGENT = ("agent", "financeiro_agent")
STARTED, DONE = "IC.FINANCEIRO_AGENT_STARTED", "IC.FINANCEIRO_AGENT_COMPLETED"


@pytest.fixture(scope="module")
def telecom(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoServer]:
    with running("telecom", tmp_path_factory.mktemp("telecom") / "telecom.sqlite3") as server:
        yield server


def in_code(base: Release, implementation: str = "financeiro") -> Release:
    """Return ``base`` with the financial agent's record naming its Python class."""
    record = base.items[AGENT].model_copy(update={"implementation": implementation})
    return Release(sha256=f"{base.sha256}-code", items={**base.items, AGENT: record})


async def said(
    text: str,
    server: DemoServer,
    configured: Release,
    settings: Any,
    *,
    customer: str = "12345",
    find: Any = agent_class,
) -> Any:
    """Return the turn that ``text`` becomes: the whole pipeline, the real server, no model."""
    settings.AGENT_CLASSES = {"financeiro": "examples.agents.financeiro.FinanceiroAgent"}
    business = {"customer_key": customer} if customer else {}
    inbound = Inbound(
        channel="web", text=text, agent="financeiro_agent", message_id="m1", session="s1",
        payload={"business_context": business}, caller=Caller(principal="demo", demo=True),
    )  # fmt: skip
    turn = Turn(
        id="t1",
        tenant="default",
        release=configured,
        inbound=inbound,
        session=SessionState(id="1", key="default:f:s1", agent="financeiro_agent"),
        bindings={"address:telecom_mcp": f"http://127.0.0.1:{server.port}/mcp"},
        text=text,
    )
    ledger, transports, providers = FakeLedger(), Transports(allowed=LOCAL), Providers()
    tools = ToolCaller(transports, ledger, lambda name: "", confirmations=FakeConfirmations())
    models = ModelCaller(providers, ledger, secret=lambda name: "")
    pipeline = turn_pipeline(
        history=FakeHistory(),
        tools=tools,
        workflows=NoWorkflows(),
        models=models,
        store=FakeStore(),
        code=CodeAgentParts(find=find),
    )
    try:
        return await pipeline.run(turn)
    finally:
        await transports.aclose()
        await providers.aclose()


@pytest.mark.parametrize(
    "text", ["Quero consultar meu pagamento.", "Qual é o vencimento do meu título?"]
)
async def test_answer__of_the_python_agent__has_the_facts_of_the_record_alone(
    telecom: DemoServer, settings: Any, text: str
) -> None:
    base = release("default")
    data = await said(text, telecom, base, settings)
    code = await said(text, telecom, in_code(base), settings)
    for turn in (data, code):
        assert isinstance(turn.outcome, Answered), turn.outcome
        assert [call.tool for call in turn.tool_calls] == [
            "consultar_titulo_financeiro",
            "consultar_pagamentos_financeiro",
        ]
        assert all(call.ok for call in turn.tool_calls)
    # The latest title: ABC-999, open; its payment is still being processed.
    for fact in ("ABC-999", "342,15"):
        assert fact in data.outcome.text
    assert code.outcome.text == data.outcome.text
    assert [call.arguments for call in code.tool_calls] == [
        call.arguments for call in data.tool_calls
    ]
    assert [signal.code for signal in data.signals if "FINANCEIRO" in signal.code] == []
    written = {s.code: s for s in code.signals}
    assert [s.code for s in code.signals if "FINANCEIRO" in s.code] == [
        STARTED,
        "IC.FINANCEIRO_MCP_CONTEXT_COLLECTED",
        DONE,
    ]
    assert written[STARTED].data == {"business_component": "financeiro"}
    assert written["IC.FINANCEIRO_MCP_CONTEXT_COLLECTED"].data == {"tool_result_count": 2}
    assert written[DONE].data["has_mcp_results"] is True


async def test_question__for_a_missing_customer__is_asked_by_both(
    telecom: DemoServer, settings: Any
) -> None:
    base = release("default")
    for configured in (base, in_code(base)):
        turn = await said(
            "Quero consultar meu pagamento.", telecom, configured, settings, customer=""
        )
        assert isinstance(turn.outcome, Waiting)
        assert turn.outcome.text == "Qual é o seu código de cliente?"
        assert [call for call in turn.tool_calls if call.ok] == []
        assert turn.next_state == "WAITING_FINANCEIRO_CONFIRMATION"


async def test_customer_that_the_server_does_not_know__is_no_invented_payment(
    telecom: DemoServer, settings: Any
) -> None:
    turn = await said(
        "Quero consultar meu pagamento.",
        telecom,
        in_code(release("default")),
        settings,
        customer="99999",
    )
    assert "NOC.FINANCEIRO_WITHOUT_EVIDENCE" in [signal.code for signal in turn.signals]
    text = turn.outcome.text if turn.outcome else ""
    assert "342" not in text
    assert not any(call.ok for call in turn.tool_calls)


async def test_rails_and_judges__stay_around_an_agent_in_code(
    telecom: DemoServer, settings: Any
) -> None:
    """What it says is masked, and what it claims without evidence reaches nobody."""
    from apps.agents.code.base import CodeAgent

    class Leaks(CodeAgent):
        async def run(self, runtime: Any) -> str:
            await runtime.call_tools()
            return "O título ABC-999 está em aberto. CPF do titular: 529.982.247-25."

    class Invents(CodeAgent):
        async def run(self, runtime: Any) -> str:
            return "O título ZZZ-123 foi pago em 2026-01-02, no valor de R$ 999,00."

    base = in_code(release("default"))
    text = "Quero consultar meu pagamento."
    leaking = await said(text, telecom, base, settings, find=lambda name: Leaks)
    assert leaking.draft is not None
    assert leaking.outcome is not None
    assert "529.982.247-25" not in leaking.outcome.text
    inventing = await said(text, telecom, base, settings, find=lambda name: Invents)
    assert isinstance(inventing.outcome, HandedOver)
    assert "999,00" not in inventing.outcome.text


async def test_agent__that_raises__is_the_tenants_words_and_an_error_id(
    telecom: DemoServer, settings: Any
) -> None:
    from apps.agents.code.base import CodeAgent

    class Breaks(CodeAgent):
        async def run(self, runtime: Any) -> str:
            raise RuntimeError("connection string: postgres://secret")

    base = in_code(release("default"))
    turn = await said("Quero meu boleto.", telecom, base, settings, find=lambda name: Breaks)
    assert isinstance(turn.outcome, Failed)
    assert len(turn.outcome.error_id) == 32
    assert "secret" not in turn.outcome.text
    assert turn.outcome.text == failure_text(turn)


async def test_implementation__that_is_not_allowed__is_never_answered_by_the_record(
    telecom: DemoServer, settings: Any
) -> None:
    base = in_code(release("default"), "another")
    turn = await said("Quero meu boleto.", telecom, base, settings)
    assert isinstance(turn.outcome, Failed)
    assert turn.tool_calls == ()


async def test_tool_that_the_record_does_not_list__is_not_called_by_its_code(
    telecom: DemoServer, settings: Any
) -> None:
    base = in_code(release("default"))
    record = base.get(AgentConfig, "financeiro_agent")
    fewer = record.model_copy(update={"tools": ["consultar_titulo_financeiro"]})
    narrowed = replace(base, items={**base.items, AGENT: fewer})
    turn = await said("Quero consultar meu pagamento.", telecom, narrowed, settings)
    assert [call.tool for call in turn.tool_calls] == ["consultar_titulo_financeiro"]
