"""Reads of vectors. Inside a tenant scope."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from apps.routing.config import IntentConfig
from apps.routing.linear import Floats
from apps.routing.vector_models import ExampleVector, VectorWork
from apps.runtime.release import Release

NUMBER = np.dtype("<f4")


def sentence_of(text: str) -> str:
    """Return ``text`` as it is embedded: white space says nothing."""
    return " ".join(text.split())


def digest_of(text: str) -> str:
    """Return the key of a sentence's vector."""
    return hashlib.sha256(sentence_of(text).encode()).hexdigest()


def examples_of(release: Release) -> dict[str, list[str]]:
    """Return intent → examples of every intent that is on."""
    return {
        slug: intent.examples
        for slug, intent in release.all(IntentConfig).items()
        if intent.enabled and intent.examples
    }


def vectors_of(model: str, examples: Mapping[str, Sequence[str]]) -> Floats | None:
    """Return the vectors of ``examples`` in their order, ``None`` while one of them is missing."""
    digests = [digest_of(text) for texts in examples.values() for text in texts]
    wanted = set(digests)
    found = {
        digest: bytes(vector)
        for digest, vector in ExampleVector.objects.filter(model=model)
        .values_list("digest", "vector")
        .iterator(chunk_size=2000)
        if digest in wanted
    }
    if not digests or len(found) < len(wanted) or len({len(v) for v in found.values()}) != 1:
        return None
    return np.stack([np.frombuffer(found[digest], NUMBER) for digest in digests])


def digests_made(model: str, digests: Iterable[str]) -> set[str]:
    """Return which of ``digests`` have a vector."""
    made = ExampleVector.objects.filter(model=model).values_list("digest", flat=True)
    return set(digests).intersection(made.iterator(chunk_size=5000))


def work_shown() -> list[VectorWork]:
    """Return how far each model's vectors are, the last one worked on first."""
    return list(VectorWork.objects.order_by("-updated_at", "model"))
