"""Describes the doors in the OpenAPI document: they are async views, which the generator does not see."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from apps.gateway import schemas as s

JSON = "application/json"
PROBLEM = "application/problem+json"
STREAM = "text/event-stream"
REASONS = {
    400: "Not readable: JSON, UTF-8, a header.",
    401: "No credential, or one that does not count.",
    403: "The credential does not cover this.",
    404: "Absent, or another tenant's: answered alike.",
    405: "Another method.",
    409: "The message id was used for another body.",
    413: "The body is too large.",
    415: "The body is not JSON in UTF-8.",
    422: "A field is wrong; `errors` names it.",
    500: "Something went wrong here; `error_id` is in the log.",
    503: "Nothing is deployed, or a dependency is not usable.",
}
EVERYWHERE = (405, 500)
READING = (401, 403, 404, *EVERYWHERE)
WRITING = (400, 401, 403, 404, 413, 415, 422, 503, *EVERYWHERE)


@dataclass(frozen=True)
class Operation:
    """One method of one door. ``answers``: status → (what it says, its shape)."""

    path: str
    method: str
    name: str
    summary: str
    answers: dict[int, tuple[str, type[BaseModel]]]
    problems: tuple[int, ...]
    body: type[BaseModel] | None = None
    parameters: tuple[dict[str, Any], ...] = ()
    streams: bool = False
    open: bool = False
    tag: str = "conversations"
    description: str = ""
    example: dict[str, Any] | None = None


def header(name: str, description: str) -> dict[str, Any]:
    """Return an optional header parameter."""
    return {"name": name, "in": "header", "schema": {"type": "string"}, "description": description}


def query(name: str, description: str, kind: str = "string") -> dict[str, Any]:
    """Return an optional query parameter."""
    return {"name": name, "in": "query", "schema": {"type": kind}, "description": description}


REQUEST_ID = header("X-Request-Id", "Echoed; made up when absent.")
CONTRACT = header("X-Agent-Framework-Contract", "Checked when given.")
CHANNEL = header("X-Channel", "The channel when the body names none.")
CALL_ID = header("X-Ura-Call-Id", "Read as payload.ura_call_id when the payload has none.")
PREFER = header("Prefer", "`wait=N`: seconds to wait for the answer, `respond-async`: none.")
TENANT = query("tenant_id", "Must be the credential's own when given.")
AGENT = (TENANT, query("agent_id", "The agent; for a bound key its own, when given."))
PAGE = (
    query("limit", "1 to 200, 50 unless given.", "integer"),
    query("offset", "`next_offset` of the page before.", "integer"),
)
SENDING = (CONTRACT, CHANNEL, CALL_ID)
STREAM_NOTE = (
    "Events: `connected`, `waiting` while the session does not exist, `flow.start`,"
    " `session.upserted`, `message.received`, `workflow.started`, `workflow.completed`,"
    " `message.delta`…, `message.responded`, `error` when the turn failed, `flow.end`; `resync` when"
    " the cursor is not one of this session's. Stored events carry an `id`. The same events leave by"
    " websocket at `/ws/sessions/{session_id}?after=N`."
)

# The demo's own data, so that “Try it out” works there.
INVOICE = {
    "channel": "web",
    "agent_id": "telecom_contas",
    "payload": {
        "message": "Quero entender minha fatura",
        "session_id": "s1",
        "customer_key": "11999999999",
        "contract_key": "3000131180",
    },
}
CONTEXT = {"business_context": {"customer_key": "11999999999", "contract_key": "3000131180"}}
VISITOR = {"agent_id": "telecom_contas", "lifetime_seconds": 900}

OPERATIONS = (
    Operation(
        "/gateway/message", "post", "message_post", "Send a message and wait for its answer",
        {200: ("The answer.", s.ChannelResponse), 202: ("Stored; ask at Location.", s.Accepted)},
        (*WRITING, 409), s.GatewayRequest, (*SENDING, PREFER),
        description="Idempotent by `message_id` within channel, user, and session.", example=INVOICE,
    ),
    Operation(
        "/gateway/message/sse", "post", "message_stream", "Send a message and follow its turn",
        {200: ("The answer, or its events.", s.ChannelResponse), 202: ("Stored; ask at Location.", s.Accepted)},
        (*WRITING, 409), s.GatewayRequest, (*SENDING, PREFER), streams=True,
        description="A stream with `Accept: text/event-stream`, else JSON. " + STREAM_NOTE,
        example=INVOICE,
    ),
    Operation(
        "/gateway/turns/{turn_id}", "get", "turn_get", "The answer of a turn",
        {200: ("The answer.", s.ChannelResponse), 202: ("Not done yet.", s.Accepted)}, READING,
    ),
    Operation(
        "/gateway/events/{session_id}", "get", "session_events", "Follow a session",
        {200: ("Its events.", s.Event)}, (400, *READING), streams=True, description=STREAM_NOTE,
        parameters=(
            header("Last-Event-ID", "Number of the last event seen."),
            query("last_event_id", "The same, for clients without headers."),
            query("token", "A session token, for clients without headers."),
        ),
    ),
    Operation(
        "/gateway/sessions/token", "post", "session_token", "Issue a visitor's token",
        {201: ("The token.", s.SessionToken)}, WRITING, s.SessionTokenRequest, example=VISITOR,
    ),
    Operation(
        "/sessions/{session_id}/messages", "get", "session_messages", "What was said",
        {200: ("The last messages, oldest first.", s.Messages)}, (*READING, 422),
        parameters=(query("limit", "1 to 500, 50 unless given.", "integer"),),
    ),
    Operation(
        "/sessions/{session_id}/checkpoint", "get", "session_checkpoint", "Where a session stands",
        {200: ("After its last settled turn.", s.Checkpoint)}, READING,
    ),
    Operation(
        "/agents", "get", "agents_list", "The agents of the running release",
        {200: ("Enabled ones.", s.Agents)}, READING, parameters=(TENANT,),
    ),
    Operation(
        "/health", "get", "health", "Does the process live",
        {200: ("It does.", s.Health)}, EVERYWHERE, open=True, tag="operation",
    ),
    Operation(
        "/ready", "get", "ready", "Can it work",
        {200: ("It can.", s.Ready), 503: ("It cannot; `checks` says why.", s.NotReady)}, EVERYWHERE,
        open=True, tag="operation",
    ),
    Operation(
        "/version", "get", "version", "What runs here",
        {200: ("Versions.", s.Version)}, EVERYWHERE, open=True, tag="operation",
    ),
    Operation(
        "/v1/tools", "get", "tools_list", "The tools of the caller's agent",
        {200: ("A page of them.", s.ServedTools)}, (*READING, 422, 503), tag="tools",
        parameters=(*AGENT, *PAGE),
        description="A key that is bound to no agent sees those of `agent_id`, or all.",
    ),
    Operation(
        "/v1/tools/{name}", "get", "tool_get", "One tool",
        {200: ("Its rules and its schema.", s.ServedTool)}, (*READING, 503), tag="tools",
        parameters=AGENT,
    ),
    Operation(
        "/v1/tools/{name}/invoke", "post", "tool_invoke", "Call a tool",
        {200: ("What came back, errors too.", s.InvocationResult)}, (*WRITING, 409),
        s.ToolInvocation, tag="tools",
        description="Once per key and `metadata.request_id`. An action that needs a yes is refused"
        " with 409 `CONFIRMATION_REQUIRED`, which describes the call; send it again with its"
        " `confirmation`.",
    ),
    Operation(
        "/v1/discovery/servers", "get", "servers_list", "The tool servers, as last seen",
        {200: ("All of them.", s.DiscoveredServers)}, READING, parameters=(TENANT,), tag="tools",
    ),
    Operation(
        "/v1/discovery/sync", "post", "discovery_sync", "Ask tool servers what they offer",
        {200: ("What each said.", s.Discovery)}, WRITING, s.DiscoveryRequest, tag="tools",
        description="What is new or differs becomes a draft in a change request. Nothing is"
        " switched on.",
    ),
    Operation(
        "/debug/route", "post", "debug_route", "Where a message would go",
        {200: ("The decision.", s.RouteExplained)}, WRITING, s.GatewayRequest, SENDING, tag="debug",
        description="Also reads `{text, context: {agent_id, tenant_id}}`. Changes nothing.",
        example=INVOICE,
    ),
    Operation(
        "/debug/identity", "post", "debug_identity", "Who a message would be about",
        {200: ("The keys and their sources.", s.IdentityExplained)}, WRITING, s.GatewayRequest,
        SENDING, tag="debug",
        description="Also reads flat bodies; needs no message. Changes nothing.", example=INVOICE,
    ),
    Operation(
        "/debug/mcp/tools", "get", "debug_tools", "The tools of the running release",
        {200: ("Tools and servers.", s.Tools)}, (*READING, 503), parameters=(TENANT,), tag="debug",
    ),
    Operation(
        "/debug/mcp/call/{tool}", "post", "debug_tool_call", "Call a tool that changes nothing",
        {200: ("What came back, errors too.", s.ToolResult)}, WRITING, s.ToolCallRequest, tag="debug",
        description="A tool that changes something is refused with 403 `ACTION_TOOL`.",
        example=CONTEXT,
    ),
    Operation(
        "/debug/usage", "get", "debug_usage", "Tokens and cost",
        {200: ("Sums.", s.Usage)}, (*READING, 422), tag="debug",
        parameters=(
            TENANT, query("session_id", "Of this session alone."),
            query("days", "1 to 366, 30 unless given.", "integer"),
        ),
    ),
    Operation(
        "/debug/env", "get", "debug_environment", "The settings",
        {200: ("Nothing secret.", s.Environment)}, READING, parameters=(TENANT,), tag="debug",
    ),
)  # fmt: skip


def doors_documented(
    result: dict[str, Any], generator: Any, request: Any, public: bool
) -> dict[str, Any]:
    """Add the doors to the document (a postprocessing hook of drf-spectacular)."""
    components = result.setdefault("components", {})
    components.setdefault("schemas", {}).update(_shapes())
    schemes = components.setdefault("securitySchemes", {})
    schemes["key"] = {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key (`ak_…`) or a session token (`st_…`).",
    }
    paths = result.setdefault("paths", {})
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _described(operation)
    result["paths"] = dict(sorted(paths.items()))
    return result


def _shapes() -> dict[str, Any]:
    models: list[type[BaseModel]] = [
        model for operation in OPERATIONS for model in _models(operation)
    ]
    unique: list[type[BaseModel]] = list(dict.fromkeys([*models, s.Problem]))
    inputs: list[tuple[type[BaseModel], JsonSchemaMode]] = [
        (model, "validation") for model in unique
    ]
    _map, definitions = models_json_schema(
        inputs,
        ref_template="#/components/schemas/{model}",
    )
    return dict(definitions["$defs"])


def _models(operation: Operation) -> Iterator[type[BaseModel]]:
    if operation.body is not None:
        yield operation.body
    for _said, model in operation.answers.values():
        yield model


def _described(operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.tag],
        "parameters": [*_path_parameters(operation.path), REQUEST_ID, *operation.parameters],
        "responses": dict(_responses(operation)),
        "security": [] if operation.open else [{"key": []}],
    }
    if operation.description:
        described["description"] = operation.description
    if operation.body is not None:
        content: dict[str, Any] = {"schema": _ref(operation.body)}
        if operation.example is not None:
            content["example"] = operation.example
        described["requestBody"] = {"required": True, "content": {JSON: content}}
    return described


def _responses(operation: Operation) -> Iterator[tuple[str, dict[str, Any]]]:
    for status, (said, model) in operation.answers.items():
        kind = PROBLEM if issubclass(model, s.Problem) else JSON
        content = {kind: {"schema": _ref(model)}}
        if operation.streams and status == 200:
            content[STREAM] = {"schema": {"type": "string"}}
            if model is s.Event:
                del content[JSON]
        answer: dict[str, Any] = {"description": said, "content": content}
        if status == 202:
            answer["headers"] = {"Location": {"schema": {"type": "string"}}}
        yield str(status), answer
    for status in sorted(set(operation.problems) - operation.answers.keys()):
        yield (
            str(status),
            {
                "description": REASONS[status],
                "content": {PROBLEM: {"schema": _ref(s.Problem)}},
            },
        )


def _path_parameters(path: str) -> list[dict[str, Any]]:
    names = [part.strip("{}") for part in path.split("/") if part.startswith("{")]
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in names
    ]


def _ref(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{model.__name__}"}
