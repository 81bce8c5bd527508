"""Makes the vectors of the examples that run somewhere. A chore: see ``apps.tenants.chores``."""

import logging
import time
from collections.abc import Iterator, Mapping
from datetime import datetime

from asgiref.sync import async_to_sync
from django.conf import settings
from django.utils.module_loading import import_string

from apps.releases.models import Deployment
from apps.releases.selectors import release_load
from apps.routing.embedding.choosing import embeddings_of, wants_meaning
from apps.routing.embedding.offloading import Busy
from apps.routing.embedding.remote import EmbeddingFailed
from apps.routing.vector_models import VectorWork
from apps.routing.vector_selectors import digest_of, digests_made, examples_of, sentence_of
from apps.routing.vector_services import vectors_add, vectors_prune, work_claim, work_note
from apps.runtime.canonical import sha256_text
from apps.runtime.ports import EmbeddingPort
from apps.runtime.release import Release
from apps.tenants.scope import current_tenant_id, release_connection, tenant_transaction

logger = logging.getLogger(__name__)
# A run goes on for so long, then lets other chores have their turn; the next one goes on.
RUN_SECONDS = 25.0
BATCH = 32


def vectors_due(now: datetime) -> None:
    """Make the vectors that are missing, for every embedding model the tenant's releases use."""
    until = time.monotonic() + RUN_SECONDS
    for port, releases, sentences in _wanted():
        with tenant_transaction():
            work = VectorWork.objects.filter(model=port.name).first()
        finished = work is not None and work.releases == releases and work.done == work.total
        if finished or time.monotonic() > until:
            continue
        claimed = work_claim(model=port.name, now=now)
        if claimed is not None:
            _make(port, claimed, releases, sentences, now=now, until=until)
        release_connection()


def meaning_unavailable() -> bool:
    """Whether a release that runs wants meanings compared, and nothing here can."""
    return any(port is None for _, port in _running())


def _wanted() -> list[tuple[EmbeddingPort, str, dict[str, str]]]:
    """Return per model: its port, what its releases are called together, digest → sentence."""
    ports: dict[str, EmbeddingPort] = {}
    sentences: dict[str, dict[str, str]] = {}
    names: dict[str, set[str]] = {}
    for release, port in _running():
        if port is None:
            continue
        ports.setdefault(port.name, port)
        names.setdefault(port.name, set()).add(release.sha256)
        mine = sentences.setdefault(port.name, {})
        for texts in examples_of(release).values():
            mine.update((digest_of(text), sentence_of(text)) for text in texts)
    return [
        (port, sha256_text(" ".join(sorted(names[name]))), sentences[name])
        for name, port in ports.items()
    ]


def _running() -> Iterator[tuple[Release, EmbeddingPort | None]]:
    """Yield the releases that run somewhere and name the strategy, each with what embeds for it."""
    with tenant_transaction():
        running = list(
            Deployment.objects.order_by("environment").values_list(
                "environment", "release_id", "canary_id"
            )
        )
    for environment, *release_ids in running:
        for release_id in filter(None, release_ids):
            release = release_load(current_tenant_id(), release_id)
            if wants_meaning(release):
                yield release, embeddings_of(release, _bindings(environment))


def _bindings(environment: str) -> Mapping[str, str]:
    found: Mapping[str, str] = import_string(settings.EMBEDDING_BINDINGS)(
        current_tenant_id(), environment
    )
    return found


def _make(
    port: EmbeddingPort,
    work: VectorWork,
    releases: str,
    sentences: Mapping[str, str],
    *,
    now: datetime,
    until: float,
) -> None:
    """Make what is missing, batch by batch, each noted; stop when time or the claim is over."""
    with tenant_transaction():
        made = digests_made(port.name, sentences)
    missing = [digest for digest in sentences if digest not in made]
    total, done, error = len(sentences), len(made), ""
    for start in range(0, len(missing), BATCH):
        held = work_note(work=work, releases=releases, done=done, total=total)
        if not held or time.monotonic() > until:
            break
        batch = missing[start : start + BATCH]
        release_connection()
        try:
            vectors = async_to_sync(port.embed)([sentences[digest] for digest in batch])
        except (EmbeddingFailed, Busy) as failure:
            error = str(failure)
            logger.warning("vectors of tenant %s: %s", current_tenant_id(), failure)
            break
        vectors_add(model=port.name, vectors=dict(zip(batch, vectors, strict=True)))
        done += len(batch)
    if done == total:
        vectors_prune(model=port.name, needed=set(sentences), now=now)
    work_note(work=work, releases=releases, done=done, total=total, error=error, over=True)
