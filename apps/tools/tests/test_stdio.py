"""Programs on this machine as tool servers: registered, supervised, and kept apart."""

import asyncio
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from apps.runtime.ports import RemoteTool, ToolUnavailable
from apps.tools.tests import fake_stdio
from apps.tools.transports import connections, stdio
from apps.tools.transports.dispatch import Transports
from apps.tools.transports.programs import Program, programs_parse

SCRIPT = str(Path(fake_stdio.__file__))
REMOTE = RemoteTool(
    server="local", transport="stdio", address="fake", name="echo", timeout_seconds=10, tenant="1"
)


def program(*options: str, **more) -> Program:
    return Program(sys.executable, (SCRIPT, *options), **more)


@pytest.fixture
async def running():
    """Return a function that makes a worker's transports with one registered program."""
    made = []

    def make(*options: str, on_changed=None, **more) -> Transports:
        extra = {"on_changed": on_changed} if on_changed else {}
        transports = Transports(programs={"fake": program(*options, **more)}, **extra)
        made.append(transports)
        return transports

    yield make
    for transports in made:
        await transports.aclose()


async def ask(transports: Transports, name: str = "echo", arguments=None, **changed):
    remote = replace(REMOTE, name=name, **changed)
    return await transports.call(remote, arguments or {}, idempotency_key="key-1")


