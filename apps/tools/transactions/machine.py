"""The state machine of one action: collect, check, confirm, carry out, report.

``turn.dialogue.transaction`` is the only truth about what is in progress (platform facts 15.1); what
is over is copied to ``last_transaction``. Values are merged, never rebuilt from the last message.
What runs is what was confirmed: the arguments are frozen with the question, and the confirmation is
used up for exactly them.
"""

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from apps.runtime.dialogue import Ask, Dialogue, Evidence, Sense, Transaction, TransactionStatus
from apps.runtime.ports import ToolPort, ToolRequest
from apps.runtime.turn import Decision, Draft, Signal, ToolCall, Turn
from apps.tools.config import ToolConfig, WorkflowConfig, WorkflowPause
from apps.tools.mapping import sources_of
from apps.tools.preparing import Reason
from apps.tools.transactions.outcome import (
    Items,
    evidence_of,
    status_of,
    summary_of,
)
from apps.tools.transactions.phrases import (
    confirmation_question,
    parameter_question,
    result_text,
    say,
)
from apps.tools.transactions.validating import Verdict, validator_verdict
from apps.tools.workflows.interface import Code, Confirmed, WorkflowResult

MAX_ASKED = 3
"""How often in a row one question is put before the action is given up."""

_NAMESPACE = uuid.UUID("6f1d2a52-4f5e-4a39-9a58-2d7c0f0a9f10")


@dataclass(frozen=True)
class Facts:
    """What the machine asks of other apps, as functions.

    ``action_of``: the action tool that the message names, "" for none. ``language_of``: the
    language tag of the conversation. ``cancelled_text``: the tenant's words for an action given up.
    ``sense_of``: the shape of an answer. ``mask_for``: hides personal data.
    """

    action_of: Callable[[Turn], str]
    language_of: Callable[[Turn], str]
    cancelled_text: Callable[[Turn], str]
    sense_of: Callable[[str], Sense]
    mask_for: Callable[[Turn], Callable[[str], str]]


class WorkflowRunner(Protocol):
    """The runs of workflows; see ``workflows.interface`` for what each says."""

    async def start(
        self,
        turn: Turn,
        workflow: str,
        inputs: Mapping[str, Any],
        run_id: str,
        *,
        agent: str = "",
        confirmed: Confirmed | None = None,
    ) -> tuple[Turn, WorkflowResult]: ...

    async def resume(self, turn: Turn, run_id: str, answer: str) -> tuple[Turn, WorkflowResult]: ...

    async def abandon(self, turn: Turn, run_id: str) -> tuple[Turn, WorkflowResult]: ...

    async def expects(self, turn: Turn, run_id: str, text: str) -> str: ...

    async def pause_of(self, turn: Turn, run_id: str) -> WorkflowPause | None: ...


