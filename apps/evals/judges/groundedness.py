"""Groundedness: what the answer states is in the evidence."""

from apps.evals.judges.base import AnswerJudge, Judgement
from apps.evals.judges.evidence import add_memory, evidence_of
from apps.evals.judges.facts import facts_find
from apps.runtime.turn import Turn

# An invented amount fails at the usual thresholds, however many other facts are right.
INVENTED_AMOUNT_CAP = 0.5
_SHOWN = 8


class Groundedness(AnswerJudge):
    """The share of the answer's facts that the evidence holds; 1 when it states none.

    Deterministic: amounts, numbers, dates, times, identifiers and statuses are compared by value,
    not by spelling. An amount of money that no evidence holds caps the score.
    """

    name = "groundedness"

    def judge(self, turn: Turn) -> Judgement:
        facts = facts_find(turn.draft.text) if turn.draft else []
        if not facts:
            return Judgement(1.0, reason="no factual claim")
        evidence = evidence_of(turn)
        missing = [fact for fact in facts if not evidence.holds(fact)]
        if missing:
            # The conversation is read only for what this turn does not hold.
            add_memory(evidence, turn)
            missing = [fact for fact in missing if not evidence.holds(fact)]
        share = 1 - len(missing) / len(facts)
        if any(fact.kind == "money" for fact in missing):
            share = min(share, INVENTED_AMOUNT_CAP)
        written = [fact.written for fact in missing][:_SHOWN]
        return Judgement(
            round(share, 4),
            reason=f"{len(facts) - len(missing)} of {len(facts)} facts are in the evidence",
            guidance=_guidance(written),
            metadata={"facts": len(facts), "unsupported": written},
        )


def _guidance(written: list[str]) -> str:
    if not written:
        return ""
    return (
        f"These are not in the evidence: {'; '.join(written)}. State only facts that the tools or "
        "the customer gave; say so when something is not known."
    )
