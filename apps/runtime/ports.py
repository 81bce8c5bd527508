"""What a turn needs from the outside: Protocols, filled by ``agentops/wiring.py``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from apps.runtime.release import Release
from apps.runtime.turn import ChatMessage, ModelCall, ToolCall, Turn, Usage


class Step(Protocol):
    """One thing a turn goes through."""

    async def __call__(self, turn: Turn) -> Turn: ...


class Observer(Protocol):
    """Sees a turn pass; never changes it. Telemetry lives here, not in steps."""

    def step_started(self, turn: Turn, step: str) -> None: ...

    def step_ended(self, turn: Turn, step: str, seconds: float) -> None: ...


# -- ledger ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LedgerCall:
    """A call about to be made. (kind, name, ordinal, contract, arguments) identify it in its turn.

    ``arguments`` is canonical text; ``contract`` the sha256 of what is being called.
    """

    kind: Literal["tool", "model"]
    name: str
    ordinal: int
    contract: str
    arguments: str
    action: bool = False
    idempotent: bool = False


@dataclass(frozen=True)
class LedgerState:
    """What the ledger says of a call.

    ``fresh``: it was just started, send it. ``done``: it ended before; ``result`` is its stored
    canonical text, do not send. ``restarted``: it was started by an earlier holder of the turn and
    may be repeated under the same ``idempotency_key``. ``unknown``: it was started, has no end and
    must not be sent again.
    """

    state: Literal["fresh", "done", "restarted", "unknown"]
    idempotency_key: str
    result: str = ""


@dataclass(frozen=True)
class LedgerResult:
    """The end of a call: ``result`` is canonical text."""

    idempotency_key: str
    result: str


class LeaseLost(Exception):
    """Another worker holds the turn now: this one must stop at once and write nothing."""


class Ledger(Protocol):
    """A finished step is never run twice. Both methods raise ``LeaseLost``."""

    async def begin(self, turn: Turn, calls: Sequence[LedgerCall]) -> list[LedgerState]: ...

    async def finish(self, turn: Turn, results: Sequence[LedgerResult]) -> None: ...


# -- tools -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NodeCall:
    """Says that a tool is called as one node of a workflow run.

    ``execution``: id of the run; a confirmed run covers its nodes. ``key``: what the server gets as
    idempotency key, the same in every turn and worker. ``timeout_seconds``: less than the tool's own,
    0 for that one.
    """

    execution: str
    key: str
    timeout_seconds: float = 0


@dataclass(frozen=True)
class ToolRequest:
    """The agent step asks for one tool. ``arguments`` are explicit ones (a model's, or none).

    ``confirmation``: id of the recorded question that the customer said yes to, for a tool that
    needs one; the port uses it up. ``asked``: it does so whatever the tool is configured to need,
    because the customer was asked. ``agent``: who asks, when that is not the route's agent.
    ``node``: the call belongs to a workflow run; only the workflow engine says so.
    """

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    ordinal: int = 0
    confirmation: str = ""
    asked: bool = False
    agent: str = ""
    node: NodeCall | None = None


class ToolPort(Protocol):
    """Maps, validates, authorises, calls and records tools of the turn's release.

    Never raises for a failing tool: the failure is in the returned ``ToolCall``.
    """

    async def call(self, turn: Turn, requests: Sequence[ToolRequest]) -> list[ToolCall]: ...

    async def check(self, turn: Turn, request: ToolRequest) -> ToolCall:
        """Return what ``call`` would send, without sending it.

        Always ``refused``; its ``metadata["reason"]`` is ``ready`` or ``confirmation_required`` when
        nothing is missing or wrong, and ``metadata["contract"]`` the sha256 of the tool's contract.
        """
        ...

    def functions(self, turn: Turn, tools: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        """Return ``tools`` as a model may be offered them: ``{name, description, parameters}``.

        Unknown and disabled tools are left out, and so are arguments the turn fills itself.
        """
        ...


@dataclass(frozen=True)
class Grant:
    """What a confirmation must have been given for: this tool contract with exactly these arguments.

    ``arguments`` is the canonical text that the ledger keeps (placeholders for restricted values).
    """

    id: str
    tool: str
    contract: str
    arguments: str


GrantAnswer = Literal["granted", "absent", "expired", "used", "mismatch"]


class ConfirmationPort(Protocol):
    """Uses up a recorded confirmation, once; asked again by the same turn the answer is the same.

    ``granted`` only when the customer's yes is recorded for this tenant, session, release, tool
    contract and arguments, is not expired, and was not used by another turn. Raises ``LeaseLost``.
    """

    async def use(self, turn: Turn, grant: Grant) -> GrantAnswer: ...


class TransactionPort(Protocol):
    """Opens a transaction for a call that a model asked for and that has to be confirmed first."""

    async def propose(self, turn: Turn, call: ToolCall) -> Turn:
        """Return the turn with the transaction in ``dialogue`` and the question as ``prepared``."""
        ...


Transport = Literal["streamable_http", "sse", "stdio", "http"]


@dataclass(frozen=True)
class RemoteTool:
    """One tool on one server, as the transport needs it. ``address`` is the bound value; for
    ``stdio`` the name of a command the operator registered.

    ``principal``: whose authorisation is used where each customer or user has their own ("" for the
    tenant's). ``tenant``: primary key as text, part of every key of kept connections and tokens, as
    ``environment`` is of tokens.
    """

    server: str
    transport: Transport
    address: str
    name: str
    credential: str = ""
    timeout_seconds: float = 30.0
    tenant: str = ""
    principal: str = ""
    auth: Literal["bearer", "oauth_client", "oauth_user"] = "bearer"
    client_id: str = ""
    scopes: tuple[str, ...] = ()
    repeatable: bool = False
    """The call may be sent twice: it only reads, or its server honours the idempotency key."""
    circuit_threshold: int = 0
    """So many failures in a row pause the server; 0: never."""
    circuit_recovery_seconds: float = 60.0
    environment: str = ""


@dataclass(frozen=True)
class RemoteResult:
    """A tool's answer normalised to ``{ok, result, error, metadata}``."""

    ok: bool
    result: Any = None
    error: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


class ToolTransport(Protocol):
    """Speaks MCP. Raises ``ToolUnavailable`` when no answer came within the deadline."""

    async def call(
        self, tool: RemoteTool, arguments: Mapping[str, Any], *, idempotency_key: str
    ) -> RemoteResult: ...

    async def list_tools(self, tool: RemoteTool) -> list[Mapping[str, Any]]:
        """Return every tool of the server, all pages: ``name``, ``description``, ``input_schema``,
        ``output_schema``, ``annotations``, ``title`` (absent ones left out)."""
        ...


class ToolUnavailable(Exception):
    """The server did not answer. ``sent``: the request may have reached it.

    ``code``: ``unreachable``, ``timeout``, ``broken``, ``circuit_open``, ``needs_sign_in`` or
    ``forbidden_address``.
    """

    def __init__(self, message: str, *, sent: bool, code: str = "unreachable") -> None:
        super().__init__(message)
        self.sent = sent
        self.code = code


# -- models ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelMessage:
    """One entry of a chat request. ``tool_calls`` on assistant, ``tool_call_id`` on tool entries."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple["ModelToolCall", ...] = ()
    tool_call_id: str = ""
    name: str = ""


@dataclass(frozen=True)
class ModelToolCall:
    """A call a model asks for. ``arguments`` is the raw text the model wrote."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class ModelRequest:
    """What a provider may see: messages and tools (JSON-schema functions), nothing else."""

    profile: str
    messages: tuple[ModelMessage, ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    operation: str = "agent.answer"
    ordinal: int = 0


@dataclass(frozen=True)
class ModelReply:
    """A provider's answer. ``finish_reason``: stop, tool_calls, length, content_filter."""

    text: str
    tool_calls: tuple[ModelToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    finish_reason: str = "stop"
    provider: str = ""
    model: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


class ModelFailed(Exception):
    """A provider refused or broke. ``code``: auth, wrong_model, rate_limited, timeout, content_filter, broken."""

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code


class ModelPort(Protocol):
    """Completes one chat request under the turn's release; records it in the ledger.

    Raises ``ModelFailed``; never answers with another model than the profile names.
    """

    async def complete(self, turn: Turn, request: ModelRequest) -> tuple[ModelReply, ModelCall]: ...


class EmbeddingPort(Protocol):
    """Turns sentences into vectors of one length; ``name`` changes when the vectors would.

    ``available`` is false when no embedding model is installed or configured: whoever would use it
    has nothing to say then.
    """

    name: str
    available: bool

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]: ...


# -- conversation store ------------------------------------------------------------------------


class HistoryPort(Protocol):
    """The last ``limit`` sanitised messages of the turn's session, oldest first."""

    async def recent(self, turn: Turn, limit: int) -> tuple[ChatMessage, ...]: ...


class TurnStore(Protocol):
    """Writes the end of a turn. Both raise ``LeaseLost`` when the fence has moved on."""

    async def settle(self, turn: Turn) -> None: ...

    async def deliver(self, turn: Turn) -> None: ...


# -- workflows ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class WorkflowOpening:
    """A workflow run about to begin. ``definition`` and ``inputs`` are canonical text.

    ``identity`` says which request it is: who, which operation, on what, under which contract.
    ``repeat_seconds``: so long an equal request is answered from the run that was there.
    ``tool`` is the confirmed call it carries out, ``confirmed`` whether a customer's yes is recorded.
    """

    id: str
    workflow: str
    definition: str
    identity: str
    inputs: str
    repeat_seconds: int = 0
    tool: str = ""
    agent: str = ""
    confirmed: bool = False


@dataclass(frozen=True)
class WorkflowNodeRow:
    """What is recorded of one node: begun, or how it ended. (kind, node, visit) name it in its run.

    ``result`` is canonical text; ``arguments`` are as the tool contract saw them; ``turn`` is the one
    it was last begun in.
    """

    kind: Literal["call", "pause", "compensation"]
    node: str
    visit: int
    status: Literal["begun", "ok", "failed", "refused", "unknown", "answered", "abandoned"]
    key: str = ""
    tool: str = ""
    attempts: int = 0
    arguments: str = "{}"
    result: str = ""
    turn: str = ""


@dataclass(frozen=True)
class WorkflowRunState:
    """A run as it is recorded. ``release`` is the one it began with, ``outcome`` how it ended.

    ``began``: the turn it began in; ``holder``: the turn that held it before it was taken just now.
    ``busy``: another conversation carries it out right now; it is not ours to go on with.
    """

    id: str
    workflow: str
    status: Literal["RUNNING", "PAUSED", "COMPLETED", "FAILED", "COMPENSATED", "UNKNOWN"]
    definition: str
    inputs: str
    release: Release
    tool: str = ""
    agent: str = ""
    node: str = ""
    outcome: str = ""
    nodes: tuple[WorkflowNodeRow, ...] = ()
    began: str = ""
    holder: str = ""
    busy: bool = False


class WorkflowStore(Protocol):
    """Keeps workflow runs. What changes one holds it for ``turn`` first; raises ``LeaseLost`` when a
    later turn or holder has it."""

    async def open(self, turn: Turn, opening: WorkflowOpening) -> WorkflowRunState:
        """Begin a run, or return the one that answers the same request already."""
        ...

    async def take(self, turn: Turn, run_id: str) -> WorkflowRunState | None:
        """Return a run of the turn's session to go on with; ``None`` when there is none."""
        ...

    async def peek(self, turn: Turn, run_id: str) -> WorkflowRunState | None:
        """Return the same, only to look at."""
        ...

    async def note(self, turn: Turn, run_id: str, row: WorkflowNodeRow) -> None:
        """Record that a node began, or how it ended."""
        ...

    async def close(
        self, turn: Turn, run_id: str, *, status: str, node: str, outcome: str, error: str
    ) -> None:
        """Record that the run waits, or how it ended."""
        ...


class CoveragePort(Protocol):
    """Whether a customer's recorded yes to a whole workflow run covers one of its nodes' tools."""

    async def covers(self, turn: Turn, run_id: str, tool: str) -> bool: ...
