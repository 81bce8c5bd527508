"""Small releases and turns for tests of this app."""

from collections.abc import Mapping, Sequence
from typing import Any

from apps.agents.config import AgentConfig, ModelProfileConfig, PromptConfig
from apps.runtime.ports import ModelReply, ModelToolCall, ToolRequest
from apps.runtime.release import Release
from apps.runtime.testing import release_of, turn_of
from apps.runtime.turn import Route, ToolCall, Turn

INVOICE = {"invoice_id": "3000131180", "valor_total": 129.9, "vencimento": "2026-05-10"}


def agent_release(
    *,
    agent: Mapping[str, Any] | None = None,
    prompt: Mapping[str, Any] | None = None,
    profiles: Mapping[str, Mapping[str, Any]] | None = None,
) -> Release:
    """Return a release with agent ``billing``, its prompt ``p`` and the model ``profiles``."""
    profiles = profiles or {"default": {"provider": "scripted"}}
    return release_of(
        agent={"billing": AgentConfig(**{"prompt": "p", "tools": [], **(agent or {})})},
        prompt={"p": PromptConfig(**{"system": "You are {{ agent }}.", **(prompt or {})})},
        model_profile={slug: ModelProfileConfig(**fields) for slug, fields in profiles.items()},
    )


def routed_turn(
    text: str = "quero minha fatura",
    *,
    release: Release | None = None,
    tools: Sequence[str] = (),
    method: Any = "keyword",
    **changes: Any,
) -> Turn:
    """Return a turn routed to agent ``billing`` with the intent's ``tools``."""
    route = Route(
        agent="billing", intent="invoice", method=method, confidence=0.9, tools=tuple(tools)
    )
    return turn_of(text, release=release or agent_release(), route=route, **changes)


def asks(*calls: tuple[str, str], finish_reason: str = "tool_calls", text: str = "") -> ModelReply:
    """Return a reply that asks for tools: (name, arguments as written)."""
    return ModelReply(
        text=text,
        tool_calls=tuple(
            ModelToolCall(id=f"c{place}", name=name, arguments=arguments)
            for place, (name, arguments) in enumerate(calls)
        ),
        finish_reason=finish_reason,
        provider="fake",
        model="fake",
    )


class Tools:
    """A ToolPort that answers from ``results`` and keeps each batch of requests.

    A result that is a ``ToolCall`` is returned as it is, but for tool, arguments and ordinal.
    """

    def __init__(self, results: Mapping[str, Any] | None = None) -> None:
        self.results = results or {}
        self.batches: list[list[ToolRequest]] = []

    @property
    def called(self) -> list[tuple[str, dict[str, Any]]]:
        return [(r.tool, dict(r.arguments)) for batch in self.batches for r in batch]

    async def call(self, turn: Turn, requests: Sequence[ToolRequest]) -> list[ToolCall]:
        self.batches.append(list(requests))
        return [self._answer(request) for request in requests]

    async def check(self, turn: Turn, request: ToolRequest) -> ToolCall:
        return ToolCall(
            tool=request.tool, server="s", arguments=request.arguments, status="refused",
            ordinal=request.ordinal, metadata={"reason": "ready"},
        )  # fmt: skip

    def functions(self, turn: Turn, tools: Sequence[str]) -> list[Mapping[str, Any]]:
        return [
            {"name": slug, "description": "", "parameters": {"type": "object", "properties": {}}}
            for slug in tools
        ]

    def _answer(self, request: ToolRequest) -> ToolCall:
        result = self.results.get(request.tool)
        status: Any = "ok" if request.tool in self.results else "error"
        error, action = "", False
        fields: tuple[Mapping[str, str], ...] = ()
        if isinstance(result, ToolCall):
            status, error, fields = result.status, result.error, result.field_errors
            action, result = result.action, result.result
        return ToolCall(
            tool=request.tool, server="s", arguments=request.arguments, status=status,
            result=result, error=error, field_errors=fields, ordinal=request.ordinal, action=action,
        )  # fmt: skip


def failed(error: str = "no", **changes: Any) -> ToolCall:
    """Return what a tool that said no answers."""
    return ToolCall(tool="", server="", arguments={}, status="error", error=error, **changes)
