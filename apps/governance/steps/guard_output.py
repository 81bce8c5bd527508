"""The agent's draft passes the output rails."""

from dataclasses import replace

from apps.governance.rails.chain import rails_run
from apps.governance.steps.policies import PolicyFor
from apps.runtime.turn import Turn


class GuardOutput:
    """Runs the output rails of ``policy_for(turn)`` over the draft, each on the last one's text.

    It decides and cleans, and ends nothing: ``Supervise`` reads the decisions of the attempt. The
    vault stays as it is: what only a tool or a model said gets no placeholder.
    """

    def __init__(self, *, policy_for: PolicyFor) -> None:
        self._policy_for = policy_for

    async def __call__(self, turn: Turn) -> Turn:
        if turn.draft is None:
            return turn
        policy = self._policy_for(turn)
        run = rails_run(phase="output", rules=policy.output, text=turn.draft.text, turn=turn)
        return turn.evolve(draft=replace(turn.draft, text=run.text)).decide(*run.decisions)
