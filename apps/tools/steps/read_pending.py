"""Reads a message in the light of the action that is open, before anybody is routed to.

Nothing runs here. What the message fills, confirms, rejects or gives up is noted as
``turn.reading``; routing decides with it whether the action goes on (platform facts 3.6).
"""

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Literal

from apps.runtime.dialogue import Reading, Sense, Transaction
from apps.runtime.text import fold, words
from apps.runtime.turn import Turn
from apps.tools.config import ToolConfig
from apps.tools.mapping import extractor_of
from apps.tools.model_extraction import ModelExtraction
from apps.tools.transactions.machine import WorkflowRunner, inconsistency
from apps.tools.transactions.reading import asked_of
from apps.tools.transactions.values import Asked, identifiers_in, values_said

OTHER_VALUES = "it names other values"
"""Why an answer is unclear that no model is asked about: its yes would be to something else."""

_JOINED = re.compile(r"[\s,.;:!]*(?:\b(?:e|and|y)\b)?[\s,.;:!]*$", re.IGNORECASE)
_SENTENCE = re.compile(r"[.!;,\n]+\s+")

Classify = Callable[[Turn, str], Awaitable[tuple[Turn, Literal["yes", "no", "open"]]]]
"""Asks a model what an unclear answer to the question means, where the tenant wants that."""


class ReadPending:
    """Sets ``turn.reading``.

    ``sense_of`` gives the shape of an answer, ``classify`` a model's opinion of an unclear one,
    ``extraction`` what a model reads of the open arguments when nothing else did.
    """

    def __init__(
        self,
        sense_of: Callable[[str], Sense],
        workflows: WorkflowRunner,
        classify: Classify,
        extraction: ModelExtraction,
    ) -> None:
        self._sense_of = sense_of
        self._workflows = workflows
        self._classify = classify
        self._extraction = extraction

    async def __call__(self, turn: Turn) -> Turn:
        if finding := inconsistency(turn.dialogue, turn.session.next_state):
            turn = turn.decide(finding)
        transaction = turn.dialogue.transaction
        if transaction is None or not transaction.open:
            return turn
        if transaction.status == "WORKFLOW_PAUSED":
            turn, reading = await self._paused(turn, transaction)
            return turn.evolve(reading=reading)
        reading = self._read(turn, transaction)
        if reading.kind == "unclear" and transaction.status == "COLLECTING_PARAMETERS":
            turn, values = await self._extraction.pending(
                turn, transaction.tool, transaction.missing
            )
            if values:
                reading = Reading(kind="fills", values=values, source="semantic")
        awaiting = transaction.status == "AWAITING_CONFIRMATION"
        if reading.kind == "unclear" and awaiting and reading.reason != OTHER_VALUES:
            turn, opinion = await self._classify(turn, transaction.question)
            if opinion != "open":
                kind: Literal["confirms", "rejects"] = "confirms" if opinion == "yes" else "rejects"
                reading = Reading(kind=kind, source="semantic")
        return turn.evolve(reading=reading)

    def _read(self, turn: Turn, transaction: Transaction) -> Reading:
        sense = self._sense_of(turn.text)
        tool = turn.release.find(ToolConfig, transaction.tool)
        if tool is None:
            return Reading(kind="unclear", reason="the tool is gone")
        collecting = transaction.status == "COLLECTING_PARAMETERS"
        if sense.abandons or (sense.stops and not _about(tool, turn.text)):
            return Reading(kind="cancels", rest=sense.rest)
        said = sense.rest if sense.rest and (sense.yes or sense.no) else turn.text
        asked = asked_of(turn, tool, transaction)
        values = values_said(asked, said, sense, extractor_of(turn, transaction.tool))
        if collecting:
            if values:
                return Reading(kind="fills", values=values)
            if sense.no and not sense.rest:
                return Reading(kind="unclear", reason="no, to a question for a value")
            # A request may still be the answer ("porque quero um maior"), if nobody else is meant.
            return Reading(kind="unclear", values=_as_text(asked, turn.text, sense))
        if values and (not sense.requests or _corrects(tool, transaction, values, said)):
            # A correction: whatever yes stood before it was not to these values.
            return Reading(kind="fills", values=values)
        if _names_another(transaction, said):
            return Reading(kind="unclear", reason=OTHER_VALUES)
        if sense.yes and not sense.but:
            return Reading(kind="confirms", rest=sense.rest)
        if sense.no:
            return Reading(kind="rejects", rest=sense.rest)
        return Reading(kind="unclear", reason=OTHER_VALUES if values else "")

    async def _paused(self, turn: Turn, transaction: Transaction) -> tuple[Turn, Reading]:
        """The literal expected answer resumes; giving up is heard; anything else is open.

        An answer with more to say ("ainda não. Eu não contratei esse item") is read anew with all
        its words before it resumes anything (fault 37). Then a model may say which accepted answer
        is meant, where the question wants that.
        """
        run = transaction.execution
        if answer := await self._workflows.expects(turn, run, turn.text):
            return turn, Reading(kind="resumes", values={"answer": answer})
        sense = self._sense_of(turn.text)
        if sense.abandons or sense.stops:
            return turn, Reading(kind="cancels", rest=sense.rest)
        if sense.yes and sense.rest and not sense.but:
            head = _JOINED.sub("", turn.text.strip()[: -len(sense.rest)])
            if answer := await self._workflows.expects(turn, run, head):
                # "Sim, e me manda a fatura": it goes on, and the rest is served as well.
                values = {"answer": answer}
                return turn, Reading(kind="resumes", values=values, rest=sense.rest)
        head, more = _first_sentence(turn.text)
        plain = self._sense_of(head).yes
        # After a plain yes a question may be a condition: it is asked again, nothing is left.
        if more and not plain and (answer := await self._workflows.expects(turn, run, head)):
            reentry = "contextual_reentry"
            values = {"answer": answer}
            return turn, Reading(kind="unclear", values=values, rest=more, reason=reentry)
        pause = await self._workflows.pause_of(turn, run)
        if pause is None or not pause.classify_profile:
            return turn, Reading(kind="unclear")
        turn, answer = await self._extraction.choice(
            turn, pause.classify_profile, transaction.question, pause.allowed_values
        )
        if not answer:
            return turn, Reading(kind="unclear")
        return turn, Reading(kind="resumes", values={"answer": answer}, source="semantic")


