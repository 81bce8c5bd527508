"""Judges score the draft before it leaves."""

import logging
from collections.abc import Callable, Mapping

from apps.evals.config import JudgePolicyConfig, JudgeRule
from apps.evals.judges.base import AnswerJudge, Judgement
from apps.evals.judges.registry import JUDGES
from apps.runtime.turn import Decision, Score, Turn

logger = logging.getLogger(__name__)


class Judge:
    """Runs the inline judges of ``policy_for(turn)``; adds a score and a decision for each.

    A passing judge decides ``allow``, a failing one its rule's ``on_fail``; ``Supervise`` acts on
    it. A judge that breaks fails with 0 under ``fail_closed`` and passes with 1 otherwise, marked
    in both cases. Without a draft there is nothing to judge.
    """

    def __init__(
        self,
        *,
        policy_for: Callable[[Turn], JudgePolicyConfig],
        judges: Mapping[str, AnswerJudge] = JUDGES,
    ) -> None:
        self._policy_for = policy_for
        self._judges = judges

    async def __call__(self, turn: Turn) -> Turn:
        if turn.draft is None:
            return turn
        policy = self._policy_for(turn)
        if not policy.enabled:
            return turn
        judged = turn
        for rule in policy.judges:
            if rule.enabled:
                judgement = self._judged(turn, rule, fail_closed=policy.fail_closed)
                judged = _recorded(judged, rule, judgement)
        return judged

    def _judged(self, turn: Turn, rule: JudgeRule, *, fail_closed: bool) -> Judgement:
        try:
            return self._judges[rule.name].judge(turn)
        except Exception as error:
            # Deliberately broad: the policy says what a judge that breaks is worth.
            logger.error("judge_failed name=%s error=%s", rule.name, type(error).__name__)
            value = 0.0 if fail_closed else 1.0
            reason = f"judge broke: {type(error).__name__}"
            return Judgement(value, reason=reason, metadata={"error": True})


def _recorded(turn: Turn, rule: JudgeRule, judgement: Judgement) -> Turn:
    broken_open = judgement.metadata.get("error") is True and judgement.value == 1.0
    failed_closed = judgement.metadata.get("error") is True and not broken_open
    passed = not failed_closed and judgement.value >= rule.threshold
    metadata = {**judgement.metadata, "attempt": turn.attempt}
    score = Score(
        judge=rule.name,
        value=judgement.value,
        passed=passed,
        threshold=rule.threshold,
        reason=judgement.reason,
        metadata=metadata,
    )
    decision = Decision(
        phase="judge",
        code=rule.name.upper(),
        action="allow" if passed else rule.on_fail,
        reason=judgement.reason,
        guidance="" if passed else judgement.guidance,
        metadata={**metadata, "score": judgement.value, "threshold": rule.threshold},
    )
    return turn.evolve(scores=(*turn.scores, score)).decide(decision)
