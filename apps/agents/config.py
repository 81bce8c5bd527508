"""Kinds: agent, prompt, model profile, memory policy."""

from datetime import date
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints, field_validator, model_validator

from apps.runtime.config import BindingTo, Config, KindConfig, RefTo, outcomes_check
from apps.runtime.i18n import gettext_noop as _

# A date as text ("2026-05-31") or nothing: it is shown, compared and hashed as it is written.
Day = Annotated[
    str, StringConstraints(pattern=r"^([0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01]))?$")
]


class Lifecycle(Config):
    """Where an agent is in its life. Active, deprecated (still answers), retired (never answers)."""

    status: Literal["active", "deprecated", "retired"] = Field(
        "active",
        title=_("Status"),
        description=_("deprecated: still answers, on its way out. retired: never answers again."),
    )
    deprecated_on: Day = Field(
        "", title=_("Deprecated on"), description=_("The day, as 2026-05-31.")
    )
    retired_on: Day = Field(
        "",
        title=_("Retired on"),
        description=_("The day, as 2027-05-31; a year after the deprecation by rule."),
    )
    replaced_by: Annotated[str, RefTo("agent")] = Field(
        "", title=_("Replaced by"), description=_("The agent that takes over.")
    )

    @field_validator("deprecated_on", "retired_on")
    @classmethod
    def _day_exists(cls, day: str) -> str:
        try:
            if day:
                date.fromisoformat(day)
        except ValueError:
            raise ValueError(f"there is no day {day}") from None
        return day

    @model_validator(mode="after")
    def _in_order(self) -> "Lifecycle":
        if self.status == "deprecated" and not self.deprecated_on:
            raise ValueError("a deprecated agent needs the day in deprecated_on")
        if self.status == "retired" and not self.retired_on:
            raise ValueError("a retired agent needs the day in retired_on")
        if self.deprecated_on and self.retired_on and self.retired_on < self.deprecated_on:
            raise ValueError("retired_on lies before deprecated_on")
        return self


class Delegate(Config):
    """Another agent that this one may ask, and how.

    consult: one isolated question, plain text back. sub_conversation: the specialist speaks with the
    customer until it ends. scoped: it works on a part of the request and reports its outputs.
    """

    agent: Annotated[str, RefTo("agent")] = Field(title=_("Agent"), description=_("Who is asked."))
    kind: Literal["consult", "sub_conversation", "scoped"] = Field(
        "consult",
        title=_("Kind"),
        description=_(
            "consult: one question, text back. sub_conversation: it takes over the conversation for a while. scoped: it handles a part of the request and reports."
        ),
    )
    role: str = Field(
        "",
        title=_("Role"),
        description=_("sub_conversation: the specialist's role by name; empty: the agent's."),
    )
    purpose: str = Field(
        "", title=_("Purpose"), description=_("When to ask it; the model reads this.")
    )
    speaks: bool = Field(
        False,
        title=_("Speaks"),
        description=_("scoped: it answers the customer itself. Off: it is silent and reports."),
    )
    pass_history: bool = Field(
        False,
        title=_("Pass history"),
        description=_("It sees the conversation so far. Off: only what it is asked."),
    )
    max_turns: int = Field(
        6,
        ge=1,
        le=50,
        title=_("Turns"),
        description=_("sub_conversation: after so many the coordinator gets the word back."),
    )
    timeout_seconds: float = Field(
        20, gt=0, le=600, title=_("Timeout"), description=_("Seconds for one run of it.")
    )
    max_minutes: int = Field(
        60,
        ge=1,
        le=10_080,
        title=_("Minutes"),
        description=_("sub_conversation: an older one is over; the coordinator goes on."),
    )


SCOPED_OUTPUTS = (
    "answered", "scopedRequest", "interactionSummary", "findings", "openQuestions",
)  # fmt: skip
"""What a scoped sub-agent may hand back (platform facts 14.3)."""


