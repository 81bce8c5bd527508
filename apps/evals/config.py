"""Kind: judge policy."""

from typing import ClassVar, Literal

from pydantic import Field

from apps.runtime.config import Config, KindConfig
from apps.runtime.i18n import gettext_noop as _


class JudgeRule(Config):
    """One judge in a policy."""

    name: Literal["groundedness"] = Field(title=_("Judge"), description=_("Which judge."))
    enabled: bool = Field(True, title=_("Enabled"), description=_("Off: it does not run."))
    threshold: float = Field(
        0.6, ge=0, le=1, title=_("Threshold"), description=_("The answer fails below it.")
    )
    on_fail: Literal["observe", "retry", "block", "handover"] = Field(
        "retry", title=_("When it fails"), description=_("observe: only recorded.")
    )


class JudgePolicyConfig(KindConfig):
    """Which judges score an answer before it leaves."""

    kind: ClassVar[str] = "judge_policy"
    label: ClassVar[str] = _("Judge policy")
    label_plural: ClassVar[str] = _("Judge policies")

    enabled: bool = Field(True, title=_("Enabled"), description=_("Off: no judge runs."))
    fail_closed: bool = Field(
        True, title=_("Fail closed"), description=_("A judge that breaks counts as failed.")
    )
    judges: list[JudgeRule] = Field(
        default_factory=lambda: [JudgeRule(name="groundedness")],
        title=_("Judges"),
        description=_("Run inline, before the reply."),
    )
