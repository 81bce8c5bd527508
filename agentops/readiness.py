"""What a message needs: one check each, named by ``READY_CHECKS``. A check returns or raises."""

import asyncio
import uuid
from collections.abc import Callable

from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer
from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from agentops import celery, wiring
from apps.tenants.scope import release_connection

_migrated = False


class NotUsable(RuntimeError):
    """Something answered, and not as it should."""


async def database() -> None:
    """A query is answered."""
    await _in_own_thread(_select)


def _select() -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            cursor.fetchone()
    finally:
        release_connection()


async def migrations() -> None:
    """Every migration of this code is applied. Asked until it is true, then never again."""
    if not _migrated:
        await _in_own_thread(_migrations)


def _migrations() -> None:
    global _migrated
    try:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            raise NotUsable("migrations are missing")
    finally:
        release_connection()
    _migrated = True


async def channel_layer() -> None:
    """A message comes back through the layer."""
    layer = get_channel_layer()
    channel = await layer.new_channel()
    receiving = asyncio.ensure_future(layer.receive(channel))
    try:
        token = uuid.uuid4().hex
        await layer.send(channel, {"type": "ready", "token": token})
        if (await receiving).get("token") != token:
            raise NotUsable("another message came back")
    finally:
        receiving.cancel()


async def broker() -> None:
    """The doorbell's broker takes a connection. Turns are found without it, but late."""
    if settings.CELERY_BROKER_URL.startswith("memory"):
        return
    await _in_own_thread(_connect)


def _connect() -> None:
    seconds = settings.READY_SECONDS
    url = settings.CELERY_BROKER_URL
    with celery.app.connection_for_write(url, connect_timeout=seconds) as link:
        link.ensure_connection(max_retries=1, interval_start=0, timeout=int(seconds) or 1)


async def runtime() -> None:
    """Embedded, this process runs the turns itself; else workers do, which are not ours to ask."""
    if settings.EMBEDDED and not wiring.runtime.started:
        raise NotUsable("the runtime was not started")


async def _in_own_thread(check: Callable[[], None]) -> None:
    # Not a door's thread: a database that hangs must not take the doors' few threads with it.
    await sync_to_async(check, thread_sensitive=False)()
