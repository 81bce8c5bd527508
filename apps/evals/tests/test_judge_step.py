import pytest

from apps.evals.config import JudgePolicyConfig, JudgeRule
from apps.evals.judges.base import AnswerJudge, Judgement
from apps.evals.judges.registry import JUDGES
from apps.evals.step import Judge
from apps.governance.config import RailPolicyConfig
from apps.governance.steps.guard_output import GuardOutput
from apps.governance.steps.supervise import Supervise
from apps.runtime.outcomes import HandedOver
from apps.runtime.testing import turn_of
from apps.runtime.turn import Decision, Draft, Score, ToolCall


class Fixed(AnswerJudge):
    name = "groundedness"

    def __init__(self, value):
        self.value = value

    def judge(self, turn):
        return Judgement(self.value, reason="because", guidance="do better", metadata={"n": 1})


class Broken(AnswerJudge):
    name = "groundedness"

    def judge(self, turn):
        raise RuntimeError(turn.draft.text)


def judge(policy, with_judge=None):
    judges = {"groundedness": with_judge} if with_judge else JUDGES
    return Judge(policy_for=lambda turn: policy, judges=judges)


def policy(**changes):
    fail_closed = changes.pop("fail_closed", True)
    rule = JudgeRule(name="groundedness", **changes)
    return JudgePolicyConfig(judges=[rule], fail_closed=fail_closed)


DRAFTED = turn_of("oi", draft=Draft(text="segredo", agent="a"), attempt=1)


async def test_judge__score_reaches_the_threshold__allows():
    turn = await judge(policy(threshold=0.6), Fixed(0.6))(DRAFTED)
    assert turn.scores == (
        Score(
            judge="groundedness", value=0.6, passed=True, threshold=0.6, reason="because",
            metadata={"n": 1, "attempt": 1},
        ),
    )  # fmt: skip
    assert turn.decisions == (
        Decision(
            phase="judge", code="GROUNDEDNESS", action="allow", reason="because",
            metadata={"n": 1, "attempt": 1, "score": 0.6, "threshold": 0.6},
        ),
    )  # fmt: skip
    assert turn.draft == DRAFTED.draft


@pytest.mark.parametrize("on_fail", ["observe", "retry", "block", "handover"])
async def test_judge__score_under_the_threshold__decides_as_the_rule_says(on_fail):
    turn = await judge(policy(on_fail=on_fail), Fixed(0.59))(DRAFTED)
    assert not turn.scores[0].passed
    assert (turn.decisions[0].action, turn.decisions[0].guidance) == (on_fail, "do better")


async def test_judge__breaks_and_fails_closed__fails_whatever_the_threshold(caplog):
    turn = await judge(policy(threshold=0), Broken())(DRAFTED)
    assert (turn.scores[0].value, turn.scores[0].passed) == (0.0, False)
    assert turn.decisions[0].action == "retry"
    assert turn.decisions[0].reason == "judge broke: RuntimeError"
    assert "segredo" not in caplog.text


async def test_judge__breaks_and_fails_open__passes_and_is_marked():
    turn = await judge(policy(fail_closed=False), Broken())(DRAFTED)
    assert (turn.scores[0].value, turn.scores[0].passed) == (1.0, True)
    assert turn.decisions[0].action == "allow"
    assert turn.scores[0].metadata["error"] is True


@pytest.mark.parametrize(
    "off", [JudgePolicyConfig(enabled=False), policy(enabled=False), JudgePolicyConfig(judges=[])]
)
async def test_judge__switched_off__scores_nothing(off):
    turn = await judge(off, Broken())(DRAFTED)
    assert (turn.scores, turn.decisions) == ((), ())


async def test_judge__no_draft__scores_nothing():
    turn = turn_of("oi")
    assert await judge(policy(), Broken())(turn) is turn


class Answers:
    def __init__(self, *texts):
        self.texts = list(texts)

    async def __call__(self, turn):
        return turn.evolve(draft=Draft(text=self.texts.pop(0), agent="a"))


def supervise(*texts):
    rails = RailPolicyConfig()
    steps = [Answers(*texts), GuardOutput(policy_for=lambda turn: rails), judge(policy())]
    return Supervise(attempt=steps, policy_for=lambda turn: rails)


TOOL = ToolCall(tool="x", server="s", arguments={}, status="ok", result={"valor": 100})


async def test_judge__invented_amount_under_the_supervisor__answer_is_regenerated():
    turn = await supervise("São R$ 999,00.", "São R$ 100,00.")(turn_of("oi", tool_calls=(TOOL,)))
    assert turn.draft == Draft(text="São R$ 100,00.", agent="a")
    assert [score.value for score in turn.scores] == [1.0]
    assert "r$ 999,00" in turn.guidance[0]


async def test_judge__invents_again_and_again__a_person_takes_over():
    answers = [f"São R$ {n},00." for n in (999, 998, 997, 996)]
    turn = await supervise(*answers)(turn_of("oi", tool_calls=(TOOL,)))
    assert isinstance(turn.outcome, HandedOver)
    assert turn.outcome.reason == "GROUNDEDNESS"
