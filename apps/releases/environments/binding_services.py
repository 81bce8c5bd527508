"""Writes of bindings: the addresses and names of credentials that differ by environment.

Where customers are answered (the last environment) a change is proposed by one person and let in by
another. ``environments.services`` says how these functions are found and called.
"""

from collections.abc import Mapping, Sequence

from django.conf import settings
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.releases.authority import authority, authority_held
from apps.releases.change_models import BindingProposal
from apps.releases.changes.events import ChangeEvent, change_told
from apps.releases.changes.policy import change_policy
from apps.releases.content import InvalidContent
from apps.releases.environments.binding_values import InvalidBinding as InvalidBinding
from apps.releases.environments.binding_values import binding_check
from apps.releases.environments.deploying import deployment_find
from apps.releases.environments.rules import (
    EnvironmentRefused,
    NotResponsible,
    duty_required,
    environment_checked,
    reason_checked,
    reason_errors,
)
from apps.releases.freezing import bindings_needed
from apps.releases.models import Binding, Deployment
from apps.releases.selectors import pointer_of, release_load
from apps.releases.services import configuration_locked
from apps.tenants.issuing import with_issuer
from apps.tenants.scope import current_tenant_id, tenant_transaction
from apps.tenants.services import audit_append

Status = BindingProposal.Status


class BindingInUse(RuntimeError):
    """A release that runs needs the binding. ``needed_by`` has {kind, slug, path, what, name}."""

    code = "binding_in_use"

    def __init__(self, needed_by: Sequence[Mapping[str, str]]) -> None:
        self.needed_by = [dict(entry) for entry in needed_by]
        super().__init__(
            _("The deployed release needs it: %(users)s.")
            % {"users": ", ".join(f"{u['kind']}:{u['slug']}" for u in self.needed_by)}
        )


class BindingNeedsApproval(EnvironmentRefused):
    """A binding of production was to change without a second person."""

    code = "binding_needs_approval"

    def __init__(self, environment: str) -> None:
        super().__init__(
            _(
                "Bindings of %(environment)s change by a proposal that a second person approves: "
                "propose it."
            )
            % {"environment": environment}
        )


class ProposalRefused(EnvironmentRefused):
    """The proposal is decided already, is not the newest word, or changes nothing."""

    code = "proposal_refused"


def binding_set(*, environment: str, what: str, name: str, value: str, actor: str) -> Binding:
    """Bind ``name`` in ``environment``: an ``address`` to a URL, a ``credential`` to the name of an
    environment variable. Turns accepted from now on use it; nothing is written when it is the same.

    Raises ``InvalidBinding`` (without repeating the value), ``UnknownEnvironment`` and, in
    production, ``BindingNeedsApproval``.
    """
    environment_checked(environment)
    binding_check(what=what, name=name, value=value)
    with tenant_transaction():
        configuration_locked()
        key = {"environment": environment, "what": what, "name": name}
        binding = Binding.objects.filter(**key).first() or Binding(**key)
        previous = binding.value
        if binding.pk and previous == value:
            return binding
        _direct_check(environment)
        binding.value, binding.updated_by = value, actor
        binding.save()
        _bindings_changed(
            binding, actor, action="binding.set", detail={"value": value, "previous": previous}
        )
        return binding


def binding_remove(*, binding: Binding, actor: str) -> None:
    """Remove ``binding``.

    Raises ``BindingInUse`` when its environment runs a release that needs it (a canary and releases
    that conversations are pinned to count), and in production ``BindingNeedsApproval``.
    """
    with tenant_transaction():
        configuration_locked()
        binding = Binding.objects.get(pk=binding.pk)
        _direct_check(binding.environment)
        _unused_check(binding)
        _bindings_changed(
            binding, actor, action="binding.removed", detail={"previous": binding.value}
        )
        binding.delete()


def _direct_check(environment: str) -> None:
    if needs_approval(environment) and not authority_held():
        raise BindingNeedsApproval(environment)


def needs_approval(environment: str) -> bool:
    """Return whether bindings of ``environment`` change by a proposal only: the last one's do."""
    return bool(environment == settings.RELEASE_ENVIRONMENTS[-1])


def _unused_check(binding: Binding) -> None:
    deployment = deployment_find(binding.environment)
    if deployment is None:
        return
    pointer = pointer_of(deployment)
    running = [pointer.release, *([pointer.canary] if pointer.canary else []), *pointer.kept]
    users: list[dict[str, str]] = []
    for release_id in running:
        needed = bindings_needed(release_load(current_tenant_id(), release_id))
        users += [
            n
            for n in needed
            if (n["what"], n["name"]) == (binding.what, binding.name) and n not in users
        ]
    if users:
        raise BindingInUse(users)


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


