"""Every step a turn takes, in order. Read this first.

    message -> Identify -> Recall -> GuardInput -> ReadPending -> ChooseAgent -> TakeAnswer
            -> Transact -> TakeControl -> ReadArguments
            -> Supervise( RunPlan( RunAgent ) -> GuardOutput -> Judge )   again when one says so
            -> Reply -> Persist -> Deliver

A step that is not in this list does not happen. An outcome ends the walk: a blocked message skips
everything up to ``Persist``, and only ``Reply`` settles ``Answered``, so output rails and judges
cannot be skipped. Pure: what a step needs from outside comes in as an argument.
"""

from collections.abc import Callable, Sequence

from agentops.policies import (
    action_evidence,
    agent_next_state,
    agents_of,
    answer_label,
    asked_key,
    control_text,
    failure_text,
    hop_budget,
    judge_policy,
    memory_policy,
    model_mask,
    named_keys,
    rails,
    refusal_text,
    route_text,
    specialist_left,
    tool_info,
    tools_read_for,
    topics_text,
    transaction_facts,
    turn_routing_policy,
)
from apps.agents.code.running import CodeAgentParts, CodeAgentRunner
from apps.agents.plan import RunPlan
from apps.agents.step import RunAgent
from apps.conversations.steps.deliver import Deliver
from apps.conversations.steps.identify import Identify
from apps.conversations.steps.persist import Persist
from apps.conversations.steps.recall import Recall
from apps.conversations.steps.reply import Reply
from apps.conversations.steps.take_answer import TakeAnswer
from apps.conversations.steps.take_control import TakeControl
from apps.evals.step import Judge
from apps.governance.steps.guard_input import GuardInput
from apps.governance.steps.guard_output import GuardOutput
from apps.governance.steps.supervise import Supervise
from apps.routing.answers import answer_sense
from apps.routing.confirmation import ConfirmationClassifier
from apps.routing.meaning import MeaningPort
from apps.routing.step import ChooseAgent
from apps.runtime.pipeline import Pipeline
from apps.runtime.ports import (
    HistoryPort,
    ModelPort,
    Observer,
    ToolPort,
    TurnStore,
)
from apps.runtime.turn import Turn
from apps.tools.model_extraction import ModelExtraction
from apps.tools.steps.read_arguments import ReadArguments
from apps.tools.steps.read_pending import ReadPending
from apps.tools.steps.transact import Transact
from apps.tools.transactions.machine import Transactions, WorkflowRunner


def turn_pipeline(
    *,
    history: HistoryPort,
    tools: ToolPort,
    models: ModelPort,
    store: TurnStore,
    workflows: WorkflowRunner,
    embeddings: MeaningPort | None = None,
    code: CodeAgentParts | None = None,
    observers: Sequence[Observer] = (),
    on_error: Callable[[Turn, str, BaseException], None] | None = None,
) -> Pipeline:
    """Return the pipeline over these ports; ``code``: what agents in Python need, ``None`` for none."""
    facts = transaction_facts()
    transactions = Transactions(tools, workflows, facts)
    extraction = ModelExtraction(models)

    def code_agents(tools: ToolPort) -> CodeAgentRunner | None:
        if code is None:
            return None
        return CodeAgentRunner(
            tools,
            models,
            find=code.find,
            tool_info=tool_info,
            failure_text=failure_text,
            on_error=on_error,
            mask_for=model_mask,
            transactions=transactions,
            cache=code.cache,
            seconds=code.seconds,
        )

    def agent_over(tools: ToolPort) -> RunAgent:
        return RunAgent(
            tools,
            models,
            tool_info=tool_info,
            texts_for=route_text,
            refusal_for=refusal_text,
            mask_for=model_mask,
            transactions=transactions,
            evidence_for=action_evidence,
            hops_for=hop_budget,
            code_agents=code_agents(tools),
        )

    return Pipeline(
        steps=[
            Identify(),
            Recall(history, policy_for=memory_policy),
            GuardInput(policy_for=rails),
            ReadPending(
                answer_sense,
                workflows,
                ConfirmationClassifier(models, turn_routing_policy),
                extraction,
            ),
            ChooseAgent(agents_of, models=models, embeddings=embeddings),
            TakeAnswer(asked_key, named_keys),
            Transact(transactions, facts, extraction),
            TakeControl(control_text, leave=specialist_left),
            ReadArguments(extraction, tools_read_for),
            Supervise(
                attempt=[
                    RunPlan(
                        agent_over,
                        tools,
                        models,
                        refusal_for=refusal_text,
                        topics_for=topics_text,
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
