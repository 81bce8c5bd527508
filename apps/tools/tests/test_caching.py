"""Kept answers: whose they are, how long they hold, and what makes them doubtful."""

from dataclasses import replace

import pytest

from apps.runtime.ports import RemoteResult, ToolRequest
from apps.runtime.testing import FakeTransport
from apps.runtime.turn import Caller, Inbound
from apps.tools import caching
from apps.tools.caching import BYPASS, DEDUPED, HIT, MISS, NOT_STORED, SET
from apps.tools.config import CachePolicy, ToolServerConfig
from apps.tools.tests.world import (
    BINDINGS,
    EXCHANGE,
    INVOICE,
    INVOICE_MAPPING,
    caller_of,
    release,
    turn,
)

KEPT = INVOICE.model_copy(update={"cache": CachePolicy(enabled=True, ttl_seconds=60)})
ASK = ToolRequest("consultar_fatura")
ME = {"customer_key": "11999", "contract_key": "INV-1"}
ACT = ToolRequest("solicitar_troca", {"order_id": "1", "reason": "defeito"})


class Memory:
    """An ``AnswerCache`` in memory; keeps what it was told."""

    def __init__(self) -> None:
        self.rows: dict[tuple[int, str], caching.Kept] = {}

    async def find(self, tenant, keys):
        return {key: self.rows[tenant, key].text for key in keys if (tenant, key) in self.rows}

    async def keep(self, tenant, answers):
        self.rows.update({(tenant, answer.key): answer for answer in answers})

    async def drop(self, tenant, scopes):
        self.rows = {
            at: kept
            for at, kept in self.rows.items()
            if at[0] != tenant or kept.scope not in scopes
        }


class World:
    """A caller with a cache over a server that counts."""

    def __init__(self, answer=None) -> None:
        self.memory = Memory()
        self.number = 0
        self.transport = FakeTransport(
            {
                "consultar_fatura": answer or self._count,
                "v2": self._count,
                "solicitar_troca": "done",
            }
        )
        self.caller = caller_of(self.transport, answers=self.memory)

    def _count(self, arguments):
        self.number += 1
        return {"n": self.number}

    async def ask(self, *requests, tool=KEPT, **changes):
        changes.setdefault("context", ME)
        changes.setdefault("tenant", "1")
        changes.setdefault("release", release(tools={"consultar_fatura": tool}))
        changes.setdefault("id", f"t{len(self.transport.calls)}-{self.number}")
        return await self.caller.call(turn(**changes), requests or [ASK])


async def test_answer__asked_again_in_another_turn__comes_from_the_cache():
    world = World()

    (first,) = await world.ask(id="t1")
    (again,) = await world.ask(id="t2")

    assert first.events == (MISS, SET)
    assert (again.events, again.result, again.replayed) == ((HIT,), {"n": 1}, True)
    assert again.metadata["cache"] == "hit"
    assert len(world.transport.calls) == 1
    (kept,) = world.memory.rows.values()
    assert kept.seconds == 60


@pytest.mark.parametrize(
    "other",
    [
        {"tenant": "2"},
        {"environment": "staging"},
        {"context": {**ME, "customer_key": "11888"}},
        {"context": {**ME, "contract_key": "INV-2"}},
        {"tool_arguments": {"detalhe": True}},
        {"caller": Caller(principal="somebody-else", may_name_customer=True)},
        {"bindings": {**BINDINGS, "address:telecom_url": "http://elsewhere.test/mcp"}},
        {"tool": KEPT.model_copy(update={"remote_name": "v2"})},
        {"tool": KEPT.model_copy(update={"description": "edited"})},
        {"tool": KEPT.model_copy(update={"cache": CachePolicy(enabled=True, ttl_seconds=61)})},
        {
            "release": release(
                tools={"consultar_fatura": KEPT},
                tool_server={"telecom": ToolServerConfig(endpoint="telecom_url", timeout_seconds=7)},
            )
        },
        {
            "release": release(
                tools={"consultar_fatura": KEPT},
                mappings={"consultar_fatura": INVOICE_MAPPING.model_copy(update={"defaults": {"mes": 2}})},
            )
        },
    ],
    ids=[
        "tenant", "environment", "customer", "contract key", "arguments", "principal", "address",
        "remote name", "edit", "ttl", "server", "mapping",
    ],
)  # fmt: skip
async def test_answer__asked_for_anything_else__is_another_answer(other):
    world = World()
    await world.ask(id="t1")

    (done,) = await world.ask(id="t2", **other)

    assert (done.events, done.result) == ((MISS, SET), {"n": 2})


