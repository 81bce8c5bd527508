"""Who may change the rules of approval: a person who may govern the tenant, never a key.

An operator's command may too, while it sets a tenant up (``releases.authority.setting_up``).
"""

from django.utils.translation import gettext as _

from apps.governance.duties import person_of
from apps.releases.authority import is_setting_up
from apps.tenants.backends import permissions_here
from apps.tenants.models import Membership, User

PERMISSION = "governance.change"


class GovernanceRefused(RuntimeError):
    """Base of every refusal about the rules of approval: the sentence is for who tried."""

    code = "governance_refused"


class PersonRequired(GovernanceRefused):
    """A key or a command tried to change who must approve what."""

    code = "person_required"


class NotAGovernor(GovernanceRefused):
    """The person may not change the tenant's rules."""

    code = "not_a_governor"


def governor_required(actor: str) -> None:
    """Raise ``PersonRequired`` or ``NotAGovernor`` unless ``actor`` may change the tenant's rules."""
    if not person_of(actor):
        if is_setting_up():
            return
        raise PersonRequired(_("Who must approve what is changed by a person, not by a key."))
    if not is_governor(actor):
        raise NotAGovernor(_("Only a tenant admin changes who must approve what."))


def is_governor(actor: str) -> bool:
    """Return whether ``actor`` is a person who may change the tenant's rules."""
    user = User.objects.filter(username=person_of(actor), is_active=True).first()
    return user is not None and PERMISSION in permissions_here(user)


def is_alone(username: str) -> bool:
    """Return whether the tenant has nobody active beside ``username``: who could be a second pair
    of eyes? Only then somebody may give themselves a duty or a role."""
    others = Membership.objects.filter(user__is_active=True).exclude(user__username=username)
    return not others.exists()