class AgentConfig(KindConfig):
    """Who answers."""

    kind: ClassVar[str] = "agent"
    label: ClassVar[str] = _("Agent")
    label_plural: ClassVar[str] = _("Agents")

    description: str = Field(
        "", title=_("Description"), description=_("What this agent is for, in one sentence.")
    )
    objective: str = Field(
        "",
        title=_("Objective"),
        description=_("What the business wants to reach with it, and how that is seen."),
        json_schema_extra={"widget": "text"},
    )
    domain: str = Field(
        "", title=_("Domain"), description=_("Business domain, e.g. telecom or finance.")
    )
    enabled: bool = Field(
        True, title=_("Enabled"), description=_("A disabled agent is never chosen to answer.")
    )
    lifecycle: Lifecycle = Field(
        default_factory=Lifecycle,
        title=_("Lifecycle"),
        description=_("Active, deprecated or retired, and since when."),
    )
    prompt: Annotated[str, RefTo("prompt")] = Field(
        title=_("Prompt"), description=_("The prompt this agent answers with.")
    )
    model_profile: Annotated[str, RefTo("model_profile")] = Field(
        "default", title=_("Model profile"), description=_("Agents name a profile, never a model.")
    )
    members: list[Annotated[str, RefTo("agent")]] = Field(
        default_factory=list,
        title=_("Members"),
        description=_("When this agent is requested, these agents' intents may answer as well."),
    )
    tools: list[Annotated[str, RefTo("tool")]] = Field(
        default_factory=list,
        title=_("Allowed tools"),
        description=_("The only tools this agent may ever call."),
    )
    tool_use: Literal["collect", "model"] = Field(
        "collect",
        title=_("Tool use"),
        description=_(
            "collect: the intent's tools are called first. model: the model asks for tools."
        ),
    )
    max_tool_rounds: int = Field(
        4,
        ge=1,
        le=10,
        title=_("Tool rounds"),
        description=_("How often a model may ask for tools."),
    )
    memory: Annotated[str, RefTo("memory_policy")] = Field(
        "default",
        title=_("Memory policy"),
        description=_("What of the conversation is remembered."),
    )
    rails: Annotated[str, RefTo("rail_policy")] = Field(
        "default", title=_("Rail policy"), description=_("What may pass in and out.")
    )
    judges: Annotated[str, RefTo("judge_policy")] = Field(
        "default", title=_("Judge policy"), description=_("Which judges score the answer.")
    )
    delegates: list[Delegate] = Field(
        default_factory=list,
        title=_("Delegates"),
        description=_("Agents that this one may ask, and how."),
    )
    consult_prefix: str = Field(
        "consult_",
        pattern=r"^[a-z][a-z0-9_]{0,30}$",
        title=_("Consultation prefix"),
        description=_("Consultations are offered to the model as prefix and agent."),
    )
    outputs: list[
        Literal["answered", "scopedRequest", "interactionSummary", "findings", "openQuestions"]
    ] = Field(
        default_factory=list,
        title=_("Outputs"),
        description=_("What it reports when it is asked as a scoped sub-agent."),
    )
    max_delegations: int = Field(
        3,
        ge=1,
        le=10,
        title=_("Delegations"),
        description=_("How often others are asked for one message, all together."),
    )
    implementation: str = Field(
        "",
        title=_("Implementation"),
        description=_("Name of a Python agent the operator allows; empty: this record alone."),
    )
    next_state: dict[str, str] = Field(
        default_factory=dict,
        title=_("Next state"),
        description=_(
            "Outcome of the turn → state kept for the next one, e.g. waiting → WAITING_BILLING_CONFIRMATION."
        ),
    )
    label_answers: bool = Field(
        False, title=_("Label answers"), description=_("Put the agent's name before its answers.")
    )
    metadata: dict[str, str] = Field(
        default_factory=dict, title=_("Metadata"), description=_("Free labels of your own.")
    )

    @field_validator("next_state")
    @classmethod
    def _outcomes_exist(cls, states: dict[str, str]) -> dict[str, str]:
        return outcomes_check(states)

    @property
    def may_answer(self) -> bool:
        """Whether it is ever chosen: enabled and not retired."""
        return self.enabled and self.lifecycle.status != "retired"


