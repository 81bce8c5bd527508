"""The product as several real processes: web, workers, beat, tool servers."""

import socket
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import redis
from django.conf import settings
from django.db import connection

from agentops.tests.services.processes import Process, until

HOST = "127.0.0.1"


def free_port() -> int:
    """Return a port nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def database_url() -> str:
    """Return the test database's address as the application's role."""
    entry = connection.settings_dict
    password = f":{quote(entry['PASSWORD'], safe='')}" if entry["PASSWORD"] else ""
    return f"postgres://{entry['USER']}{password}@{entry['HOST']}:{entry['PORT']}/{entry['NAME']}"


class Web:
    """A web process."""

    def __init__(self, process: Process, port: int) -> None:
        self.process = process
        self.url = f"http://{HOST}:{port}"
        process.ready(self._healthy)

    def _healthy(self) -> bool:
        try:
            return httpx2.get(f"{self.url}/health", timeout=2).status_code == 200
        except httpx2.HTTPError:
            return False


class ToolServer:
    """A demo tool server, and what its own database says was asked and done."""

    def __init__(self, process: Process, port: int, database: Path) -> None:
        self.process = process
        self.address = f"http://{HOST}:{port}/mcp"
        self._database = database
        process.ready(self._healthy)

    def _healthy(self) -> bool:
        try:
            return httpx2.get(self.address.replace("/mcp", "/health"), timeout=2).is_success
        except httpx2.HTTPError:
            return False

    def calls(self) -> list["ServedCall"]:
        """Return every call it received, oldest first."""
        return [
            ServedCall(*row)
            for row in self.rows("SELECT tool, idempotency_key, outcome FROM calls ORDER BY id")
        ]

    def effects(self) -> list[str]:
        """Return the key of every effect."""
        return [key for (key,) in self.rows("SELECT idempotency_key FROM effects")]

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return what ``statement`` finds in its database."""
        database = sqlite3.connect(f"file:{self._database}?mode=ro", uri=True, timeout=10)
        try:
            return database.execute(statement).fetchall()
        finally:
            database.close()


@dataclass(frozen=True)
class ServedCall:
    """One call as its server noted it."""

    tool: str
    key: str
    outcome: str


class Deployment:
    """Starts processes over the test database, and ends them all.

    ``queue`` is of its own, so that runs at the same time on one Redis do not meet.
    """

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self.queue = f"turns-{uuid.uuid4().hex[:12]}"
        self.environment = {
            "DATABASE_URL": database_url(),
            "REDIS_URL": settings.REDIS_URL,
            "CELERY_QUEUE": self.queue,
            "SECRET_KEY": settings.SECRET_KEY,
            "DATA_DIR": str(folder),
            "DATABASE_POOL_SIZE": "6",
            "DEMO": "0",
            "TOOL_ALLOW_PRIVATE": "127.0.0.1",
            "LOG_LEVEL": "INFO",
            **environment,
        }
        self.processes: list[Process] = []

    def start(self, name: str, *command: str, **environment: str) -> Process:
        """Start ``python command``; numbered when the name is taken."""
        number = sum(process.name.split(".")[0] == name for process in self.processes) + 1
        process = Process(
            f"{name}.{number}",
            *command,
            environment={**self.environment, **environment},
            folder=self.folder,
        )
        self.processes.append(process)
        return process

    def web(self, **environment: str) -> Web:
        """Start a web process and wait until it is healthy."""
        port = free_port()
        process = self.start(
            "web", "-m", "uvicorn", "agentops.asgi:application", "--host", HOST,
            "--port", str(port), "--log-level", "warning", "--no-access-log", **environment,
        )  # fmt: skip
        return Web(process, port)

    def worker(self, *, concurrency: int = 4, wait: bool = True, **environment: str) -> Process:
        """Start a Celery worker; with ``wait`` until it takes tasks."""
        process = self.start(
            "worker", "-m", "celery", "-A", "agentops", "worker", "--pool", "threads",
            "--concurrency", str(concurrency), "--without-gossip", "--without-mingle",
            "--loglevel", "INFO",
            "--hostname", f"{uuid.uuid4().hex[:8]}@%h", **environment,
        )  # fmt: skip
        if wait:
            self.takes_tasks(process)
        return process

    def workers(self, count: int, *, concurrency: int = 8) -> list[Process]:
        """Start ``count`` workers at once and wait until all take tasks."""
        started = [self.worker(concurrency=concurrency, wait=False) for _ in range(count)]
        for worker in started:
            self.takes_tasks(worker)
        return started

    def takes_tasks(self, worker: Process) -> None:
        """Return when ``worker`` takes tasks."""
        worker.ready(lambda: " ready." in worker.said())

    def beat(self) -> Process:
        """Start Celery beat: it rings for the sweep."""
        schedule = str(self.folder / "beat-schedule")
        return self.start(
            "beat", "-m", "celery", "-A", "agentops", "beat", "--loglevel", "INFO",
            "--schedule", schedule,
        )  # fmt: skip

    def tool_server(self, name: str, *options: str) -> ToolServer:
        """Start a demo tool server over a fresh database."""
        port = free_port()
        database = self.folder / f"{name}-{port}.sqlite3"
        process = self.start(
            name, "-m", f"examples.mcp_servers.{name}", "--host", HOST, "--port", str(port),
            "--db", str(database), *options,
        )  # fmt: skip
        return ToolServer(process, port, database)

    def close(self) -> None:
        """End everything that still runs, newest first."""
        for process in reversed(self.processes):
            process.stop()
        if self.environment["REDIS_URL"] == settings.REDIS_URL != "":
            with redis.Redis.from_url(settings.REDIS_URL) as kept:
                kept.delete(*kept.keys(f"*{self.queue}*"), self.queue)


class PrivateRedis:
    """A Redis of the test's own that can be stopped and started at the same address."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = free_port()
        self.url = f"redis://{HOST}:{self.port}/0"
        self._process: Process | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        launch = "import os, sys; os.execvp('redis-server', ['redis-server', *sys.argv[1:]])"
        self._process = Process(
            "redis", "-c", launch, "--port", str(self.port), "--bind", HOST, "--save", "",
            "--appendonly", "no", "--dir", str(self._folder),
            environment={}, folder=self._folder,
        )  # fmt: skip
        self._process.ready(self._answers)

    def _answers(self) -> bool:
        try:
            with socket.create_connection((HOST, self.port), timeout=1) as talk:
                talk.sendall(b"PING\r\n")
                return talk.recv(16).startswith(b"+PONG")
        except OSError:
            return False

    @property
    def process(self) -> Process:
        assert self._process is not None
        return self._process

    def stop(self) -> None:
        """Stop it; what it held is gone."""
        if self._process is not None:
            self._process.stop()
            until(lambda: not self._answers(), "Redis to stop")


@contextmanager
def deployed(folder: Path, **environment: str) -> Iterator[Deployment]:
    """Give a deployment and end its processes afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    deployment = Deployment(folder, **environment)
    try:
        yield deployment
    finally:
        deployment.close()
