"""Kinds: intent, state policy, routing policy."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from apps.runtime.config import Config, KindConfig, RefTo, outcomes_check
from apps.runtime.i18n import gettext_noop as _


class IntentConfig(KindConfig):
    """Something a customer may want, and who answers it."""

    kind: ClassVar[str] = "intent"
    label: ClassVar[str] = _("Intent")
    label_plural: ClassVar[str] = _("Intents")

    description: str = Field("", title=_("Description"), description=_("What the customer wants."))
    agent: Annotated[str, RefTo("agent")] = Field(
        title=_("Agent"), description=_("Who answers this intent.")
    )
    domain: str = Field("", title=_("Domain"), description=_("Business domain."))
    keywords: list[str] = Field(
        default_factory=list,
        title=_("Keywords"),
        description=_("Whole words or phrases; accents, case and plurals do not matter."),
    )
    examples: list[str] = Field(
        default_factory=list,
        title=_("Examples"),
        description=_("Sentences a customer would write; compared by their words."),
    )
    priority: int = Field(
        100, ge=0, le=10_000, title=_("Priority"), description=_("Breaks exact ties; lower wins.")
    )
    enabled: bool = Field(True, title=_("Enabled"), description=_("Off: never chosen."))
    mcp_tools: list[Annotated[str, RefTo("tool")]] = Field(
        default_factory=list,
        title=_("Tools"),
        description=_(
            "Allow-list of tools for this intent; read-only ones are called to collect facts."
        ),
    )
    next_state: dict[str, str] = Field(
        default_factory=dict,
        title=_("Next state"),
        description=_("Outcome of the turn → state kept for the next one; wins over the agent's."),
    )

    @field_validator("next_state")
    @classmethod
    def _outcomes_exist(cls, states: dict[str, str]) -> dict[str, str]:
        return outcomes_check(states)


class StatePolicyConfig(KindConfig):
    """While a session is in ``state``, ``agent`` answers."""

    kind: ClassVar[str] = "state_policy"
    label: ClassVar[str] = _("State policy")
    label_plural: ClassVar[str] = _("State policies")

    state: str = Field(
        title=_("State"), description=_("Name of the state, e.g. WAITING_BILLING_CONFIRMATION.")
    )
    agent: Annotated[str, RefTo("agent")] = Field(
        title=_("Agent"), description=_("Who answers while the session is in this state.")
    )
    description: str = Field("", title=_("Description"), description=_("What the state means."))
    terminal: bool = Field(
        False, title=_("Terminal"), description=_("Reaching this state clears it at once.")
    )


StrategyName = Literal[
    "state", "transaction", "delegation", "control", "literal", "continuity", "keyword", "example",
    "semantic", "llm",
]  # fmt: skip


def _strategies() -> list[StrategyName]:
    return ["state", "transaction", "delegation", "control", "literal", "keyword", "example"]


class Stickiness(Config):
    """Whether a message goes on with the agent that answered the last one (platform facts 3.5)."""

    enabled: bool = Field(
        False, title=_("Enabled"), description=_("Ask a model whether the subject goes on.")
    )
    profile: str = Field(
        "route_continuity",
        title=_("Model profile"),
        description=_("Profile of the model that decides."),
    )
    threshold: float = Field(
        0.9, ge=0, le=1, title=_("Threshold"), description=_("Below it the router decides.")
    )
    history_turns: int = Field(
        2, ge=0, le=20, title=_("Turns seen"), description=_("How many of the last turns it reads.")
    )


class LiteralAnswer(Config):
    """A fixed answer to a fixed message, given before any model is asked."""

    texts: list[str] = Field(
        default_factory=list,
        title=_("Messages"),
        description=_("The whole message; accents, case and punctuation do not matter."),
    )
    answer: str = Field(title=_("Answer"), description=_("What is said."))


class SemanticFallback(Config):
    """Asks a model what an unclear answer to a confirmation means (platform facts 15.1)."""

    enabled: bool = Field(
        False, title=_("Enabled"), description=_("Only asked when yes or no is not plain.")
    )
    profile: str = Field(
        "router", title=_("Model profile"), description=_("Profile of the model that decides.")
    )
    confirm_values: list[str] = Field(
        default_factory=lambda: ["SIM"], title=_("Yes"), description=_("Words that confirm.")
    )
    reject_values: list[str] = Field(
        default_factory=lambda: ["NAO"], title=_("No"), description=_("Words that reject.")
    )
    continue_values: list[str] = Field(
        default_factory=lambda: ["CONTINUAR"],
        title=_("Neither"),
        description=_("Words that leave it open."),
    )
    prompt: str = Field(
        "",
        max_length=8000,
        title=_("Prompt"),
        description=_(
            "With {allowed_values}, {pending_prompt}, {relevant_conversation_context}, {user_input}; empty: the built-in one."
        ),
        json_schema_extra={"widget": "text"},
    )


class RoutingPolicyConfig(KindConfig):
    """How the answering agent is chosen. The item ``default`` is the tenant's policy."""

    kind: ClassVar[str] = "routing_policy"
    label: ClassVar[str] = _("Routing policy")
    label_plural: ClassVar[str] = _("Routing policies")

    mode: Literal["router", "supervisor", "hybrid"] = Field(
        "router",
        title=_("Mode"),
        description=_(
            "router: one agent answers. supervisor: several subjects are planned and answered as one. hybrid: a plan only when rules find several subjects, else one agent."
        ),
    )
    strategies: list[StrategyName] = Field(
        default_factory=_strategies,
        title=_("Strategies"),
        description=_("In this order; the first confident one decides."),
    )
    semantic_threshold: float = Field(
        0.65,
        ge=0,
        le=1,
        title=_("Semantic threshold"),
        description=_("Below it the semantic strategy says nothing."),
    )
    embedding_profile: str = Field(
        "",
        title=_("Embedding profile"),
        description=_(
            "Model profile whose server makes the vectors of the strategy semantic; empty: the model of this installation."
        ),
    )
    router_profile: str = Field(
        "router",
        title=_("Router profile"),
        description=_("Model profile of the strategy llm; without such a profile it says nothing."),
    )
    router_examples: int = Field(
        3,
        ge=0,
        le=20,
        title=_("Examples for the model"),
        description=_("Of each intent, in the question of the strategy llm."),
    )
    stickiness: Stickiness = Field(
        default_factory=Stickiness,
        title=_("Continuity"),
        description=_("Strategy continuity: does the subject go on?"),
    )
    literal_answers: list[LiteralAnswer] = Field(
        default_factory=list,
        title=_("Fixed answers"),
        description=_("Strategy literal: given before any model is asked."),
    )
    handoff_keywords: list[str] = Field(
        default_factory=list,
        title=_("Words for a person"),
        description=_("Strategy control: added to the built-in ones."),
    )
    end_keywords: list[str] = Field(
        default_factory=list,
        title=_("Words for the end"),
        description=_("Strategy control: added to the built-in ones."),
    )
    handoff_text: str = Field(
        "I will pass you on to a person, who continues here.",
        title=_("Text for a person"),
        description=_("Said when the customer asks for a person."),
    )
    end_text: str = Field(
        "Thank you for your message. Until next time!",
        title=_("Text for the end"),
        description=_("Said when the customer ends the conversation."),
    )
    cancelled_text: str = Field(
        "All right, I will not do that.",
        title=_("Text for a cancelled action"),
        description=_("Said when the customer rejects or gives up an action."),
    )
    max_plan: int = Field(
        4,
        ge=2,
        le=8,
        title=_("Subjects in a plan"),
        description=_("More of them are kept for later."),
    )
    hop_budget: int = Field(
        2,
        ge=1,
        le=10,
        title=_("Hops"),
        description=_("How often one message may be passed between agents before it is answered."),
    )
    confirmation_fallback: SemanticFallback = Field(
        default_factory=SemanticFallback,
        title=_("Unclear confirmations"),
        description=_("Ask a model what neither yes nor no means."),
    )
    default_agent: Annotated[str, RefTo("agent")] = Field(
        "", title=_("Default agent"), description=_("Used when a message requests no agent.")
    )
    fallback_agent: Annotated[str, RefTo("agent")] = Field(
        "",
        title=_("Fallback agent"),
        description=_(
            "Speaks when nothing matches; it calls no tools. Empty: the requested agent."
        ),
    )
    confidence_threshold: float = Field(
        0.65,
        ge=0,
        le=1,
        title=_("Confidence threshold"),
        description=_("Below it nobody is chosen."),
    )
    margin: float = Field(
        0.05,
        ge=0,
        le=1,
        title=_("Margin"),
        description=_("Two agents closer than this: the customer is asked."),
    )
    fallback_text: str = Field(
        "Hello! How can I help you today?",
        title=_("Fallback text"),
        description=_("Said when nothing matches."),
    )
    clarify_text: str = Field(
        "I can help with more than one subject. Which one would you like first?",
        title=_("Clarify text"),
        description=_("Said when two subjects match equally."),
    )
    topics_text: str = Field(
        "",
        title=_("Text for what is kept for later"),
        description=_(
            "With {topics}, the customer's own words; empty: the built-in one in the agent's language."
        ),
    )
    failure_text: str = Field(
        "Something went wrong while answering. Please try again shortly.",
        title=_("Failure text"),
        description=_("Said when something broke."),
    )
