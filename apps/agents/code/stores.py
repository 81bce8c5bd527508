"""Answers of models kept for a while in Django's cache: sealed, and under names of their tenant."""

import logging

from cryptography.fernet import InvalidToken
from django.core.cache import cache

from apps.runtime.turn import Turn
from apps.tenants.keys import scoped_key
from apps.tenants.sealing import seal, unseal
from apps.tenants.threads import in_thread

logger = logging.getLogger(__name__)


def answer_name(tenant_id: int, key: str) -> str:
    """Return the name an answer is kept under; only its tenant has it."""
    return scoped_key("llm", key, tenant_id=tenant_id)


class KeptAnswers:
    """An ``AnswerCache``. One that cannot be reached finds nothing and keeps nothing."""

    async def get(self, turn: Turn, key: str) -> str | None:
        try:
            sealed = await in_thread(cache.get, answer_name(int(turn.tenant), key))
            return str(unseal(sealed)["text"]) if sealed else None
        except (OSError, InvalidToken, KeyError, ValueError) as error:
            logger.warning("an answer could not be read from the cache: %s", type(error).__name__)
            return None

    async def put(self, turn: Turn, key: str, text: str, seconds: int) -> None:
        try:
            name = answer_name(int(turn.tenant), key)
            await in_thread(cache.set, name, seal({"text": text}), seconds)
        except OSError as error:
            logger.warning("an answer could not be kept: %s", type(error).__name__)
