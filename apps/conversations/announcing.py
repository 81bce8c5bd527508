"""Wakes whoever waits for a session: the channel layer carries no data, only "look again"."""

import asyncio
import logging

from channels.layers import get_channel_layer
from django.conf import settings

from apps.tenants.keys import scoped_key

logger = logging.getLogger(__name__)

LAYER_SECONDS = 1.0
"""How long a turn or a door waits for the layer: its client retries for a minute on its own."""


def _layer_errors() -> tuple[type[Exception], ...]:
    """Return how a layer that is down shows itself; Redis has exceptions of its own, and its client
    is slow to import where there is no Redis."""
    if settings.EMBEDDED:
        return (OSError, RuntimeError, TimeoutError)
    from redis.exceptions import RedisError

    return (OSError, RuntimeError, TimeoutError, RedisError)


LAYER_ERRORS = _layer_errors()


def session_group(tenant_id: int, session_name: str) -> str:
    """Return the group of the viewers of every session with this name.

    The name is known before the session exists, so a door can listen first and accept then.
    """
    return scoped_key("session", session_name, tenant_id=tenant_id)


async def announce(tenant_id: int, session_name: str, *, settled: str = "") -> None:
    """Wake the session's viewers. A layer that is down costs a log line: viewers poll as well.

    ``settled``: the id of the turn whose end this is, for those who wait for one turn only.
    """
    try:
        message = {"type": "session.changed", "settled": settled}
        async with asyncio.timeout(LAYER_SECONDS):
            await get_channel_layer().group_send(session_group(tenant_id, session_name), message)
    except LAYER_ERRORS as error:
        logger.warning("viewers of a session were not woken: %s", type(error).__name__)
