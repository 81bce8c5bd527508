"""Kinds: tool server, tool, parameter mapping."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from apps.runtime.config import BindingTo, Config, KindConfig, RefTo
from apps.runtime.i18n import gettext_noop as _


class ToolServerConfig(KindConfig):
    """Where tools live. The address itself is a binding of the environment."""

    kind: ClassVar[str] = "tool_server"
    label: ClassVar[str] = _("Tool server")
    label_plural: ClassVar[str] = _("Tool servers")

    description: str = Field("", title=_("Description"), description=_("What the server offers."))
    transport: Literal["streamable_http", "http"] = Field(
        "streamable_http",
        title=_("Transport"),
        description=_(
            "streamable_http: MCP. http: POST …/tools/call with tool_name and arguments."
        ),
    )
    endpoint: Annotated[str, BindingTo("address")] = Field(
        title=_("Address binding"), description=_("Name of the binding that holds the address.")
    )
    credential: Annotated[str, BindingTo("credential")] = Field(
        "",
        title=_("Credential binding"),
        description=_("Name of the binding that names the token."),
    )
    enabled: bool = Field(True, title=_("Enabled"), description=_("Off: its tools are refused."))
    timeout_seconds: float = Field(
        30, gt=0, le=600, title=_("Timeout"), description=_("Seconds for one call, all included.")
    )


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


class CachePolicy(Config):
    """Whether an answer may be reused."""

    enabled: bool = Field(False, title=_("Enabled"), description=_("Only for read-only tools."))
    ttl_seconds: int = Field(300, ge=1, title=_("Seconds"), description=_("How long."))


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
        return self


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
