"""The product's settings with every SQL statement noted in ``<DATA_DIR>/sql.<process>.log``."""

import re
import threading
from typing import Any

from django.db.backends.signals import connection_created

from agentops.env import env
from agentops.settings import *  # noqa: F403
from agentops.settings import DATA_DIR

_TABLE = re.compile(r'(?:\bFROM|\bINTO|^UPDATE)\s+"?([a-z_]+)"?', re.IGNORECASE)
_NESTED = re.compile(r"\([^()]*\)")
_lock = threading.Lock()
_log = DATA_DIR / f"sql.{env('BENCH_PROCESS', default='embedded')}.log"


def _note(execute: Any, sql: Any, params: Any, many: Any, context: Any) -> Any:
    text = str(sql)
    outer = text
    while outer != (flat := _NESTED.sub("", outer)):  # a subquery's table is not the statement's
        outer = flat
    table = _TABLE.search(outer)
    words = text.split()
    name = table.group(1) if table else "-"
    # What a statement reads besides its own table is said too.
    also = " +releases" if "releases_" in text and not name.startswith("releases_") else ""
    line = f"{words[0].upper() if words else '?'} {name}{also}\n"
    with _lock, _log.open("a") as log:
        log.write(line)
    return execute(sql, params, many, context)


def _watch(connection: Any, **_kwargs: Any) -> None:
    if _note not in connection.execute_wrappers:
        connection.execute_wrappers.append(_note)


connection_created.connect(_watch, weak=False)
