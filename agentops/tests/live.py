"""The demo tenants served by real processes, started once for all tests that ask for ``live``.

Embedded: one uvicorn process on a SQLite file. With ``AGENTOPS_SERVICES=1``: the same on a
PostgreSQL database of its own, as the application's role, with Redis and a Celery worker. Both have
the two demo tool servers. Its rows are apart from the test database: tests talk to it by HTTP,
find their own session in it, and look into its database with ``rows``.
"""

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from django.conf import settings

from agentops.tests.services.deployment import Deployment, ToolServer, Web, deployed

ADMIN_URL = os.environ.get(
    "AGENTOPS_ADMIN_DATABASE_URL", "postgres://postgres@127.0.0.1:5432/postgres"
)
STORED = ("session", "turnrecord", "message", "event", "outboundmessage", "ledgerentry")
# A test does not wait fifteen seconds to see a stream live.
QUICK = {
    "DEMO": "1",
    "SSE_KEEPALIVE_SECONDS": "1",
    "TURN_SWEEP_SECONDS": "1",
    "LOG_LEVEL": "WARNING",
}


@dataclass
class Live:
    """The running product. ``keys``: see ``live_setup.KEYS``."""

    deployment: Deployment
    web: Web
    telecom: ToolServer
    retail: ToolServer
    database: str
    keys: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.web.url

    @property
    def socket_url(self) -> str:
        return self.web.url.replace("http://", "ws://")

    def bearer(self, key: str) -> dict[str, str]:
        """Return the headers of one of ``keys``, or of a token."""
        return {"authorization": f"Bearer {self.keys.get(key, key)}"}

    def client(self, key: str = "", **options: Any) -> httpx2.Client:
        """Return an HTTP client; without ``key`` it is the demo's keyless caller."""
        headers = {**options.pop("headers", {}), **(self.bearer(key) if key else {})}
        return httpx2.Client(
            base_url=self.url, headers=headers, timeout=40, trust_env=False, **options
        )

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return what ``statement`` (placeholders ``?``) finds in its database."""
        if self.database.startswith("postgres"):
            with psycopg.connect(self.database) as database:
                return database.execute(statement.replace("?", "%s"), values).fetchall()
        with contextlib.closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as db:
            return db.execute(statement, values).fetchall()

    def change(self, statement: str, *values: Any) -> None:
        """Change its database behind its back."""
        if self.database.startswith("postgres"):
            with psycopg.connect(self.database) as database:
                database.execute(statement.replace("?", "%s"), values)
            return
        with contextlib.closing(sqlite3.connect(self.database, timeout=20)) as db, db:
            db.execute(statement, values)

    def stored(self) -> dict[str, int]:
        """Return how many rows each table of conversations has."""
        return {
            table: self.rows(f"SELECT count(*) FROM conversations_{table}")[0][0]
            for table in STORED
        }


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """The product with its demo tenants, running."""
    folder = Path(tmp_path_factory.mktemp("live"))
    make = _embedded if settings.EMBEDDED else _services
    with make(folder) as running:
        yield running


@contextlib.contextmanager
def _embedded(folder: Path) -> Iterator[Live]:
    database = folder / "db.sqlite3"
    with deployed(folder, **QUICK, DATABASE_URL=f"sqlite:///{database}", REDIS_URL="") as processes:
        yield _running(processes, str(database), owner_url="")


@contextlib.contextmanager
def _services(folder: Path) -> Iterator[Live]:
    from apps.tenants import database_roles
    from apps.tenants.row_security import APP_ROLE, OWNER_ROLE

    name = f"agentops_live{os.environ.get('AGENTOPS_TEST_SUFFIX', '')}_{os.getpid()}".lower()
    passwords = {
        "owner_password": os.environ.get("AGENTOPS_OWNER_PASSWORD", ""),
        "app_password": os.environ.get("AGENTOPS_APP_PASSWORD", ""),
    }
    database_roles.ensure(ADMIN_URL, database=name, **passwords)
    owner_url = _url(name, OWNER_ROLE, passwords["owner_password"])
    app_url = _url(name, APP_ROLE, passwords["app_password"])
    try:
        with deployed(folder, **QUICK, DATABASE_URL=app_url) as processes:
            running = _running(processes, _url(name, "", ""), owner_url=owner_url)
            processes.worker(concurrency=8)
            processes.beat()
            yield running
    finally:
        database_roles.drop_database(ADMIN_URL, database=name)


def _url(database: str, role: str, password: str) -> str:
    """Return the administrator's address with another database, and role when one is given."""
    scheme, _sep, rest = ADMIN_URL.partition("://")
    credentials, _at, place = rest.rpartition("@")
    host = place.partition("/")[0]
    login = f"{role}:{password}" if password else role
    return f"{scheme}://{login or credentials}@{host}/{database}"


def _running(processes: Deployment, database: str, *, owner_url: str) -> Live:
    """Migrate, load and serve."""
    telecom, retail = processes.tool_server("telecom"), processes.tool_server("retail")
    as_owner = {"DATABASE_URL": owner_url} if owner_url else {}
    _run(processes, "migrate", **as_owner)
    said = _run(processes, "load", telecom.address, retail.address)
    web = processes.web()
    keys = json.loads(said.splitlines()[-1])
    return Live(processes, web, telecom, retail, database, keys)


def _run(processes: Deployment, *command: str, **environment: str) -> str:
    process = processes.start("setup", "-m", "agentops.tests.live_setup", *command, **environment)
    code = process.wait(120)
    assert code == 0, process.said()[-3000:]
    return process.said()
