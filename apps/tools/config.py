"""Kinds: tool server, tool, parameter mapping, workflow."""

import json
from typing import Annotated, Any, ClassVar, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from apps.runtime.config import BindingTo, Config, KindConfig, RefTo
from apps.runtime.i18n import gettext_noop as _
from apps.runtime.numbers import Inexact, decimal_read, whole_read
from apps.tools.patterns import PatternInvalid, pattern
from apps.tools.workflows.checking import problems


class ToolServerConfig(KindConfig):
    """Where tools live. The address itself is a binding of the environment."""

    kind: ClassVar[str] = "tool_server"
    label: ClassVar[str] = _("Tool server")
    label_plural: ClassVar[str] = _("Tool servers")

    description: str = Field("", title=_("Description"), description=_("What the server offers."))
    transport: Literal["streamable_http", "sse", "stdio", "http"] = Field(
        "streamable_http",
        title=_("Transport"),
        description=_(
            "streamable_http, sse: MCP. stdio: MCP with a program the operator registered. http: POST …/tools/call with tool_name and arguments."
        ),
    )
    endpoint: Annotated[str, BindingTo("address")] = Field(
        "",
        validate_default=True,
        title=_("Address binding"),
        description=_("Name of the binding that holds the address; none for stdio."),
    )
    program: str = Field(
        "",
        validate_default=True,
        title=_("Program"),
        description=_("stdio only: name under which the operator registered the program."),
    )
    credential: Annotated[str, BindingTo("credential")] = Field(
        "",
        title=_("Credential binding"),
        description=_("Name of the binding that names the token, or the OAuth client's secret."),
    )
    auth: Literal["bearer", "oauth_client", "oauth_user"] = Field(
        "bearer",
        title=_("Authorisation"),
        description=_(
            "bearer: the credential is sent as it is. oauth_client: OAuth 2.1 client credentials. oauth_user: each person signs in."
        ),
    )
    client_id: str = Field(
        "",
        title=_("OAuth client"),
        description=_("Client id at the server's authorisation server."),
    )
    scopes: list[str] = Field(
        default_factory=list,
        title=_("OAuth scopes"),
        description=_("Asked for with a token; empty: what the server offers."),
    )
    circuit_threshold: int = Field(
        5,
        ge=0,
        le=100,
        title=_("Failures until paused"),
        description=_("So many failures in a row pause the server; 0: never."),
    )
    circuit_recovery_seconds: float = Field(
        60,
        gt=0,
        le=3600,
        title=_("Pause"),
        description=_("Seconds until a paused server is tried again."),
    )
    enabled: bool = Field(True, title=_("Enabled"), description=_("Off: its tools are refused."))
    timeout_seconds: float = Field(
        30, gt=0, le=600, title=_("Timeout"), description=_("Seconds for one call, all included.")
    )

    @field_validator("endpoint", "program")
    @classmethod
    def _has_a_place(cls, value: str, info: ValidationInfo) -> str:
        """A program for stdio, an address for everything else: the error stands at the field."""
        needed = "program" if info.data.get("transport") == "stdio" else "endpoint"
        if info.field_name == needed and not value:
            raise PydanticCustomError("missing", "Field required")
        return value


class Extraction(Config):
    """How an argument is read out of the customer's message."""

    strategy: Literal["regex", "month_name_pt", "date", "amount", "llm", "hybrid"] = Field(
        "regex",
        title=_("Strategy"),
        description=_(
            "regex: a pattern. month_name_pt, date, amount: written forms. llm: a model reads it. hybrid: the pattern first, then a model."
        ),
    )
    pattern: str = Field(
        "",
        max_length=500,
        title=_("Pattern"),
        description=_("Regular expression of regex, hybrid; RE2: no look-around, no references."),
    )
    group: int = Field(
        0, ge=0, le=20, title=_("Group"), description=_("Which group of the pattern is the value.")
    )
    year: Literal["this", "past", "future"] = Field(
        "this",
        title=_("Year"),
        description=_(
            "Of a date without one: this year, or the nearest that is past or still to come."
        ),
    )
    description: str = Field(
        "", title=_("Description"), description=_("What a model is to look for.")
    )

    @model_validator(mode="after")
    def _pattern_reads(self) -> "Extraction":
        if self.strategy in ("regex", "hybrid"):
            if not self.pattern:
                raise ValueError(f"{self.strategy} needs a pattern")
            try:
                compiled = pattern(self.pattern)
            except PatternInvalid as error:
                raise ValueError(f"pattern is no regular expression: {error}") from None
            if self.group > compiled.groups:
                raise ValueError(f"pattern has {compiled.groups} groups, group is {self.group}")
        return self


