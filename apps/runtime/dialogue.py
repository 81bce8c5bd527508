"""What a session carries from turn to turn beyond its words: an open transaction, topics, a delegation.

Stored as canonical text with the session and handed to the next turn. ``Dialogue.transaction`` is
the only truth about a transaction in progress (platform facts 15.1). Restricted values are in it as
placeholders of the session's vault, never in clear. A field that this version does not know is
ignored and one that is missing has its default, so that open conversations survive an upgrade.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from apps.runtime.canonical import canonical_json


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


OPEN = (
    "COLLECTING_PARAMETERS",
    "AWAITING_CONFIRMATION",
    "CONFIRMED",
    "WORKFLOW_PAUSED",
    "TOOL_RESULT_CLARIFICATION",
)
"""Statuses of a transaction that waits for the customer (or, confirmed, for its execution)."""

MAX_EVIDENCE = 20
"""Finished actions a session remembers; the oldest goes first."""

TransactionStatus = Literal[
    "COLLECTING_PARAMETERS",
    "AWAITING_CONFIRMATION",
    "CONFIRMED",
    "WORKFLOW_PAUSED",
    "TOOL_RESULT_CLARIFICATION",
    "COMPLETED",
    "PARTIAL_SUCCESS",
    "FAILED",
    "BLOCKED",
    "OUT_OF_SCOPE",
    "CANCELLED",
    "UNKNOWN",
]


class Ask(_Kept):
    """The call a confirmation was asked for: its contract and canonical arguments, frozen then."""

    contract: str
    arguments: str
    seconds: int = 900


class Transaction(_Kept):
    """One action on its way: what is known, what is missing, what was asked.

    ``values``: argument -> value as the tool contract sees it (placeholders for restricted ones);
    merged over the turns, never rebuilt. ``origins``: argument -> ``said``, ``earlier``, ``context``,
    ``extracted``, ``model``, ``validator`` or ``resolved``. ``missing``: required arguments still
    open, in the order they are asked. ``asked``: the argument the last question was about, ``times``
    how often in a row. ``confirmation``: id of the recorded question, while one is open; ``ask``: for what.
    ``execution`` and ``node``: the paused workflow run and where it waits.
    """

    id: str
    status: TransactionStatus
    tool: str
    agent: str
    intent: str = ""
    domain: str = ""
    values: Mapping[str, Any] = Field(default_factory=dict)
    origins: Mapping[str, str] = Field(default_factory=dict)
    missing: tuple[str, ...] = ()
    asked: str = ""
    times: int = 0
    question: str = ""
    confirmation: str = ""
    ask: Ask | None = None
    execution: str = ""
    node: str = ""
    started_turn: int = 0
    ended_turn: int = 0
    reason: str = ""
    items_count: int = 0
    items_succeeded: int = 0
    items_failed: int = 0

    @property
    def open(self) -> bool:
        return self.status in OPEN


class Topic(_Kept):
    """A request the customer made that is kept for later: one mutation a turn, the rest waits."""

    intent: str
    agent: str
    text: str = ""
    turn: int = 0


class Evidence(_Kept):
    """What a finished action brought, kept for later questions. ``resource``: what it was about.

    ``summary``: short fields of the result (a protocol, a status), masked; never the whole result.
    """

    tool: str
    status: str
    resource: str = ""
    turn: int = 0
    summary: Mapping[str, Any] = Field(default_factory=dict)


class SubConversation(_Kept):
    """A specialist holds the conversation for a while.

    ``coordinator`` is the agent that asked for it and gets the word back. ``thread`` labels the
    messages of the specialist's slice. ``hops``: delegations chained without the customer.
    """

    id: str
    role: str
    agent: str
    coordinator: str
    thread: str
    context: str = ""
    turns: int = 0
    started_turn: int = 0
    started_at: str = ""


class Dialogue(_Kept):
    """Everything above, of one session. ``boundary``: the next turn ignores the closed flow.

    ``topics``: oldest first. ``evidence``: newest last, bounded. ``control``: ``handed_over`` or
    ``ended`` when the last turn gave the conversation away.
    ``since``: the turn with which it began anew after a person had it or it ended; nothing from
    before that turn is remembered.
    """

    transaction: Transaction | None = None
    last_transaction: Transaction | None = None
    topics: tuple[Topic, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    sub_conversation: SubConversation | None = None
    boundary: bool = False
    since: int = 0
    control: Literal["", "handed_over", "ended"] = ""
    active_agent: str = ""
    active_intent: str = ""

    def evolve(self, **changes: Any) -> "Dialogue":
        """Return a copy with ``changes``."""
        return self.model_copy(update=changes)

    def remember(self, *done: Evidence) -> "Dialogue":
        """Return a copy that knows of these finished actions too; the oldest are forgotten first."""
        return self.evolve(evidence=(*self.evidence, *done)[-MAX_EVIDENCE:])

    def dump(self) -> str:
        """Return it as canonical text, defaults left out."""
        return canonical_json(self.model_dump(mode="json", exclude_defaults=True))

    @property
    def pending(self) -> bool:
        """Whether something is open that a new release must not change under the customer."""
        return (self.transaction is not None and self.transaction.open) or (
            self.sub_conversation is not None
        )


def dialogue_load(text: str) -> Dialogue:
    """Return what ``Dialogue.dump`` wrote; an empty dialogue for nothing."""
    return Dialogue.model_validate_json(text) if text and text != "{}" else Dialogue()


class Reading(_Kept):
    """What a message says to the open transaction or sub-conversation, before routing.

    ``kind``: ``fills`` (at least one open argument), ``confirms``, ``rejects``, ``cancels`` (the
    customer gives it up in so many words), ``resumes`` (a paused workflow's expected answer),
    ``unclear`` (none of these; another intent may be looked for) or ``none`` (nothing is open).
    ``values``: arguments that were filled or corrected. ``rest``: what a compound answer asks
    besides ("sim, e me manda a fatura" -> "me manda a fatura"). ``source``: deterministic, semantic.
    """

    kind: Literal["none", "fills", "confirms", "rejects", "cancels", "resumes", "unclear"] = "none"
    values: Mapping[str, Any] = Field(default_factory=dict)
    rest: str = ""
    source: Literal["deterministic", "semantic"] = "deterministic"
    reason: str = ""


class Sense(_Kept):
    """The shape of a short answer, whatever it is about; see ``routing.answers.answer_sense``.

    ``yes`` and ``no`` only when plain; ``rest`` is what the message says besides ("sim, e me manda a
    fatura"), ``but`` that it takes something back ("sim, mas o azul"). ``abandons``: the customer
    gives up what was being done. ``stops``: the bare word for stopping ("cancela"). ``requests``: it
    asks for something rather than answers.
    """

    yes: bool = False
    no: bool = False
    rest: str = ""
    but: bool = False
    abandons: bool = False
    stops: bool = False
    requests: bool = False
