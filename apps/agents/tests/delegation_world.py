"""Several agents, each with a model of its own, for tests of delegation."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from apps.agents.config import AgentConfig, ModelProfileConfig, PromptConfig
from apps.agents.history import history_check
from apps.agents.providers.shapes import plain_shape, tools_shape
from apps.agents.step import RunAgent
from apps.agents.tests.builders import Tools
from apps.runtime.dialogue import Dialogue
from apps.runtime.ports import ModelFailed, ModelReply, ModelRequest, ModelToolCall
from apps.runtime.release import Release
from apps.runtime.testing import release_of, turn_of
from apps.runtime.turn import ChatMessage, ModelCall, Route, SessionState, Turn

INFOS: dict[str, dict[str, Any]] = {
    "consultar_fatura": {"description": "Consulta a fatura"},
    "consultar_pedido": {},
    "consultar_titulo": {},
    "solicitar_troca": {"action": True},
    "cancelar": {"action": True, "confirmation_required": True},
}


def world(**agents: Mapping[str, Any]) -> Release:
    """Return a release with ``agents``; each has a prompt and a model profile of its own name."""
    return release_of(
        agent={
            slug: AgentConfig(
                **{"prompt": slug, "model_profile": slug, "tool_use": "model", **fields}
            )
            for slug, fields in agents.items()
        },
        prompt={
            slug: PromptConfig(system=f"Persona {slug}.", require_evidence=False) for slug in agents
        },
        model_profile={slug: ModelProfileConfig(provider="scripted") for slug in agents},
    )


def calls(*asked: tuple[str, Any], text: str = "", finish: str = "tool_calls") -> ModelReply:
    """Return a reply that calls functions: (name, arguments or the text that was written)."""
    return ModelReply(
        text=text,
        tool_calls=tuple(
            ModelToolCall(
                id=f"call_{place}",
                name=name,
                arguments=given if isinstance(given, str) else json.dumps(given),
            )
            for place, (name, given) in enumerate(asked)
        ),
        finish_reason=finish,
        provider="fake",
        model="fake",
    )


class WrongShape(ValueError):
    """A request that a provider of that shape refuses."""


def shape_check(entries: Sequence[Mapping[str, Any]]) -> None:
    """Raise ``WrongShape`` unless ``entries`` are a request that chat-completions servers take.

    Each call has its own id and exactly one result right after it; nobody speaks twice in a row; an
    entry says something or calls something.
    """
    waiting: list[str] = []
    seen: set[str] = set()
    last = ""
    for entry in entries:
        role = entry["role"]
        if role == "tool":
            if not waiting or entry["tool_call_id"] != waiting.pop(0):
                raise WrongShape("a result without its call")
        elif waiting:
            raise WrongShape("a call without its result")
        elif role == last or (role == "system" and last):
            raise WrongShape(f"{role} twice in a row, or late")
        if not entry.get("content") and not entry.get("tool_calls"):
            raise WrongShape("an entry that says nothing")
        for call in entry.get("tool_calls") or ():
            if call["id"] in seen:
                raise WrongShape("an id twice")
            seen.add(call["id"])
            waiting.append(call["id"])
        last = role
    if waiting or last not in ("user", "tool"):
        raise WrongShape("nothing to answer")


class Voices:
    """A ModelPort with replies per profile: text, ``ModelReply``, ``ModelFailed`` or seconds to sleep.

    Every request is checked against the rules of a history, in every shape a provider gets.
    """

    def __init__(self, **replies: Sequence[Any]) -> None:
        self.replies = {profile: list(said) for profile, said in replies.items()}
        self.requests: list[ModelRequest] = []

    def of(self, profile: str) -> list[ModelRequest]:
        return [r for r in self.requests if r.profile == profile]

    async def complete(self, turn: Turn, request: ModelRequest) -> tuple[ModelReply, ModelCall]:
        history_check(request.messages)
        for shape in (tools_shape, plain_shape):
            shape_check(shape(request.messages))
        assert request.ordinal == len(turn.model_calls)
        self.requests.append(request)
        said = self.replies[request.profile].pop(0)
        if isinstance(said, ModelFailed):
            raise said
        if isinstance(said, float):
            await asyncio.sleep(said)
            said = "late"
        reply = (
            ModelReply(text=said, provider="fake", model="fake") if isinstance(said, str) else said
        )
        call = ModelCall(
            profile=request.profile, provider="fake", model="fake", operation=request.operation,
            usage=reply.usage,
        )  # fmt: skip
        return reply, call


def step(model: Any, tools: Any = None, **options: Any) -> Any:
    return RunAgent(
        tools or Tools(),
        model,
        tool_info=lambda release, slug: INFOS.get(slug),
        texts_for=lambda turn: f"texto {turn.route.method if turn.route else ''}",
        **options,
    )


def said(
    release: Release, text: str = "quero ajuda", *, agent: str = "main", number: int = 1,
    dialogue: Dialogue | None = None, memory: Sequence[ChatMessage] = (), method: Any = "keyword",
    tools: Sequence[str] = (), metadata: Mapping[str, Any] | None = None, **changes: Any,
) -> Any:  # fmt: skip
    """Return the turn of a customer's message, routed to ``agent``."""
    dialogue = dialogue or Dialogue()
    return turn_of(
        text,
        release=release,
        id=f"t{number}",
        session=SessionState(id="1", key="k", turn_number=number, dialogue=dialogue),
        dialogue=dialogue,
        memory=tuple(memory),
        route=Route(
            agent=agent, intent="help", method=method, confidence=1.0, tools=tuple(tools),
            metadata=metadata or {},
        ),
        **changes,
    )  # fmt: skip


def read(request: ModelRequest) -> list[str]:
    """Return what the tool messages of ``request`` say."""
    return [message.content for message in request.messages if message.role == "tool"]


def offered(request: ModelRequest) -> list[str]:
    return [tool["function"]["name"] for tool in request.tools]


def everything(request: ModelRequest) -> str:
    """Return all a model was shown of the conversation, without what it is offered."""
    return "\n".join(
        [message.content for message in request.messages]
        + [call.name + call.arguments for m in request.messages for call in m.tool_calls]
    )
