"""What a workflow run tells its caller, and what a caller tells it. Pure.

``Workflows`` in ``engine.py`` has these faces; each returns the turn with the tool calls that were
made, and raises only ``LeaseLost``::

    start(turn, workflow, inputs, run_id, *, agent="", confirmed=None) -> (Turn, WorkflowResult)
    resume(turn, run_id, answer)                                       -> (Turn, WorkflowResult)
    abandon(turn, run_id)                                              -> (Turn, WorkflowResult)
    expects(turn, run_id, text)                                        -> the accepted answer, or ""
    pause_of(turn, run_id)                                             -> the open question, or None
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


class Code:
    """Why a run did not complete: ``WorkflowResult.code``."""

    UNKNOWN_WORKFLOW = "unknown_workflow"
    UNKNOWN_RUN = "unknown_run"
    NOT_CONFIRMED = "not_confirmed"
    NOT_ITS_WORKFLOW = "not_its_workflow"
    IN_PROGRESS = "in_progress"
    """The same request of this customer runs in another conversation."""
    NODE_FAILED = "node_failed"
    NODE_UNKNOWN = "node_unknown"
    ABANDONED = "abandoned"
    NEEDLESS_ANSWER = "not_paused"
    TOO_LONG = "too_long"


@dataclass(frozen=True)
class Confirmed:
    """The call that a run carries out: ``tool`` with the run's inputs as its arguments.

    ``confirmation``: id of the recorded question the customer said yes to, "" for a tool that needs
    none. The release must say that this workflow is the tool's execution.
    """

    tool: str
    confirmation: str = ""


@dataclass(frozen=True)
class ErrorDetails:
    """What the failed tool said: ``status_code`` when its transport has one, ``body`` its result."""

    status_code: int | None = None
    body: Any = None
    attempts: int = 0


NodeStatus = Literal[
    "ok", "failed", "refused", "unknown", "skipped", "asked", "answered", "compensated",
    "compensation_failed", "compensation_unknown",
]  # fmt: skip


@dataclass(frozen=True)
class NodeTrace:
    """One thing that happened in a run, in order. ``visit`` counts how often a node was reached."""

    node: str
    status: NodeStatus
    tool: str = ""
    visit: int = 1
    attempts: int = 0
    error: str = ""


@dataclass(frozen=True)
class Items:
    """A tool that did several things: how each fared (platform facts 15.4).

    ``original_ok``: what the tool said of the whole.
    """

    status: Literal["SUCCESS", "PARTIAL_SUCCESS", "FAILED"]
    items: tuple[Mapping[str, Any], ...]
    original_ok: bool

    @property
    def count(self) -> int:
        return len(self.items)

    @property
    def succeeded(self) -> int:
        return sum(item_ok(item) for item in self.items)

    @property
    def failed(self) -> int:
        return self.count - self.succeeded


def item_ok(item: Mapping[str, Any]) -> bool:
    """Return what an entry of ``results`` says of itself."""
    return bool(item.get("success", item.get("ok")))


@dataclass(frozen=True)
class WorkflowResult:
    """How far a run is.

    ``PAUSED``: ``node`` waits for an answer to ``question`` (``allowed_values`` empty: any text;
    ``reprompted``: the last answer was none of them). ``COMPLETED`` and ``FAILED`` are final: the
    next message belongs to something new. ``outputs``: finished node -> its tool's result.

    Of a failure: ``code``, ``node``, ``error``, ``error_details``; ``unknown`` when something was
    sent and nobody knows whether it was carried out: nothing is undone then and nothing repeated.
    ``compensated`` and ``uncompensated`` are nodes whose effect was, or could not be, taken back.

    ``items``: from the node named like the tool. ``secondary_error``: what failed after the items
    were done; the items stand. ``text``: the workflow's closing text, "" when the agent composes.
    ``replayed``: it was finished before, this is what came of it then.
    """

    status: Literal["PAUSED", "COMPLETED", "FAILED"]
    execution_id: str
    workflow: str
    node: str = ""
    question: str = ""
    allowed_values: tuple[str, ...] = ()
    reprompted: bool = False
    outputs: Mapping[str, Any] = field(default_factory=dict)
    trace: tuple[NodeTrace, ...] = ()
    code: str = ""
    error: str = ""
    error_details: ErrorDetails | None = None
    unknown: bool = False
    compensated: tuple[str, ...] = ()
    uncompensated: tuple[str, ...] = ()
    items: Items | None = None
    secondary_error: str = ""
    text: str = ""
    replayed: bool = False

    @property
    def final(self) -> bool:
        """Whether nothing more is awaited: it wins over whatever waited before (fault 36)."""
        return self.status != "PAUSED"

    @property
    def run_status(self) -> str:
        """Return how its run is kept: COMPENSATED and UNKNOWN are ways to have failed."""
        if self.status != "FAILED":
            return self.status
        if self.unknown:
            return "UNKNOWN"
        return "COMPENSATED" if self.compensated and not self.uncompensated else "FAILED"
