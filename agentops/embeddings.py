"""Where agents' model profiles and routing's vectors meet; named by settings."""

from collections.abc import Mapping

from agentops import wiring
from agentops.runtime import secret_variable
from apps.agents.profiles import profile_resolve
from apps.releases.models import Deployment
from apps.releases.selectors import bindings_load
from apps.routing.embedding.remote import Target
from apps.runtime.ports import ModelFailed
from apps.runtime.release import Release, UnknownItem
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction


def target(release: Release, name: str, bindings: Mapping[str, str]) -> Target | None:
    """Return the model behind the profile ``name``; named by ``EMBEDDING_TARGET``.

    ``None`` when the profile is not there, names no OpenAI-compatible model, has no bound address, or
    its key is not set: nothing is ever sent elsewhere instead.
    """
    try:
        profile = profile_resolve(release, name)
    except (UnknownItem, ModelFailed):
        return None
    base_url = bindings.get(f"address:{profile.address}", "")
    key = wiring.secret(bindings.get(f"credential:{profile.credential}", ""))
    if profile.provider != "openai_compatible" or not base_url or (profile.credential and not key):
        return None
    return Target(
        model=profile.model,
        base_url=base_url,
        key=key,
        timeout_seconds=profile.timeout_seconds,
    )


def bindings(tenant_id: int, environment: str) -> dict[str, str]:
    """Return the bindings of ``environment`` as a turn has them; named by ``EMBEDDING_BINDINGS``."""
    with tenant_transaction(tenant_id):
        slug = Tenant.objects.values_list("slug", flat=True).get(pk=tenant_id)
        version = Deployment.objects.values_list("bindings_version", flat=True).get(
            environment=environment
        )
    found = bindings_load(tenant_id, environment, version)
    return {
        name: secret_variable(slug, value) if name.startswith("credential:") else value
        for name, value in found.items()
    }
