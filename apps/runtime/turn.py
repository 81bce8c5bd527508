"""A turn: one customer message on its way to one outcome.

A turn is immutable. A step returns ``turn.evolve(...)``; configuration comes in only as ``release``,
facts go out only as decisions, calls, scores and one outcome.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from apps.runtime.dialogue import Dialogue, Reading
from apps.runtime.outcomes import Outcome
from apps.runtime.release import Release

CANONICAL_KEYS = (
    "customer_key", "contract_key", "interaction_key", "account_key", "resource_key", "session_key",
)  # fmt: skip

# ``BusinessContext.sources`` of a value the customer gave as the answer to a question; an identity
# decision about such an answer has it in its metadata's ``source``.
SAID = "inbound.text"


@dataclass(frozen=True)
class BusinessContext:
    """Who and what the conversation is about, in the platform's canonical keys.

    ``values``: canonical key -> trimmed value (absent when empty). ``sources``: canonical key ->
    the dotted path that won, ``session`` when it was carried over from an earlier turn, or ``SAID``.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    def get(self, key: str) -> str | None:
        return self.values.get(key)


@dataclass(frozen=True)
class Caller:
    """The credential's own facts: never what the client wrote in the body.

    ``may_name_customer``: the key holds ``identity:assert``. ``customer``: canonical keys a signed
    visitor token was issued for.
    """

    principal: str = "anonymous"
    may_name_customer: bool = False
    customer: Mapping[str, str] = field(default_factory=dict)
    demo: bool = False


@dataclass(frozen=True)
class Inbound:
    """A message as every door hands it over (the GatewayRequest, normalised).

    ``payload`` is the whole nested payload as sent; flat identity keys are read from it.
    """

    channel: str
    text: str
    agent: str | None
    message_id: str
    session: str
    user_id: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict)
    tool_arguments: Mapping[str, Any] = field(default_factory=dict)
    caller: Caller = field(default_factory=Caller)
    request_id: str = ""


@dataclass(frozen=True)
class SessionState:
    """What a session brings to its next turn.

    ``next_state`` is the state policy's state, or "" when none. ``vault``: placeholder -> real
    restricted value; it never leaves the process except sealed.
    """

    id: str = ""
    key: str = ""
    agent: str = ""
    turn_number: int = 1
    next_state: str = ""
    active_agent: str = ""
    business_context: Mapping[str, str] = field(default_factory=dict)
    vault: Mapping[str, str] = field(default_factory=dict)
    dialogue: Dialogue = field(default_factory=Dialogue)


@dataclass(frozen=True)
class ChatMessage:
    """One line of the conversation as memory hands it on: always sanitised text.

    ``agent`` said it (empty for the customer); ``thread`` is the sub-conversation it belongs to,
    empty for the main conversation.
    """

    role: Literal["user", "assistant"]
    text: str
    at: str = ""
    agent: str = ""
    thread: str = ""


Action = Literal["allow", "observe", "sanitize", "retry", "block", "handover"]
SEVERITY: dict[str, int] = {
    "allow": 0, "observe": 0, "sanitize": 1, "retry": 2, "block": 3, "handover": 4,
}  # fmt: skip


@dataclass(frozen=True)
class Decision:
    """One verdict of one rail or check. ``reason`` is internal and never reaches a channel."""

    phase: Literal["identity", "input", "route", "tool", "output", "supervisor", "judge"]
    code: str
    action: Action
    reason: str = ""
    guidance: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Candidate:
    """One intent that could answer, with its evidence."""

    intent: str
    agent: str
    score: float
    matches: tuple[str, ...] = ()


RouteMethod = Literal[
    "state", "transaction", "delegation", "control", "literal", "keyword", "example", "semantic",
    "llm", "continuity", "supervisor", "requested", "fallback", "clarify",
]  # fmt: skip


