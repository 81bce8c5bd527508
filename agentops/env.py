"""Reads the process environment once. A wrong or missing value stops the process with its name."""

import base64
import json
from pathlib import Path
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

from apps.runtime.addresses import AllowList
from apps.tools.transports.programs import Program, programs_parse

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()

# Names that other platforms accept and this one does not build: refused, never ignored.
REFUSED_STORES = {"oracle", "mongodb", "autonomous", "faiss"}
STORE_SETTINGS = (
    "SESSION_REPOSITORY_PROVIDER",
    "MEMORY_REPOSITORY_PROVIDER",
    "CHECKPOINT_REPOSITORY_PROVIDER",
    "USAGE_REPOSITORY_PROVIDER",
    "CACHE_BACKEND_PROVIDER",
    "VECTOR_STORE_PROVIDER",
    "GRAPH_STORE_PROVIDER",
    "IDEMPOTENCY_PROVIDER",
)


def refuse_foreign_stores() -> None:
    """Raise ``ImproperlyConfigured`` when a setting names a store that is not built."""
    for name in STORE_SETTINGS:
        value = str(env(name, default="")).strip().lower()
        if value in REFUSED_STORES:
            raise ImproperlyConfigured(
                f"{name}={value}: Oracle, MongoDB, FAISS and Autonomous stores are not built; "
                "PostgreSQL and SQLite serve. Remove the setting and set DATABASE_URL."
            )


def number(name: str, default: float, *, low: float, high: float) -> float:
    """Return the number in ``name`` between ``low`` and ``high``, or stop the process."""
    try:
        value = float(env(name, default=default))
    except (TypeError, ValueError):
        raise ImproperlyConfigured(f"{name} must be a number from {low} to {high}.") from None
    if not low <= value <= high:
        raise ImproperlyConfigured(f"{name}={value:g} must be from {low} to {high}.")
    return value


def key_of_32_bytes(name: str, value: str) -> str:
    """Return ``value``, base64 of 32 bytes or empty, or stop the process with ``name`` in the error."""
    try:
        fits = not value or len(base64.b64decode(value, validate=True)) == 32
    except ValueError:
        fits = False
    if not fits:
        raise ImproperlyConfigured(f"{name} must be 32 bytes in base64.")
    return value


def inside_addresses(name: str, default: list[str]) -> list[str]:
    """Return the addresses inside that ``name`` lets be reached, or stop the process."""
    entries: list[str] = env.list(name, default=default)
    try:
        AllowList.of(entries)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}: {error}.") from None
    return entries


def agent_classes(name: str, default: list[str]) -> dict[str, str]:
    """Return name -> dotted path ("" for an entry point) of the agents in ``name``, or stop."""
    found: dict[str, str] = {}
    for entry in env.list(name, default=default):
        agent, _equals, path = entry.strip().partition("=")
        if not agent.isidentifier() or (path and not all(map(str.isidentifier, path.split(".")))):
            raise ImproperlyConfigured(f"{name}: {entry!r} is not NAME or NAME=dotted.path.Class.")
        found[agent] = path
    return found


def programs(name: str) -> dict[str, Program]:
    """Return the programs registered in ``name`` as a JSON object, or stop the process."""
    try:
        return programs_parse(json.loads(env(name, default="") or "{}"))
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}: {error}.") from None


def database(url: str, *, pool_size: int) -> dict[str, Any]:
    """Return Django's database entry for ``url`` (sqlite:///path or postgres://…).

    SQLite takes IMMEDIATE transactions: DEFERRED ones lose read-then-write races with "database is
    locked" in spite of any timeout. PostgreSQL uses the psycopg pool, which needs CONN_MAX_AGE 0.
    """
    entry: dict[str, Any] = environ.Env.db_url_config(url)
    if not entry:
        raise ImproperlyConfigured(f"DATABASE_URL {url!r} is not a database address.")
    if entry["ENGINE"].endswith("sqlite3"):
        entry["CONN_MAX_AGE"] = None
        entry["OPTIONS"] = {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": (
                "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;"
                "PRAGMA foreign_keys=ON;PRAGMA cache_size=-20000;"
            ),
        }
    elif entry["ENGINE"].endswith("postgresql"):
        entry["CONN_MAX_AGE"] = 0
        entry["OPTIONS"] = {
            "pool": {"min_size": 1, "max_size": pool_size, "timeout": 10},
            # A turn repeats the same thirty statements: prepared once per connection they cost the
            # server a quarter (most of it was planning under row-level security).
            "server_side_binding": True,
            "prepare_threshold": 3,
            # A plan that was prepared while a table was small would read all of it until statistics
            # are taken again. Everything here is asked for by key; what is not still gets a scan.
            "options": "-c enable_seqscan=off",
        }
    else:
        raise ImproperlyConfigured("DATABASE_URL must be sqlite:///… or postgres://….")
    return entry
