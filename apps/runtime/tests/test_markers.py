"""References and bindings are found wherever a value may hold one, and looked for nowhere else."""

from typing import Annotated, Any

from apps.runtime.config import (
    BindingTo,
    Config,
    FoundBinding,
    FoundRef,
    RefTo,
    bindings,
    references,
)


class Inner(Config):
    tool: Annotated[str, RefTo("tool")] = ""
    word: str = ""


class Richer(Inner):
    agent: Annotated[str, RefTo("agent")] = ""


class Outer(Config):
    plain: str = ""
    words: list[str] = []
    numbers: dict[str, int] = {}
    prompt: Annotated[str, RefTo("prompt")] = ""
    tools: list[Annotated[str, RefTo("tool")]] = []
    named: dict[str, Annotated[str, RefTo("intent")]] = {}
    maybe: Annotated[str, RefTo("agent")] | None = None
    inner: Inner | None = None
    inners: list[Inner] = []
    by_name: dict[str, list[Inner]] = {}
    anything: Any = None
    address: Annotated[str, BindingTo("address")] = ""


def test_references__of_every_place__are_found_with_their_path():
    config = Outer(
        plain="p",
        words=["w"],
        numbers={"n": 1},
        prompt="greeting",
        tools=["a", "", "b"],
        named={"x": "bill"},
        maybe="front",
        inner=Inner(tool="c", word="w"),
        inners=[Inner(), Inner(tool="d")],
        by_name={"k": [Inner(tool="e")]},
        anything=[Inner(tool="f")],
        address="crm",
    )
    assert list(references(config)) == [
        FoundRef("prompt", "prompt", "greeting"),
        FoundRef("tools[0]", "tool", "a"),
        FoundRef("tools[2]", "tool", "b"),
        FoundRef("named.x", "intent", "bill"),
        FoundRef("maybe", "agent", "front"),
        FoundRef("inner.tool", "tool", "c"),
        FoundRef("inners[1].tool", "tool", "d"),
        FoundRef("by_name.k[0].tool", "tool", "e"),
        FoundRef("anything[0].tool", "tool", "f"),
    ]
    assert list(bindings(config)) == [FoundBinding("address", "address", "crm")]


def test_references__of_a_richer_value_than_the_field_says__are_found_too():
    config = Outer(inner=Richer(tool="c", agent="front"))
    assert [found.kind for found in references(config)] == ["tool", "agent"]
