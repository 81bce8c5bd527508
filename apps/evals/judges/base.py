"""What a judge is: it reads a turn with a draft and returns a number with its reasons."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from apps.runtime.turn import Turn


@dataclass(frozen=True)
class Judgement:
    """``value`` on the judge's scale of 0 to 1. ``guidance`` tells the agent what to do better."""

    value: float
    reason: str = ""
    guidance: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


class AnswerJudge:
    """One way to score an answer. ``name`` is what a judge policy calls it."""

    name: ClassVar[str]

    def judge(self, turn: Turn) -> Judgement:
        """Return the judgement of ``turn.draft``. May raise; the policy's ``fail_closed`` decides."""
        raise NotImplementedError
