"""An ``Inbound`` as stored text and back."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from apps.runtime.canonical import canonical_json, sha256_text
from apps.runtime.turn import Caller, Inbound


def inbound_digest(inbound: Inbound) -> str:
    """Return the sha256 of what the client sent: a repeated message id must repeat the body."""
    return sha256_text(
        canonical_json(
            {"channel": inbound.channel, "agent": inbound.agent, "payload": dict(inbound.payload)}
        )
    )


def inbound_values(inbound: Inbound) -> dict[str, Any]:
    """Return ``inbound`` as JSON values."""
    return asdict(inbound)


def inbound_read(values: Mapping[str, Any]) -> Inbound:
    """Return the ``Inbound`` that ``inbound_values`` wrote."""
    fields = dict(values)
    caller = Caller(**fields.pop("caller", {}))
    return Inbound(**fields, caller=caller)
