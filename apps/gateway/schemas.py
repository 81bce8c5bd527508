"""What goes in and out of the doors, for the OpenAPI document and the tests that hold answers to it.

The doors themselves read bodies in ``contract.py``, whose refusals name the field in words.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Shape(BaseModel):
    """A documented object; more members may be added in later minor versions."""

    model_config = ConfigDict(extra="allow")


class Problem(Shape):
    """Why a request was refused (RFC 9457, ``application/problem+json``)."""

    type: str
    title: str
    status: int
    code: str = Field(description="For programs, e.g. INVALID_GATEWAY_REQUEST.")
    detail: str
    errors: list["FieldError"] = Field(default_factory=list)


class FieldError(Shape):
    field: str = Field(description="Dotted path of the field, or the name of the header.")
    message: str


class BusinessContext(Shape):
    """Canonical keys. What identifies the customer counts only from a credential that may say so."""

    customer_key: str | None = None
    contract_key: str | None = None
    interaction_key: str | None = None
    account_key: str | None = None
    resource_key: str | None = None
    session_key: str | None = None
    metadata: dict[str, Any] | None = None


class PayloadMetadata(Shape):
    contract_version: str | None = Field(None, description="`gateway-request-v1`, or absent.")
    request_id: str | None = None
    trace_id: str | None = None


class Payload(Shape):
    """The message. Flat identity keys (`msisdn`, `order_id`, …) may stand beside the named fields."""

    message: str = Field(
        min_length=1, description="What the customer says. Aliases: text, input, user_text."
    )
    session_id: str | None = Field(
        None,
        description="A name, or a full id `tenant:agent:name`. Absent: a new one nobody can guess.",
    )
    user_id: str | None = None
    message_id: str | None = Field(
        None, description="Repeat it to repeat the request: the first answer comes back."
    )
    business_context: BusinessContext | None = None
    context: dict[str, Any] | None = None
    tool_arguments: dict[str, Any] | None = None
    metadata: PayloadMetadata | None = None


class GatewayRequest(Shape):
    """Contract `gateway-request-v1`. Absent and null are the same everywhere."""

    channel: str | None = Field(None, description="web (default), whatsapp, voice, teams, api.")
    tenant_id: str | None = Field(None, description="Must be the credential's own when given.")
    agent_id: str | None = Field(None, description="Absent: the tenant's default agent.")
    payload: Payload


class RouteDecision(Shape):
    method: str | None = None
    confidence: float | None = None


class ToolOutcome(Shape):
    tool: str
    ok: bool


class RailOutcome(Shape):
    code: str
    status: str


class JudgeOutcome(Shape):
    name: str
    score: float


class ReleaseName(Shape):
    number: int
    sha256: str


class AnswerMetadata(Shape):
    """What was decided. Scope `trace:read` adds the full record under `trace`."""

    tenant_id: str
    agent_id: str = Field(description="The requested agent; `route` names the one that answered.")
    original_session_id: str
    conversation_key: str
    message_id: str
    turn_id: str
    outcome: Literal["answered", "blocked", "waiting", "handed_over", "ended", "failed"]
    route: str | None
    intent: str | None
    domain: str | None
    route_decision: RouteDecision
    mcp_tools: list[str]
    mcp_results: list[ToolOutcome]
    business_context: dict[str, Any]
    identity_missing: list[str]
    guardrails: list[RailOutcome]
    judges: list[JudgeOutcome]
    requires_user_input: bool
    missing_fields: list[str]
    release: ReleaseName | None


class ChannelResponse(Shape):
    """The answer, the same object for every channel; channel adapters render it."""

    channel: str
    session_id: str = Field(description="Full id: `tenant:requested agent:name`.")
    text: str = Field(description="Final and guarded.")
    metadata: AnswerMetadata


class WaitingMetadata(Shape):
    turn_id: str


class Accepted(Shape):
    """The message is stored and its answer is not ready."""

    status: Literal["accepted"]
    session_id: str
    metadata: WaitingMetadata
    location: str = Field(description="Asked later, answers the same ChannelResponse.")


class StoredMessage(Shape):
    role: Literal["user", "assistant"]
    content: str
    turn_id: str
    release: int | None
    created_at: str


class Messages(Shape):
    session_id: str
    messages: list[StoredMessage]


class CheckpointState(Shape):
    agent_id: str
    active_agent: str
    next_state: str | None
    turn_number: int
    event_sequence: int
    business_context: dict[str, str] | None = Field(None, description="With scope trace:read.")


class Checkpoint(Shape):
    """Where a session stands after its last settled turn."""

    conversation_key: str
    checkpoint_id: str | None
    schema_version: int
    state: CheckpointState
    release: ReleaseName | None
    payload_hash: str | None = Field(description="sha256 of the turn's stored record.")
    created_at: str | None


class AgentFacts(Shape):
    agent_id: str
    description: str
    domain: str
    members: list[str]


class Agents(Shape):
    agents: list[AgentFacts]
    default_agent_id: str | None
    release: ReleaseName | None


class SessionTokenRequest(Shape):
    """Every field is optional."""

    tenant_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    customer: BusinessContext | None = Field(
        None, description="Keys the issuer vouches for; needs scope identity:assert."
    )
    scopes: list[Literal["message:write", "session:read"]] | None = Field(
        None, description="Fewer than both: a viewer gets session:read only."
    )
    lifetime_seconds: int | None = Field(None, ge=60)


class SessionToken(Shape):
    token: str = Field(description="Send it as `Authorization: Bearer …`; streams take `?token=`.")
    session_id: str
    expires_at: str


class Health(Shape):
    status: Literal["ok"]
    service: str
    version: str
    contract_version: str
    channels: list[str]
    channel_input_mode: str
    sse_enabled: bool


class Ready(Shape):
    status: Literal["ready"]
    checks: dict[str, Literal["ok"]]


class NotReady(Problem):
    checks: dict[str, Literal["ok", "unusable"]]


class Version(Shape):
    service: str
    version: str
    revision: str | None
    contract_version: str


class ScoredIntent(Shape):
    intent: str
    agent: str
    score: float


class Candidate(Shape):
    intent: str
    agent: str
    score: float
    matches: list[str]


class PlannedPart(Shape):
    agent: str
    intent: str
    text: str


class StrategyFinding(Shape):
    """What one strategy found: its best candidates, their lead and why."""

    name: str
    best: str | None
    margin: float
    reason: str
    candidates: list[ScoredIntent]


class RouteExplained(Shape):
    """Where a message would go, and every candidate."""

    mode: str
    route: str
    intent: str
    domain: str
    confidence: float
    method: str
    margin: float
    threshold: float
    agents: list[str]
    mcp_tools: list[str]
    candidates: list[Candidate]
    control: str = Field(description="HUMAN_HANDOFF or END_SESSION, empty: an agent answers.")
    plan: list[PlannedPart] = Field(description="What each of several agents is to answer.")
    strategies: list[StrategyFinding] = Field(description="In the order they were asked.")
    notes: dict[str, Any] = Field(description="What else the decision left on record.")
    requested_agent: str
    session_id: str
    state: str | None
    blocked: bool
    guardrails: list[RailOutcome]
    release: ReleaseName


class TechnicalIdentity(Shape):
    tenant_id: str
    agent_id: str
    session_id: str
    conversation_key: str
    channel: str
    user_id: str | None
    message_id: str
    principal: str


class IdentityExplained(Shape):
    technical_identity: TechnicalIdentity
    business_context: dict[str, Any]
    identity_missing: list[str]
    identity_ignored: list[str]
    context_keys: list[str]


class ToolFacts(Shape):
    name: str
    server_name: str
    description: str
    enabled: bool
    tool_type: Literal["read_only", "action"]
    confirmation_required: bool
    input_schema: dict[str, Any]


class ToolServerFacts(Shape):
    name: str
    description: str
    transport: str
    enabled: bool
    bound: bool


class Tools(Shape):
    tools: list[ToolFacts]
    servers: list[ToolServerFacts]
    release: ReleaseName


class ToolCallRequest(Shape):
    """Either the arguments alone, or `business_context` (mapped to arguments) and `arguments`."""

    business_context: BusinessContext | None = None
    original_context: dict[str, Any] | None = None
    arguments: dict[str, Any] | None = None


class ToolResult(Shape):
    tool_name: str
    server_name: str
    ok: bool
    status: Literal["ok", "error", "refused", "unknown"]
    arguments: dict[str, Any]
    result: Any
    error: str | None
    metadata: dict[str, Any]
    latency_ms: float


class UsageTotals(Shape):
    """A cost is null as soon as one call's price is unknown; `known_cost_usd` sums the others."""

    turns: int
    model_calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    total_tokens: int
    estimated_calls: int
    cost_usd: float | None
    cost_complete: bool
    known_cost_usd: float
    unknown_cost_calls: int
    models: list[str]