@dataclass(frozen=True)
class PlanPart:
    """One of several things a message asks for: who answers it, from which words, with what.

    ``next_state``: outcome -> state, when this part is the one that ends up waiting.
    """

    agent: str
    intent: str
    text: str
    tools: tuple[str, ...] = ()
    domain: str = ""
    score: float = 0.0
    next_state: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Route:
    """Who answers, and why. ``agent`` answers; the requested agent is in the session.

    ``plan``: what each of several agents is to answer (supervisor mode), empty for one agent.
    ``control``: the conversation goes to a person or ends; no agent answers. ``metadata``: what a
    strategy wants to be known of its decision (``route_bypassed``, ``matched_keyword``, …).
    """

    agent: str
    intent: str
    method: RouteMethod
    confidence: float
    domain: str = ""
    reason: str = ""
    tools: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    margin: float = 0.0
    threshold: float = 0.0
    next_state: Mapping[str, str] = field(default_factory=dict)
    plan: tuple[PlanPart, ...] = ()
    control: Literal["", "HUMAN_HANDOFF", "END_SESSION"] = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ToolCall:
    """One call of one tool: what was sent and what came back.

    ``arguments`` are those the tool contract saw, with placeholders in place of restricted values.
    ``status``: ``ok``, ``error`` (the tool said no), ``refused`` (never sent: policy or arguments),
    ``unknown`` (sent, no recorded end). ``events``: event codes of this call (IC.MCP_CACHE_HIT, …).
    ``agent``: who asked for it, when that is not the agent that answers.
    """

    tool: str
    server: str
    arguments: Mapping[str, Any]
    status: Literal["ok", "error", "refused", "unknown"]
    result: Any = None
    error: str = ""
    field_errors: tuple[Mapping[str, str], ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    ordinal: int = 0
    action: bool = False
    latency_ms: float = 0.0
    replayed: bool = False
    events: tuple[str, ...] = ()
    agent: str = ""

    @property
    def ok(self) -> bool:
        return self.status == "ok"


@dataclass(frozen=True)
class Usage:
    """Tokens as the provider counted them; ``cost`` in USD, ``None`` when a price is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    estimated: bool = False
    cost: float | None = None


@dataclass(frozen=True)
class ModelCall:
    """One completed model call."""

    profile: str
    provider: str
    model: str
    operation: str
    usage: Usage
    latency_ms: float = 0.0
    finish_reason: str = "stop"
    metadata: Mapping[str, Any] = field(default_factory=dict)
    replayed: bool = False


@dataclass(frozen=True)
class Draft:
    """The agent's reply before the output rails let it through."""

    text: str
    agent: str
    outcome: str = "answered"


@dataclass(frozen=True)
class Signal:
    """A business or operations event of a turn. ``code`` begins with its family: IC., NOC., GRL."""

    code: str
    component: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Delegation:
    """One time an agent asked another: what for, and what came back. For the trace.

    ``kind``: ``consult``, ``sub_conversation`` or ``scoped``. ``status``: ``ok``, ``failed``,
    ``refused``, or a sub-conversation's own (``started``, ``completed``, ``needs_handoff``, …).
    ``spoke``: whether the customer saw the delegate's own words.
    """

    kind: Literal["consult", "sub_conversation", "scoped"]
    caller: str
    agent: str
    tool: str
    status: str
    request: str = ""
    outputs: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    spoke: bool = False
    model_calls: int = 0
    tool_calls: int = 0
    latency_ms: float = 0.0


@dataclass(frozen=True)
class Score:
    """One judge's number. ``value`` is 0..1 on the judge's declared scale."""

    judge: str
    value: float
    passed: bool
    threshold: float
    reason: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Turn:
    """Everything one message has become so far.

    ``dialogue`` is what the session will carry on; it starts as the session's own. ``reading`` is
    what the message says to an open transaction. ``prepared`` is what must be said in the runtime's
    own words (a question for a confirmation): the agent step hands it on and asks no model.
    """

    id: str
    tenant: str
    release: Release
    inbound: Inbound
    session: SessionState = field(default_factory=SessionState)
    environment: str = "production"
    bindings: Mapping[str, str] = field(default_factory=dict)
    fence: int = 0
    text: str = ""
    business_context: BusinessContext = field(default_factory=BusinessContext)
    memory: tuple[ChatMessage, ...] = ()
    dialogue: Dialogue = field(default_factory=Dialogue)
    reading: Reading = field(default_factory=Reading)
    route: Route | None = None
    prepared: Draft | None = None
    draft: Draft | None = None
    attempt: int = 0
    guidance: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    model_calls: tuple[ModelCall, ...] = ()
    delegations: tuple[Delegation, ...] = ()
    signals: tuple[Signal, ...] = ()
    scores: tuple[Score, ...] = ()
    vault: Mapping[str, str] = field(default_factory=dict)
    outcome: Outcome | None = None
    next_state: str | None = None
    extracted: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)

    def evolve(self, **changes: Any) -> "Turn":
        """Return a copy with ``changes``."""
        return replace(self, **changes)

    def decide(self, *decisions: Decision) -> "Turn":
        """Return a copy with ``decisions`` appended."""
        return replace(self, decisions=(*self.decisions, *decisions))
