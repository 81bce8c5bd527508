"""Kind: rail policy."""

from typing import ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from apps.runtime.config import Config, KindConfig
from apps.runtime.i18n import gettext_noop as _

# What a rule may set, per rail. Lists are comma-separated text.
PARAMETERS: dict[str, dict[str, type]] = {
    "INPUT_SIZE": {"max_tokens": int},
    "MSK": {"skip": str, "allow": str},
    "PINJ": {"threshold": float},
    "VLOOP": {"repeats": int, "window": int},
    "DLEX_OUT": {"prompt_words": int},
    "REVPREC": {},
}
SANITIZING = ("MSK", "DLEX_OUT")
INPUT_CODES = ("INPUT_SIZE", "MSK", "PINJ", "VLOOP")
OUTPUT_CODES = ("MSK", "DLEX_OUT", "REVPREC")


class RailRule(Config):
    """One rail in a policy."""

    code: str = Field(title=_("Rail"), description=_("Which rail, e.g. PINJ."))
    enabled: bool = Field(True, title=_("Enabled"), description=_("Off: it does not run."))
    on_deny: Literal["", "observe", "sanitize", "retry", "block", "handover"] = Field(
        "", title=_("When it denies"), description=_("Empty: the rail's own action.")
    )
    on_error: Literal["block", "observe"] = Field(
        "block", title=_("When it breaks"), description=_("block: fail closed.")
    )
    parameters: dict[str, int | float | str | bool] = Field(
        default_factory=dict, title=_("Parameters"), description=_("The rail's own settings.")
    )

    @model_validator(mode="after")
    def _fits_the_rail(self) -> "RailRule":
        known = PARAMETERS.get(self.code, {})
        for name, value in self.parameters.items():
            if name not in known:
                raise ValueError(
                    f"{self.code} has no parameter {name!r}; known: {', '.join(known)}"
                )
            if known[name] is not str and (
                isinstance(value, bool) or not isinstance(value, int | float) or value <= 0
            ):
                raise ValueError(f"{self.code}: {name} must be a number above 0")
        if self.on_deny == "sanitize" and self.code not in SANITIZING:
            raise ValueError(f"{self.code} cannot sanitise a text")
        return self


def _rules(*codes: str) -> list[RailRule]:
    return [RailRule(code=code) for code in codes]


class RailPolicyConfig(KindConfig):
    """What may pass, in and out."""

    kind: ClassVar[str] = "rail_policy"
    label: ClassVar[str] = _("Rail policy")
    label_plural: ClassVar[str] = _("Rail policies")

    input: list[RailRule] = Field(
        default_factory=lambda: _rules(*INPUT_CODES),
        title=_("Input rails"),
        description=_("Run on the customer's message, in this order."),
    )
    output: list[RailRule] = Field(
        default_factory=lambda: _rules(*OUTPUT_CODES),
        title=_("Output rails"),
        description=_("Run on the agent's answer, in this order."),
    )
    max_retries: int = Field(
        3,
        ge=0,
        le=5,
        title=_("Regenerations"),
        description=_("How often an answer is written anew."),
    )
    retry_seconds: float = Field(
        60,
        gt=0,
        le=600,
        title=_("Time for regenerations"),
        description=_("Seconds after which no further attempt is started."),
    )
    block_texts: dict[str, str] = Field(
        default_factory=dict,
        title=_("Texts by rail"),
        description=_("Rail code → what the customer reads when it blocks."),
    )
    block_text: str = Field(
        "I cannot help with that request. Is there something else I can do?",
        title=_("Block text"),
        description=_("Said when a rail without its own text blocks."),
    )
    handover_text: str = Field(
        "I am transferring you to a person, who will take it from here.",
        title=_("Handover text"),
        description=_("Said when a person takes over."),
    )

    @field_validator("input")
    @classmethod
    def _input_codes_exist(cls, rules: list[RailRule]) -> list[RailRule]:
        if any(rule.on_deny == "retry" for rule in rules):
            raise ValueError("a customer's message cannot be regenerated: no retry on input")
        return _known(rules, INPUT_CODES)

    @field_validator("output")
    @classmethod
    def _output_codes_exist(cls, rules: list[RailRule]) -> list[RailRule]:
        return _known(rules, OUTPUT_CODES)


def _known(rules: list[RailRule], codes: tuple[str, ...]) -> list[RailRule]:
    for rule in rules:
        if rule.code not in codes:
            raise ValueError(f"unknown rail {rule.code!r}; known: {', '.join(codes)}")
    seen = [rule.code for rule in rules]
    if len(set(seen)) != len(seen):
        raise ValueError("a rail stands twice in the list")
    return rules
