"""The small database behind a demo server: rows, the log of calls, effects done once."""

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mcp.server.mcpserver.exceptions import ToolError

_LEDGER = """
CREATE TABLE IF NOT EXISTS calls (
    id INTEGER PRIMARY KEY,
    tool TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    arguments_sha256 TEXT NOT NULL,
    received_at TEXT NOT NULL,
    outcome TEXT NOT NULL DEFAULT 'received'
);
CREATE INDEX IF NOT EXISTS calls_by_key ON calls (idempotency_key);
CREATE TABLE IF NOT EXISTS effects (
    idempotency_key TEXT PRIMARY KEY,
    tool TEXT NOT NULL,
    arguments_sha256 TEXT NOT NULL,
    result TEXT NOT NULL,
    done_at TEXT NOT NULL
);
"""


class Store:
    """One SQLite file, opened once by the server's only thread.

    ``calls`` holds every call with its outcome (``received``; an action that changed something:
    ``effect``; one answered from the stored result: ``replayed``), ``effects`` the stored result of
    every action that came with an idempotency key: a reader of the file can count what was asked
    for and what was really done.
    """

    def __init__(
        self, path: Path, *, schema: str, seed: Callable[[sqlite3.Connection], None]
    ) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(path, timeout=10, isolation_level=None)
        self._db.row_factory = sqlite3.Row
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute("PRAGMA foreign_keys=ON")
        self._create(schema, seed)

    def _create(self, schema: str, seed: Callable[[sqlite3.Connection], None]) -> None:
        self._db.executescript(_LEDGER + schema)
        self._db.execute("BEGIN IMMEDIATE")
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version == 0:
            seed(self._db)
            self._db.execute("PRAGMA user_version = 1")
        self._db.execute("COMMIT")

    def one(self, sql: str, *values: Any) -> sqlite3.Row | None:
        """Return the first row of ``sql``, or ``None``."""
        row: sqlite3.Row | None = self._db.execute(sql, values).fetchone()
        return row

    def all(self, sql: str, *values: Any) -> list[sqlite3.Row]:
        """Return every row of ``sql``."""
        return self._db.execute(sql, values).fetchall()

    def write(self, sql: str, values: Mapping[str, Any] | tuple[Any, ...]) -> int:
        """Run one write statement; return how many rows it changed."""
        return self._db.execute(sql, values).rowcount

    def call_started(self, *, tool: str, key: str, arguments: Mapping[str, Any]) -> int:
        """Note that a call came in; return its number."""
        cursor = self._db.execute(
            "INSERT INTO calls (tool, idempotency_key, arguments_sha256, received_at)"
            " VALUES (?, ?, ?, ?)",
            (tool, key, digest(arguments), now()),
        )
        return int(cursor.lastrowid or 0)

    def call_ended(self, call: int, outcome: str) -> None:
        """Note how call number ``call`` ended."""
        self._db.execute("UPDATE calls SET outcome = ? WHERE id = ?", (outcome, call))

    def once(
        self, *, tool: str, key: str, sha256: str, call: int, effect: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """Run ``effect`` in a transaction, or return its stored result when ``key`` was seen before.

        Effect, stored result and the call's outcome are one commit. Raises ``ToolError`` when the
        key came with another tool or other arguments; what ``effect`` raises undoes everything.
        """
        self._db.execute("BEGIN IMMEDIATE")
        try:
            stored = self._stored(key)
            if stored is not None:
                result = _replayed(stored, tool, sha256)
            else:
                result = effect()
                self._keep(key, tool, sha256, result)
            self.call_ended(call, "effect" if stored is None else "replayed")
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")
        return result

    def _stored(self, key: str) -> sqlite3.Row | None:
        return self.one("SELECT * FROM effects WHERE idempotency_key = ?", key) if key else None

    def _keep(self, key: str, tool: str, sha256: str, result: Mapping[str, Any]) -> None:
        if key:
            self._db.execute(
                "INSERT INTO effects VALUES (?, ?, ?, ?, ?)",
                (key, tool, sha256, json.dumps(result, ensure_ascii=False), now()),
            )


def _replayed(stored: sqlite3.Row, tool: str, sha256: str) -> dict[str, Any]:
    if (stored["tool"], stored["arguments_sha256"]) != (tool, sha256):
        raise ToolError("A chave de idempotência já foi usada com outros argumentos.")
    result: dict[str, Any] = json.loads(stored["result"])
    return result


def digest(arguments: Mapping[str, Any]) -> str:
    """Return the sha256 of ``arguments`` whatever their order."""
    text = json.dumps(arguments, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def now() -> str:
    """Return the current time, UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def insert(db: sqlite3.Connection, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Insert ``rows`` into ``table``, all columns in order. ``table`` is a name from our code."""
    for row in rows:
        marks = ", ".join("?" * len(row))
        db.execute(f"INSERT INTO {table} VALUES ({marks})", row)  # noqa: S608
