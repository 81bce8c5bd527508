"""Starts the demo servers as the processes they are, and stops them without ceremony."""

import asyncio
import contextlib
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from apps.runtime.addresses import AllowList
from apps.runtime.ports import RemoteTool

LOCAL = AllowList.of(["127.0.0.1"])
"""Servers of tests live on this machine."""

ROOT = Path(__file__).resolve().parents[3]
_LISTENING = re.compile(r"http://127\.0\.0\.1:(\d+)")


class DemoServer:
    """One demo server on a port of its own; ``restart`` brings it back on the same port."""

    def __init__(self, name: str, db: Path, *options: str) -> None:
        self.name = name
        self.db = db
        self.options = options
        self.port = 0
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it and wait until it says where it listens."""
        command = [
            sys.executable, "-m", f"examples.mcp_servers.{self.name}",
            "--port", str(self.port), "--db", str(self.db), *self.options,
        ]  # fmt: skip
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        found = _LISTENING.search(process.stdout.readline())
        assert found is not None, "the server did not say where it listens"
        self.port = int(found.group(1))
        self._process = process

    def kill(self) -> None:
        """SIGKILL: no answer, no goodbye."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def restart(self) -> None:
        self.kill()
        self.start()

    def tool(
        self, name: str, transport: str = "streamable_http", timeout: float = 10
    ) -> RemoteTool:
        """Return ``name`` of this server as the caller would hand it to a transport."""
        return RemoteTool(
            server=self.name,
            transport="http" if transport == "http" else "streamable_http",
            address=f"http://127.0.0.1:{self.port}/mcp",
            name=name,
            timeout_seconds=timeout,
        )

    def rows(self, sql: str, *values: object) -> list[tuple]:
        with contextlib.closing(sqlite3.connect(self.db)) as db:
            return db.execute(sql, values).fetchall()

    def change(self, sql: str, *values: object) -> None:
        with contextlib.closing(sqlite3.connect(self.db)) as db, db:
            db.execute(sql, values)

    async def until(self, sql: str, expected: int) -> None:
        """Wait until the one number that ``sql`` selects is ``expected``."""
        async with asyncio.timeout(10):
            while self.rows(sql)[0][0] != expected:  # noqa: ASYNC110 - another process changes it
                await asyncio.sleep(0.01)


@contextlib.contextmanager
def running(name: str, db: Path, *options: str) -> Iterator[DemoServer]:
    """Run a demo server; kill it in the end."""
    server = DemoServer(name, db, *options)
    server.start()
    try:
        yield server
    finally:
        server.kill()
