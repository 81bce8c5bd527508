"""Which answer of a model may be given again (platform facts 4.5). Pure."""

from collections.abc import Sequence
from typing import Protocol

from apps.agents.providers.base import message_dump
from apps.runtime.canonical import canonical_json, sha256_text
from apps.runtime.ports import ModelMessage
from apps.runtime.turn import Turn

TTL_SECONDS = 300
KEYS = ("customer_key", "contract_key", "interaction_key")


class AnswerCache(Protocol):
    """Keeps texts of models for a while, each tenant's apart. A cache that fails finds nothing."""

    async def get(self, turn: Turn, key: str) -> str | None: ...

    async def put(self, turn: Turn, key: str, text: str, seconds: int) -> None: ...


class NoAnswerCache:
    """Keeps nothing."""

    async def get(self, turn: Turn, key: str) -> str | None:
        return None

    async def put(self, turn: Turn, key: str, text: str, seconds: int) -> None:
        return None


def cache_key(
    turn: Turn, agent: str, profile: str, operation: str, messages: Sequence[ModelMessage]
) -> str:
    """Return what an answer is kept under: two turns share one only if all of this is equal.

    Tenant, release, agent, profile, intent, the customer, contract and interaction it is about, the
    message, and every message the model would see.
    """
    asked = {
        "tenant": turn.tenant,
        "release": turn.release.sha256,
        "agent": agent,
        "profile": profile,
        "operation": operation,
        "intent": turn.route.intent if turn.route else "",
        "about": [turn.business_context.get(key) or "" for key in KEYS],
        "text": turn.text,
        "messages": [message_dump(message) for message in messages],
    }
    return sha256_text(canonical_json(asked))
