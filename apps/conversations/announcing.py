"""Wakes whoever waits for a session: the channel layer carries no data, only "look again"."""

import logging
import uuid

from channels.layers import get_channel_layer

logger = logging.getLogger(__name__)


def session_group(tenant_id: int, session_id: str | uuid.UUID) -> str:
    """Return the group of a session's viewers; names come from the server, never from a client."""
    return f"t{tenant_id}.s{str(session_id).replace('-', '')}"


async def announce(tenant_id: int, session_id: str | uuid.UUID) -> None:
    """Wake the session's viewers. A layer that is down costs a log line: viewers poll as well."""
    try:
        layer = get_channel_layer()
        await layer.group_send(session_group(tenant_id, session_id), {"type": "session.changed"})
    except (OSError, RuntimeError, TimeoutError) as error:
        logger.warning("viewers of a session were not woken: %s", type(error).__name__)
