"""Kinds: intent, state policy, routing policy."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from apps.runtime.config import KindConfig, RefTo, outcomes_check
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


StrategyName = Literal["state", "keyword", "example"]


def _strategies() -> list[StrategyName]:
    return ["state", "keyword", "example"]


class RoutingPolicyConfig(KindConfig):
    """How the answering agent is chosen. The item ``default`` is the tenant's policy."""

    kind: ClassVar[str] = "routing_policy"
    label: ClassVar[str] = _("Routing policy")
    label_plural: ClassVar[str] = _("Routing policies")

    mode: Literal["router", "supervisor"] = Field(
        "router",
        title=_("Mode"),
        description=_(
            "router: one agent answers. supervisor: several intents are asked to be split."
        ),
    )
    strategies: list[StrategyName] = Field(
        default_factory=_strategies,
        title=_("Strategies"),
        description=_("In this order; the first confident one decides."),
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
    failure_text: str = Field(
        "Something went wrong while answering. Please try again shortly.",
        title=_("Failure text"),
        description=_("Said when something broke."),
    )
