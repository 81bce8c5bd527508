"""Where the short database functions of doors and turns run."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import AsyncToSync, sync_to_async
from django.conf import settings

from apps.tenants.scope import release_connection

P = ParamSpec("P")
T = TypeVar("T")

_pool = ThreadPoolExecutor(settings.DATABASE_THREADS, thread_name_prefix="database")


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run the sync ``function`` on one of the process's few database threads and hold nothing after.

    The usual thread of a request or turn lives as long as that does: a thousand waiting viewers
    would be a thousand threads with a connection each, opened anew every time. These few stay, and so do their connections
    to SQLite; PostgreSQL's go back to the pool. When synchronous code waits for us (a test client,
    a sync view), ``function`` runs on its thread, inside its transaction.
    """
    if getattr(AsyncToSync.executors, "current", None):
        return await sync_to_async(function)(*args, **kwargs)

    def run() -> T:
        try:
            return function(*args, **kwargs)
        finally:
            release_connection()

    call: Any = sync_to_async(run, thread_sensitive=False, executor=_pool)
    result: T = await call()
    return result
