"""Which embedding model a release's examples and messages go to."""

from collections.abc import Mapping
from functools import cache

from django.conf import settings
from django.utils.module_loading import import_string

from apps.routing.config import RoutingPolicyConfig
from apps.routing.embedding.local import LocalEmbeddings
from apps.routing.embedding.remote import RemoteEmbeddings, Target
from apps.runtime.ports import EmbeddingPort
from apps.runtime.release import Release


def wants_meaning(release: Release) -> bool:
    """Whether the release's routing policy names the strategy ``semantic``."""
    policy = release.find(RoutingPolicyConfig, "default")
    return policy is not None and "semantic" in policy.strategies


def embeddings_of(release: Release, bindings: Mapping[str, str]) -> EmbeddingPort | None:
    """Return what embeds for ``release`` under ``bindings``, ``None`` when nothing does.

    The policy's model profile when it names one, else the model in this process when it is installed
    and ``EMBEDDING_PROVIDER`` lets it. ``bindings`` are a turn's: credentials name variables.
    """
    policy = release.find(RoutingPolicyConfig, "default") or RoutingPolicyConfig()
    if policy.embedding_profile:
        target: Target | None = import_string(settings.EMBEDDING_TARGET)(
            release, policy.embedding_profile, bindings
        )
        remote = RemoteEmbeddings(target) if target is not None else None
        return remote if remote is not None and remote.available else None
    if settings.EMBEDDING_PROVIDER == "none":
        return None
    local = local_embeddings()
    return local if local.available else None


@cache
def local_embeddings() -> LocalEmbeddings:
    """Return this process's model, loaded when it is first used."""
    return LocalEmbeddings(threads=settings.EMBEDDING_THREADS)
