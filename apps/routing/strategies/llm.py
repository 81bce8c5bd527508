"""Asks a model which of the allowed intents a message is about; its answer is checked."""

from collections.abc import Mapping
from typing import Any

from apps.routing.asking import (
    MAX_MESSAGE_CHARS,
    confidence_of,
    lines_of,
    opinion_ask,
    reason_of,
)
from apps.routing.strategies.face import Finding, Question
from apps.runtime.turn import Candidate

OPERATION = "router.intent"
# Of a release with more intents, those of the highest priority are put to the model.
MAX_INTENTS = 200
MAX_TEXT_CHARS = 200
HISTORY_TURNS = 2
# What a model that gives no confidence is taken to have (platform facts 3.1).
DEFAULT_CONFIDENCE = 0.5

_SYSTEM = (
    "You choose which intent a customer's message is about. Choose only from the list `intents`."
    ' Reply as {"intent": "...", "agent": "...", "confidence": 0.0 to 1.0, "reason": "..."} with the'
    ' intent and its agent exactly as listed, or with "intent": "none" when none fits.'
)


async def by_llm(question: Question) -> Finding:
    """Return the model's intent with its confidence, when it names one that may answer here.

    An intent that the release lacks or another agent's, an unreadable or failing answer, and a
    profile that is not there give no candidate: the next strategy decides (fault 11).
    """
    said = await opinion_ask(
        question,
        profile=question.policy.router_profile,
        operation=OPERATION,
        system=_SYSTEM,
        data=_data(question),
    )
    finding = Finding(
        method="llm", reason=said.reason, model_calls=said.model_calls, decisions=said.decisions
    )
    if said.data is None:
        return finding
    candidate, why = _checked(question, said.data)
    return Finding(
        method="llm",
        candidates=(candidate,) if candidate else (),
        reason=f"model: {why}",
        model_calls=said.model_calls,
    )


def _checked(question: Question, data: Mapping[str, Any]) -> tuple[Candidate | None, str]:
    intent, agent = data.get("intent"), data.get("agent")
    confidence = confidence_of(data, DEFAULT_CONFIDENCE)
    if intent == "none":
        return None, "none fits"
    if not isinstance(intent, str) or intent not in question.index.intents:
        return None, "named no intent of the release"
    if not question.admits(intent):
        return None, "named an intent that may not answer here"
    owner = question.index.intents[intent].agent
    if agent not in (None, "", owner):
        return None, "named another agent than the intent's"
    if confidence is None:
        return None, "gave no usable confidence"
    return Candidate(intent=intent, agent=owner, score=confidence), reason_of(data) or "no reason"


def _data(question: Question) -> dict[str, Any]:
    turn, dialogue = question.turn, question.turn.dialogue
    return {
        "message": turn.text[:MAX_MESSAGE_CHARS],
        "intents": _intents(question),
        "conversation": lines_of(turn.memory, HISTORY_TURNS),
        "session": {
            "active_agent": dialogue.active_agent,
            "active_intent": dialogue.active_intent,
            "state": question.state,
        },
    }


def _intents(question: Question) -> list[dict[str, Any]]:
    allowed = sorted(
        (config.priority, slug)
        for slug, config in question.index.intents.items()
        if question.admits(slug)
    )
    shown = []
    for _, slug in allowed[:MAX_INTENTS]:
        config = question.index.intents[slug]
        examples = config.examples[: question.policy.router_examples]
        shown.append(
            {
                "intent": slug,
                "agent": config.agent,
                "description": config.description[:MAX_TEXT_CHARS],
                "examples": [example[:MAX_TEXT_CHARS] for example in examples],
            }
        )
    return shown
