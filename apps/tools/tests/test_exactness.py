"""What a model means arrives at the server as it is, or comes back as an error of its field.

From the text a model writes, through the tool port, to a real MCP server over streamable HTTP and the
bytes that it received.
"""

import asyncio
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from apps.agents.arguments import arguments_parse
from apps.runtime.ports import ToolRequest
from apps.runtime.testing import FakeLedger
from apps.tools.tests.echo_server import echoing, received
from apps.tools.tests.generated_calls import Call, calls, same
from apps.tools.tests.servers import LOCAL
from apps.tools.tests.world import BINDINGS, caller_of, release, turn
from apps.tools.transports.dispatch import Transports

PAIRS = 5_000


@pytest.fixture(scope="module")
def address():
    with echoing() as found:
        yield found


class Line:
    """A loop and a transport that stay open for all calls of a test."""

    def __init__(self, address: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.bindings = {**BINDINGS, "address:telecom_url": address}
        self.transports = self.loop.run_until_complete(self._open())
        self.number = 0

    async def _open(self) -> Transports:
        return Transports(allowed=LOCAL)

    def close(self) -> None:
        self.loop.run_until_complete(self.transports.aclose())
        self.loop.close()

    def call(self, tool, text: str):
        """Return what becomes of a model's ``text`` for ``tool``."""
        self.number += 1
        caller = caller_of(self.transports, FakeLedger())
        asked = turn(
            id=f"t{self.number}", release=release(tools={"eco": tool}), bindings=self.bindings
        )
        request = ToolRequest("eco", arguments_parse(text))
        (done,) = self.loop.run_until_complete(caller.call(asked, [request]))
        return done


@pytest.fixture
def line(address):
    made = Line(address)
    yield made
    made.close()


@pytest.mark.once
@pytest.mark.timeout(900)
def test_calls__five_thousand_generated_pairs__values_arrive_or_each_wrong_field_is_named(line):
    counted: Counter[str] = Counter()
    types: Counter[str] = Counter()

    @settings(
        max_examples=PAIRS, derandomize=True, deadline=None, database=None,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(calls())
    def one(call: Call) -> None:
        done = line.call(call.tool, call.text)
        named = {error["field"] for error in done.field_errors}
        assert named == call.refused, (call.text, done.field_errors)
        if call.refused:
            assert done.status == "refused"
            assert all(error["message"] for error in done.field_errors)
            assert all(error["accepted"] for error in done.field_errors), done.field_errors
        else:
            assert done.status == "ok", done.error
            assert same(received(done.result), call.intended), (call.text, done.result)
        counted["refused" if call.refused else "sent"] += 1
        counted["by the server's schema"] += bool(call.tool.contract.input_schema)
        types.update(argument.type for argument in call.tool.args_schema.values())

    one()
    print(
        f"\n{counted['sent'] + counted['refused']} pairs: {dict(counted)}; arguments {dict(types)}"
    )

    assert counted["sent"] + counted["refused"] >= PAIRS
    assert min(counted["sent"], counted["refused"]) > PAIRS / 5
    assert min(types.values()) > PAIRS / 10
    assert len(types) == 6
