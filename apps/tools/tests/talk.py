"""A conversation about one action, turn by turn, for tests: only the steps of this app run."""

from dataclasses import dataclass, field, replace
from typing import Any

from apps.routing.answers import answer_sense
from apps.runtime.dialogue import Dialogue, dialogue_load
from apps.runtime.release import Release
from apps.runtime.testing import FakeConfirmations, FakeLedger, FakeModel
from apps.runtime.turn import BusinessContext, Caller, ChatMessage, Route, SessionState, Turn
from apps.tools.config import Argument, ToolConfig, WorkflowPause
from apps.tools.model_extraction import ModelExtraction
from apps.tools.steps.read_pending import ReadPending
from apps.tools.steps.transact import Transact
from apps.tools.tests.world import AGENT, BINDINGS, TRUSTED, caller_of, release, turn
from apps.tools.transactions.machine import Facts, Transactions, WorkflowRunner
from apps.tools.workflows.interface import WorkflowResult

CANCEL = ToolConfig(
    description="Cancelar o pedido",
    mcp_server="retail",
    tool_type="action",
    confirmation_required=True,
    selection_keywords=["cancelar", "cancelamento"],
    args_schema={
        "order_id": Argument(label="pedido", user_prompt="Qual é o número do pedido?"),
        "reason": Argument(label="motivo", user_prompt="Qual é o motivo?"),
    },
    requires=["order_id", "reason"],
    resource_argument="order_id",
)
DISPUTE = ToolConfig(
    description="Contestar a cobrança",
    mcp_server="telecom",
    tool_type="action",
    confirmation_required=True,
    args_schema={"valor": Argument(type="number", user_prompt="Qual é o valor?")},
    requires=["valor"],
)


def world(**tools: ToolConfig) -> Release:
    """Return the release of this app's tests with actions to confirm."""
    return release(
        tools={"cancelar_pedido": CANCEL, "contestar": DISPUTE, **tools},
        mappings={"cancelar_pedido": _mapping("cancelar_pedido")},
    )


def _mapping(tool: str) -> Any:
    from apps.tools.config import ParameterMappingConfig

    return ParameterMappingConfig(tool=tool, map={"contract_key": "order_id"})


class NoWorkflows:
    """No workflow is configured in these tests."""

    async def start(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("no workflow here")

    resume = abandon = expects = pause_of = start


class PausingWorkflow:
    """A workflow that asks "sim" or "ainda não" once, then is done; ``abandoned`` runs are noted.

    ``profile``: of the model that may read an unclear answer.
    """

    def __init__(self, profile: str = "") -> None:
        self.profile = profile
        self.answers: list[str] = []
        self.abandoned: list[str] = []
        self.left: tuple[str, ...] = ()

    async def start(
        self, turn: Turn, workflow: str, inputs: Any, run_id: str, **kwargs: Any
    ) -> Any:
        paused = WorkflowResult("PAUSED", run_id, workflow, node="ask", question="Já chegou?")
        return turn, paused

    async def resume(self, turn: Turn, run_id: str, answer: str) -> Any:
        self.answers.append(answer)
        if not await self.expects(turn, run_id, answer):
            again = WorkflowResult("PAUSED", run_id, "flow", node="ask", question="Sim ou não?")
            return turn, again
        done = WorkflowResult("COMPLETED", run_id, "flow", outputs={"open": {"protocolo": "W-1"}})
        return turn, done

    async def abandon(self, turn: Turn, run_id: str) -> Any:
        self.abandoned.append(run_id)
        ended = WorkflowResult(
            "FAILED",
            run_id,
            "flow",
            code="abandoned",
            uncompensated=self.left,
            outputs={"open": {"protocolo": "W-1"}},
        )
        return turn, ended

    async def pause_of(self, turn: Turn, run_id: str) -> WorkflowPause:
        values = ["sim", "ainda não"]
        return WorkflowPause(
            key="a", question="Já chegou?", allowed_values=values, classify_profile=self.profile
        )

    async def expects(self, turn: Turn, run_id: str, text: str) -> str:
        said = text.strip(" .").lower()
        return said if said in ("sim", "ainda não") else ""


@dataclass
class Talk:
    """Says messages one after the other; ``turns`` are what they became.

    The dialogue goes through its stored text between two turns, as a session's does.
    """

    transport: Any
    release: Release = field(default_factory=world)
    action: str = "cancelar_pedido"
    context: dict[str, str] = field(default_factory=dict)
    caller: Caller = TRUSTED
    workflows: WorkflowRunner = field(default_factory=NoWorkflows)
    opinion: str = "open"
    readings: tuple[str, ...] = ()
    ledger: FakeLedger = field(default_factory=FakeLedger)
    confirmations: FakeConfirmations = field(default_factory=FakeConfirmations)
    turns: list[Turn] = field(default_factory=list)
    stored: str = "{}"
    memory: tuple[ChatMessage, ...] = ()
    asked_model: int = 0

    @property
    def last(self) -> Turn:
        return self.turns[-1]

    @property
    def dialogue(self) -> Dialogue:
        return dialogue_load(self.stored)

    @property
    def status(self) -> str:
        """Of the open action, else of the last one."""
        one = self.dialogue.transaction or self.dialogue.last_transaction
        return one.status if one else ""

    @property
    def said(self) -> str:
        return self.last.prepared.text if self.last.prepared else ""

    async def say(self, text: str, *, elsewhere: bool = False, again: bool = False) -> "Talk":
        """Say ``text``; ``elsewhere``: routing goes to another intent. ``again``: the same turn."""
        number = len(self.turns) if again else len(self.turns) + 1
        begun = replace(
            turn(context=self.context, caller=self.caller, release=self.release, bindings=BINDINGS),
            id=f"t{number}",
            text=text,
            session=SessionState(
                id="1",
                key="default:agent:s1",
                agent=AGENT,
                turn_number=number,
                dialogue=self.dialogue,
            ),
            dialogue=self.dialogue,
            memory=self.memory,
            business_context=BusinessContext(values=self.context),
        )
        tools = caller_of(self.transport, self.ledger, confirmations=self.confirmations)
        facts = Facts(
            action_of=lambda turn: "" if elsewhere else self.action,
            language_of=lambda turn: "pt-BR",
            cancelled_text=lambda turn: "Tudo bem, não vou fazer isso.",
            sense_of=answer_sense,
            mask_for=lambda turn: lambda text: text,
        )
        extraction = ModelExtraction(FakeModel(*self.readings))
        read = ReadPending(answer_sense, self.workflows, self._classify, extraction)
        transact = Transact(Transactions(tools, self.workflows, facts), facts, extraction)
        walked = await read(begun)
        open_one = walked.dialogue.transaction is not None and not elsewhere
        walked = walked.evolve(
            route=Route(
                agent=AGENT,
                intent="other" if elsewhere else "order_cancel",
                method="transaction" if open_one else "keyword",
                confidence=1.0,
                tools=(self.action,),
            )
        )
        walked = await transact(walked)
        self.confirmations.ask(walked)
        self.stored = walked.dialogue.dump()
        self.turns.append(walked)
        return self

    async def _classify(self, turn: Turn, question: str) -> Any:
        self.asked_model += 1
        return turn, self.opinion
