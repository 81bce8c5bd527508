"""Starts tool servers that are not ours, as ``scripts/foreign`` installs them."""

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.tools.transports.programs import Program

FOLDER = Path(__file__).resolve().parents[3] / "var" / "foreign_servers"
NODE = FOLDER / "node_modules/.bin/node"
SCRIPTS = FOLDER / "node_modules/.bin"
PYTHON = FOLDER / "venv/bin"


def installed() -> None:
    """Skip the test where nothing is installed; fail where everything must be."""
    if NODE.exists() and (PYTHON / "mcp-server-time").exists():
        return
    text = "servers of others are not installed: sh scripts/foreign"
    if os.environ.get("AGENTOPS_SERVICES") == "required":
        pytest.fail(text)
    pytest.skip(text)


def programs(folder: Path) -> dict[str, Program]:
    """Return the registrations of an operator who trusts them; files go into ``folder``."""
    memory = f"MEMORY_FILE_PATH={folder / 'memory.jsonl'}"
    return {
        "time": Program(str(PYTHON / "mcp-server-time"), ("--local-timezone", "UTC")),
        "fetch": Program(
            str(PYTHON / "mcp-server-fetch"), ("--ignore-robots-txt", "--allow-private-ips")
        ),
        "files": Program(str(NODE), (str(SCRIPTS / "mcp-server-filesystem"), str(folder))),
        "memory": Program("/usr/bin/env", (memory, str(NODE), str(SCRIPTS / "mcp-server-memory"))),
        "everything": Program(str(NODE), (str(SCRIPTS / "mcp-server-everything"), "stdio")),
    }


class Everything:
    """The reference server of the protocol's authors, over HTTP."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/{'sse' if self.mode == 'sse' else 'mcp'}"

    def start(self) -> None:
        """Start it and wait until it listens."""
        self.process = subprocess.Popen(
            [str(NODE), str(SCRIPTS / "mcp-server-everything"), self.mode],
            env={"PORT": str(self.port), "PATH": os.environ["PATH"]},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        ends = time.monotonic() + 30
        while time.monotonic() < ends:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.05)
        pytest.fail("the server does not listen")

    def kill(self) -> None:
        """SIGKILL: no goodbye."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def everything(mode: str) -> Iterator[Everything]:
    """Run it; kill it in the end."""
    server = Everything(mode)
    server.start()
    try:
        yield server
    finally:
        server.kill()