class Argument(Config):
    """One argument a tool declares."""

    type: Literal["string", "integer", "number", "boolean", "array", "object"] = Field(
        "string", title=_("Type"), description=_("JSON type.")
    )
    description: str = Field("", title=_("Description"), description=_("What it means."))
    label: str = Field("", title=_("Label"), description=_("How the customer would call it."))
    user_prompt: str = Field("", title=_("Question"), description=_("Asked when it is missing."))
    aliases: list[str] = Field(
        default_factory=list, title=_("Aliases"), description=_("Other names it arrives under.")
    )
    enum: list[str] = Field(
        default_factory=list, title=_("Accepted values"), description=_("Empty: any value.")
    )
    restricted: bool = Field(
        False,
        title=_("Restricted"),
        description=_("The tool gets the real value of a masked document number."),
    )
    source: Literal["auto", "model", "context", "constant", "secret", "extraction"] = Field(
        "auto",
        title=_("Source"),
        description=_(
            "auto: what is said, else the context. model: only what is said or a model asks for. context, constant, secret, extraction: never from a model, which does not see it."
        ),
    )
    constant: str = Field(
        "",
        title=_("Constant"),
        description=_("Source constant: this value, in the argument's type."),
    )
    secret: Annotated[str, BindingTo("credential")] = Field(
        "",
        title=_("Secret binding"),
        description=_("Source secret: name of the binding that names it."),
    )
    nullable: bool = Field(
        False,
        title=_("Nullable"),
        description=_("An explicit null is sent as null; otherwise it is refused."),
    )
    items: Literal["", "string", "integer", "number", "boolean", "object"] = Field(
        "", title=_("Item type"), description=_("Type of the entries of an array; empty: any.")
    )
    json_schema: dict[str, Any] = Field(
        default_factory=dict,
        title=_("JSON schema"),
        description=_("Further rules for the value, as the server declares them."),
    )

    @model_validator(mode="after")
    def _source_is_whole(self) -> "Argument":
        if self.source == "secret" and (self.type != "string" or not self.secret):
            raise ValueError("source secret needs the name of a binding in secret, and type string")
        if self.items and self.type != "array":
            raise ValueError("items is for type array")
        if self.source == "constant":
            self.constant_value()
        if self.json_schema:
            # Schemas are seldom given, and the library takes a while to import.
            from apps.tools.schemas import SchemaInvalid, schema_of

            try:
                schema_of(self.json_schema)
            except SchemaInvalid as error:
                raise ValueError(f"json_schema: {error}") from None
        return self

    @property
    def for_model(self) -> bool:
        """Whether a model may fill it; otherwise it does not see it and is overwritten."""
        return self.source in ("auto", "model")

    def constant_value(self) -> Any:
        """Return ``constant`` in the argument's type. Raises ``ValueError``."""
        if self.type == "string":
            return self.constant
        wrong = f"constant is no {self.type}, written as in JSON"
        try:
            value = json.loads(self.constant, parse_float=decimal_read, parse_int=whole_read)
        except ValueError:
            raise ValueError(wrong) from None
        if value is None and self.nullable:
            return None
        kinds: dict[str, tuple[type, ...]] = {
            "integer": (int,),
            "number": (int, float),
            "boolean": (bool,),
            "array": (list,),
            "object": (dict,),
        }
        if not isinstance(value, kinds[self.type]) or isinstance(value, Inexact):
            raise ValueError(wrong)
        if isinstance(value, bool) and self.type != "boolean":
            raise ValueError(wrong)
        return value


class CachePolicy(Config):
    """Whether an answer may be reused."""

    enabled: bool = Field(False, title=_("Enabled"), description=_("Only for read-only tools."))
    ttl_seconds: int = Field(300, ge=1, le=86_400, title=_("Seconds"), description=_("How long."))


class RetryPolicy(Config):
    """Whether a call that failed is made again; only read-only and idempotent tools ever are."""

    max_attempts: int = Field(2, ge=1, le=5, title=_("Attempts"), description=_("1: never again."))
    backoff_ms: int = Field(
        250, ge=0, le=10_000, title=_("Pause"), description=_("Milliseconds before the next one.")
    )


