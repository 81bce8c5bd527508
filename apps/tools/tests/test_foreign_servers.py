"""Tool servers that are not ours, as real processes: listed, called, results shown.

From npm: the reference server over streamable HTTP, HTTP+SSE and stdio, the file server and the
memory. From PyPI: time and fetch. Each through the transports alone, and through ``ToolCaller`` with
a release, as a turn does it.
"""

import http.server
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from apps.runtime.ports import RemoteTool, ToolRequest, ToolUnavailable
from apps.tools.config import Argument, ToolConfig, ToolServerConfig
from apps.tools.tests import conformance_client
from apps.tools.tests.foreign import NODE, SCRIPTS, everything, installed, programs
from apps.tools.tests.servers import LOCAL, ROOT
from apps.tools.tests.world import caller_of, release, turn
from apps.tools.transports.dispatch import Transports

pytestmark = [
    pytest.mark.once("processes of others; no database is involved"),
    pytest.mark.timeout(180),
]
MODES = {"streamable_http": "streamableHttp", "sse": "sse", "stdio": "stdio"}
EVERYTHING = {
    "echo", "get-annotated-message", "get-env", "get-resource-links", "get-resource-reference",
    "get-structured-content", "get-sum", "get-tiny-image", "gzip-file-as-resource",
    "toggle-simulated-logging", "toggle-subscriber-updates", "trigger-long-running-operation",
    "simulate-research-query",
}  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def _installed():
    installed()


@pytest.fixture
async def transports(tmp_path):
    made = Transports(allowed=LOCAL, programs=programs(tmp_path))
    yield made
    await made.aclose()


@pytest.fixture(scope="module", params=MODES)
def reference(request):
    """The reference server over each transport."""
    base = RemoteTool(
        server="everything", transport=request.param, address="everything", name="",
        timeout_seconds=30, tenant="1", repeatable=True,
    )  # fmt: skip
    if request.param == "stdio":
        yield base
        return
    with everything(MODES[request.param]) as server:
        yield replace(base, address=server.address)


def program(name: str, tool: str = "") -> RemoteTool:
    return RemoteTool(
        server=name, transport="stdio", address=name, name=tool, timeout_seconds=30, tenant="1"
    )


async def ask(transports, remote: RemoteTool, **arguments):
    return await transports.call(remote, arguments, idempotency_key="key-1")


# -- the reference server over three transports ------------------------------------------------


async def test_reference__listed__its_tools_with_schemas(transports, reference):
    tools = {tool["name"]: tool for tool in await transports.list_tools(reference)}

    assert set(tools) == EVERYTHING
    assert tools["get-sum"]["input_schema"]["required"] == ["a", "b"]
    assert set(tools["get-structured-content"]["output_schema"]["required"]) == {
        "temperature", "conditions", "humidity",
    }  # fmt: skip


async def test_reference__called__texts_numbers_structure_and_images_are_shown(
    transports, reference
):
    said = await ask(transports, replace(reference, name="echo"), message="olá, ação")
    summed = await ask(transports, replace(reference, name="get-sum"), a=2, b=40)
    shaped = await ask(
        transports, replace(reference, name="get-structured-content"), location="New York"
    )
    image = await ask(transports, replace(reference, name="get-tiny-image"))
    wrong = await ask(transports, replace(reference, name="get-sum"), a="x")
    absent = await ask(transports, replace(reference, name="no-such-tool"))

    assert (said.ok, said.result) == (True, "Echo: olá, ação")
    assert summed.result == "The sum of 2 and 40 is 42."
    assert shaped.result == {"temperature": 33, "conditions": "Cloudy", "humidity": 82}
    assert "[image image/png, 4033 bytes]" in image.result
    assert image.metadata["attachments"][0]["mime_type"] == "image/png"
    assert (wrong.ok, absent.ok) == (False, False)
    assert "a" in wrong.error
    assert "no-such-tool" in absent.error


async def test_reference__long_operation_with_progress__ends_or_meets_the_deadline(
    transports, reference
):
    tool = replace(reference, name="trigger-long-running-operation")

    done = await ask(transports, tool, duration=1, steps=4)
    with pytest.raises(ToolUnavailable) as late:
        await ask(transports, replace(tool, timeout_seconds=0.5), duration=30, steps=300)

    assert "completed" in done.result
    assert (late.value.sent, late.value.code) == (True, "timeout")
    assert (await ask(transports, replace(reference, name="get-sum"), a=1, b=1)).ok


async def test_reference__through_the_caller__a_turn_gets_the_result(transports, reference):
    stdio = reference.transport == "stdio"
    server = ToolServerConfig(
        transport=reference.transport,
        program="everything" if stdio else "",
        endpoint="" if stdio else "everything_url",
        timeout_seconds=30,
    )
    tools = {
        "somar": ToolConfig(
            mcp_server="everything", remote_name="get-sum",
            args_schema={"a": Argument(type="number"), "b": Argument(type="number")},
            requires=["a", "b"],
        ),
        "tempo": ToolConfig(
            mcp_server="everything", remote_name="get-structured-content",
            args_schema={"location": Argument(enum=["New York", "Chicago"])},
        ),
    }  # fmt: skip
    world = release(tools=tools, tool_server={"everything": server})
    bindings = {"address:everything_url": reference.address}

    summed, weather, missing = await caller_of(transports).call(
        turn(release=world, bindings=bindings),
        [
            ToolRequest("somar", {"a": 2, "b": 40}),
            ToolRequest("tempo", {"location": "Chicago"}),
            ToolRequest("somar", {"a": 2}),
        ],
    )

    assert (summed.status, summed.result) == ("ok", "The sum of 2 and 40 is 42.")
    assert weather.result["conditions"] == "Light rain / drizzle"
    assert (missing.status, missing.metadata["reason"]) == ("refused", "missing_arguments")