def alive(pid: int) -> bool:
    """Whether the process runs: one that ended and was not waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


async def gone(pid: int, seconds: float = 8) -> bool:
    ends = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < ends:  # noqa: ASYNC110 - another process ends
        await asyncio.sleep(0.02)
    return not alive(pid)


async def test_call__registered_program__lists_and_answers_in_one_process(running):
    transports = running("--banner")

    tools = await transports.list_tools(REMOTE)
    first, second = [(await ask(transports, "pid")).result["pid"] for _ in range(2)]
    echoed = await ask(transports, "echo", {"valor": 9007199254740993, "nome": "ação"})

    assert [tool["name"] for tool in tools] == [tool["name"] for tool in fake_stdio.TOOLS]
    assert first == second != os.getpid()
    assert echoed.result == {"valor": 9007199254740993, "nome": "ação"}


async def test_call__name_nobody_registered__is_refused_and_nothing_is_started(running):
    for name in ("other", "/bin/sh", "fake; true", ""):
        with pytest.raises(ToolUnavailable, match="STDIO_PROGRAMS") as refused:
            await ask(running(), address=name)
        assert (refused.value.sent, refused.value.code) == (False, "forbidden_address")


async def test_call__refused_as_invalid__the_program_and_the_calls_on_it_go_on(running):
    transports = running()
    pid = (await ask(transports, "pid")).result["pid"]

    slow = asyncio.create_task(ask(transports, "echo", {"n": 1}))
    with pytest.raises(ToolUnavailable) as refused:
        await ask(transports, "invalid")

    assert (refused.value.sent, refused.value.code) == (False, "broken")
    assert (await slow).result == {"n": 1}
    assert (await ask(transports, "pid")).result["pid"] == pid


async def test_call__environment__is_what_was_registered_and_no_secret(running, monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "top")
    monkeypatch.setenv("AGENTOPS_SECRET__ACME__TOKEN", "top")
    monkeypatch.setenv("OPENAI_API_KEY", "top")
    monkeypatch.setenv("WANTED", "yes")
    transports = running(env=("WANTED", "NOT_SET"), credential_env="API_TOKEN")

    given = (await ask(transports, "env", credential="tenant's own")).result

    assert (given["WANTED"], given["API_TOKEN"]) == ("yes", "tenant's own")
    assert set(given) <= {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "WANTED", "API_TOKEN"}
    assert "top" not in given.values()


async def test_call__another_tenant__has_a_process_of_its_own(running):
    transports = running()

    pids = [(await ask(transports, "pid", tenant=tenant)).result["pid"] for tenant in ("1", "2")]

    assert pids[0] != pids[1]


async def test_call__program_dies_in_the_middle__counts_as_sent_and_the_next_call_starts_it(
    running,
):
    transports = running()
    first = (await ask(transports, "pid")).result["pid"]
    began = time.monotonic()

    with pytest.raises(ToolUnavailable) as died:
        await ask(transports, "die")

    assert (died.value.sent, died.value.code) == (True, "broken")
    assert time.monotonic() - began < 3
    assert (await ask(transports, "pid")).result["pid"] != first


async def test_call__program_killed_while_idle__is_started_again_unnoticed(running):
    transports = running()
    first = (await ask(transports, "pid")).result["pid"]
    os.kill(first, 9)
    assert await gone(first)
    await asyncio.sleep(0.2)

    assert (await ask(transports, "pid")).result["pid"] != first


async def test_call__program_that_cannot_stay_up__is_started_ever_less_often(running, monkeypatch):
    transports, starts = running("--die"), []
    start = stdio.StdioWire._started

    async def counted(wire):
        starts.append(time.monotonic())
        return await start(wire)

    monkeypatch.setattr(stdio.StdioWire, "_started", counted)
    ends = time.monotonic() + 2.5
    while time.monotonic() < ends:
        with pytest.raises(ToolUnavailable) as down:
            await ask(transports)
        assert down.value.sent is False
        await asyncio.sleep(0.02)

    # At once, again at once, after 1 s; the next would be after 2 s more.
    assert len(starts) == 3


def test_supervisor__pauses__grow_to_a_bound_and_end_with_a_steady_run():
    now = [0.0]
    supervisor = stdio.Supervisor(clock=lambda: now[0])
    pauses = []
    for _ in range(9):
        supervisor.ended(0.1)
        began = now[0]
        while True:
            try:
                supervisor.check()
                break
            except ToolUnavailable:
                now[0] += 1
        pauses.append(now[0] - began)
    supervisor.ended(stdio.STEADY_SECONDS)

    assert pauses == [0, 1, 2, 4, 8, 16, 32, 60, 60]
    supervisor.check()


@pytest.mark.parametrize("options", [(), ("--stubborn",)])
async def test_close__program_and_what_it_started__are_gone(running, monkeypatch, options):
    monkeypatch.setattr(stdio, "CLOSE_SECONDS", 0.3)
    transports = running(*options)
    pids = [(await ask(transports, name)).result["pid"] for name in ("pid", "child")]
    assert all(alive(pid) for pid in pids)

    await transports.aclose()

    assert all([await gone(pid) for pid in pids])


async def test_call__slower_than_its_deadline__ends_in_time_and_the_program_lives(running):
    transports = running()
    pid = (await ask(transports, "pid")).result["pid"]
    began = time.monotonic()

    with pytest.raises(ToolUnavailable) as late:
        await ask(transports, "slow", {"seconds": 0.6}, timeout_seconds=0.2)

    assert (late.value.sent, late.value.code) == (True, "timeout")
    assert time.monotonic() - began < 0.5
    assert (await ask(transports, "pid")).result["pid"] == pid


async def test_call__answer_longer_than_the_bound__ends_the_run(running, monkeypatch):
    monkeypatch.setattr(connections, "MAX_ANSWER_BYTES", 20_000)
    transports = running()
    first = (await ask(transports, "pid")).result["pid"]

    with pytest.raises(ToolUnavailable) as broken:
        await ask(transports, "huge", {"size": 200_000})

    assert broken.value.sent is True
    assert (await ask(transports, "pid")).result["pid"] != first


async def test_notice__tools_changed__listener_is_told_and_the_list_is_read_again(running):
    told = []

    async def changed(tenant: str, server: str) -> None:
        told.append((tenant, server))

    transports = running(on_changed=changed)
    for _ in range(3):
        await ask(transports, "note")
    await asyncio.sleep(0.4)

    assert told == [("1", "local")]


async def test_errors_of_the_program__reach_the_log_and_no_more_than_the_bound(running, caplog):
    caplog.set_level("INFO", logger="apps.tools.transports.stdio")
    transports = running("--noise", "500")

    assert (await ask(transports)).ok
    await asyncio.sleep(0.3)

    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == stdio.MAX_LOG_LINES + 1
    assert max(len(line) for line in lines) < 600


async def test_call__more_programs_than_a_worker_runs__the_idle_one_is_stopped(
    running, monkeypatch
):
    monkeypatch.setattr("apps.tools.transports.mcp.MAX_PROGRAMS", 2)
    transports = running()

    pids = [(await ask(transports, "pid", tenant=t)).result["pid"] for t in ("1", "2", "3")]

    assert await gone(pids[0])
    assert alive(pids[1])
    assert alive(pids[2])


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "object"),
        ({"a": "ls"}, "a must be an object"),
        ({"a": {}}, "a.command"),
        ({"a": {"command": ["ls"]}}, "a.command"),
        ({"a": {"command": "ls", "args": "-l"}}, "a.args"),
        ({"a": {"command": "ls", "shell": True}}, "unknown shell"),
        ({"a": {"command": "ls", "cwd": 1}}, "a.cwd"),
        ({"a": {"command": "ls", "env": ["A=B"]}}, "not the name of a variable"),
        ({"a": {"command": "ls", "env": ["SECRET_KEY"]}}, "SECRET_KEY"),
        ({"a": {"command": "ls", "env": ["DATABASE_URL"]}}, "DATABASE_URL"),
        ({"a": {"command": "ls", "env": ["AGENTOPS_SECRET__ACME__X"]}}, "AGENTOPS_SECRET__ACME__X"),
        ({"a": {"command": "ls", "credential_env": 3}}, "not the name of a variable"),
    ],
)
def test_registration__that_is_wrong__says_where(value, said):
    with pytest.raises(ValueError, match=said):
        programs_parse(value)


def test_registration__as_documented__is_read():
    entry = {"command": "uvx", "args": ["x"], "env": ["HOME"], "cwd": "/srv", "credential_env": "T"}

    assert programs_parse({"a": entry}) == {"a": Program("uvx", ("x",), ("HOME",), "/srv", "T")}
