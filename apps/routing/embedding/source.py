"""The ``MeaningPort`` over the database: vectors are read once per release and kept in memory."""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from weakref import WeakKeyDictionary

import numpy as np

from apps.releases.cache import BoundedCache
from apps.routing.embedding.choosing import embeddings_of
from apps.routing.embedding.offloading import Busy
from apps.routing.embedding.remote import EmbeddingFailed
from apps.routing.linear import Floats
from apps.routing.meaning import Compared, Meanings, Silent, meanings_fit
from apps.routing.vector_selectors import sentence_of, vectors_of
from apps.runtime.ports import EmbeddingPort
from apps.runtime.turn import Turn
from apps.tenants.scope import tenant_transaction
from apps.tenants.threads import in_thread

logger = logging.getLogger(__name__)
# 15,000 examples are some 25 MB.
RELEASES_KEPT = 16
# A release whose vectors are not ready is looked at again after so long, not with every message.
LOOK_AGAIN_SECONDS = 5.0

Key = tuple[str, str, str]
"""Tenant, release's sha256, embedding model."""


class DatabaseMeanings:
    """Compares messages with the examples of their release.

    A warm turn asks the database nothing. While vectors are missing it says ``preparing``; a chore
    makes them.
    """

    def __init__(self) -> None:
        self._kept: BoundedCache[Key, Meanings] = BoundedCache(lambda: RELEASES_KEPT)
        self._missing: BoundedCache[Key, float] = BoundedCache(lambda: 1_000)
        self._loading: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Key, asyncio.Lock]] = (
            WeakKeyDictionary()
        )

    async def compare(self, turn: Turn, examples: Mapping[str, Sequence[str]]) -> Compared | Silent:
        """See ``MeaningPort``."""
        port = embeddings_of(turn.release, turn.bindings)
        if port is None:
            return Silent("unavailable")
        if not examples:
            return Silent("no_examples")
        meanings = await self._meanings(turn, port, examples)
        if meanings is None:
            return Silent("preparing")
        try:
            [found] = await port.embed([sentence_of(turn.text)])
        except Busy:
            return Silent("busy")
        except EmbeddingFailed as failure:
            logger.warning("no vector for a message of tenant %s: %s", turn.tenant, failure)
            return Silent("failed")
        vector = np.asarray(found, np.float32)
        length = float(np.linalg.norm(vector))
        if vector.shape != meanings.matrix.shape[1:] or not length:
            return Silent("failed")
        return Compared(vector=vector / np.float32(length), meanings=meanings, model=port.name)

    async def _meanings(
        self, turn: Turn, port: EmbeddingPort, examples: Mapping[str, Sequence[str]]
    ) -> Meanings | None:
        key = (turn.tenant, turn.release.sha256, port.name)
        kept = self._kept.get(key)
        if kept is not None or time.monotonic() < (self._missing.get(key) or 0.0):
            return kept
        # The first turns of a release come at once: one of them reads, the others wait for it.
        locks = self._loading.setdefault(asyncio.get_running_loop(), {})
        async with locks.setdefault(key, asyncio.Lock()):
            kept = self._kept.get(key)
            if kept is None and time.monotonic() >= (self._missing.get(key) or 0.0):
                kept = await self._load(key, examples)
        locks.pop(key, None)
        return kept

    async def _load(self, key: Key, examples: Mapping[str, Sequence[str]]) -> Meanings | None:
        tenant, _, model = key
        matrix = await in_thread(_read, int(tenant), model, examples)
        if matrix is None:
            self._missing.put(key, time.monotonic() + LOOK_AGAIN_SECONDS)
            return None
        pairs = [(intent, text) for intent, texts in examples.items() for text in texts]
        meanings = await asyncio.to_thread(meanings_fit, pairs, matrix)
        self._kept.put(key, meanings)
        return meanings


def _read(tenant_id: int, model: str, examples: Mapping[str, Sequence[str]]) -> Floats | None:
    with tenant_transaction(tenant_id):
        return vectors_of(model, examples)
