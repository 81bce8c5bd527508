"""An open action: the message answers it, or leaves it (platform facts 3.6)."""

from dataclasses import replace
from typing import Any

from apps.routing.planning import Plan, clauses, head_of, plan_make, topics_of
from apps.routing.routes import Control, intent_part, part_route
from apps.routing.sentence import abandons, read, stops
from apps.routing.shift import Holder, Relation, relation_of
from apps.routing.strategies.control import control_said
from apps.routing.strategies.face import Finding, Question
from apps.runtime.dialogue import Transaction
from apps.runtime.turn import PlanPart, Route

ABANDONED = "state:TRANSACTION_ABANDONED"
REENTRY = "contextual_reentry"
INTERRUPTED_BY: dict[Control, str] = {
    "HUMAN_HANDOFF": "human_handoff",
    "END_SESSION": "explicit_abandonment",
}
TAKEN = ("fills", "confirms", "rejects", "cancels", "resumes")
CONFIRMING = {"confirms": "confirmed", "rejects": "rejected"}


async def by_transaction(question: Question) -> Finding:
    """Keep the open action's agent while the message has to do with it.

    What the message says to the action was read before (``turn.reading``). An explicit request for
    a person is heard after that; then only an unambiguous other subject leaves it. Whoever answers
    then, ``transaction_interruption`` on the route says why the action is over.
    """
    transaction = question.turn.dialogue.transaction
    if transaction is None or not transaction.open:
        return Finding(method="transaction")
    if not question.index.answers(transaction.agent):
        return _left("agent_unavailable", "the action's agent is gone")
    control = control_said(question)
    reading = question.turn.reading
    # A model's opinion of an answer to a paused workflow stands behind asking for a person in words.
    opinion = reading.kind == "resumes" and reading.source == "semantic"
    open_ = opinion or reading.kind in ("none", "unclear", "cancels")
    handed = control == "HUMAN_HANDOFF" and open_
    if reading.kind in TAKEN and not handed:
        return await _taken(question, transaction)
    if control and (handed or transaction.status != "WORKFLOW_PAUSED"):
        return _controlled(transaction, control)
    if transaction.status == "WORKFLOW_PAUSED":
        return await _paused(question, transaction)
    holder = Holder(transaction.agent, transaction.intent, transaction.domain)
    return _related(question, transaction, await relation_of(question, holder))


def _related(question: Question, transaction: Transaction, relation: Relation) -> Finding:
    if relation.kind == "shift":
        left = _left("intent_shift", "left for another subject")
        found = relation.finding
        # What a model found is not asked for again: it decides now.
        return left if found is None else replace(
            found, metadata=left.metadata, released=True
        )  # fmt: skip
    asked = relation.asked or Finding(method="transaction")
    noted: dict[str, Any] = {}
    if relation.kind == "ambiguous" and transaction.status != "AWAITING_CONFIRMATION":
        noted["clarify"] = True
    route = _route(question, transaction, noted)
    return _settled(route, asked)


async def _paused(question: Question, transaction: Transaction) -> Finding:
    """A paused workflow is left for a person, or where its node lets the message be read anew."""
    reading = question.turn.reading
    if reading.reason.startswith(REENTRY):
        plan = await plan_make(question, question.turn.text)
        if not all(_same(part, transaction) for part in plan.parts):
            left = _left(REENTRY, "read anew with the workflow paused")
            noted = {
                "contextual_reentry_preempted_resume": True,
                "initial_classifier_output": dict(reading.values),
            }
            return replace(left, metadata={**left.metadata, **noted})
    return _settled(_route(question, transaction, {}))


