"""Events an agent in code writes: checked, masked, bounded, and never in its way. Pure."""

import json
import logging
import re
from collections.abc import Mapping
from typing import Any

from apps.agents.evidence import Mask, masked_value
from apps.runtime.turn import Signal

logger = logging.getLogger(__name__)

MAX_SIGNALS = 50
MAX_DATA_CHARS = 4_000
FAMILIES = ("IC", "NOC", "GRL")
_CODE = re.compile(r"(IC|NOC|GRL)(\.[A-Z0-9_]{1,60}){1,4}")


def signal_of(
    family: str, code: str, agent: str, data: Mapping[str, Any], mask: Mask
) -> Signal | None:
    """Return the event, or ``None`` for one that cannot be written; the log then says which.

    A code without a family gets ``family``; one of another family is not written.
    """
    whole = code if code.split(".")[0] in FAMILIES else f"{family}.{code}"
    if not _CODE.fullmatch(whole) or not whole.startswith(f"{family}."):
        logger.warning("agent %s: an event was not written, its code is no %s code", agent, family)
        return None
    try:
        plain = json.loads(json.dumps(masked_value(dict(data), mask), default=str))
        size = len(json.dumps(plain))
    except (TypeError, ValueError, RecursionError):
        plain, size = {}, MAX_DATA_CHARS + 1
    if size > MAX_DATA_CHARS:
        logger.warning("agent %s: the data of event %s was left out", agent, whole)
        plain = {"data_left_out": True}
    return Signal(code=whole, component=f"agent.{agent}", data=plain)
