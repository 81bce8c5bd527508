"""The product as it is started for a measurement, embedded and in production's shape."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agentops.bench.cpu import pids_named
from agentops.env import BASE_DIR
from agentops.tests.services.deployment import Deployment, Web, free_port
from agentops.tests.services.processes import Process

DATABASE = "agentops_bench"
ADMIN_URL = os.environ.get(
    "AGENTOPS_ADMIN_DATABASE_URL", "postgres://postgres@127.0.0.1:5432/postgres"
)
REDIS_URL = os.environ.get("BENCH_REDIS_URL", "redis://127.0.0.1:6379/11")
NEUTRAL = ("DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL", "MIGRATION_DATABASE_URL", "DEMO")


@dataclass(frozen=True)
class Stack:
    """A running product. ``groups``: what is measured, by name -> process ids."""

    name: str
    url: str
    headers: Mapping[str, str]
    groups: Mapping[str, list[int]]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def pids(self, group: str) -> list[int]:
        """Return the group's processes; a database's are looked up anew."""
        if group == "database":
            return [pid for pid in pids_named("postgres: ") if serves_bench(pid)]
        return self.groups[group]


def statistics_take() -> None:
    """Do what the database does by itself once a minute: look at what its tables hold."""
    import psycopg

    with psycopg.connect(re.sub(r"/[^/]*$", f"/{DATABASE}", ADMIN_URL), autocommit=True) as admin:
        admin.execute("ANALYZE")


def serves_bench(pid: int) -> bool:
    """Return whether a PostgreSQL process works for the bench database: a backend or a writer."""
    try:
        title = Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return False
    return any(part in title for part in (DATABASE, "walwriter", "checkpointer", "background w"))


@contextmanager
def embedded(folder: Path, *, counting: bool = False) -> Iterator[Stack]:
    """One process, SQLite: what ``scripts/demo`` starts."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    environment = {"DEMO": "1", "DATA_DIR": str(folder), **_settings(counting)}
    process = Process(
        "embedded",
        "manage.py",
        "demo",
        "--port",
        str(port),
        environment={**dict.fromkeys(NEUTRAL, ""), **environment},
        folder=folder,
    )
    try:
        process.ready(lambda: "AgentOps is ready" in process.said())
        yield Stack("embedded", f"http://127.0.0.1:{port}", {}, {"embedded": [process.pid]}, folder)
    finally:
        process.stop()


@contextmanager
def production(folder: Path, *, counting: bool = False, workers: int = 1) -> Iterator[Stack]:
    """PostgreSQL as the application's role, Redis, one web process, Celery workers."""
    folder.mkdir(parents=True, exist_ok=True)
    address = application_address()
    deployment = Deployment(
        folder,
        **{
            "DATABASE_URL": address,
            "REDIS_URL": REDIS_URL,
            "LOG_LEVEL": "WARNING",
            "DEMO": "1",
            **_settings(counting),
        },
    )
    try:
        servers = {name: deployment.tool_server(name) for name in ("telecom", "retail")}
        _database_make(folder, address)
        said = _manage(
            "demo_load",
            "--telecom-url",
            servers["telecom"].address,
            "--retail-url",
            servers["retail"].address,
            environment={**deployment.environment, "BENCH_PROCESS": "setup"},
        )
        key = re.search(r"demo channel', shown only now: (\S+)", said)
        assert key is not None, said
        web: Web = deployment.web(BENCH_PROCESS="web")
        running = [
            deployment.worker(concurrency=32, BENCH_PROCESS="worker") for _ in range(workers)
        ]
        yield Stack(
            "production",
            web.url,
            {"Authorization": f"Bearer {key.group(1)}"},
            {
                "web": [web.process.pid],
                "worker": [worker.pid for worker in running],
                "database": [],
                "redis": pids_named("redis-server"),
            },
            folder,
            deployment.environment,
        )
    finally:
        deployment.close()


def scale_run(folder: Path, *, postgresql: bool) -> str:
    """Run ``bench.scale`` on a fresh database of its own and return what it said."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = {"DATA_DIR": str(folder), "DATABASE_URL": "", "REDIS_URL": "", "DEMO": "0"}
    if postgresql:
        environment["DATABASE_URL"] = application_address()
        _database_make(folder, environment["DATABASE_URL"])
    else:
        _manage("migrate", "--noinput", environment=environment)
    clean = {name: value for name, value in os.environ.items() if name not in NEUTRAL}
    done = subprocess.run(
        [sys.executable, "-m", "agentops.bench.scale"],
        cwd=BASE_DIR,
        env={**clean, **{name: value for name, value in environment.items() if value}},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"bench.scale failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def application_address() -> str:
    """Return the bench database's address as the application's role."""
    address = re.sub(r"//[^@/]*@?", "//agentops_app@", ADMIN_URL, count=1)
    return re.sub(r"/[^/]*$", f"/{DATABASE}", address)


def _settings(counting: bool) -> dict[str, str]:
    return {"DJANGO_SETTINGS_MODULE": "agentops.bench.counting_settings"} if counting else {}


def _database_make(folder: Path, address: str) -> None:
    """Make the bench database anew, migrated as its owner."""
    import psycopg

    with psycopg.connect(ADMIN_URL, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
    neutral = {"DATA_DIR": str(folder), "REDIS_URL": "", "DEMO": "0"}
    _manage(
        "database_roles", "--admin-url", ADMIN_URL, "--database", DATABASE,
        environment={**neutral, "DATABASE_URL": ""},
    )  # fmt: skip
    owner = address.replace("agentops_app@", "agentops_owner@")
    _manage("migrate", "--noinput", environment={**neutral, "DATABASE_URL": owner})


def _manage(*arguments: str, environment: Mapping[str, str]) -> str:
    clean = {name: value for name, value in os.environ.items() if name not in NEUTRAL}
    given = {name: value for name, value in environment.items() if value}
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=BASE_DIR,
        env={**clean, **given},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"manage.py {arguments[0]} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout
