"""The demo as its command starts it, in a process of its own, and a browser in front of it."""

import contextlib
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from agentops.tests.e2e.steps import Conversation, sign_in

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or ""
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
# Settings of a real deployment that this shell may have; the demo refuses or misreads them.
ELSEWHERE = {"DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL", "MIGRATION_DATABASE_URL", "DEBUG"}


@dataclass(frozen=True)
class Demo:
    """The running demo. ``data`` is its folder; ``pid`` its process."""

    url: str
    data: Path
    pid: int

    def telecom(self, statement: str) -> None:
        """Change the telecom server's database behind its back."""
        with contextlib.closing(sqlite3.connect(self.data / "telecom.sqlite3")) as database:
            database.execute(statement)
            database.commit()

    def rows(self, statement: str) -> list[tuple[object, ...]]:
        """Return what ``statement`` finds in the product's own database."""
        path = f"file:{self.data / 'db.sqlite3'}?mode=ro"
        with contextlib.closing(sqlite3.connect(path, uri=True)) as database:
            return database.execute(statement).fetchall()

    @contextlib.contextmanager
    def tools_hang(self) -> Iterator[None]:
        """Stop the demo's own tool servers, so that whoever calls one waits."""
        servers = [
            int(entry.name)
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit() and _parent(entry) == self.pid
        ]
        assert servers
        for pid in servers:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in servers:
                os.kill(pid, signal.SIGCONT)


def _parent(process: Path) -> int:
    with contextlib.suppress(OSError):
        # After the name in brackets, which may hold blanks: state, parent.
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    return 0


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """The demo, started once for every test of the browser."""
    data = tmp_path_factory.mktemp("demo")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {key: value for key, value in os.environ.items() if key not in ELSEWHERE}
    log = data / "demo.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "demo", "--port", str(port)],
            cwd=settings.BASE_DIR,
            env={**environment, "DEMO": "1", "DATA_DIR": str(data)},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait_ready(process, log)
            yield Demo(url=f"http://127.0.0.1:{port}", data=data, pid=process.pid)
        finally:
            process.terminate()
            process.wait(20)
    assert "Traceback" not in log.read_text(), log.read_text()[-3000:]


def _wait_ready(process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + 120
    while "AgentOps is ready." not in log.read_text():
        assert process.poll() is None, log.read_text()[-3000:]
        assert time.monotonic() < until, log.read_text()[-3000:]
        time.sleep(0.1)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()


Opened = Callable[..., Page]


@pytest.fixture
def open_as(demo: Demo, chromium: Browser) -> Iterator[Opened]:
    """Return a function: a page in which the person is signed in.

    An error of a script, a refused inline code, or a request to another server fails the test.
    """
    contexts: list[BrowserContext] = []
    problems: list[str] = []

    def opened(name: str = "alice", **options: object) -> Page:
        context = chromium.new_context(
            **{"base_url": demo.url, "locale": "en", "viewport": {"width": 1280, "height": 800}}  # type: ignore[arg-type]
            | options
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: problems.append(f"script: {error}"))
        page.on("request", lambda request: _own(request.url, demo.url, problems))
        page.on("console", lambda said: _allowed(said.text, problems))
        sign_in(page, name)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []


def _own(url: str, base: str, problems: list[str]) -> None:
    if not url.startswith((base, base.replace("http", "ws"), "data:", "blob:")):
        problems.append(f"another server: {url}")


def _allowed(text: str, problems: list[str]) -> None:
    if "Content Security Policy" in text:
        problems.append(text)


@pytest.fixture
def alice(open_as: Opened) -> Page:
    """A page in which Alice, the tenant's admin, is signed in."""
    return open_as("alice")


@pytest.fixture
def billing(alice: Page) -> Conversation:
    """Alice's new conversation with the billing agent, as the customer of the demo's bill."""
    return Conversation.begin(alice, "billing_agent").as_customer("11999999999", "3000131180")
