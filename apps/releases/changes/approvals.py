"""Which approvals of a request count, and who is still missing."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from apps.releases.change_models import Approval, ChangeRequest
from apps.releases.changes.policy import HeldDuty, Requirement, change_policy
from apps.releases.changes.states import OPEN
from apps.runtime.canonical import canonical_json, sha256_text

SHOWN_PEOPLE = 5


@dataclass(frozen=True)
class Counted:
    """The approvals that count for what a request is now, and what they leave open.

    ``missing``: duties nobody of them fills; ``more``: how many people are still to approve.
    """

    approvals: tuple[Approval, ...]
    missing: tuple[str, ...]
    more: int

    @property
    def is_complete(self) -> bool:
        return not self.missing and not self.more


@dataclass(frozen=True)
class Fillers:
    """Whose approval would fill ``duty``: some of them, by name, and how many ``more`` there are."""

    duty: str
    people: tuple[str, ...]
    more: int


def editors_of(request: ChangeRequest) -> list[str]:
    """Return everybody who ever changed a patch of ``request``."""
    editors: list[str] = json.loads(request.editors)
    return editors


def terms_digest(request: ChangeRequest) -> str:
    """Return the sha256 of what an approval is about beside the manifest.

    Environment, what becomes of open conversations, version step, the labels of items (owners), and
    which items change from which revision: the same manifest after others have published is
    another change, as it takes theirs back.
    """
    items = request.patches.order_by("kind", "slug")
    return terms_of(request, list(items.values_list("kind", "slug", "action", "base_id", "labels")))


def terms_of(request: ChangeRequest, items: Sequence[tuple[str, str, str, int | None, str]]) -> str:
    """``terms_digest`` with (kind, slug, action, base, labels) of the request's patches, in order."""
    terms = {
        "environment": request.environment,
        "in_flight": request.in_flight,
        "max_pin_hours": request.max_pin_hours,
        "bump": request.bump,
        "items": [list(row) for row in items],
    }
    return sha256_text(canonical_json(terms))


def approvals_counted(request: ChangeRequest, requirement: Requirement) -> Counted:
    """Count the approvals of the manifest and terms that ``request`` is bound to now.

    While it is open an approval counts as far as its person still holds what they approved with:
    who left, or lost the duty, lets nothing in any more, at its scheduled time either.
    """
    decisions = list(request.approvals.order_by("pk"))
    return counted(
        decisions,
        editors=editors_of(request),
        sha256=request.manifest_sha256,
        terms=terms_digest(request),
        requirement=requirement,
        held_now=_held_now(request, decisions) if request.status in OPEN else None,
    )


def _held_now(request: ChangeRequest, decisions: Sequence[Approval]) -> dict[str, set[str]]:
    """Return person → duties they hold now, other than on behalf of who made the request."""
    policy, makers = change_policy(), {request.author, *editors_of(request)}
    return {
        person: {held.duty for held in policy.duties_of(person) if held.on_behalf_of not in makers}
        for person in {found.person for found in decisions}
    }


def counted(
    decisions: Sequence[Approval],
    *,
    editors: Sequence[str],
    sha256: str,
    terms: str,
    requirement: Requirement,
    held_now: Mapping[str, set[str]] | None = None,
) -> Counted:
    """Count: each person's last decision about exactly this; editors never; one duty a person.

    ``held_now``: person → duties; who holds none any more does not count. None: as it was then.
    """
    last: dict[str, Approval] = {}
    for decision in decisions:
        if (decision.manifest_sha256, decision.terms) == (sha256, terms):
            last[decision.person] = decision
    approvals = [
        found
        for person, found in last.items()
        if found.decision == Approval.Decision.APPROVE and person not in editors
    ]
    held = {found.person: set(json.loads(found.duties)) for found in approvals}
    if held_now is not None:
        held = {person: duties & held_now[person] for person, duties in held.items()}
        approvals = [found for found in approvals if held[found.person]]
        held = {found.person: held[found.person] for found in approvals}
    filled = duties_filled(requirement.duties, held)
    missing = tuple(duty for duty in requirement.duties if duty not in filled)
    return Counted(tuple(approvals), missing, max(0, requirement.approvals - len(approvals)))


def may_fill(
    missing: Sequence[str],
    *,
    requirement: Requirement,
    approvals: Sequence[Approval],
    barred: Collection[str],
    holders: Mapping[str, Sequence[HeldDuty]],
) -> list[Fillers]:
    """Return for each ``missing`` duty whose approval would fill it.

    Never an editor (``barred``, author included) nor who holds it for one; nor who fills another one
    already, as one person fills one duty. Somebody who holds only a filled duty counts where they
    would free who fills it for the missing one.
    """
    held = {
        person: {found.duty for found in duties if found.on_behalf_of not in barred}
        for person, duties in holders.items()
        if person not in barred
    }
    given = {
        found.person: set(json.loads(found.duties)) & held.get(found.person, set())
        for found in approvals
    }
    now = duties_filled(requirement.duties, given)
    able: dict[str, list[str]] = {duty: [] for duty in missing}
    for person in sorted(held):
        then = duties_filled(requirement.duties, {**given, person: held[person]})
        for duty in missing:
            if len(then) > len(now) and (duty in held[person] or duty in then):
                able[duty].append(person)
    return [
        Fillers(duty, tuple(people[:SHOWN_PEOPLE]), max(0, len(people) - SHOWN_PEOPLE))
        for duty, people in able.items()
    ]


def duties_filled(duties: Sequence[str], held: dict[str, set[str]]) -> dict[str, str]:
    """Return duty → person, each person once, for as many of ``duties`` as is possible.

    The classic augmenting path of a matching: whoever could fill another duty makes room.
    """
    filled: dict[str, str] = {}

    def place(person: str, tried: set[str]) -> bool:
        for duty in duties:
            if duty in held[person] and duty not in tried:
                tried.add(duty)
                if duty not in filled or place(filled[duty], tried):
                    filled[duty] = person
                    return True
        return False

    for person in sorted(held):
        place(person, set())
    return filled