# -- proposals ----------------------------------------------------------------------------------
def binding_propose(
    *,
    environment: str,
    what: str,
    name: str,
    value: str = "",
    remove: bool = False,
    reason: str,
    actor: str,
) -> BindingProposal:
    """Ask for ``name`` to be bound to ``value`` in ``environment``, or (``remove``) to be unbound.

    Nothing changes until ``binding_decide``. Raises ``InvalidBinding``, ``InvalidContent`` without a
    reason, ``ProposalRefused`` when it is bound so already or another proposal for it is open,
    ``BindingInUse`` for a removal of what is needed, ``UnknownEnvironment``.
    """
    environment_checked(environment)
    reason_checked(reason)
    if remove:
        value = ""
    else:
        binding_check(what=what, name=name, value=value)
    key = {"environment": environment, "what": what, "name": name}
    with tenant_transaction():
        configuration_locked()
        binding = Binding.objects.filter(**key).first()
        previous = binding.value if binding else ""
        if previous == value:
            raise ProposalRefused(_("Nothing would change: it is so already."))
        if BindingProposal.objects.filter(**key, status=Status.OPEN).exists():
            raise ProposalRefused(
                _("Another proposal for %(name)s is open: decide on it or withdraw it first.")
                % {"name": name}
            )
        if remove and binding is not None:
            _unused_check(binding)
        proposal: BindingProposal = BindingProposal.objects.create(
            **key, value=value, previous=previous, remove=remove, reason=reason, proposed_by=actor
        )
        _proposal_told("binding.proposed", proposal, actor)
        return proposal


def binding_decide(
    *, proposal: BindingProposal, actor: str, approve: bool, comment: str = ""
) -> BindingProposal:
    """Let a proposal in, or refuse it (``comment`` says why); what is let in holds at once.

    Raises ``NotResponsible`` for whoever proposed it and for who holds no duty for it,
    ``ProposalRefused`` when it is decided or the value has changed since, and what ``binding_set``
    or ``binding_remove`` raises.
    """
    errors = reason_errors(comment, required=not approve, field="comment")
    if errors:
        raise InvalidContent(errors)
    with tenant_transaction():
        configuration_locked()
        proposal = _open_proposal(proposal)
        proposers = with_issuer(proposal.proposed_by)
        if actor in proposers:
            raise NotResponsible(_("You proposed it: somebody else has to decide."))
        duty_required(
            actor,
            proposal.environment,
            change_policy().binding_requirement(proposal.environment),
            not_for=proposers,
        )
        if approve:
            _applied(proposal)
        proposal.status = Status.APPROVED if approve else Status.REJECTED
        return _closed(proposal, actor, comment)


def binding_withdraw(*, proposal: BindingProposal, actor: str) -> BindingProposal:
    """Take back one's own open proposal. Raises ``NotResponsible``, ``ProposalRefused``."""
    with tenant_transaction():
        configuration_locked()
        proposal = _open_proposal(proposal)
        if actor != proposal.proposed_by:
            raise NotResponsible(_("Only who proposed it takes it back."))
        proposal.status = Status.WITHDRAWN
        return _closed(proposal, actor, "")


def _open_proposal(proposal: BindingProposal) -> BindingProposal:
    found: BindingProposal = BindingProposal.objects.get(pk=proposal.pk)
    if found.status != Status.OPEN:
        raise ProposalRefused(
            _("It is decided already: %(status)s.") % {"status": found.get_status_display()}
        )
    return found


def _applied(proposal: BindingProposal) -> None:
    key = {"environment": proposal.environment, "what": proposal.what, "name": proposal.name}
    binding = Binding.objects.filter(**key).first()
    if (binding.value if binding else "") != proposal.previous:
        raise ProposalRefused(
            _("%(name)s has changed since it was proposed: propose it anew.")
            % {"name": proposal.name}
        )
    # Both names are in the trail: who asked stands with the binding, who let it in with the decision.
    with authority(f"binding proposal {proposal.pk}"):
        if not proposal.remove:
            binding_set(**key, value=proposal.value, actor=proposal.proposed_by)
        elif binding is not None:
            binding_remove(binding=binding, actor=proposal.proposed_by)


def _closed(proposal: BindingProposal, actor: str, comment: str) -> BindingProposal:
    proposal.decided_by, proposal.decided_at, proposal.comment = actor, timezone.now(), comment
    proposal.save(update_fields=["status", "decided_by", "decided_at", "comment"])
    _proposal_told("binding.decided", proposal, actor)
    return proposal


def _proposal_told(event: str, proposal: BindingProposal, actor: str) -> None:
    facts = {
        "proposal": proposal.pk,
        "value": proposal.value,
        "previous": proposal.previous,
        "remove": proposal.remove,
        "reason": proposal.reason,
        "status": str(proposal.status),
        "proposed_by": proposal.proposed_by,
        "comment": proposal.comment,
    }
    entity = f"binding:{proposal.environment}/{proposal.what}:{proposal.name}"
    audit_append(actor=actor, action=event, entity=entity, detail=facts)
    change_told(
        ChangeEvent(
            event=event,
            actor=actor,
            subject=str(proposal),
            environment=proposal.environment,
            detail=facts,
        )
    )
