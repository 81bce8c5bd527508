"""Which tools a model may read arguments for: those that the turn is going to call by itself."""

import pytest

from agentops.policies import tools_read_for
from apps.agents.config import AgentConfig
from apps.runtime.testing import release_of, turn_of
from apps.runtime.turn import PlanPart, Route
from apps.tools.config import Argument, ToolConfig

TOOLS = {
    "consulta": ToolConfig(mcp_server="s"),
    "outra": ToolConfig(mcp_server="s", selection_keywords=["boleto"]),
    "acao": ToolConfig(mcp_server="s", tool_type="action"),
    "lida": ToolConfig(mcp_server="s", args_schema={"mes": Argument(source="extraction")}),
    "alheia": ToolConfig(mcp_server="s"),
}
LISTED = ["consulta", "outra", "acao", "lida"]


def route(agent: str, tools=(*LISTED, "alheia", "nenhuma"), plan=()) -> Route:
    return Route(
        agent=agent,
        intent="i",
        method="keyword",
        confidence=1,
        tools=tuple(tools),
        plan=tuple(plan),
    )


WORLD = release_of(
    tool=TOOLS,
    agent={
        "coleta": AgentConfig(prompt="p", tools=LISTED),
        "modelo": AgentConfig(prompt="p", tools=LISTED, tool_use="model"),
    },
)


@pytest.mark.parametrize(
    ("text", "agent", "tools"),
    [
        ("minha fatura", "coleta", ["consulta", "lida"]),
        ("quero o boleto", "coleta", ["consulta", "outra", "lida"]),
        ("minha fatura", "modelo", ["lida"]),
        ("minha fatura", "ninguem", []),
    ],
)
def test_tools__of_the_answering_agent__are_the_queries_it_collects_or_cannot_ask_a_model_for(
    text, agent, tools
):
    assert tools_read_for(turn_of(text, release=WORLD, route=route(agent))) == tools


def test_tools__of_a_plan__are_those_of_every_part():
    part = PlanPart(agent="coleta", intent="j", text="x", tools=("consulta", "acao"))

    asked = turn_of("x", release=WORLD, route=route("modelo", ("lida",), [part]))

    assert tools_read_for(asked) == ["lida", "consulta"]


def test_tools__without_a_route__are_none():
    assert tools_read_for(turn_of("x", release=WORLD)) == []