class PreValidation(Config):
    """A read-only tool that says whether the action is possible, before the customer is asked."""

    tool: Annotated[str, RefTo("tool")] = Field(
        "", title=_("Tool"), description=_("Empty: nothing is asked before.")
    )
    fail_open: bool = Field(
        False,
        title=_("Go on without it"),
        description=_("When the tool cannot be reached. Off: the action stops."),
    )


class Execution(Config):
    """How a confirmed action is carried out."""

    mode: Literal["direct_tool", "workflow"] = Field(
        "direct_tool",
        title=_("Mode"),
        description=_("direct_tool: one call. workflow: the named workflow."),
    )
    workflow: Annotated[str, RefTo("workflow")] = Field(
        "", title=_("Workflow"), description=_("For mode workflow.")
    )

    @model_validator(mode="after")
    def _named(self) -> "Execution":
        if self.mode == "workflow" and not self.workflow:
            raise ValueError("mode workflow needs a workflow")
        return self


class Response(Config):
    """What is said of a result without a model."""

    template: str = Field(
        "",
        max_length=4000,
        title=_("Template"),
        description=_("With {result.FIELD} and {arguments.NAME}; empty: the agent composes."),
        json_schema_extra={"widget": "text"},
    )
    direct: bool = Field(
        False,
        title=_("Ends the turn"),
        description=_("On: the text is the answer. Off: it is evidence for the agent."),
    )


class PinnedContract(Config):
    """What the server declared when the tool was accepted: everything a model sees of it.

    ``sha256`` is that of name, title, description, input schema, output schema and annotations; see
    ``contracts.hashing``.
    """

    sha256: str = Field("", max_length=64, title=_("Hash"), description=_("Of the whole contract."))
    title: str = Field("", title=_("Title"), description=_("As the server declared it."))
    description: str = Field(
        "", title=_("Description"), description=_("As the server declared it.")
    )
    input_schema: dict[str, Any] = Field(
        default_factory=dict, title=_("Input schema"), description=_("As the server declared it.")
    )
    output_schema: dict[str, Any] = Field(
        default_factory=dict, title=_("Output schema"), description=_("As the server declared it.")
    )
    annotations: dict[str, Any] = Field(
        default_factory=dict, title=_("Annotations"), description=_("As the server declared them.")
    )


