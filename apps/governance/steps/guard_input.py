"""The customer's message passes the input rails, before anything reads or stores it."""

from apps.governance.rails.chain import rails_run, worst
from apps.governance.steps.policies import PolicyFor, turn_block, turn_hand_over
from apps.runtime.turn import Turn


class GuardInput:
    """Runs the input rails of ``policy_for(turn)`` over ``turn.text``.

    The turn leaves with masked text, a fuller vault and one decision per rail; or ended, when a
    rail blocks, and then with nothing that an earlier step or turn found. A ``retry`` has no
    meaning here and blocks.
    """

    def __init__(self, *, policy_for: PolicyFor) -> None:
        self._policy_for = policy_for

    async def __call__(self, turn: Turn) -> Turn:
        policy = self._policy_for(turn)
        run = rails_run(phase="input", rules=policy.input, text=turn.text, turn=turn)
        turn = turn.evolve(text=run.text, vault=run.vault).decide(*run.decisions)
        verdict = worst(run.decisions)
        if verdict is None or verdict.action in ("allow", "observe", "sanitize"):
            return turn
        turn = turn.evolve(route=None, tool_calls=(), model_calls=(), scores=())
        if verdict.action == "handover":
            return turn_hand_over(turn, policy, verdict.code)
        return turn_block(turn, policy, verdict)
