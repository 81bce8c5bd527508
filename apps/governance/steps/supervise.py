"""The output supervisor: lets an answer go, has it written anew, stops it, or calls a person."""

import time
from collections.abc import Callable, Sequence

from apps.governance.config import RailPolicyConfig
from apps.governance.rails.chain import worst
from apps.governance.steps.policies import PolicyFor, turn_block, turn_hand_over
from apps.runtime.pipeline import step_name
from apps.runtime.ports import Observer, Step
from apps.runtime.turn import Action, Decision, Turn


class NoDraft(RuntimeError):
    """An attempt ended without a draft and without an outcome: a step forgot to answer."""


class Supervise:
    """Wraps the steps that make and check one answer, so that regenerating is a loop.

    ``attempt`` are the agent's step, the output rails and the judges, in order. The most severe
    decision of *this* attempt counts: allow, observe and sanitize end the loop; block and handover
    end the turn; retry clears the draft, adds the guidance and runs the steps again. After
    ``max_retries`` regenerations, after ``retry_seconds``, or when the same text came twice, a
    person takes over: what does not change by asking again is no question of content.

    The counter starts at nought with every turn. Every attempt's decisions stay in the turn, the
    scores are those of the last one. Raises ``NoDraft``.
    """

    def __init__(
        self,
        *,
        attempt: Sequence[Step],
        policy_for: PolicyFor,
        observers: Sequence[Observer] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.steps = tuple(attempt)
        self.observers = tuple(observers)
        self._policy_for = policy_for
        self._clock = clock

    async def __call__(self, turn: Turn) -> Turn:
        started = self._clock()
        turn = turn.evolve(attempt=0, draft=None)
        rejected: set[str] = set()
        while True:
            decided = len(turn.decisions)
            turn = await self._attempt(turn)
            if turn.outcome is not None:
                return turn
            if turn.draft is None:
                raise NoDraft(f"attempt {turn.attempt} left neither a draft nor an outcome")
            text = turn.draft.text
            made = [d for d in turn.decisions[decided:] if d.phase in ("output", "judge")]
            verdict = worst(made)
            policy = self._policy_for(turn)
            if verdict is None or verdict.action in ("allow", "observe", "sanitize"):
                return _noted(turn, "allow", "")
            if verdict.action != "retry":
                return _ended(_noted(turn, verdict.action, verdict.code), policy, verdict)
            spent = self._clock() - started
            if why := _give_up(turn, text in rejected, policy, spent):
                turn = _noted(turn, "handover", f"{verdict.code}: {why}")
                return turn_hand_over(turn, policy, verdict.code)
            rejected.add(text)
            turn = _next_attempt(_noted(turn, "retry", verdict.code), made)

    async def _attempt(self, turn: Turn) -> Turn:
        for step in self.steps:
            turn = await self._step(turn, step)
            if turn.outcome is not None:
                break
        return turn

    async def _step(self, turn: Turn, step: Step) -> Turn:
        """Run one step under the observers; its milliseconds add up over the attempts."""
        name = step_name(step)
        for observer in self.observers:
            observer.step_started(turn, name)
        started = time.perf_counter()
        turn = await step(turn)
        seconds = time.perf_counter() - started
        spent = turn.timings.get(name, 0.0) + seconds * 1000
        turn = turn.evolve(timings={**turn.timings, name: round(spent, 3)})
        for observer in self.observers:
            observer.step_ended(turn, name, seconds)
        return turn


def _give_up(turn: Turn, repeated: bool, policy: RailPolicyConfig, spent: float) -> str:
    """Return why there is no further attempt, "" when there is one."""
    if turn.attempt >= policy.max_retries:
        return "no regeneration left"
    if repeated:
        return "the same text again"
    return "no time left" if spent >= policy.retry_seconds else ""


def _next_attempt(turn: Turn, made: Sequence[Decision]) -> Turn:
    guidance = dict.fromkeys((*turn.guidance, *(d.guidance for d in made if d.guidance)))
    return turn.evolve(attempt=turn.attempt + 1, guidance=tuple(guidance), draft=None, scores=())


def _ended(turn: Turn, policy: RailPolicyConfig, verdict: Decision) -> Turn:
    if verdict.action == "handover":
        return turn_hand_over(turn, policy, verdict.code)
    return turn_block(turn, policy, verdict)


def _noted(turn: Turn, action: Action, reason: str) -> Turn:
    return turn.decide(
        Decision(
            phase="supervisor",
            code="SUPERVISOR",
            action=action,
            reason=reason,
            metadata={"attempt": turn.attempt},
        )
    )