async def _taken(question: Question, transaction: Transaction) -> Finding:
    """The message answers the action; what it asks besides is served beside it or kept."""
    reading = question.turn.reading
    noted: dict[str, Any] = {"transaction_turn_consumed": True}
    if reading.kind in CONFIRMING:
        noted["transaction_confirmation_decision"] = CONFIRMING[reading.kind]
        noted["transaction_confirmation_source"] = reading.source
    route = _route(question, transaction, noted)
    if reading.kind == "cancels":
        route = replace(
            route,
            intent=ABANDONED,
            tools=(),
            metadata={**noted, "transaction_interruption": "explicit_abandonment"},
        )
    rest = reading.rest or (_besides_giving_up(question) if reading.kind == "cancels" else "")
    if not rest:
        return _settled(route)
    plan = await plan_make(question, rest)
    return _settled(_with_rest(question, transaction, route, rest, plan))


def _with_rest(
    question: Question, transaction: Transaction, route: Route, rest: str, plan: Plan
) -> Route:
    """Return ``route`` with what the rest asks: read-only topics now, one that acts later.

    What names the action itself again is about it and opens nothing.
    """
    index = question.index
    found = [part for part in (*plan.parts, *plan.topics) if not _same(part, transaction)]
    now = [p for p in found if not index.mutates(p.intent)][: question.policy.max_plan - 1]
    later = [part for part in found if part not in now]
    noted = dict(route.metadata)
    if found:
        noted["rest"] = [*topics_of(found)]
    if later:
        noted["topics"] = topics_of(later)
    if plan.off_context or not found:
        noted["off_context"] = list(plan.off_context) or [rest]
    if not now:
        return replace(route, metadata=noted)
    own = PlanPart(
        agent=route.agent,
        intent=route.intent,
        text=head_of(question.turn.text, rest),
        tools=route.tools,
        domain=route.domain,
        score=1.0,
        next_state=route.next_state,
    )
    return replace(route, plan=(own, *now), metadata=noted)


def _same(part: PlanPart, transaction: Transaction) -> bool:
    """Whether a part is about the open action itself, which may have come of a plan of several."""
    return part.intent == transaction.intent or transaction.tool in part.tools


def _besides_giving_up(question: Question) -> str:
    """Return what stands beside the words that give the action up, "" for nothing."""
    text = question.turn.text
    others = [
        clause
        for clause in clauses(text)
        if not (abandons(sentence := read(clause.text)) or stops(sentence))
    ]
    return text[others[0].start :].strip() if others else ""


def _route(question: Question, transaction: Transaction, noted: dict[str, Any]) -> Route:
    index = question.index
    known = index.intents.get(transaction.intent)
    if known is not None and known.agent == transaction.agent:
        part = intent_part(index, transaction.intent, question.turn.text)
    else:
        domain = transaction.domain or index.agents[transaction.agent].domain
        part = PlanPart(
            agent=transaction.agent, intent=transaction.intent, text=question.turn.text,
            tools=(transaction.tool,), domain=domain,
        )  # fmt: skip
    kind = question.turn.reading.kind
    reason = f"{transaction.status} of {transaction.tool}: {kind}"
    return part_route(question, part, "transaction", 1.0, reason=reason, metadata=noted)


def _settled(route: Route, asked: Finding | None = None) -> Finding:
    """Return the finding that keeps the action; ``asked`` is what a model said on the way."""
    found = asked or Finding(method="transaction")
    return Finding(
        method="transaction",
        route=route,
        reason=route.reason,
        candidates=found.candidates,
        model_calls=found.model_calls,
        decisions=found.decisions,
    )


def _left(why: str, reason: str) -> Finding:
    return Finding(
        method="transaction",
        reason=reason,
        metadata={"transaction_interruption": why},
        released=True,
    )


def _controlled(transaction: Transaction, control: Control) -> Finding:
    left = _left(INTERRUPTED_BY[control], f"{control} in so many words")
    if transaction.status != "WORKFLOW_PAUSED":
        return left
    noted = {
        "session_control": control,
        "global_control_preempted_workflow": True,
        "workflow_interruption": INTERRUPTED_BY[control],
        "interrupted_workflow_name": transaction.tool,
        "interrupted_workflow_execution_id": transaction.execution,
    }
    return replace(left, metadata={**left.metadata, **noted})