class Transactions:
    """Moves the transaction of a turn. The ``TransactionPort`` of the agents' loop.

    ``workflows`` carries out tools whose execution is a workflow.
    """

    def __init__(
        self,
        tools: ToolPort,
        workflows: WorkflowRunner,
        facts: Facts,
    ) -> None:
        self._tools = tools
        self._workflows = workflows
        self._facts = facts

    # -- the ways in ---------------------------------------------------------------------------

    async def propose(self, turn: Turn, call: ToolCall) -> Turn:
        """Open a transaction for ``call``, which a model asked for and which needs a yes."""
        transaction = self._opened(turn, call.tool, dict(call.arguments), "model")
        return await self._go_on(turn, transaction)

    async def start(
        self,
        turn: Turn,
        slug: str,
        values: Mapping[str, Any],
        before: Mapping[str, Any] | None = None,
    ) -> Turn:
        """Open a transaction for the action the message names, with what it says already.

        ``before``: what earlier messages say of the rest.
        """
        opened = self._opened(turn, slug, dict(values), "said")
        return await self._go_on(turn, _merged(opened, before or {}, "earlier"))

    async def answer(self, turn: Turn) -> Turn:
        """Move the open transaction by what the message says to it (``turn.reading``)."""
        transaction, reading = turn.dialogue.transaction, turn.reading
        if transaction is None:
            return turn
        if reading.kind in ("rejects", "cancels"):
            return await self.cancel(turn, "explicit_abandonment", say_it=True)
        if transaction.status == "WORKFLOW_PAUSED":
            return await self._resume(turn, transaction)
        if reading.values:
            merged = _merged(transaction, reading.values, "said")
            return await self._go_on(turn, merged)
        if reading.kind == "confirms" and transaction.status == "AWAITING_CONFIRMATION":
            return await self._execute(turn, transaction)
        return self._ask_again(turn, transaction)

    async def cancel(self, turn: Turn, reason: str, *, say_it: bool = False) -> Turn:
        """End the open transaction: the customer gave it up, or went on to something else.

        A workflow that waits is abandoned: what it did is taken back where it says how.
        """
        transaction = turn.dialogue.transaction
        if transaction is None:
            return turn
        left = False
        if transaction.status == "WORKFLOW_PAUSED":
            turn, left = await self._abandoned(turn, transaction)
        turn = self._ended(turn, transaction, "UNKNOWN" if left else "CANCELLED", reason=reason)
        if not say_it:
            return turn
        unsure = say("unknown", self._facts.language_of(turn))
        return _speak(turn, transaction, unsure if left else self._facts.cancelled_text(turn))

    async def _abandoned(self, turn: Turn, transaction: Transaction) -> tuple[Turn, bool]:
        """Give the paused run up; return whether something it did could not be taken back."""
        turn, ended = await self._workflows.abandon(turn, transaction.execution)
        return turn, ended.unknown or bool(ended.uncompensated) or _stands(turn, ended)

    # -- collecting ----------------------------------------------------------------------------

    def _opened(self, turn: Turn, slug: str, values: dict[str, Any], origin: str) -> Transaction:
        route = turn.route
        intent = route.intent if route else ""
        if route is not None and route.plan:
            intent = route.plan[0].intent
        return Transaction(
            id=str(uuid.uuid5(_NAMESPACE, f"{turn.id}:{slug}")),
            status="COLLECTING_PARAMETERS",
            tool=slug,
            agent=route.agent if route else turn.session.agent,
            intent=intent,
            domain=route.domain if route else "",
            values=values,
            origins=dict.fromkeys(values, origin),
            started_turn=turn.session.turn_number,
        )

    async def _go_on(self, turn: Turn, transaction: Transaction) -> Turn:
        """Ask for what is missing, else check, else confirm, else carry out."""
        tool = turn.release.find(ToolConfig, transaction.tool)
        if tool is None:
            return self._blocked(turn, transaction, Reason.UNKNOWN_TOOL)
        checked = await self._check(turn, transaction)
        reason = checked.metadata.get("reason", "")
        if reason in (Reason.MISSING_ARGUMENTS, Reason.INVALID_ARGUMENTS):
            return self._collect(turn, transaction, tool, checked)
        if reason not in (Reason.READY, Reason.CONFIRMATION_REQUIRED):
            return self._blocked(turn, transaction, str(reason))
        # What the check resolves may need less than what the customer asked for: it is asked all the
        # same, and so is whatever takes the place of a question.
        asks = tool.confirmation_required or _is_asked(transaction)
        if tool.pre_validation.tool:
            turn, verdict = await self._validate(turn, transaction, tool, checked)
            if verdict.stop:
                return self._stopped(turn, transaction, verdict)
            if verdict.values or verdict.target:
                transaction = self._resolved(transaction, verdict)
                tool = turn.release.find(ToolConfig, transaction.tool)
                checked = await self._check(turn, transaction)
                usable = checked.metadata.get("reason") in (
                    Reason.READY,
                    Reason.CONFIRMATION_REQUIRED,
                )
                if tool is None or not usable:
                    return self._blocked(turn, transaction, "target_tool")
            if verdict.reconfirm:
                return self._confirm(turn, transaction, tool, checked, verdict.message)
        if asks or checked.metadata.get("reason") == Reason.CONFIRMATION_REQUIRED:
            return self._confirm(turn, transaction, tool, checked)
        return await self._execute(turn, _frozen(turn, transaction, tool, checked))

    async def _check(self, turn: Turn, transaction: Transaction) -> ToolCall:
        request = ToolRequest(
            tool=transaction.tool,
            arguments=transaction.values,
            ordinal=len(turn.tool_calls),
            agent=transaction.agent,
        )
        return await self._tools.check(turn, request)

    def _collect(
        self, turn: Turn, transaction: Transaction, tool: ToolConfig, checked: ToolCall
    ) -> Turn:
        """Ask for the first argument that is missing or wrong; a wrong value is forgotten."""
        errors = [str(error["field"]) for error in checked.field_errors]
        missing = tuple(name for name in tool.args_schema if name in errors)
        if not missing:
            return self._blocked(turn, transaction, str(checked.metadata.get("reason", "")))
        kept = {name: v for name, v in transaction.values.items() if name not in missing}
        asked = missing[0]
        again = transaction.times + 1 if transaction.asked == asked else 1
        if again > MAX_ASKED:
            return self._given_up(turn, transaction)
        language = self._facts.language_of(turn)
        question = parameter_question(tool, asked, language)
        transaction = transaction.model_copy(
            update={
                "status": "COLLECTING_PARAMETERS",
                "values": kept,
                "missing": missing,
                "asked": asked,
                "times": again,
                "question": question,
                "confirmation": "",
                "ask": None,
            }
        )
        return self._waiting(turn, transaction, question, "waiting_parameter")

    def _ask_again(self, turn: Turn, transaction: Transaction) -> Turn:
        """Nothing usable was said: the same question once more, then the action is given up."""
        if transaction.times + 1 > MAX_ASKED:
            return self._given_up(turn, transaction)
        transaction = transaction.model_copy(update={"times": transaction.times + 1})
        language = self._facts.language_of(turn)
        if transaction.status == "AWAITING_CONFIRMATION":
            text = say("unclear", language, question=transaction.question)
            return self._waiting(turn, transaction, text, "waiting_confirmation")
        return self._waiting(turn, transaction, transaction.question, "waiting_parameter")

    # -- pre-validation ------------------------------------------------------------------------

    async def _validate(
        self, turn: Turn, transaction: Transaction, tool: ToolConfig, checked: ToolCall
    ) -> tuple[Turn, Verdict]:
        """Ask the configured read-only tool whether the action is possible; no model is asked."""
        request = ToolRequest(
            tool=tool.pre_validation.tool,
            arguments=_declared(turn, tool.pre_validation.tool, checked),
            ordinal=len(turn.tool_calls),
            agent=transaction.agent,
        )
        [call] = await self._tools.call(turn, [request])
        turn = turn.evolve(tool_calls=(*turn.tool_calls, call))
        return turn, validator_verdict(call, fail_open=tool.pre_validation.fail_open)

    def _stopped(self, turn: Turn, transaction: Transaction, verdict: Verdict) -> Turn:
        language = self._facts.language_of(turn)
        if verdict.unavailable:
            text = say("unchecked", language)
            turn = self._ended(turn, transaction, "BLOCKED", reason="validator_unavailable")
        else:
            text = verdict.message or say("not_eligible", language)
            turn = self._ended(turn, transaction, "OUT_OF_SCOPE", reason=verdict.reason)
        return _speak(turn, transaction, text)

    def _resolved(self, transaction: Transaction, verdict: Verdict) -> Transaction:
        merged = _merged(transaction, verdict.values, "resolved")
        if verdict.target and verdict.target != transaction.tool:
            merged = merged.model_copy(update={"tool": verdict.target})
        return merged

    # -- confirming ----------------------------------------------------------------------------

    def _confirm(
        self,
        turn: Turn,
        transaction: Transaction,
        tool: ToolConfig,
        checked: ToolCall,
        question: str = "",
        saying: str = "",
    ) -> Turn:
        """Freeze the call and put the question; its row is written when the turn settles."""
        language = self._facts.language_of(turn)
        shown = _for_people(tool, checked.arguments)
        question = question or confirmation_question(
            transaction.tool, tool, shown, language, quiet=_known(turn, transaction, tool, shown)
        )
        transaction = _frozen(turn, transaction, tool, checked).model_copy(
            update={
                "status": "AWAITING_CONFIRMATION",
                "missing": (),
                "asked": "",
                "times": 1,
                "question": question,
            }
        )
        text = say(saying, language, question=question) if saying else question
        return self._waiting(turn, transaction, text, "waiting_confirmation")

    # -- carrying out --------------------------------------------------------------------------

    async def _execute(self, turn: Turn, transaction: Transaction) -> Turn:
        """Run exactly what was frozen; the confirmation is used up by it."""
        tool = turn.release.find(ToolConfig, transaction.tool)
        if tool is None or transaction.ask is None:
            return self._blocked(turn, transaction, Reason.UNKNOWN_TOOL)
        if tool.execution.mode == "workflow":
            return await self._start_workflow(turn, transaction, tool)
        request = ToolRequest(
            tool=transaction.tool,
            arguments=json.loads(transaction.ask.arguments),
            ordinal=len(turn.tool_calls),
            confirmation=transaction.confirmation,
            asked=_is_asked(transaction),
            agent=transaction.agent,
        )
        [call] = await self._tools.call(turn, [request])
        if call.status == "refused" and "confirmation" in call.metadata:
            return await self._reconfirm(turn, transaction, str(call.metadata["confirmation"]))
        turn = turn.evolve(tool_calls=(*turn.tool_calls, call))
        status, items = status_of(call)
        evidence = None
        if call.status != "refused":
            mask = self._facts.mask_for(turn)
            evidence = evidence_of(tool, call, status, turn.session.turn_number, mask)
        turn = self._ended(
            turn,
            transaction,
            status,
            reason=call.error or str(call.metadata.get("reason", "")),
            items=items,
            evidence=evidence,
        )
        return self._report(turn, transaction, tool, call, status)

    async def _reconfirm(self, turn: Turn, transaction: Transaction, answer: str) -> Turn:
        """The yes does not hold for what would run now: put the question anew, or stop.

        One that another turn used up, which did not end: nobody knows what became of the action.
        """
        if answer == "used":
            turn = self._ended(turn, transaction, "UNKNOWN", reason="confirmation_used")
            return _speak(turn, transaction, say("unknown", self._facts.language_of(turn)))
        tool = turn.release.get(ToolConfig, transaction.tool)
        again = transaction.model_copy(update={"confirmation": "", "ask": None})
        checked = await self._check(turn, again)
        reason = checked.metadata.get("reason")
        if reason != Reason.CONFIRMATION_REQUIRED:
            return await self._go_on(turn, again)
        saying = "expired" if answer == "expired" else "changed"
        return self._confirm(turn, again, tool, checked, saying=saying)

    def _report(
        self,
        turn: Turn,
        transaction: Transaction,
        tool: ToolConfig,
        call: ToolCall,
        status: TransactionStatus,
    ) -> Turn:
        """Say what must not be left to a model: an unknown end, a refusal, a fixed presentation."""
        language = self._facts.language_of(turn)
        if status == "UNKNOWN":
            return _speak(turn, transaction, say("unknown", language))
        if status == "BLOCKED":
            return _speak(turn, transaction, say("refused", language))
        if status == "FAILED" and not call.ok and not isinstance(call.result, Mapping):
            return _speak(turn, transaction, self._failed(turn, call))
        if tool.response.template and not _composed(call.result):
            text = result_text(tool.response.template, call.result, call.arguments)
            if text and tool.response.direct:
                return _speak(turn, transaction, text)
        return turn

    # -- workflows -----------------------------------------------------------------------------

    async def _start_workflow(self, turn: Turn, transaction: Transaction, tool: ToolConfig) -> Turn:
        ask = transaction.ask
        assert ask is not None
        turn, result = await self._workflows.start(
            turn,
            tool.execution.workflow,
            json.loads(ask.arguments),
            str(uuid.uuid5(_NAMESPACE, f"run:{transaction.id}:{transaction.confirmation}")),
            agent=transaction.agent,
            confirmed=Confirmed(
                tool=transaction.tool,
                confirmation=transaction.confirmation
                if tool.confirmation_required or _is_asked(transaction)
                else "",
            ),
        )
        if result.code == Code.NOT_CONFIRMED:
            return await self._reconfirm(turn, transaction, result.error)
        return self._workflow_moved(turn, transaction, tool, result)

    async def _resume(self, turn: Turn, transaction: Transaction) -> Turn:
        answer = turn.reading.values.get("answer", turn.text)
        turn, result = await self._workflows.resume(turn, transaction.execution, str(answer))
        tool = turn.release.find(ToolConfig, transaction.tool)
        if tool is None:
            return self._blocked(turn, transaction, Reason.UNKNOWN_TOOL)
        again = result.status == "PAUSED" and result.node == transaction.node
        if again and transaction.times >= MAX_ASKED:
            turn, left = await self._abandoned(turn, transaction)
            if not left:
                return self._given_up(turn, transaction)
            turn = self._ended(turn, transaction, "UNKNOWN", reason="not_understood")
            return _speak(turn, transaction, say("unknown", self._facts.language_of(turn)))
        return self._workflow_moved(turn, transaction, tool, result)

    def _workflow_moved(
        self, turn: Turn, transaction: Transaction, tool: ToolConfig, result: WorkflowResult
    ) -> Turn:
        if result.status == "PAUSED":
            same = transaction.status == "WORKFLOW_PAUSED" and transaction.node == result.node
            times = transaction.times + 1 if same else 1
            paused = transaction.model_copy(
                update={
                    "status": "WORKFLOW_PAUSED",
                    "execution": result.execution_id,
                    "node": result.node,
                    "question": result.question,
                    "times": times,
                    "confirmation": "",
                    "ask": None,
                }
            )
            return self._waiting(turn, paused, result.question, "waiting_parameter")
        status: TransactionStatus = "COMPLETED" if result.status == "COMPLETED" else "FAILED"
        items = Items()
        if result.items is not None:
            items = Items(count=result.items.count, succeeded=result.items.succeeded)
        if items.count and items.failed:
            status = "PARTIAL_SUCCESS" if items.succeeded else "FAILED"
        if result.unknown:
            status = "UNKNOWN"
        evidence = Evidence(
            tool=transaction.tool,
            status=status,
            resource=str(transaction.values.get(tool.resource_argument, "")),
            turn=turn.session.turn_number,
            summary=summary_of(_flat(result.outputs), self._facts.mask_for(turn)),
        )
        turn = self._ended(
            turn, transaction, status, reason=result.error, items=items, evidence=evidence
        )
        language = self._facts.language_of(turn)
        if status == "UNKNOWN":
            return _speak(turn, transaction, say("unknown", language))
        if result.text:
            return _speak(turn, transaction, result.text)
        if status == "FAILED":
            last = next((c for c in reversed(turn.tool_calls) if c.status == "error"), None)
            return _speak(turn, transaction, self._failed(turn, last))
        return turn

    def _failed(self, turn: Turn, call: ToolCall | None) -> str:
        """Return what is said of an action that failed: the tool's own words, not a connection's."""
        language = self._facts.language_of(turn)
        said = call is not None and "unavailable" not in call.metadata and call.error.strip()
        if not said:
            return say("failed_plain", language)
        return say("failed", language, reason=self._facts.mask_for(turn)(said))

    # -- how it ends ---------------------------------------------------------------------------

    def _blocked(self, turn: Turn, transaction: Transaction, reason: str) -> Turn:
        turn = self._ended(turn, transaction, "BLOCKED", reason=reason)
        return _speak(turn, transaction, say("refused", self._facts.language_of(turn)))

    def _given_up(self, turn: Turn, transaction: Transaction) -> Turn:
        turn = self._ended(turn, transaction, "CANCELLED", reason="not_understood")
        return _speak(turn, transaction, say("given_up", self._facts.language_of(turn)))

    def _ended(
        self,
        turn: Turn,
        transaction: Transaction,
        status: TransactionStatus,
        *,
        reason: str = "",
        items: Items | None = None,
        evidence: Evidence | None = None,
    ) -> Turn:
        """Clear the latch: what comes next is a new interaction (platform facts 15.1, fault 36)."""
        counted = items or Items()
        last = transaction.model_copy(
            update={
                "status": status,
                "reason": self._facts.mask_for(turn)(reason)[:300],
                "ended_turn": turn.session.turn_number,
                "missing": (),
                "asked": "",
                "ask": None,
                "items_count": counted.count,
                "items_succeeded": counted.succeeded,
                "items_failed": counted.failed,
            }
        )
        dialogue = turn.dialogue.evolve(transaction=None, last_transaction=last, boundary=True)
        if evidence is not None:
            dialogue = dialogue.remember(evidence)
        return _noted(turn.evolve(dialogue=dialogue), last)

    def _waiting(self, turn: Turn, transaction: Transaction, text: str, outcome: str) -> Turn:
        turn = turn.evolve(dialogue=turn.dialogue.evolve(transaction=transaction))
        turn = turn.evolve(prepared=Draft(text=text, agent=transaction.agent, outcome=outcome))
        return _noted(turn, transaction)