class SessionUsage(UsageTotals):
    session_id: str


class Usage(Shape):
    tenant_id: str
    session_id: str | None
    days: int
    totals: UsageTotals
    sessions: list[SessionUsage]
    sessions_total: int
    truncated: bool


class Environment(Shape):
    """Settings without secrets and addresses; bindings by name."""

    settings: dict[str, Any]
    stores: dict[str, str]
    environment: str
    bindings: list[dict[str, Any]]
    release: ReleaseName | None


class Event(Shape):
    """The `data` of a server-sent event, and of a websocket frame."""

    event_type: str
    timestamp: str | None = None
    tenant_id: str
    agent_id: str
    session_id: str
    trace_id: str | None = None
    sequence: int | None = None
    payload: dict[str, Any] | None = None


# -- the tool gateway --------------------------------------------------------------------------


class ServedTool(Shape):
    """A tool that may be called. The schema leaves out what the platform fills itself."""

    name: str
    title: str | None
    description: str
    version: str = Field(description="Hash of what is called; another one is another tool.")
    server: str
    enabled: bool
    tool_type: Literal["read_only", "action"]
    idempotent: bool
    confirmation_required: bool
    required_business_keys: list[str]
    allowed_agents: list[str]
    allowed_channels: list[str] = Field(description="Empty: every channel, and none.")
    cache_ttl_seconds: int
    timeout_seconds: float
    input_schema: dict[str, Any]


