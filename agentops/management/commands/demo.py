"""The one-command start: everything of the demo in one process, plus its two tool servers."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from argparse import ArgumentParser
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import BaseCommand, CommandError, call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from agentops.env import BASE_DIR
from agentops.lifespan import embedded_lock

HOST = "127.0.0.1"
TOOL_SERVERS = (("telecom", 8100), ("retail", 8200))
PASSWORD = "demo"  # noqa: S105  # the demo's published password, refused outside DEMO=1


@dataclass(frozen=True)
class ToolServer:
    """A started demo tool server and its address without a path."""

    process: "subprocess.Popen[bytes]"
    base: str


class Command(BaseCommand):
    requires_system_checks: list[str] = []  # a second of every start; the tests run them
    help = "Migrate, load the demo tenants, start the demo tool servers and serve."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=8000)

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEMO or not settings.EMBEDDED:
            raise CommandError("demo needs DEMO=1 and no REDIS_URL; start it with: sh scripts/demo")
        port = options["port"]
        if not port_is_free(port):
            raise CommandError(f"port {port} is in use; choose another: sh scripts/demo --port N")
        try:
            embedded_lock().close()  # refuse early, with the reason, before anything is started
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from None
        # Both ways to be stopped leave through the stack, which ends the tool servers.
        signal.signal(signal.SIGTERM, lambda *_signal: sys.exit(0))
        self.say(f"data is in {settings.DATA_DIR}")
        with contextlib.ExitStack() as stack:
            # They take a second or two to come up: time for the database and the tenants.
            servers = {name: self.tool_server(stack, name, wish) for name, wish in TOOL_SERVERS}
            urls = {name: f"{server.base}/mcp" for name, server in servers.items()}
            self.migrate()
            self.say("loading the demo tenants")
            call_command(
                "demo_load",
                telecom_url=urls["telecom"],
                retail_url=urls["retail"],
                password=PASSWORD,
                stdout=self.stdout,
            )
            for name, server in servers.items():
                wait_healthy(f"{server.base}/health", server.process, name)
            with contextlib.suppress(KeyboardInterrupt):
                self.serve(port)
            self.say("stopped")

    def say(self, text: str) -> None:
        self.stdout.write(f"==> {text}")
        self.stdout.flush()

    def migrate(self) -> None:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            self.say("preparing the database")
            call_command("migrate", interactive=False, verbosity=0)

    def tool_server(self, stack: contextlib.ExitStack, name: str, wish: int) -> "ToolServer":
        """Start one demo tool server; it ends with ``stack``."""
        port = wish if port_is_free(wish) else free_port()
        database = Path(settings.DATA_DIR) / f"{name}.sqlite3"
        self.say(f"starting the {name} tool server on {HOST}:{port}")
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                f"examples.mcp_servers.{name}",
                "--host",
                HOST,
                "--port",
                str(port),
                "--db",
                str(database),
                "--exit-with-stdin",
            ],
            cwd=BASE_DIR,
            stdin=subprocess.PIPE,  # closed when we die, however: the server ends then
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        stack.callback(stop, process)
        return ToolServer(process, f"http://{HOST}:{port}")

    def serve(self, port: int) -> None:
        config = uvicorn.Config(
            "agentops.asgi:application",
            host=HOST,
            port=port,
            lifespan="on",
            log_level="warning",
            timeout_graceful_shutdown=3,
            # Keyless demo calls are for direct local peers: forwarding headers are never trusted.
            proxy_headers=False,
            ws="websockets-sansio",
        )
        Server(config, lambda: self.banner(port)).run()

    def banner(self, port: int) -> None:
        base = f"http://{HOST}:{port}"
        self.stdout.write(
            f"""
AgentOps is ready.

  Console   {base}/console/
  Admin     {base}/admin/
  API       {base}/api/schema/docs/
  Users     admin, alice (tenant admin), olga (business owner), ana (approver),
            otto (operator), bob (auditor); password: {PASSWORD}

Try:

  curl -s {base}/gateway/message -H 'Content-Type: application/json' -d '{{"channel":"web","tenant_id":"default","payload":{{"message":"Quero entender minha fatura","customer_key":"11999999999","contract_key":"3000131180"}}}}'

Stop with Ctrl-C; start again with the same command.
"""
        )
        self.stdout.flush()


class Server(uvicorn.Server):
    """Says so once it listens."""

    def __init__(self, config: uvicorn.Config, ready: Any) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()


def stop(process: "subprocess.Popen[bytes]") -> None:
    """End a tool server with us."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(3)
    except subprocess.TimeoutExpired:
        process.kill()


def port_is_free(port: int) -> bool:
    """Return whether ``port`` can be listened on."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """Return a port nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def wait_healthy(url: str, process: "subprocess.Popen[bytes]", name: str) -> None:
    """Return when ``url`` answers; raise ``CommandError`` when the process ends or 20 s pass."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        if process.poll() is not None:
            raise CommandError(
                f"the {name} tool server stopped with exit code {process.returncode}"
            )
        try:
            with urllib.request.urlopen(url, timeout=1):  # noqa: S310  # our own loopback address
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise CommandError(f"the {name} tool server did not answer at {url}")