@pytest.mark.parametrize("transport", ["streamable_http", "sse"])
async def test_reference__killed_and_back__session_is_new_and_the_call_is_answered(
    transports, transport
):
    with everything(MODES[transport]) as server:
        tool = RemoteTool(
            server="everything", transport=transport, address=server.address, name="get-sum",
            timeout_seconds=30, repeatable=True,
        )  # fmt: skip
        first = await ask(transports, tool, a=1, b=1)
        server.kill()
        with pytest.raises(ToolUnavailable) as down:
            await ask(transports, tool, a=1, b=1)
        server.start()
        again = await ask(transports, tool, a=2, b=2)

    assert first.ok
    assert down.value.sent is False
    assert again.result == "The sum of 2 and 2 is 4."


# -- servers of others over stdio --------------------------------------------------------------


async def test_time_from_pypi__listed_and_called__hours_are_converted(transports):
    tools = await transports.list_tools(program("time"))
    answer = await ask(
        transports, program("time", "convert_time"),
        source_timezone="America/Sao_Paulo", time="12:00", target_timezone="Asia/Tokyo",
    )  # fmt: skip

    assert {tool["name"] for tool in tools} == {"get_current_time", "convert_time"}
    assert answer.result["source"]["datetime"].endswith("T12:00:00-03:00")
    assert answer.result["target"]["datetime"].endswith("T00:00:00+09:00")
    assert answer.result["time_difference"] == "+12.0h"


async def test_fetch_from_pypi__called__a_page_comes_as_text(transports):
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.end_headers()
            words = "<p>A fatura vence no dia dez de cada mês.</p>" * 5
            self.wfile.write(f"<html><body><main>{words}</main></body></html>".encode())

        def log_message(self, *args):
            pass

    pages = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=pages.serve_forever, daemon=True).start()
    try:
        tools = await transports.list_tools(program("fetch"))
        answer = await ask(
            transports, program("fetch", "fetch"), url=f"http://127.0.0.1:{pages.server_port}/"
        )
    finally:
        pages.shutdown()

    assert [tool["name"] for tool in tools] == ["fetch"]
    assert answer.ok
    assert "A fatura vence no dia dez" in answer.result


async def test_files_from_npm__through_the_caller__are_written_read_and_kept_to_their_folder(
    transports, tmp_path
):
    path = Argument(type="string")
    tools = {
        "gravar": ToolConfig(
            mcp_server="files", remote_name="write_file", tool_type="action",
            args_schema={"path": path, "content": Argument()}, requires=["path", "content"],
        ),
        "ler": ToolConfig(
            mcp_server="files", remote_name="read_text_file", args_schema={"path": path}
        ),
    }  # fmt: skip
    server = ToolServerConfig(transport="stdio", program="files")
    world = release(tools=tools, tool_server={"files": server})
    caller, now = caller_of(transports), turn(release=world)
    place = str(tmp_path / "nota.txt")

    (written,) = await caller.call(now, [ToolRequest("gravar", {"path": place, "content": "São"})])
    read, outside = await caller.call(
        now, [ToolRequest("ler", {"path": place}), ToolRequest("ler", {"path": "/etc/passwd"})]
    )

    assert written.status == "ok"
    assert (tmp_path / "nota.txt").read_text() == "São"
    assert (read.status, read.result) == ("ok", {"content": "São"})
    assert outside.status == "error"
    assert "Access denied" in outside.error


async def test_memory_from_npm__called__what_was_told_is_found_again(transports):
    entity = {"name": "Maria", "entityType": "cliente", "observations": ["prefere e-mail"]}

    await ask(transports, program("memory", "create_entities"), entities=[entity])
    graph = await ask(transports, program("memory", "read_graph"))
    tools = await transports.list_tools(program("memory"))

    assert graph.result == {"entities": [entity], "relations": []}
    assert len(tools) == 9


# -- the suite of the protocol's authors -------------------------------------------------------


@pytest.mark.parametrize(
    ("scenario", "checks"), [("initialize", 1), ("tools_call", 1), ("sse-retry", 3)]
)
def test_conformance__client_scenario__the_suite_says_that_it_passed(tmp_path, scenario, checks):
    client = f"{sys.executable} -m {conformance_client.__name__}"

    done = subprocess.run(
        [
            NODE, SCRIPTS / "conformance", "client", "--scenario", scenario, "--timeout", "60000",
            "--output-dir", tmp_path, "--command", client,
        ],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert f"Passed: {checks}/{checks}, 0 failed, 0 warnings" in done.stdout + done.stderr
    assert done.returncode == 0