async def test_answer__same_placeholder_of_two_sessions__is_the_document_behind_it():
    tool = KEPT.model_copy(
        update={
            "args_schema": {
                **KEPT.args_schema,
                "cpf": EXCHANGE.args_schema["cpf"],
            }
        }
    )
    world = World()
    asked = {"tool": tool, "tool_arguments": {"cpf": "<CPF_1>"}}

    for number, cpf in enumerate(["111.444.777-35", "222.555.888-46", "111.444.777-35"]):
        (done,) = await world.ask(id=f"t{number}", vault={"<CPF_1>": cpf}, **asked)

    assert done.result == {"n": 1}
    assert len(world.transport.calls) == 2
    assert not any("111" in key for _, key in world.memory.rows)


async def test_cache__off_for_the_tool_or_an_action__says_nothing_and_keeps_nothing():
    world = World()
    action = EXCHANGE.model_copy(update={"cache": CachePolicy(enabled=True)})
    both = release(tools={"consultar_fatura": INVOICE, "solicitar_troca": action})

    done = await world.ask(ASK, ACT, release=both)

    assert [call.events for call in done] == [(), ()]
    assert world.memory.rows == {}


async def test_cache__switched_off__is_not_used():
    transport = FakeTransport({"consultar_fatura": 1})
    on = release(tools={"consultar_fatura": KEPT})

    for number in range(2):
        (done,) = await caller_of(transport).call(
            turn(release=on, context=ME, id=f"t{number}"), [ASK]
        )

    assert done.events == ()
    assert len(transport.calls) == 2


@pytest.mark.parametrize(
    "answer",
    [RemoteResult(ok=False, error="não existe"), {"text": "x" * (caching.LONGEST + 1)}],
    ids=["failed", "too long"],
)
async def test_answer__failed_or_too_long__is_not_stored(answer):
    world = World(answer)

    (done,) = await world.ask(id="t1")
    await world.ask(id="t2")

    assert done.events == (MISS, NOT_STORED)
    assert world.memory.rows == {}
    assert len(world.transport.calls) == 2


@pytest.mark.parametrize(
    ("metadata", "events"),
    [
        ({"cache_bypass": True}, (BYPASS, SET)),
        ({"cache_bypass": "true"}, (HIT,)),
        ("cache_bypass", (HIT,)),
    ],
)
async def test_bypass__asked_for_in_the_payloads_metadata__asks_anew_and_keeps_that(
    metadata, events
):
    world = World()
    await world.ask(id="t1")

    (done,) = await world.ask(id="t2", payload={"metadata": metadata})
    (later,) = await world.ask(id="t3")

    assert done.events == events
    assert later.result == done.result


async def test_action__of_the_same_customer_and_server__makes_kept_answers_doubtful():
    on = release(
        tools={
            "consultar_fatura": KEPT,
            "solicitar_troca": EXCHANGE.model_copy(update={"mcp_server": "telecom"}),
        }
    )
    world = World()
    other = {**ME, "customer_key": "11888"}
    await world.ask(id="t1", release=on)
    await world.ask(id="t2", release=on, context=other)

    await world.ask(ACT, id="t3", release=on)
    (mine,) = await world.ask(id="t4", release=on)
    (theirs,) = await world.ask(id="t5", release=on, context=other)

    assert mine.events == (MISS, SET)
    assert theirs.events == (HIT,)


async def test_dedupe__equal_requests_of_a_batch__one_is_sent_and_the_other_says_so():
    world = World()

    first, second = await world.ask(ASK, replace(ASK, ordinal=1, agent="atendente"))

    assert (first.events, second.events) == ((MISS, SET), (DEDUPED,))
    assert (second.ordinal, second.agent, second.result) == (1, "atendente", {"n": 1})
    assert len(world.transport.calls) == 1


@pytest.mark.parametrize("request_", [ASK, ACT], ids=["read", "action"])
async def test_dedupe__another_agent_of_the_turn_asked_before__its_answer_is_used(request_):
    world = World()
    off = release()
    (by_coordinator,) = await world.ask(request_, release=off, id="t1")

    (by_specialist,) = await world.ask(
        replace(request_, agent="atendente", ordinal=7),
        release=off,
        id="t1",
        tool_calls=(by_coordinator,),
    )

    assert by_specialist.events == (DEDUPED,)
    assert (by_specialist.agent, by_specialist.metadata["deduped"]) == ("atendente", True)
    assert len(world.transport.calls) == 1


async def test_bypass__metadata_of_a_strange_shape__is_none():
    inbound = Inbound("web", "", None, "m", "s", payload={"metadata": ["cache_bypass"]})

    assert caching._bypassed(turn().evolve(inbound=inbound)) is False
