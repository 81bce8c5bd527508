"""Which tools a turn may use, and which are collected without a model asking.

Tools are configured elsewhere; the composition root passes a lookup, so that this app knows a tool
only as ``ToolInfo``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apps.agents.config import AgentConfig, PromptConfig
from apps.agents.evidence import wire_name
from apps.runtime.canonical import sha256_text
from apps.runtime.release import Release
from apps.runtime.text import stem_plural, words
from apps.runtime.turn import ToolCall, Turn

# Words that may stand between two words of one selection keyword ("trocar o meu produto").
MAX_GAP = 3


@dataclass(frozen=True)
class ToolInfo:
    """A tool as its agent sees it. ``questions``: argument -> what to ask when it is missing."""

    slug: str
    description: str = ""
    action: bool = False
    confirmation_required: bool = False
    selection_keywords: tuple[str, ...] = ()
    json_schema: Mapping[str, Any] = field(
        default_factory=lambda: {"type": "object", "properties": {}}
    )
    questions: Mapping[str, str] = field(default_factory=dict)


ToolInfoLookup = Callable[[Release, str], Mapping[str, Any] | None]
"""The fields of ``ToolInfo`` (all but ``slug``) as a mapping; ``None`` for a tool there is not."""


def allowed_tools(
    turn: Turn, agent: AgentConfig, prompt: PromptConfig, lookup: ToolInfoLookup
) -> dict[str, ToolInfo]:
    """Return by slug, in the intent's order, the tools both the intent and the agent list.

    An empty list allows nothing; a prompt with tool usage off neither; a tool that ``lookup`` does
    not know (absent or disabled) is left out.
    """
    if turn.route is None or not prompt.allow_tool_usage:
        return {}
    known: dict[str, ToolInfo | None] = turn.release.derived.setdefault("agents.tools", {})
    found: dict[str, ToolInfo] = {}
    for slug in turn.route.tools:
        if slug not in agent.tools:
            continue
        if slug not in known:
            fields = lookup(turn.release, slug)
            known[slug] = None if fields is None else ToolInfo(slug=slug, **fields)
        info = known[slug]
        if info is not None:
            found[slug] = info
    return found


def collectable(text: str, infos: Iterable[ToolInfo]) -> tuple[list[ToolInfo], ToolInfo | None]:
    """Return the read-only tools to collect for ``text``, and the one action it names, if any.

    A read-only tool without selection keywords is always collected. An action is taken only when
    it needs no confirmation and is the single one whose keywords are in the text (fault 20).
    """
    said = stems(text)
    reads: list[ToolInfo] = []
    actions: list[ToolInfo] = []
    for info in infos:
        named = any(mentions(said, keyword) for keyword in info.selection_keywords)
        if info.action:
            if named:
                actions.append(info)
        elif named or not info.selection_keywords:
            reads.append(info)
    action = actions[0] if len(actions) == 1 else None
    return reads, None if action is None or action.confirmation_required else action


def stems(text: str) -> list[str]:
    """Return the folded, singular-like words of ``text``."""
    return [stem_plural(word) for word in words(text)]


def mentions(said: Sequence[str], phrase: str) -> bool:
    """Whether all words of ``phrase`` are in ``said``, in order, at most ``MAX_GAP`` words apart."""
    wanted = stems(phrase)
    if not wanted:
        return False
    starts = [index for index, word in enumerate(said) if word == wanted[0]]
    return any(_follows(said, start, wanted[1:]) for start in starts)


def _follows(said: Sequence[str], at: int, rest: Sequence[str]) -> bool:
    for word in rest:
        window = said[at + 1 : at + 2 + MAX_GAP]
        if word not in window:
            return False
        at += 1 + window.index(word)
    return True


def action_open(info: ToolInfo, calls: Iterable[ToolCall], infos: Mapping[str, ToolInfo]) -> bool:
    """Whether the action ``info`` may still be sent after ``calls`` of the same turn.

    One action per turn (fault 20). Only a call that the tool itself turned down may be sent again,
    with other arguments; one whose end is unknown never.
    """
    return not any(
        call.status in ("ok", "unknown") or call.tool != info.slug
        for call in calls
        if call.status != "refused" and is_action(call, infos)
    )


def is_action(call: ToolCall, infos: Mapping[str, ToolInfo]) -> bool:
    """Whether ``call`` was of a tool that changes something."""
    return call.action or (call.tool in infos and infos[call.tool].action)


class Offers:
    """Tools as functions of a chat request, and the way back from a function's name."""

    def __init__(self, infos: Mapping[str, ToolInfo]) -> None:
        self._by_name: dict[str, ToolInfo] = {}
        for info in infos.values():
            name = wire_name(info.slug)
            if name in self._by_name:
                name = f"{name[:55]}_{sha256_text(info.slug)[:8]}"
            self._by_name[name] = info
        self.functions: tuple[Mapping[str, Any], ...] = tuple(
            {
                "type": "function",
                "function": {
                    "name": name,
                    "description": info.description,
                    "parameters": dict(info.json_schema),
                },
            }
            for name, info in self._by_name.items()
        )

    @property
    def names(self) -> list[str]:
        return list(self._by_name)

    def find(self, name: str) -> ToolInfo | None:
        return self._by_name.get(name)