def _is_asked(transaction: Transaction) -> bool:
    """Whether the customer was asked for a yes to it."""
    return transaction.status == "AWAITING_CONFIRMATION"


def _merged(transaction: Transaction, values: Mapping[str, Any], origin: str) -> Transaction:
    """Return ``transaction`` with ``values`` over what it knew; an open question is void."""
    return transaction.model_copy(
        update={
            "values": {**transaction.values, **values},
            "origins": {**transaction.origins, **dict.fromkeys(values, origin)},
            "missing": tuple(name for name in transaction.missing if name not in values),
            "confirmation": "",
            "ask": None,
        }
    )


def _frozen(
    turn: Turn, transaction: Transaction, tool: ToolConfig, checked: ToolCall
) -> Transaction:
    """Return ``transaction`` with the call as it was checked; nothing else can run for it."""
    contract, arguments = str(checked.metadata["contract"]), str(checked.metadata["arguments"])
    name = f"{turn.id}:{transaction.id}:{contract}:{arguments}"
    return transaction.model_copy(
        update={
            "confirmation": str(uuid.uuid5(_NAMESPACE, name)),
            "ask": Ask(contract=contract, arguments=arguments, seconds=tool.confirmation_seconds),
        }
    )


def _declared(turn: Turn, slug: str, checked: ToolCall) -> dict[str, Any]:
    """Return what of ``checked``'s arguments the tool ``slug`` declares."""
    tool = turn.release.find(ToolConfig, slug)
    if tool is None:
        return {}
    return {name: v for name, v in checked.arguments.items() if name in tool.args_schema}


