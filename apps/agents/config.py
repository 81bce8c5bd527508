"""Kinds: agent, prompt, model profile, memory policy."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from apps.runtime.config import BindingTo, Config, KindConfig, RefTo, outcomes_check
from apps.runtime.i18n import gettext_noop as _


class AgentConfig(KindConfig):
    """Who answers."""

    kind: ClassVar[str] = "agent"
    label: ClassVar[str] = _("Agent")
    label_plural: ClassVar[str] = _("Agents")

    description: str = Field(
        "", title=_("Description"), description=_("What this agent is for, in one sentence.")
    )
    domain: str = Field(
        "", title=_("Domain"), description=_("Business domain, e.g. telecom or finance.")
    )
    enabled: bool = Field(
        True, title=_("Enabled"), description=_("A disabled agent is never chosen to answer.")
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