class ServedTools(Shape):
    results: list[ServedTool]
    next_offset: int | None


class InvocationMetadata(Shape):
    request_id: str | None = Field(
        None, description="Repeat it to repeat the request: the first answer comes back."
    )
    trace_id: str | None = None
    cache_bypass: bool | None = None


class InvocationConfirmation(Shape):
    """The yes to what a `CONFIRMATION_REQUIRED` described. Needs the scope `tool:confirm`."""

    id: str | None = Field(None, description="Absent: the newest question for this call.")
    contract: str
    arguments_sha256: str


class ToolInvocation(Shape):
    """Contract `tool-invocation-v1`."""

    tool_name: str = Field(description="Must be the name in the path.")
    tenant_id: str | None = Field(None, description="Must be the credential's own when given.")
    agent_id: str | None = Field(
        None, description="For a key that is bound to no agent, with the scope `agent:assert`."
    )
    channel: str | None = Field(None, description="Absent: no channel, which some tools refuse.")
    arguments: dict[str, Any] | None = None
    business_context: BusinessContext | None = None
    metadata: InvocationMetadata | None = None
    confirmation: InvocationConfirmation | None = None


class InvocationCache(Shape):
    hit: bool
    key: str | None
    ttl_seconds: int


class InvocationFacts(Shape):
    server: str
    source: str
    status: Literal["ok", "error", "unknown"]
    invocation_id: str
    request_id: str
    trace_id: str | None
    agent_id: str
    release: ReleaseName


class InvocationResult(Shape):
    """A tool that failed is an answer too: `ok` is false."""

    tool_name: str
    version: str
    ok: bool
    data: Any
    error: str | None
    cache: InvocationCache
    latency_ms: float
    metadata: InvocationFacts


class DiscoveredServer(Shape):
    name: str
    environment: str
    description: str
    transport: str
    auth: str
    enabled: bool
    bound: bool
    tools: int
    drifted: int
    checked_at: str | None
    listed_at: str | None
    error: str | None
    code: str | None


class DiscoveredServers(Shape):
    results: list[DiscoveredServer]


class DiscoveryRequest(Shape):
    tenant_id: str | None = Field(None, description="Must be the credential's own when given.")
    server: str | None = Field(None, description="Absent: every server.")


class Discovered(Shape):
    """What one server said. `change_request` holds what is new or differs, as a draft."""

    server: str
    environment: str
    event: Literal["mcp.discovery.completed", "mcp.discovery.failed"]
    state: str
    tools: int
    added: list[str]
    drifted: list[str]
    gone: list[str]
    released: list[str]
    change_request: int | None
    error: str | None
    latency_ms: int


class Discovery(Shape):
    results: list[Discovered]
