"""The output supervisor's loop, over fake steps."""

from dataclasses import replace

import pytest

from apps.governance.config import RailPolicyConfig
from apps.governance.steps.guard_output import GuardOutput
from apps.governance.steps.supervise import NoDraft, Supervise
from apps.runtime.outcomes import Blocked, HandedOver, Waiting
from apps.runtime.testing import turn_of
from apps.runtime.turn import Decision, Draft, Score

POLICY = RailPolicyConfig(
    max_retries=3, block_text="Não.", block_texts={"JUDGE": "Não sei."}, handover_text="Um momento."
)


class Says:
    """An agent step that gives ``texts`` in turn and remembers what it was told."""

    def __init__(self, *texts):
        self.texts = list(texts)
        self.seen = []

    async def __call__(self, turn):
        self.seen.append((turn.attempt, turn.guidance, turn.draft))
        return turn.evolve(draft=Draft(text=self.texts.pop(0), agent="a"))


class Decides:
    """A rail or judge step that gives ``actions`` in turn."""

    def __init__(self, *actions, phase="output", code="RAIL"):
        self.actions, self.phase, self.code = list(actions), phase, code

    async def __call__(self, turn):
        score = Score(judge="j", value=turn.attempt, passed=True, threshold=0)
        action = self.actions.pop(0)
        decision = Decision(
            phase=self.phase, code=self.code, action=action, guidance=f"better than {turn.attempt}"
        )
        return turn.evolve(scores=(*turn.scores, score)).decide(decision)


def supervise(*steps, policy=POLICY, **changes):
    return Supervise(attempt=steps, policy_for=lambda turn: policy, **changes)


def supervised(turn):
    return [(d.action, d.metadata["attempt"]) for d in turn.decisions if d.phase == "supervisor"]


@pytest.mark.parametrize("action", ["allow", "observe", "sanitize"])
async def test_supervise__nothing_severe__draft_goes_on(action):
    turn = await supervise(Says("olá"), Decides(action))(turn_of("oi"))
    assert turn.draft == Draft(text="olá", agent="a")
    assert turn.outcome is None
    assert supervised(turn) == [("allow", 0)]


async def test_supervise__retry_then_allow__regenerates_with_guidance():
    agent = Says("um", "dois", "três")
    turn = await supervise(agent, Decides("retry", "retry", "allow"))(turn_of("oi"))
    assert turn.draft is not None
    assert turn.draft.text == "três"
    assert turn.attempt == 2
    assert agent.seen == [
        (0, (), None),
        (1, ("better than 0",), None),
        (2, ("better than 0", "better than 1"), None),
    ]
    assert supervised(turn) == [("retry", 0), ("retry", 1), ("allow", 2)]
    assert [d.action for d in turn.decisions if d.phase == "output"] == ["retry", "retry", "allow"]
    assert [s.value for s in turn.scores] == [2]


async def test_supervise__never_good_enough__hands_over_after_max_retries():
    agent = Says("1", "2", "3", "4", "5")
    turn = await supervise(agent, Decides(*["retry"] * 5))(turn_of("oi"))
    assert turn.outcome == HandedOver(text="Um momento.", reason="RAIL")
    assert len(agent.seen) == 4
    assert turn.draft is None


async def test_supervise__no_regenerations_allowed__hands_over_at_once():
    policy = RailPolicyConfig(max_retries=0)
    agent = Says("1", "2")
    turn = await supervise(agent, Decides("retry"), policy=policy)(turn_of("oi"))
    assert isinstance(turn.outcome, HandedOver)
    assert len(agent.seen) == 1


async def test_supervise__same_text_again__gives_up_early():
    agent = Says("1", "1", "1", "1")
    turn = await supervise(agent, Decides(*["retry"] * 4))(turn_of("oi"))
    assert isinstance(turn.outcome, HandedOver)
    assert len(agent.seen) == 2


async def test_supervise__time_is_up__starts_no_further_attempt():
    times = iter([0.0, 61.0])
    agent = Says("1", "2")
    turn = await supervise(agent, Decides("retry", "retry"), clock=lambda: next(times))(
        turn_of("oi")
    )
    assert isinstance(turn.outcome, HandedOver)
    assert len(agent.seen) == 1


async def test_supervise__block__says_the_rails_words_and_keeps_no_draft():
    turn = await supervise(Says("x"), Decides("block", phase="judge", code="JUDGE"))(turn_of("oi"))
    assert turn.outcome == Blocked(text="Não sei.", code="JUDGE")
    assert turn.draft is None


async def test_supervise__handover_outranks_block_and_retry():
    steps = [Says("x"), Decides("retry"), Decides("block", code="B"), Decides("handover", code="H")]
    turn = await supervise(*steps)(turn_of("oi"))
    assert turn.outcome == HandedOver(text="Um momento.", reason="H")


async def test_supervise__decisions_of_before_the_attempt__do_not_count():
    before = Decision(phase="output", code="OLD", action="block")
    turn = await supervise(Says("x"), Decides("allow"))(turn_of("oi", decisions=(before,)))
    assert turn.outcome is None


async def test_supervise__tool_decisions__are_not_the_supervisors():
    turn = await supervise(Says("x"), Decides("block", phase="tool"))(turn_of("oi"))
    assert turn.outcome is None


async def test_supervise__counter__starts_anew_with_every_turn():
    turn = await supervise(Says("x"), Decides("allow"))(turn_of("oi", attempt=3))
    assert turn.attempt == 0


async def test_supervise__step_ends_the_turn__later_steps_do_not_run():
    waiting = Waiting(text="Confirma?", waiting_for="confirmation")

    class Asks:
        async def __call__(self, turn):
            return turn.evolve(outcome=waiting)

    rail = Decides("block")
    turn = await supervise(Asks(), rail)(turn_of("oi"))
    assert turn.outcome == waiting
    assert rail.actions == ["block"]


async def test_supervise__no_draft_and_no_outcome__is_an_error():
    with pytest.raises(NoDraft):
        await supervise(Decides("allow"))(turn_of("oi"))


async def test_supervise__observers__see_every_step_of_every_attempt():
    seen = []

    class Watches:
        def step_started(self, turn, step):
            seen.append(("started", step, turn.attempt))

        def step_ended(self, turn, step, seconds):
            seen.append(("ended", step, turn.attempt))

    steps = [Says("1", "2"), Decides("retry", "allow")]
    turn = await supervise(*steps, observers=[Watches()])(turn_of("oi"))
    assert [entry for entry in seen if entry[0] == "started"] == [
        ("started", "Says", 0), ("started", "Decides", 0),
        ("started", "Says", 1), ("started", "Decides", 1),
    ]  # fmt: skip
    assert len(seen) == 8
    assert set(turn.timings) == {"Says", "Decides"}


async def test_supervise__real_rails__claim_without_evidence_is_regenerated():
    agent = Says("Seu serviço foi cancelado.", "Posso abrir o cancelamento. Confirma?")
    turn = await supervise(agent, GuardOutput(policy_for=lambda turn: POLICY))(turn_of("cancela"))
    assert turn.draft == replace(Draft(text="Posso abrir o cancelamento. Confirma?", agent="a"))
    assert turn.attempt == 1
    assert "no tool confirmed it" in turn.guidance[0]