class PromptConfig(KindConfig):
    """How an agent is told to answer."""

    kind: ClassVar[str] = "prompt"
    label: ClassVar[str] = _("Prompt")
    label_plural: ClassVar[str] = _("Prompts")

    system: str = Field(
        title=_("System prompt"),
        description=_(
            "Jinja template. Variables: agent, intent, domain, business_context, language."
        ),
        json_schema_extra={"widget": "code"},
    )
    response_style: str = Field(
        "", title=_("Response style"), description=_("Tone and form of the answer.")
    )
    require_evidence: bool = Field(
        True,
        title=_("Require evidence"),
        description=_("The answer may state facts only from tools and documents."),
    )
    allow_tool_usage: bool = Field(
        True, title=_("Allow tool usage"), description=_("Off: this prompt's agents call no tool.")
    )
    no_evidence_text: str = Field(
        "I could not find that information right now. Please check the details or try again shortly.",
        title=_("Text without evidence"),
        description=_("Said when evidence is required and there is none."),
    )
    language: str = Field(
        "pt-BR", title=_("Language"), description=_("Language of the answers, e.g. pt-BR.")
    )

    @field_validator("system")
    @classmethod
    def _template_is_valid(cls, system: str) -> str:
        from apps.agents.prompting import template_check

        template_check(system)
        return system


class Prices(Config):
    """USD per million tokens; empty means unknown, which is not zero."""

    input: float | None = Field(
        None, ge=0, title=_("Input price"), description=_("USD per million input tokens.")
    )
    output: float | None = Field(
        None, ge=0, title=_("Output price"), description=_("USD per million output tokens.")
    )
    cached: float | None = Field(
        None, ge=0, title=_("Cached price"), description=_("USD per million cached input tokens.")
    )


class ModelProfileConfig(KindConfig):
    """Which model, how it is asked, what it costs. Empty fields inherit from ``default``."""

    kind: ClassVar[str] = "model_profile"
    label: ClassVar[str] = _("Model profile")
    label_plural: ClassVar[str] = _("Model profiles")

    provider: Literal["", "openai_compatible", "scripted"] = Field(
        "",
        title=_("Provider"),
        description=_(
            "Empty: as in the profile 'default'. scripted is no model: it repeats evidence."
        ),
    )
    model: str = Field("", title=_("Model"), description=_("The provider's model name."))
    base_url: Annotated[str, BindingTo("address")] = Field(
        "",
        title=_("Address binding"),
        description=_("Name of the binding that holds the base URL."),
    )
    credential: Annotated[str, BindingTo("credential")] = Field(
        "", title=_("Credential binding"), description=_("Name of the binding that names the key.")
    )
    temperature: float | None = Field(
        None, ge=0, le=2, title=_("Temperature"), description=_("0 to 2; empty inherits.")
    )
    max_tokens: int | None = Field(
        None, ge=1, le=200_000, title=_("Maximum tokens"), description=_("Of the answer.")
    )
    timeout_seconds: float | None = Field(
        None, gt=0, le=600, title=_("Timeout"), description=_("Seconds for one call.")
    )
    max_retries: int | None = Field(
        None,
        ge=0,
        le=10,
        title=_("Retries"),
        description=_("After 429, 5xx and broken connections."),
    )
    message_shape: Literal["", "tools", "plain"] = Field(
        "",
        title=_("Message shape"),
        description=_(
            "tools: with functions. plain: for a server that knows none; results are sent as text. Empty: as in the profile 'default'."
        ),
    )
    prices: Prices = Field(
        default_factory=Prices, title=_("Prices"), description=_("USD per million tokens.")
    )
    script: list[str] = Field(
        default_factory=list,
        title=_("Script"),
        description=_("scripted only: replies given in turn, for tests and demos."),
    )
    delay_ms: int = Field(
        0,
        ge=0,
        le=60_000,
        title=_("Delay"),
        description=_("scripted only: milliseconds before the answer."),
    )


class MemoryPolicyConfig(KindConfig):
    """What of the conversation an agent sees again."""

    kind: ClassVar[str] = "memory_policy"
    label: ClassVar[str] = _("Memory policy")
    label_plural: ClassVar[str] = _("Memory policies")

    strategy: Literal["none", "window"] = Field(
        "window", title=_("Strategy"), description=_("none: nothing. window: the last messages.")
    )
    recent_messages: int = Field(
        8, ge=0, le=80, title=_("Recent messages"), description=_("How many of the last messages.")
    )
    max_chars_per_message: int = Field(
        1200,
        ge=50,
        le=20_000,
        title=_("Characters per message"),
        description=_("Longer ones are cut."),
    )