class ToolConfig(KindConfig):
    """One thing an agent can do."""

    kind: ClassVar[str] = "tool"
    label: ClassVar[str] = _("Tool")
    label_plural: ClassVar[str] = _("Tools")

    description: str = Field(
        "", title=_("Description"), description=_("What it does; models read this.")
    )
    mcp_server: Annotated[str, RefTo("tool_server")] = Field(
        title=_("Tool server"), description=_("Where it is called.")
    )
    remote_name: str = Field(
        "", title=_("Remote name"), description=_("Its name on the server, when different.")
    )
    enabled: bool = Field(True, title=_("Enabled"), description=_("Off: refused."))
    tool_type: Literal["read_only", "action"] = Field(
        "read_only", title=_("Type"), description=_("action: it changes something.")
    )
    args_schema: dict[str, Argument] = Field(
        default_factory=dict, title=_("Arguments"), description=_("Only these are ever sent.")
    )
    requires: list[str] = Field(
        default_factory=list,
        title=_("Required arguments"),
        description=_("Tested after mapping; without them the tool is not called."),
    )
    confirmation_required: bool = Field(
        False,
        title=_("Confirmation required"),
        description=_(
            "The customer must say yes first; recorded by the platform, never by a model."
        ),
    )
    idempotent: bool = Field(
        False,
        title=_("Idempotent"),
        description=_(
            "The server honours the idempotency key: an unknown outcome may be sent again."
        ),
    )
    cache: CachePolicy = Field(
        default_factory=CachePolicy, title=_("Cache"), description=_("Reuse of answers.")
    )
    retry: RetryPolicy = Field(
        default_factory=RetryPolicy, title=_("Retry"), description=_("When a call failed.")
    )
    allowed_agents: list[Annotated[str, RefTo("agent")]] = Field(
        default_factory=list,
        title=_("Allowed agents"),
        description=_("Empty: every agent that lists the tool. Otherwise only these of them."),
    )
    allowed_channels: list[str] = Field(
        default_factory=list,
        title=_("Allowed channels"),
        description=_(
            "Empty: every channel. Otherwise a message of another or no channel is refused."
        ),
    )
    required_business_keys: list[str] = Field(
        default_factory=list,
        title=_("Required business keys"),
        description=_("Canonical keys that must be known, e.g. customer_key."),
    )
    pre_validation: PreValidation = Field(
        default_factory=PreValidation,
        title=_("Check before asking"),
        description=_("Is the action possible at all?"),
    )
    execution: Execution = Field(
        default_factory=Execution,
        title=_("Execution"),
        description=_("One call, or a workflow."),
    )
    confirmation_text: str = Field(
        "",
        max_length=2000,
        title=_("Confirmation question"),
        description=_(
            "Asked before the action, with {argument} for its values; empty: built from the labels."
        ),
    )
    confirmation_seconds: int = Field(
        900,
        ge=10,
        le=86_400,
        title=_("Confirmation holds"),
        description=_("Seconds in which a yes counts."),
    )
    items_argument: str = Field(
        "",
        title=_("Items argument"),
        description=_("The array argument of a tool that does several things at once."),
    )
    resource_argument: str = Field(
        "",
        title=_("Resource argument"),
        description=_("Names what the action is about; its evidence is found by it later."),
    )
    response: Response = Field(
        default_factory=Response,
        title=_("Presentation"),
        description=_("A fixed text for the result."),
    )
    contract: PinnedContract = Field(
        default_factory=PinnedContract,
        title=_("Pinned contract"),
        description=_("Taken from the server when the tool was accepted."),
    )
    timeout_seconds: float | None = Field(
        None, gt=0, le=600, title=_("Timeout"), description=_("Seconds; empty: the server's.")
    )
    sla: str = Field(
        "",
        title=_("Service level"),
        description=_("What its owner promises, e.g. 99.5 %, 95 of 100 answers within 2 s."),
    )
    selection_keywords: list[str] = Field(
        default_factory=list,
        title=_("Selection keywords"),
        description=_("When given, the tool is collected only if one is in the message."),
    )

    @model_validator(mode="after")
    def _required_are_declared(self) -> "ToolConfig":
        unknown = [name for name in self.requires if name not in self.args_schema]
        if unknown:
            raise ValueError(
                f"requires names arguments that args_schema lacks: {', '.join(unknown)}"
            )
        for field in ("items_argument", "resource_argument"):
            name = getattr(self, field)
            if name and name not in self.args_schema:
                raise ValueError(f"{field} names an argument that args_schema lacks: {name}")
        return self

    @property
    def transactional(self) -> bool:
        """Whether it changes something."""
        return self.tool_type == "action"


class ParameterMappingConfig(KindConfig):
    """Which canonical key fills which argument. The slug is the tool's; ``_global`` holds defaults for all."""

    kind: ClassVar[str] = "parameter_mapping"
    label: ClassVar[str] = _("Parameter mapping")
    label_plural: ClassVar[str] = _("Parameter mappings")

    tool: Annotated[str, RefTo("tool")] = Field(
        "", title=_("Tool"), description=_("Empty: defaults for every tool.")
    )
    map: dict[str, str] = Field(
        default_factory=dict,
        title=_("Map"),
        description=_("Canonical key → argument, e.g. customer_key → msisdn."),
    )
    defaults: dict[str, Any] = Field(
        default_factory=dict,
        title=_("Defaults"),
        description=_("Argument → value when nothing else fills it; never for required arguments."),
    )
    extract: dict[str, Extraction] = Field(
        default_factory=dict,
        title=_("Extraction"),
        description=_("Argument → how it is read out of the customer's message."),
    )
    time_zone: str = Field(
        "",
        max_length=60,
        title=_("Time zone"),
        description=_(
            "In _global: where it is today and tomorrow, e.g. America/Sao_Paulo; empty: the installation's."
        ),
    )

    @model_validator(mode="after")
    def _time_zone_exists(self) -> "ParameterMappingConfig":
        if self.time_zone:
            try:
                ZoneInfo(self.time_zone)
            except (ZoneInfoNotFoundError, ValueError, OSError):
                raise ValueError("time_zone names no time zone") from None
        return self


