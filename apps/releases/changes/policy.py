"""The port to who must approve what and how risky a change is; ``settings.CHANGE_POLICY`` names it.

This app knows that approvals are needed and counts them; which ones is governance's to say.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, cast

from django.conf import settings
from django.utils.module_loading import import_string

RISKS = ("cosmetic", "behaviour", "weakening")
"""Risk classes, mildest first. A request has the gravest of its changes."""


@dataclass(frozen=True)
class ItemEdit:
    """What one patch does to one item: content before and after, ``None`` for not there.

    Contents are JSON values with defaults written out, as ``revision_content`` gives them.
    """

    kind: str
    slug: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


@dataclass(frozen=True)
class Risk:
    """One finding: which rule, where, how grave. ``rule`` is its code, ``message`` a sentence."""

    kind: str
    slug: str
    path: str
    risk: str
    rule: str
    message: str


@dataclass(frozen=True)
class Requirement:
    """Who has to approve: so many different people, and each of ``duties`` by a person of its own.

    ``activities``: what the duties come from, for the page. ``problems``: what is wrong with the
    tenant's own rules, e.g. an activity nobody is accountable for.
    """

    approvals: int
    duties: tuple[str, ...]
    activities: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class HeldDuty:
    """A duty somebody holds now; ``on_behalf_of`` names who delegated it ("" for their own)."""

    duty: str
    on_behalf_of: str = ""
    expires_at: datetime | None = None


class ChangePolicy(Protocol):
    """What governance answers. All inside a tenant's scope; ``actor`` is like ``user:ana``."""

    def risks(self, edits: Sequence[ItemEdit]) -> list[Risk]:
        """Return every finding that is worth showing; an edit without one is ``behaviour``."""

    def risk_class(self, edits: Sequence[ItemEdit]) -> str:
        """Return the gravest class of ``edits``: one of ``RISKS``."""

    def requirement(self, *, edits: Sequence[ItemEdit], risk: str) -> Requirement:
        """Return who must approve a request with these edits of this class."""

    def requirements(self, asked: Sequence[tuple[Sequence[ItemEdit], str]]) -> list[Requirement]:
        """``requirement`` of many requests, each its edits and class, in as many queries as of one."""

    def deployment_requirement(self, environment: str) -> Requirement:
        """Return the duties of which the person who deploys to ``environment`` must hold one."""

    def binding_requirement(self, environment: str) -> Requirement:
        """Return the duties of which the person who approves a binding's change must hold one."""

    def duties_of(self, actor: str) -> list[HeldDuty]:
        """Return the duties ``actor`` holds now; none for a key, a command or a stranger."""

    def holders(self, duties: Sequence[str]) -> dict[str, list[HeldDuty]]:
        """Return everybody who holds one of ``duties`` now and has a role that may decide, as actors
        by name, and which of them; in as many queries for many people as for one."""


def change_policy() -> ChangePolicy:
    """Return the policy that ``settings.CHANGE_POLICY`` names (a dotted name of an object)."""
    return cast("ChangePolicy", import_string(settings.CHANGE_POLICY))
