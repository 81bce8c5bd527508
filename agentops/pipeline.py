"""Every step a turn takes, in order. Read this first.

    message -> Identify -> Recall -> GuardInput -> ChooseAgent -> TakeAnswer
            -> Supervise( RunAgent -> GuardOutput -> Judge )   again when a rail or judge says so
            -> Reply -> Persist -> Deliver

A step that is not in this list does not happen. An outcome ends the walk: a blocked message skips
everything up to ``Persist``, and only ``Reply`` settles ``Answered``, so output rails and judges
cannot be skipped. Pure: what a step needs from outside comes in as an argument.
"""

from collections.abc import Callable, Sequence

from agentops.policies import (
    agent_next_state,
    agents_of,
    answer_label,
    asked_key,
    failure_text,
    judge_policy,
    memory_policy,
    model_mask,
    rails,
    refusal_text,
    route_text,
    tool_info,
)
from apps.agents.step import RunAgent
from apps.conversations.steps.deliver import Deliver
from apps.conversations.steps.identify import Identify
from apps.conversations.steps.persist import Persist
from apps.conversations.steps.recall import Recall
from apps.conversations.steps.reply import Reply
from apps.conversations.steps.take_answer import TakeAnswer
from apps.evals.step import Judge
from apps.governance.steps.guard_input import GuardInput
from apps.governance.steps.guard_output import GuardOutput
from apps.governance.steps.supervise import Supervise
from apps.routing.step import ChooseAgent
from apps.runtime.pipeline import Pipeline
from apps.runtime.ports import HistoryPort, ModelPort, Observer, ToolPort, TurnStore
from apps.runtime.turn import Turn


def turn_pipeline(
    *,
    history: HistoryPort,
    tools: ToolPort,
    models: ModelPort,
    store: TurnStore,
    observers: Sequence[Observer] = (),
    on_error: Callable[[Turn, str, BaseException], None] | None = None,
) -> Pipeline:
    """Return the pipeline over these ports."""
    return Pipeline(
        steps=[
            Identify(),
            Recall(history, policy_for=memory_policy),
            GuardInput(policy_for=rails),
            ChooseAgent(agents_of),
            TakeAnswer(asked_key),
            Supervise(
                attempt=[
                    RunAgent(
                        tools,
                        models,
                        tool_info=tool_info,
                        texts_for=route_text,
                        refusal_for=refusal_text,
                        mask_for=model_mask,
                    ),
                    GuardOutput(policy_for=rails),
                    Judge(policy_for=judge_policy),
                ],
                policy_for=rails,
                observers=observers,
            ),
            Reply(label_for=answer_label, agent_next_state=agent_next_state),
        ],
        closing=[Persist(store), Deliver(store)],
        failure_text=failure_text,
        observers=observers,
        on_error=on_error,
    )
