"""Wakes whoever waits for a session: the channel layer carries no data, only "look again"."""

import logging

from channels.layers import get_channel_layer

from apps.runtime.canonical import sha256_text

logger = logging.getLogger(__name__)


def session_group(tenant_id: int, session_name: str) -> str:
    """Return the group of the viewers of every session with this name, hashed to a safe one.

    The name is known before the session exists, so a door can listen first and accept then.
    """
    return f"t{tenant_id}.s{sha256_text(session_name)[:40]}"


async def announce(tenant_id: int, session_name: str) -> None:
    """Wake the session's viewers. A layer that is down costs a log line: viewers poll as well."""
    try:
        layer = get_channel_layer()
        await layer.group_send(session_group(tenant_id, session_name), {"type": "session.changed"})
    except (OSError, RuntimeError, TimeoutError) as error:
        logger.warning("viewers of a session were not woken: %s", type(error).__name__)
