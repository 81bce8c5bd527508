"""A server that keeps failing is left alone, tried once, and taken back."""

import asyncio
from dataclasses import replace

import pytest

from apps.runtime.ports import RemoteResult, RemoteTool, ToolUnavailable
from apps.tools.tests.servers import LOCAL, running
from apps.tools.transports.circuit import Circuits
from apps.tools.transports.dispatch import Transports

REMOTE = RemoteTool(
    server="crm", transport="http", address="http://crm.test", name="t", tenant="1",
    circuit_threshold=3, circuit_recovery_seconds=60,
)  # fmt: skip


class World:
    """A clock, and the circuits that read it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.circuits = Circuits(clock=lambda: self.now)

    def ask(self, code: str = "", remote: RemoteTool = REMOTE) -> str:
        """Make one request that fails with ``code`` ("": it works); return how it ended."""
        try:
            with self.circuits.trying(remote):
                if code:
                    raise ToolUnavailable("x", sent=False, code=code)
        except ToolUnavailable as failure:
            return failure.code
        return "ok"


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("code", ["unreachable", "timeout", "broken"])
def test_circuit__so_many_failures_in_a_row__the_next_is_not_sent(world, code):
    ended = [world.ask(code) for _ in range(5)]

    assert ended == [code] * 3 + ["circuit_open"] * 2
    (state,) = world.circuits.states()
    assert (state.tenant, state.server, state.address) == ("1", "crm", "http://crm.test")
    assert (state.state, state.failures, state.retry_in) == ("open", 3, 60)


def test_circuit__a_success_between__counts_from_the_beginning(world):
    for _ in range(4):
        assert [world.ask("timeout"), world.ask("timeout"), world.ask()] == ["timeout"] * 2 + ["ok"]

    assert world.circuits.states() == []


@pytest.mark.parametrize("code", ["needs_sign_in", "forbidden_address", "circuit_open"])
def test_circuit__what_is_not_the_servers_fault__never_opens_it(world, code):
    assert [world.ask(code) for _ in range(10)] == [code] * 10
    assert world.circuits.states() == []


def test_circuit__after_the_pause__one_trial_decides(world):
    for _ in range(3):
        world.ask("broken")
    world.now = 60
    (state,) = world.circuits.states()
    assert (state.state, state.retry_in) == ("half_open", 0)

    with world.circuits.trying(REMOTE):
        assert world.ask() == "circuit_open"
    assert world.ask() == "ok"
    assert world.circuits.states() == []


def test_circuit__trial_fails__pauses_again_for_as_long(world):
    for _ in range(3):
        world.ask("broken")
    world.now = 60
    assert world.ask("timeout") == "timeout"
    assert world.ask() == "circuit_open"
    world.now = 119
    assert world.ask() == "circuit_open"
    world.now = 120
    assert world.ask() == "ok"


def test_circuit__trial_is_cancelled__the_next_one_tries(world):
    for _ in range(3):
        world.ask("broken")
    world.now = 60
    with pytest.raises(asyncio.CancelledError), world.circuits.trying(REMOTE):
        raise asyncio.CancelledError

    assert world.ask() == "ok"


@pytest.mark.parametrize(
    "other", [{"tenant": "2"}, {"server": "erp"}, {"address": "http://crm.test/2"}]
)
def test_circuit__of_another_tenant_server_or_address__stays_closed(world, other):
    for _ in range(3):
        world.ask("broken")

    assert world.ask("", replace(REMOTE, **other)) == "ok"
    assert world.ask() == "circuit_open"


def test_circuit__threshold_zero__never_opens(world):
    never = replace(REMOTE, circuit_threshold=0)
    assert [world.ask("timeout", never) for _ in range(20)] == ["timeout"] * 20


async def test_transports__tool_that_says_no__is_no_failure_of_its_server(monkeypatch):
    transports = Transports()

    async def no(*_args, **_more):
        return RemoteResult(ok=False, error="sem saldo")

    monkeypatch.setattr(transports._http, "call", no)
    for _ in range(10):
        assert not (await transports.call(REMOTE, {}, idempotency_key="")).ok

    assert transports.states() == []
    await transports.aclose()


@pytest.mark.parametrize("contract", ["streamable_http", "http"])
async def test_transports__server_killed_and_back__is_paused_then_tried_and_taken_back(
    tmp_path, contract
):
    transports = Transports(allowed=LOCAL)
    with running("telecom", tmp_path / "t.sqlite3") as server:
        tool = replace(
            server.tool("consultar_plano", contract),
            circuit_threshold=2,
            circuit_recovery_seconds=2,
        )

        async def ended() -> str:
            try:
                await transports.call(tool, {"msisdn": "11999999999"}, idempotency_key="")
            except ToolUnavailable as failure:
                return failure.code
            return "ok"

        first = await ended()
        server.kill()
        down = [await ended() for _ in range(4)]
        server.start()
        await asyncio.sleep(2)
        back = [await ended() for _ in range(2)]

    await transports.aclose()
    assert (first, down) == ("ok", ["unreachable"] * 2 + ["circuit_open"] * 2)
    assert back == ["ok", "ok"]