class WorkflowPause(Config):
    """A node that waits for the customer."""

    key: str = Field(
        "",
        pattern=r"^([A-Za-z_][A-Za-z0-9_]{0,59})?$",
        title=_("Key"),
        description=_("Name the answer gets, as $.input.KEY; empty: the node does not ask."),
    )
    question: str = Field(
        "",
        max_length=2000,
        title=_("Question"),
        description=_("What the customer is asked; may have {input.NAME}, {nodes.NODE.FIELD}."),
        json_schema_extra={"widget": "text"},
    )
    allowed_values: list[str] = Field(
        default_factory=list,
        title=_("Accepted values"),
        description=_("Empty: any text. Otherwise only these, accents and case do not matter."),
    )
    reprompt: str = Field(
        "",
        max_length=2000,
        title=_("Question again"),
        description=_("After an answer that is none of them; empty: the question."),
    )
    classify_profile: str = Field(
        "",
        title=_("Model profile"),
        description=_(
            "A model of it may say which accepted value an unclear answer means; empty: none is asked."
        ),
    )


class WorkflowNode(Config):
    """One thing a workflow does. Nodes run in the order of their edges.

    With a tool and a pause: the tool first, then the question, so that an answer never calls it again.
    """

    id: str = Field(
        pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,59}$", title=_("Node"), description=_("Unique name.")
    )
    tool: Annotated[str, RefTo("tool")] = Field(
        "", title=_("Tool"), description=_("Called by this node; empty: it only decides or asks.")
    )
    params: dict[str, str] = Field(
        default_factory=dict,
        title=_("Parameters"),
        description=_("Argument → value, or a path: $.input.NAME, $.nodes.NODE.FIELD."),
    )
    when: str = Field(
        "",
        title=_("Condition"),
        description=_(
            "PATH == VALUE, PATH != VALUE, or PATH alone; not met: the node is passed over."
        ),
    )
    next: str = Field("", title=_("Next node"), description=_("Empty: the workflow ends here."))
    otherwise: str = Field(
        "",
        title=_("Otherwise"),
        description=_("Next node when the condition is not met; empty: the next node."),
    )
    on_failure: str = Field(
        "",
        title=_("On failure"),
        description=_("Next node when the tool failed; empty: compensate and end."),
    )
    retries: int = Field(
        0,
        ge=0,
        le=10,
        title=_("Retries"),
        description=_("Of a failing tool that only reads or is idempotent; no other is retried."),
    )
    backoff_ms: int = Field(
        250,
        ge=0,
        le=10_000,
        title=_("Pause before a retry"),
        description=_("Milliseconds; twice as long before each further one, at most 10 seconds."),
    )
    timeout_seconds: float | None = Field(
        None, gt=0, le=600, title=_("Timeout"), description=_("Seconds; empty: the tool's.")
    )
    at_most_once: bool = Field(
        False,
        title=_("At most once"),
        description=_(
            "For an action that is not idempotent: when nobody knows how it ended, the workflow stops instead of sending it again."
        ),
    )
    compensate_tool: Annotated[str, RefTo("tool")] = Field(
        "", title=_("Compensation"), description=_("Called when a later node fails for good.")
    )
    compensate_params: dict[str, str] = Field(
        default_factory=dict,
        title=_("Compensation parameters"),
        description=_("Argument → value or path; $.nodes.NODE of the node itself too."),
    )
    pause: WorkflowPause = Field(
        default_factory=WorkflowPause,
        title=_("Pause"),
        description=_("With a key: the workflow waits for the customer's answer."),
    )


class WorkflowConfig(KindConfig):
    """A fixed sequence of tools with conditions, pauses and compensation."""

    kind: ClassVar[str] = "workflow"
    label: ClassVar[str] = _("Workflow")
    label_plural: ClassVar[str] = _("Workflows")

    description: str = Field("", title=_("Description"), description=_("What it carries out."))
    enabled: bool = Field(True, title=_("Enabled"), description=_("Off: it is not started."))
    start: str = Field(title=_("First node"), description=_("Where it begins."))
    nodes: list[WorkflowNode] = Field(
        default_factory=list, max_length=200, title=_("Nodes"), description=_("What it does.")
    )
    repeat_seconds: int = Field(
        3600,
        ge=0,
        le=604_800,
        title=_("Same request"),
        description=_(
            "So many seconds the same request of the same customer is answered from the first run; 0: it is carried out again."
        ),
    )
    done_text: str = Field(
        "",
        max_length=2000,
        title=_("Closing text"),
        description=_(
            "Said at the end, with {input.NAME}, {nodes.NODE.FIELD}; empty: the agent composes."
        ),
    )

    @model_validator(mode="after")
    def _can_be_run(self) -> "WorkflowConfig":
        if found := problems(self.start, self.nodes, self.done_text):
            raise ValueError("; ".join(found))
        return self
