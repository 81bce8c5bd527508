"""Why a change request does not do what was asked. Each says what to do about it."""

from collections.abc import Mapping, Sequence

from django.utils.translation import gettext as _

from apps.releases.changes.policy import Risk
from apps.releases.patches.patching import Conflict


class ChangeRefused(RuntimeError):
    """Base of every refusal: the sentence is for the person who tried, ``code`` for machines."""

    code = "change_refused"


class WrongState(ChangeRefused):
    """The request is not in a state in which this can be done."""

    code = "wrong_state"


class IncompleteRequest(ChangeRefused):
    """The request, or what was said about it, lacks something. ``errors``: field → sentence."""

    code = "incomplete_request"

    def __init__(self, errors: Mapping[str, str]) -> None:
        self.errors = dict(errors)
        super().__init__(" ".join(self.errors.values()))


class RiskUnderstated(ChangeRefused):
    """The request says it is milder than what its changes do. ``risks`` are the findings above it."""

    code = "risk_understated"

    def __init__(self, *, declared: str, risk: str, risks: Sequence[Risk]) -> None:
        self.declared, self.risk, self.risks = declared, risk, list(risks)
        super().__init__(
            _(
                "The request is declared “%(declared)s”, but its changes are “%(risk)s”: %(why)s "
                "Declare it so, or take these changes out."
            )
            % {
                "declared": declared,
                "risk": risk,
                "why": " ".join(f"{r.kind}:{r.slug} {r.path}: {r.message}" for r in self.risks[:5]),
            }
        )


class StaleRequest(ChangeRefused):
    """Something was published since: what was seen is not what would go live."""

    code = "stale_request"

    def __init__(self, *, seen: str = "", now: str = "") -> None:
        self.seen, self.now = seen, now
        super().__init__(
            _(
                "What would go live is no longer what was reviewed: something was published or "
                "edited meanwhile. Look at the request again; rebase it when it says so."
            )
        )


class MergeConflict(ChangeRefused):
    """The same places were changed by somebody else. ``conflicts``: "kind:slug" → its conflicts."""

    code = "merge_conflict"

    def __init__(self, conflicts: Mapping[str, Sequence[Conflict]]) -> None:
        self.conflicts = {key: list(found) for key, found in conflicts.items()}
        places = [
            f"{key} {conflict.path}".strip()
            for key, found in self.conflicts.items()
            for conflict in found
        ]
        super().__init__(
            _("Also changed by somebody else since: %(places)s. Rebase and choose for each.")
            % {"places": ", ".join(places[:10])}
        )


class SelfApproval(ChangeRefused):
    """Who edited a request does not decide that it is good."""

    code = "self_approval"

    def __init__(self) -> None:
        super().__init__(_("You edited this request: somebody else has to approve it."))


class NotAnApprover(ChangeRefused):
    """The actor is no person of the tenant, or holds none of the duties that count here."""

    code = "not_an_approver"


class ApprovalsMissing(ChangeRefused):
    """Not everybody who must has approved this manifest. ``missing``: duties; ``more``: people."""

    code = "approvals_missing"

    def __init__(self, *, missing: Sequence[str], more: int) -> None:
        self.missing, self.more = tuple(missing), more
        parts = []
        if self.missing:
            parts.append(_("duties still to approve: %(duties)s") % {"duties": ", ".join(missing)})
        if more:
            parts.append(_("people still to approve: %(count)s") % {"count": more})
        super().__init__(
            _("Not everybody who must has approved exactly this: %(what)s.")
            % {"what": "; ".join(parts)}
        )