def _for_people(tool: ToolConfig, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments a customer is told: what the platform adds by itself is not theirs."""
    hidden = ("constant", "secret")
    return {
        name: value
        for name, value in arguments.items()
        if name in tool.args_schema and tool.args_schema[name].source not in hidden
    }


def _known(
    turn: Turn, transaction: Transaction, tool: ToolConfig, shown: Mapping[str, Any]
) -> set[str]:
    """Return the arguments that nobody said: who the customer is, the session, a default."""
    sources = sources_of(turn.release, transaction.tool, tool)
    session = {"session_key", "interaction_key"}
    return {
        name
        for name, value in shown.items()
        if name in sources.customer
        or session.issuperset(sources.context.get(name, ("",)))
        or (name in sources.defaults and sources.defaults[name] == value)
    }


def _stands(turn: Turn, ended: WorkflowResult) -> bool:
    """Whether an action of the run is done and was not taken back: nobody may say it was not."""
    workflow = turn.release.find(WorkflowConfig, ended.workflow)
    for node in workflow.nodes if workflow is not None else ():
        tool = turn.release.find(ToolConfig, node.tool)
        done = node.id in ended.outputs and node.id not in ended.compensated
        if done and tool is not None and tool.transactional:
            return True
    return False


def _flat(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of all nodes' results; of equal names the last node's."""
    return {
        key: value
        for output in outputs.values()
        if isinstance(output, Mapping)
        for key, value in output.items()
    }


def _composed(result: Any) -> bool:
    """Whether the result asks for a model's words instead of a fixed text (platform facts 4.8)."""
    return isinstance(result, Mapping) and result.get("requires_llm_composition") is True


def _speak(turn: Turn, transaction: Transaction, text: str) -> Turn:
    return turn.evolve(prepared=Draft(text=text, agent=transaction.agent))


def _noted(turn: Turn, transaction: Transaction) -> Turn:
    """Record the move; values stay out of it, they are in the transaction itself."""
    data = {
        "transaction": transaction.id,
        "tool": transaction.tool,
        "status": transaction.status,
        "reason": transaction.reason,
        "missing": list(transaction.missing),
    }
    signal = Signal(code="IC.TRANSACTION_STATUS", component="transactions", data=data)
    return turn.evolve(signals=(*turn.signals, signal))


def inconsistency(dialogue: Dialogue, state: str) -> Decision | None:
    """Return the finding that a state says collecting while no transaction is open, if so.

    It is reported, never repaired by starting anew (platform facts 15.1).
    """
    if dialogue.transaction is not None or not state.startswith("COLLECTING_"):
        return None
    return Decision(
        phase="route",
        code="TRANSACTION_INCONSISTENT",
        action="observe",
        reason=f"state {state} without an open transaction",
    )
