"""Where the short database functions of doors and turns run."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import AsyncToSync, sync_to_async
from django.conf import settings
from django.db import OperationalError, connection

from apps.tenants.scope import release_connection

P = ParamSpec("P")
T = TypeVar("T")

_pool = ThreadPoolExecutor(settings.DATABASE_THREADS, thread_name_prefix="database")


PAUSES = (0.02, 0.1, 0.5)
"""Seconds before each further try: a server ends its connections one after another."""

# SQLSTATEs of a server that ends a connection: shut down, crashed, or out of reach.
_ENDED = ("57P", "08")


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run the sync ``function`` on one of the process's few database threads and hold nothing after.

    The usual thread of a request or turn lives as long as that does: a thousand waiting viewers
    would be a thousand threads with a connection each, opened anew every time. These few stay, and
    so do their connections to SQLite; PostgreSQL's go back to the pool. When synchronous code waits
    for us (a test client, a sync view), ``function`` runs on its thread, inside its transaction.

    When the server ended the connection (a restart, a failover), ``function`` runs again: it must be
    one transaction that may be asked for twice, as all of doors and turns are.
    """
    if getattr(AsyncToSync.executors, "current", None):
        return await sync_to_async(function)(*args, **kwargs)

    def run() -> T:
        for pause in PAUSES:
            try:
                return function(*args, **kwargs)
            except OperationalError as error:
                if not _connection_ended(error):
                    raise
            finally:
                release_connection()
            time.sleep(pause)
            _pool_check()
        try:
            return function(*args, **kwargs)
        finally:
            release_connection()

    call: Any = sync_to_async(run, thread_sensitive=False, executor=_pool)
    result: T = await call()
    return result


def _connection_ended(error: OperationalError) -> bool:
    """Return whether PostgreSQL ended the connection that ``error`` happened on.

    One that cannot be opened is no such case: the pool has waited for it long enough.
    """
    cause = error.__cause__
    if connection.vendor != "postgresql":
        return False
    from psycopg import OperationalError as Ended
    from psycopg_pool import PoolTimeout

    if not isinstance(cause, Ended) or isinstance(cause, PoolTimeout):
        return False
    return cause.sqlstate is None or cause.sqlstate.startswith(_ENDED)


def _pool_check() -> None:
    """Replace the pool's connections that went the same way, or each would fail once."""
    pool = getattr(connection, "pool", None)
    if pool is not None:
        pool.check()
