"""A change request in the words its page shows: what changed where, what was said about it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from django.utils.translation import gettext, gettext_lazy

from apps.releases.change_models import Approval, ChangeComment, ChangePatch
from apps.releases.changes.approvals import Fillers
from apps.releases.changes.candidate import labels_of
from apps.releases.changes.policy import Risk
from apps.releases.changes.selectors import PatchView
from apps.releases.gates import gates_known
from apps.releases.pages.change_forms import person_name
from apps.releases.pages.diff_view import LABELS as LABELS_OF_CHANGE
from apps.releases.pages.diff_view import ShownChange, field_title, shown_changes, value_text
from apps.releases.pages.links import kind_label, patch_link, slug_link
from apps.releases.patches.patching import Conflict
from apps.runtime.config import KINDS, Config

DUTIES = {
    "platform": gettext_lazy("Platform"),
    "domain": gettext_lazy("Domain"),
    "integration": gettext_lazy("Integration"),
    "sre": gettext_lazy("SRE"),
    "security": gettext_lazy("Security"),
}
LABELS = {
    "name": gettext_lazy("Name"),
    "owner": gettext_lazy("Owner"),
    "technical_owner": gettext_lazy("Technical owner"),
}
ENDS = ".["


@dataclass(frozen=True)
class ShownLine:
    """One changed field with the findings about it and what was said about it.

    ``changes``: more than one where values came to a list and others went.
    """

    changes: list[ShownChange]
    findings: list[Risk] = field(default_factory=list)
    comments: list[ChangeComment] = field(default_factory=list)

    @property
    def title(self) -> str:
        return self.changes[0].title

    @property
    def path(self) -> str:
        return self.changes[0].path

    @property
    def label(self) -> Any:
        return self.changes[0].label if len(self.changes) == 1 else LABELS_OF_CHANGE["changed"]

    @property
    def change(self) -> str:
        return self.changes[0].change if len(self.changes) == 1 else "changed"

    @property
    def is_weakening(self) -> bool:
        return any(found.risk == "weakening" for found in self.findings)


@dataclass(frozen=True)
class ShownConflict:
    """One place that both sides changed: what it was, what it is, what the request wants."""

    name: str
    title: str
    path: str
    base: str
    theirs: str
    mine: str
    conflict: Conflict


@dataclass(frozen=True)
class ShownPatch:
    """One item of a request. ``findings`` and ``comments`` are those about no line of it."""

    patch: ChangePatch
    kind: str
    url: str
    edit_url: str
    lines: list[ShownLine]
    carried: list[ShownChange]
    findings: list[Risk]
    comments: list[ChangeComment]
    conflicts: list[ShownConflict]
    errors: list[Mapping[str, Any]]
    labels: list[tuple[str, str]]
    is_stale: bool


@dataclass(frozen=True)
class ShownApproval:
    """One decision, and whether it counts for what the request is now."""

    decision: Approval
    person: str
    on_behalf_of: str
    duties: list[str]
    counts: bool


@dataclass(frozen=True)
class ShownFillers:
    """Who may still fill a missing duty."""

    duty: str
    people: list[str]
    more: int


def duty_label(duty: str) -> str:
    """Return what a duty is called in the reader's language."""
    return str(DUTIES.get(duty, duty))


def shown_patches(
    views: Iterable[PatchView], risks: Sequence[Risk], comments: Sequence[ChangeComment]
) -> list[ShownPatch]:
    """Return the items of a request as its page shows them."""
    return [_shown_patch(view, risks, comments) for view in views]


def shown_conflicts(view: PatchView) -> list[ShownConflict]:
    """Return the conflicts of one item, each with the name of its choice in a form."""
    config_class = KINDS.get(view.patch.kind, Config)
    return [
        ShownConflict(
            name=f"{view.patch}|{conflict.path}",
            title=field_title(config_class, conflict.path)
            if conflict.path
            else gettext("The whole item"),
            path=conflict.path,
            base=_side(conflict, conflict.base),
            theirs=_side(conflict, conflict.theirs),
            mine=_side(conflict, conflict.mine),
            conflict=conflict,
        )
        for conflict in view.conflicts
    ]


def shown_approvals(
    decisions: Iterable[Approval], counted: Iterable[Approval]
) -> list[ShownApproval]:
    """Return every decision ever made on the request, the ``counted`` ones marked."""
    keys = {approval.pk for approval in counted}
    return [
        ShownApproval(
            decision=decision,
            person=person_name(decision.person),
            on_behalf_of=person_name(decision.on_behalf_of),
            duties=[duty_label(duty) for duty in duties_of(decision)],
            counts=decision.pk in keys,
        )
        for decision in decisions
    ]


def shown_fillers(fillers: Iterable[Fillers]) -> list[ShownFillers]:
    """Return who may still approve, duty by duty."""
    return [
        ShownFillers(duty_label(f.duty), [person_name(name) for name in f.people], f.more)
        for f in fillers
    ]


def shown_gates(results: Iterable[Mapping[str, Any]], *levels: str) -> list[dict[str, Any]]:
    """Return the gates' results of ``levels``, each with its gate's title."""
    titles = {info.code: info.title for info in gates_known()}
    return [
        {**found, "title": titles.get(found["gate"], found["gate"])}
        for found in results
        if found["level"] in levels
    ]


def duties_of(decision: Approval) -> list[str]:
    """Return the duties the person held when they decided."""
    duties: list[str] = json.loads(decision.duties)
    return duties


def _shown_patch(
    view: PatchView, risks: Sequence[Risk], comments: Sequence[ChangeComment]
) -> ShownPatch:
    patch = view.patch
    about = [found for found in risks if (found.kind, found.slug) == (patch.kind, patch.slug)]
    said = [found for found in comments if (found.kind, found.slug) == (patch.kind, patch.slug)]
    config_class = KINDS.get(patch.kind, Config)
    # That an archived item loses every field is one thing to say, not many.
    changes = shown_changes(config_class, view.changes if view.after is not None else ())
    lines = [
        ShownLine(
            list(group),
            [found for found in about if _touches(found.path, path)],
            [found for found in said if found.path == path],
        )
        for path, group in groupby(changes, key=lambda change: change.path)
    ]
    placed = {id(found) for line in lines for found in (*line.findings, *line.comments)}
    return ShownPatch(
        patch=patch,
        kind=kind_label(patch.kind),
        url="" if patch.base_id is None else slug_link(patch.kind, patch.slug),
        edit_url=patch_link(patch),
        lines=lines,
        carried=shown_changes(config_class, view.carried),
        findings=[found for found in about if id(found) not in placed],
        comments=[found for found in said if id(found) not in placed],
        conflicts=shown_conflicts(view),
        errors=list(view.errors),
        labels=[(str(LABELS[name]), value) for name, value in labels_of(patch).items()],
        is_stale=view.is_stale,
    )


def _touches(one: str, other: str) -> bool:
    """Return whether one of the places is the other or inside it."""
    if not one or not other:
        return False
    short, long = sorted((one, other), key=len)
    return long == short or (long.startswith(short) and long[len(short)] in ENDS)


def _side(conflict: Conflict, value: Any) -> str:
    if value is None:
        return gettext("(archived)") if not conflict.path else gettext("(not there)")
    return value_text(value) if conflict.path else gettext("(kept, with its changes)")
