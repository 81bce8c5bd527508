"""Writes of vectors. No audit entry: they are made from configuration, and can be made again."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import numpy as np
from django.db.models import Q
from django.utils import timezone

from apps.routing.vector_models import ExampleVector, VectorWork
from apps.routing.vector_selectors import NUMBER
from apps.tenants.scope import tenant_transaction

# Longer than a batch takes: only a process that died lets a claim run out.
CLAIM = timedelta(seconds=60)
# Kept so long after no release that runs has the sentence any more: who rolls back waits for nothing.
KEPT = timedelta(days=30)


def work_claim(*, model: str, now: datetime) -> VectorWork | None:
    """Claim the making of a model's vectors, ``None`` when another process has it."""
    with tenant_transaction():
        VectorWork.objects.get_or_create(model=model)
        free = Q(claimed_until=None) | Q(claimed_until__lte=now)
        taken = VectorWork.objects.filter(free, model=model).update(claimed_until=now + CLAIM)
        return VectorWork.objects.get(model=model) if taken else None


def work_note(
    *, work: VectorWork, releases: str, done: int, total: int, error: str = "", over: bool = False
) -> bool:
    """Note how far the work is and prolong the claim, or (``over``) give it back.

    Returns whether the claim still held: another process took it over otherwise.
    """
    until = None if over else timezone.now() + CLAIM
    with tenant_transaction():
        held = VectorWork.objects.filter(pk=work.pk, claimed_until=work.claimed_until).update(
            releases=releases,
            done=done,
            total=total,
            error=error[:200],
            claimed_until=until,
            updated_at=timezone.now(),
        )
    work.claimed_until = until
    return bool(held)


def vectors_add(*, model: str, vectors: Mapping[str, Sequence[float]]) -> None:
    """Keep digest → vector; one that is there stays as it is."""
    rows = [
        ExampleVector(model=model, digest=digest, vector=np.asarray(vector, NUMBER).tobytes())
        for digest, vector in vectors.items()
    ]
    with tenant_transaction():
        ExampleVector.objects.bulk_create(rows, ignore_conflicts=True)


def vectors_prune(*, model: str, needed: set[str], now: datetime) -> None:
    """Forget vectors that nothing needed for long."""
    with tenant_transaction():
        old = ExampleVector.objects.filter(model=model, created_at__lt=now - KEPT)
        gone = [pk for pk, digest in old.values_list("pk", "digest") if digest not in needed]
        for start in range(0, len(gone), 500):
            ExampleVector.objects.filter(pk__in=gone[start : start + 500]).delete()
