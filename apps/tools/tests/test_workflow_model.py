"""Random small workflows against a plain model: the same way, each effect at most once."""

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from apps.runtime.ports import RemoteResult, ToolUnavailable
from apps.runtime.testing import FakeLedger
from apps.tools.config import WorkflowConfig, WorkflowNode
from apps.tools.tests.workflow_world import Died, MemoryStore, Server, engine, tool, turn, workflow

RUN = "00000000-0000-4000-8000-000000000001"
FATES = ("ok", "ok", "ok", "fails", "lost", "stumbles")
"""``lost``: sent and no answer. ``stumbles``: fails once, then works."""


@dataclass(frozen=True)
class Drawn:
    """A workflow of n0 … nk in a row, some with a way out, and what becomes of each tool."""

    config: WorkflowConfig
    fates: dict[str, str]
    idempotent: dict[str, bool]


@st.composite
def drawn(draw) -> Drawn:
    size = draw(st.integers(1, 6))
    nodes: list[dict[str, Any]] = []
    fates, idempotent = {}, {}
    for index in range(size):
        name = f"n{index}"
        later = [f"n{i}" for i in range(index + 1, size)]
        fates[name] = draw(st.sampled_from(FATES))
        idempotent[name] = draw(st.booleans())
        node = {
            "id": name,
            "tool": f"tool_{name}",
            "next": later[0] if later else "",
            "retries": draw(st.integers(0, 2)),
        }
        if later and draw(st.booleans()):
            node["on_failure"] = draw(st.sampled_from(later))
        if draw(st.booleans()):
            node["compensate_tool"] = f"undo_{name}"
        if draw(st.integers(0, 3)) == 0:
            node["pause"] = {"key": f"a_{name}", "question": f"{name}?"}
        nodes.append(node)
    return Drawn(workflow(*nodes), fates, idempotent)


@dataclass
class Expected:
    """What a plain reading of the workflow says must have happened."""

    effects: Counter[str] = field(default_factory=Counter)
    compensated: list[str] = field(default_factory=list)
    status: str = "COMPLETED"
    questions: int = 0


def expected(case: Drawn) -> Expected:
    """Walk the workflow by hand."""
    by_id = {node.id: node for node in case.config.nodes}
    out, name = Expected(), case.config.start
    done: list[WorkflowNode] = []
    while name:
        node, fate = by_id[name], case.fates[name]
        tries = 1 + (node.retries if case.idempotent[name] else 0)
        works = fate == "ok" or (fate == "stumbles" and tries > 1)
        if fate == "lost":
            out.effects[node.tool] = 1
            out.status = "UNKNOWN"
            return out
        if not works:
            if node.on_failure:
                name = node.on_failure
                continue
            out.compensated = [n.id for n in reversed(done) if n.compensate_tool]
            out.effects.update(f"undo_{n}" for n in out.compensated)
            out.status = "COMPENSATED" if out.compensated else "FAILED"
            return out
        out.effects[node.tool] += 1
        done.append(node)
        out.questions += bool(node.pause.key)
        name = node.next
    return out


class FatefulServer(Server):
    """Does with each call what was drawn for its tool; a lost one has its effect once per key."""

    def __init__(self, case: Drawn) -> None:
        kept = [f"tool_{n}" for n, yes in case.idempotent.items() if yes]
        super().__init__({}, keeps=kept)
        self.case = case
        self.tried: Counter[str] = Counter()
        self.lost: set[str] = set()

    async def call(self, tool: Any, arguments: Any, *, idempotency_key: str) -> RemoteResult:
        fate = self.case.fates.get(tool.name.removeprefix("tool_"), "ok")
        self.tried[idempotency_key] += 1
        if fate == "fails" or (fate == "stumbles" and self.tried[idempotency_key] == 1):
            return RemoteResult(ok=False, error="no")
        if fate == "lost":
            if idempotency_key not in self.lost or tool.name not in self.keeps:
                self.effects.append(tool.name)
            self.lost.add(idempotency_key)
            raise ToolUnavailable("gone", sent=True)
        return await super().call(tool, arguments, idempotency_key=idempotency_key)


def tools_of(case: Drawn) -> dict[str, Any]:
    made = {f"tool_{n}": tool(idempotent=yes) for n, yes in case.idempotent.items()}
    return {**made, **{f"undo_{n}": tool() for n in case.idempotent}}


async def run_through(
    case: Drawn, server: Server, store: MemoryStore, chance: random.Random | None = None
) -> Any:
    """Start the run and answer every question.

    With ``chance`` workers die; then another one gets the same turn, or the turn is given up and the
    customer's next one goes on, with a ledger of its own.
    """
    turns, ledger, asked, result = 1, FakeLedger(), 0, None
    while True:
        now = turn(case.config, tools=tools_of(case), id=f"t{turns}")
        if chance is not None:
            may_die(server, store, chance)
        workflows = engine(server, store, ledger)
        try:
            if result is None:
                _turn, result = await workflows.start(now, "troca", {}, RUN)
            else:
                _turn, result = await workflows.resume(now, RUN, "sim")
        except Died:
            if chance is not None and chance.random() < 0.5:
                continue
        finally:
            server.dies_at = store.dies_at = None
        if result is not None and result.final:
            return result, asked
        asked += result is not None
        turns, ledger = turns + 1, FakeLedger()


def may_die(server: Server, store: MemoryStore, chance: random.Random) -> None:
    """Let the worker die before one of its next records, or right after an effect."""
    if chance.random() < 0.5:
        store.dies_at = store.writes + chance.randint(0, 5)
    elif chance.random() < 0.5:
        server.dies_at = len(server.effects) + chance.randint(1, 2)


@settings(max_examples=250, deadline=None)
@given(drawn())
def test_run__of_a_random_workflow__does_what_the_plain_model_says(case):
    server, store = FatefulServer(case), MemoryStore()
    result, asked = asyncio.run(run_through(case, server, store))
    wanted = expected(case)
    assert Counter(server.effects) == wanted.effects
    assert list(result.compensated) == wanted.compensated
    assert (result.run_status, asked) == (wanted.status, wanted.questions)


@settings(max_examples=250, deadline=None)
@given(drawn(), st.integers(0, 2**16))
def test_run__whose_workers_die__no_effect_twice_and_nothing_undone_that_was_not_done(case, seed):
    chance = random.Random(seed)
    server, store = FatefulServer(case), MemoryStore()
    result, _asked = asyncio.run(run_through(case, server, store, chance))
    effects = Counter(server.effects)
    assert max(effects.values(), default=0) <= 1
    undone = {name.removeprefix("undo_") for name in effects if name.startswith("undo_")}
    done = {name.removeprefix("tool_") for name in effects if name.startswith("tool_")}
    assert undone <= done
    assert set(result.compensated) <= undone
    wanted = expected(case)
    if not result.unknown and not result.uncompensated:
        # Nothing was lost on the way: it is the run that no death disturbed.
        assert effects == wanted.effects
        assert result.run_status == wanted.status


def test_model__of_a_failing_second_node__takes_the_first_back():
    config = workflow(
        {"id": "n0", "tool": "tool_n0", "next": "n1", "compensate_tool": "undo_n0"},
        {"id": "n1", "tool": "tool_n1"},
    )
    case = Drawn(config, {"n0": "ok", "n1": "fails"}, {"n0": False, "n1": False})
    wanted = expected(case)
    assert (wanted.status, wanted.compensated) == ("COMPENSATED", ["n0"])