def _as_text(asked: Asked, text: str, sense: Sense) -> dict[str, Any]:
    if "?" in text:
        return {}
    plain = sense.model_copy(update={"requests": False})
    return values_said(asked, text, plain, lambda name, said: None)


def _first_sentence(text: str) -> tuple[str, str]:
    """Return the first sentence of ``text`` and what follows it, both without their marks."""
    head, _mark, more = _SENTENCE.sub("\n", text.strip(), count=1).partition("\n")
    return head.strip(), more.strip()


def _corrects(
    tool: ToolConfig, transaction: Transaction, values: Mapping[str, Any], said: str
) -> bool:
    """Whether a request that names other ``values`` means the open action all the same.

    It does when it names the action, or a thing of the same kind as the one that was asked about
    ("PED-1002" beside "PED-1001"): a yes to the one is none to the other.
    """
    if _about(tool, said):
        return True
    known = transaction.values
    return any(
        name in known and _form(value) == _form(known[name]) for name, value in values.items()
    )


def _names_another(transaction: Transaction, said: str) -> bool:
    """Whether ``said`` names another thing of a kind that the question was about."""
    asked = json.loads(transaction.ask.arguments) if transaction.ask is not None else {}
    known = {fold(str(value)) for value in _flat([asked, transaction.values])}
    forms = {_form(value) for value in known if any(char.isdigit() for char in value)}
    return any(_form(one) in forms for one in identifiers_in(said) if fold(one) not in known)


def _flat(value: Any) -> Iterator[Any]:
    """Yield the plain values in ``value``."""
    if isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _flat(inner)
    else:
        yield value


def _form(value: Any) -> str:
    """Return what ``value`` looks like: equal for two identifiers of one kind.

    A number's length tells its kind; where letters do, the number's does not count.
    """
    text = fold(str(value))
    return re.sub(r"\d" if text.isdigit() else r"\d+", "0", text)


def _about(tool: ToolConfig, text: str) -> bool:
    """Whether the bare word for stopping is what the action itself is called ("cancela")."""
    said = {word[:5] for word in words(text)}
    named = {word[:5] for phrase in tool.selection_keywords for word in words(phrase)}
    return bool(said & named) or fold(text) in {fold(phrase) for phrase in tool.selection_keywords}
