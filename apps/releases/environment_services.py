"""Writes of environments: what each runs, its canary, its bindings, its frozen times.

All inside a tenant scope; every function is one transaction: the change, its audit entry, its event.
``actor`` is a principal's name.
"""

# ``X as X``: callers find the exceptions beside the functions.
from collections.abc import Mapping, Sequence

from django.conf import settings
from django.db.models import F
from django.utils.translation import gettext as _

from apps.releases.authority import authority_required
from apps.releases.binding_values import InvalidBinding as InvalidBinding
from apps.releases.binding_values import binding_check
from apps.releases.freezing import bindings_missing, bindings_needed, manifest_stored
from apps.releases.models import Binding, Deployment, Release
from apps.releases.selectors import release_load
from apps.releases.services import configuration_locked
from apps.tenants.scope import current_tenant_id, tenant_transaction
from apps.tenants.services import UnknownEnvironment as UnknownEnvironment
from apps.tenants.services import audit_append


class UnboundBindings(RuntimeError):
    """The environment lacks bindings a release needs: ``missing`` has {kind, slug, path, what, name}."""

    def __init__(self, environment: str, missing: Sequence[Mapping[str, str]]) -> None:
        self.environment = environment
        self.missing = [dict(entry) for entry in missing]
        names = sorted({f"{entry['what']} {entry['name']}" for entry in self.missing})
        super().__init__(
            _("Not bound in %(environment)s: %(names)s.")
            % {"environment": environment, "names": ", ".join(names)}
        )


def release_deploy(*, release: Release, environment: str, actor: str) -> Deployment:
    """Let ``environment`` run ``release`` from the very next message.

    Deploying an older release than the current one is a rollback, and audited as one. Raises
    ``UnboundBindings`` when the environment lacks an address or credential the release names,
    ``CorruptRelease`` when the stored bytes have changed, ``UnknownEnvironment``.
    """
    authority_required()
    _environment_checked(environment)
    with tenant_transaction():
        configuration_locked()
        release = Release.objects.defer("manifest").get(pk=release.pk)
        manifest_stored(release)
        missing = bindings_missing(release_load(current_tenant_id(), release.pk), environment)
        if missing:
            raise UnboundBindings(environment, missing)
        deployment: Deployment | None = (
            Deployment.objects.select_related("release")
            .defer("release__manifest")
            .filter(environment=environment)
            .first()
        )
        previous = deployment.release if deployment else None
        if deployment is None:
            deployment = Deployment(environment=environment)
        elif deployment.release_id == release.pk:
            return deployment
        deployment.release, deployment.deployed_by = release, actor
        deployment.save()
        back = previous is not None and release.number < previous.number
        audit_append(
            actor=actor,
            action="release.rolled_back" if back else "release.deployed",
            entity=f"environment:{environment}",
            detail={
                "release": release.number,
                "sha256": release.sha256,
                "previous": previous.number if previous else None,
            },
        )
        return deployment


# -- bindings ----------------------------------------------------------------------------------
class BindingInUse(RuntimeError):
    """A deployed release needs the binding. ``needed_by`` has {kind, slug, path, what, name}."""

    def __init__(self, needed_by: Sequence[Mapping[str, str]]) -> None:
        self.needed_by = [dict(entry) for entry in needed_by]
        super().__init__(
            _("The deployed release needs it: %(users)s.")
            % {"users": ", ".join(f"{u['kind']}:{u['slug']}" for u in self.needed_by)}
        )


def binding_set(*, environment: str, what: str, name: str, value: str, actor: str) -> Binding:
    """Bind ``name`` in ``environment``: an ``address`` to a URL, a ``credential`` to the name of an
    environment variable. Turns accepted from now on use it; nothing is written when it is the same.

    Raises ``InvalidBinding`` (without repeating the value) and ``UnknownEnvironment``.
    """
    _environment_checked(environment)
    binding_check(what=what, name=name, value=value)
    with tenant_transaction():
        configuration_locked()
        key = {"environment": environment, "what": what, "name": name}
        binding = Binding.objects.filter(**key).first() or Binding(**key)
        previous = binding.value
        if binding.pk and previous == value:
            return binding
        binding.value, binding.updated_by = value, actor
        binding.save()
        _bindings_changed(
            binding, actor, action="binding.set", detail={"value": value, "previous": previous}
        )
        return binding


def binding_remove(*, binding: Binding, actor: str) -> None:
    """Remove ``binding``. Raises ``BindingInUse`` when the release its environment runs needs it."""
    with tenant_transaction():
        configuration_locked()
        binding = Binding.objects.get(pk=binding.pk)
        deployed = Deployment.objects.filter(environment=binding.environment).first()
        if deployed is not None:
            needed = bindings_needed(release_load(current_tenant_id(), deployed.release_id))
            users = [n for n in needed if (n["what"], n["name"]) == (binding.what, binding.name)]
            if users:
                raise BindingInUse(users)
        _bindings_changed(
            binding, actor, action="binding.removed", detail={"previous": binding.value}
        )
        binding.delete()


def _bindings_changed(
    binding: Binding, actor: str, *, action: str, detail: Mapping[str, str]
) -> None:
    Deployment.objects.filter(environment=binding.environment).update(
        bindings_version=F("bindings_version") + 1
    )
    audit_append(
        actor=actor,
        action=action,
        entity=f"binding:{binding.environment}/{binding.what}:{binding.name}",
        detail=detail,
    )


def _environment_checked(environment: str) -> None:
    if environment not in settings.RELEASE_ENVIRONMENTS:
        raise UnknownEnvironment(
            _("There is no environment %(name)s; known: %(known)s.")
            % {"name": environment, "known": ", ".join(settings.RELEASE_ENVIRONMENTS)}
        )


# -- still to be written -----------------------------------------------------------------------
class Frozen(RuntimeError):
    """The environment is frozen now. ``window`` says until when and why."""


class HopSkipped(RuntimeError):
    """A release goes to an environment that it may only reach by promotion from the one before."""


class NotResponsible(RuntimeError):
    """The actor holds none of the duties that deploy here, or edited what would be deployed."""


class NeverRan(RuntimeError):
    """Rolled back to a release that the environment never ran."""
