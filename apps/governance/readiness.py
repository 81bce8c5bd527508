"""How far an agent is on the readiness checklist: what the product knows, what people answered.

Where the product knows the answer itself (``settings.READINESS_FACTS``), that answer holds. Reads
and writes; all inside a tenant scope.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from django.conf import settings
from django.utils import timezone
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from apps.governance.approval_models import ReadinessCheck
from apps.governance.duties import person_of
from apps.governance.evidence import link_error
from apps.governance.governing import GovernanceRefused
from apps.governance.readiness_checklist import CHECKLIST, EXEMPTIBLE, TOPICS, Section, Text
from apps.releases.changes.policy import change_policy
from apps.releases.models import ConfigItem
from apps.releases.services import configuration_locked
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import audit_append

State = ReadinessCheck.State
MAX_NOTE, MAX_REASON = 4_000, 500


@dataclass(frozen=True)
class Fact:
    """What the product knows of a topic by itself: whether it is done, and what was looked at."""

    done: bool
    why: Text


FactsOf = Callable[[str], Mapping[str, Fact]]
"""Agent → topic → fact; topics the product knows nothing of are left out."""


class ReadinessRefused(GovernanceRefused):
    """Base of what is refused about a checklist. ``errors``: field → sentence."""

    code = "invalid_readiness"

    def __init__(self, **errors: str) -> None:
        self.errors = errors
        super().__init__(" ".join(errors.values()))


class NoSuchCheck(ReadinessRefused):
    """The tenant has no such agent, or the checklist no such topic."""

    code = "no_such_check"


class SelfExemption(ReadinessRefused):
    """Who asked for an exemption does not approve it, nor does who holds no duty."""

    code = "self_exemption"


@dataclass(frozen=True)
class ShownTopic:
    """One topic of an agent. ``state``: open, done, exempt, or ``asked`` for an exemption that waits."""

    code: str
    title: Text
    state: str
    fact: Fact | None = None
    row: ReadinessCheck | None = None
    exemptible: bool = False

    @property
    def settled(self) -> bool:
        return self.state in (State.DONE, State.EXEMPT)


@dataclass(frozen=True)
class ShownSection:
    """A section with its topics."""

    section: Section
    topics: list[ShownTopic]

    @property
    def settled(self) -> int:
        return sum(topic.settled for topic in self.topics)


@dataclass(frozen=True)
class Readiness:
    """The whole checklist of one agent; each topic counts once."""

    agent: str
    sections: list[ShownSection] = field(default_factory=list)

    @property
    def topics(self) -> dict[str, ShownTopic]:
        return {topic.code: topic for section in self.sections for topic in section.topics}

    @property
    def settled(self) -> int:
        return sum(topic.settled for topic in self.topics.values())

    @property
    def total(self) -> int:
        return len(self.topics)


def readiness_of(agent: str) -> Readiness:
    """Return the checklist of ``agent`` as it stands. Raises ``NoSuchCheck`` for an unknown agent."""
    _agent_checked(agent)
    rows = {row.check_code: row for row in ReadinessCheck.objects.filter(agent=agent)}
    facts = _facts(agent)
    shown = {code: _shown(code, facts.get(code), rows.get(code)) for code in TOPICS}
    return Readiness(
        agent=agent,
        sections=[
            ShownSection(section, [shown[code] for code in section.topics]) for section in CHECKLIST
        ],
    )


def _shown(code: str, fact: Fact | None, row: ReadinessCheck | None) -> ShownTopic:
    exemptible = code in EXEMPTIBLE
    return ShownTopic(code, TOPICS[code], _state(fact, row), fact, row, exemptible)


def _state(fact: Fact | None, row: ReadinessCheck | None) -> str:
    if fact is not None and fact.done:
        return State.DONE
    if row is None:
        return State.OPEN
    if row.expires_at and row.expires_at <= timezone.now():
        return State.OPEN
    if row.state == State.EXEMPT:
        return State.EXEMPT
    if row.reason:
        return "asked"
    return State.OPEN if fact is not None else row.state


def agents_listed() -> list[ConfigItem]:
    """Return the agents of the tenant, archived ones left out."""
    return list(ConfigItem.objects.filter(kind="agent", archived_at=None).order_by("slug"))


# -- writes ------------------------------------------------------------------------------------
def readiness_set(
    *, agent: str, check: str, state: str, actor: str, note: str = "", link: str = ""
) -> ReadinessCheck:
    """Answer a topic: ``done`` with a note or a link to the evidence, or ``open`` again.

    Raises ``NoSuchCheck`` and ``ReadinessRefused``: for a topic the product answers itself, for an
    answer without anything to go by.
    """
    with tenant_transaction():
        configuration_locked()
        _check_checked(agent, check)
        _answer_checked(agent, check, state, note, link)
        row = _row(agent, check)
        row.state, row.note, row.link, row.updated_by = state, note, link, actor
        row.reason, row.approved_by, row.expires_at = "", "", None
        row.save()
        _audit(actor, "readiness.answered", row, {"state": state, "link": link})
    return row


def exemption_ask(
    *, agent: str, check: str, reason: str, expires_at: datetime, actor: str
) -> ReadinessCheck:
    """Ask that the agent may go without ``check`` until ``expires_at``; another person approves it.

    Raises ``NoSuchCheck`` and ``ReadinessRefused``.
    """
    with tenant_transaction():
        configuration_locked()
        _check_checked(agent, check)
        _exemption_checked(check, reason, expires_at, actor)
        row = _row(agent, check)
        row.state, row.reason, row.expires_at = State.OPEN, reason, expires_at
        row.approved_by, row.updated_by = "", actor
        row.save()
        _audit(actor, "readiness.exemption_asked", row, {"reason": reason})
    return row


def exemption_approve(
    *, agent: str, check: str, actor: str, seen: datetime | None = None
) -> ReadinessCheck:
    """Approve what was asked for: a second person who holds a duty.

    ``seen``: when what the person was shown was last changed (``updated_at``). Raises ``NoSuchCheck``, ``SelfExemption``, and ``ReadinessRefused`` when nothing was asked.
    """
    with tenant_transaction():
        configuration_locked()
        _check_checked(agent, check)
        row = _row(agent, check)
        if not row.reason or row.approved_by or not row.expires_at:
            raise ReadinessRefused(check=_("Nobody asked for an exemption of this point."))
        if row.expires_at <= timezone.now():
            raise ReadinessRefused(expires_at=_("The time that was asked for is over."))
        if row.updated_by == actor or not person_of(actor):
            raise SelfExemption(actor=_("Another person approves an exemption."))
        if not change_policy().duties_of(actor):
            raise SelfExemption(actor=_("Who approves an exemption holds a duty."))
        if seen is not None and seen != row.updated_at:
            raise ReadinessRefused(check=_("It was asked for anew since you saw it: look again."))
        row.state, row.approved_by = State.EXEMPT, actor
        row.save()
        detail = {"reason": row.reason, "asked_by": row.updated_by}
        _audit(actor, "readiness.exempted", row, detail)
    return row


def _row(agent: str, check: str) -> ReadinessCheck:
    found = ReadinessCheck.objects.filter(agent=agent, check_code=check)
    row: ReadinessCheck | None = found.first()
    return row or ReadinessCheck(agent=agent, check_code=check)


def _agent_checked(agent: str) -> None:
    if not ConfigItem.objects.filter(kind="agent", slug=agent).exists():
        raise NoSuchCheck(agent=_("There is no agent “%s”.") % agent)


def _check_checked(agent: str, check: str) -> None:
    _agent_checked(agent)
    if check not in TOPICS:
        raise NoSuchCheck(check=_("The checklist has no point “%s”.") % check)


def _answer_checked(agent: str, check: str, state: str, note: str, link: str) -> None:
    if state not in (State.OPEN, State.DONE):
        raise ReadinessRefused(state=_("A point is open or done; an exemption is asked for."))
    if check in _facts(agent):
        text = _("The product answers this point itself, from what it sees.")
        raise ReadinessRefused(check=text)
    if len(note) > MAX_NOTE or "\0" in note:
        text = _("At most %(limit)s characters.") % {"limit": MAX_NOTE}
        raise ReadinessRefused(note=text)
    if wrong := link_error(link):
        raise ReadinessRefused(link=wrong)
    if state == State.DONE and not (note.strip() or link):
        raise ReadinessRefused(note=_("Say what shows that it is done, or link to it."))


def _exemption_checked(check: str, reason: str, expires_at: datetime, actor: str) -> None:
    if check not in EXEMPTIBLE:
        known = ", ".join(str(TOPICS[code]) for code in EXEMPTIBLE)
        raise ReadinessRefused(check=_("An agent may go without these only: %s.") % known)
    if not reason.strip() or len(reason) > MAX_REASON:
        raise ReadinessRefused(
            reason=_("Say why, in at most %(limit)s characters.") % {"limit": MAX_REASON}
        )
    if expires_at <= timezone.now():
        raise ReadinessRefused(expires_at=_("An exemption ends: give a day that is to come."))
    if not person_of(actor):
        raise ReadinessRefused(actor=_("A person asks for an exemption, not a key."))


def _facts(agent: str) -> Mapping[str, Fact]:
    facts_of: FactsOf = import_string(settings.READINESS_FACTS)
    return facts_of(agent)


def _audit(actor: str, action: str, row: ReadinessCheck, detail: Mapping[str, object]) -> None:
    audit_append(
        actor=actor,
        action=action,
        entity=f"readiness:{row.agent}:{row.check_code}",
        detail=dict(detail),
    )
