"""Puts a streamed chat completion together again."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.agents.profiles import tokens_estimate
from apps.runtime.ports import ModelToolCall
from apps.runtime.turn import Usage

MAX_REASONING_CHARS = 8_000
# Other words for the four endings, as compatible servers use them.
_ENDINGS = {
    "end_turn": "stop", "eos": "stop", "eos_token": "stop", "stop_sequence": "stop",
    "max_tokens": "length", "tool_use": "tool_calls", "function_call": "tool_calls",
    "safety": "content_filter", "refusal": "content_filter",
}  # fmt: skip


@dataclass
class _CallParts:
    id: str
    index: int | None
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether name and arguments are whole: servers without ids then begin the next call."""
        try:
            return bool(self.name) and isinstance(json.loads("".join(self.arguments)), dict)
        except ValueError:
            return False


class Assembly:
    """Takes chunks of one stream in order; afterwards holds what they add up to.

    Text is joined as it came, never compared or de-duplicated (field cases 2.5, 2.6). A new call id
    starts a new call, even at an index that was used before (2.3). ``finish_reason`` stays "" when
    the stream ended before the model did.
    """

    def __init__(self) -> None:
        self.finish_reason = ""
        self.model = ""
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[_CallParts] = []
        self._usage: Any = None

    def add(self, chunk: Any) -> None:
        """Take one ``ChatCompletionChunk``; parts that are missing or null are nothing."""
        self.model = getattr(chunk, "model", None) or self.model
        self._usage = getattr(chunk, "usage", None) or self._usage
        for choice in getattr(chunk, "choices", None) or ():
            if getattr(choice, "index", 0):
                continue  # one answer was asked for
            if reason := getattr(choice, "finish_reason", None):
                self.finish_reason = _ENDINGS.get(str(reason).lower(), str(reason).lower())
            delta = getattr(choice, "delta", None)
            if delta is not None:
                self._add_delta(delta)

    def _add_delta(self, delta: Any) -> None:
        for text in (getattr(delta, "content", None), getattr(delta, "refusal", None)):
            if text:
                self._text.append(text)
        reasoning = getattr(delta, "reasoning_content", None) or getattr(delta, "reasoning", None)
        if isinstance(reasoning, str):
            self._reasoning.append(reasoning)
        for part in getattr(delta, "tool_calls", None) or ():
            self._add_call(part)

    def _add_call(self, part: Any) -> None:
        function = getattr(part, "function", None)
        name = getattr(function, "name", None) or ""
        call = self._call_of(getattr(part, "id", None) or "", getattr(part, "index", None), name)
        call.name = call.name or name
        call.arguments.append(getattr(function, "arguments", None) or "")

    def _call_of(self, call_id: str, index: int | None, name: str) -> _CallParts:
        """Return the call this part goes on with, the newest that fits, or a new one."""
        for known in reversed(self._calls):
            if not (index is None or known.index is None or known.index == index):
                continue
            if call_id and known.id in ("", call_id):
                known.id = call_id
                return known
            if not call_id and not (name and known.complete):
                return known
        self._calls.append(_CallParts(id=call_id, index=index))
        return self._calls[-1]

    @property
    def text(self) -> str:
        return _mended("".join(self._text))

    @property
    def reasoning(self) -> str:
        return _mended("".join(self._reasoning))[:MAX_REASONING_CHARS]

    @property
    def tool_calls(self) -> tuple[ModelToolCall, ...]:
        return tuple(
            ModelToolCall(
                id=call.id, name=_mended(call.name), arguments=_mended("".join(call.arguments))
            )
            for call in self._calls
        )

    def usage(self, *, asked: str) -> tuple[Usage, int]:
        """Return the usage and how many of its output tokens were reasoning.

        ``asked`` is the request's text. What the provider left out is estimated and marked so
        (field case 11.5). Vendors that count reasoning outside the completion have it in the total
        only; it is added once (fault 43).
        """
        written = self.text + "".join(call.name + call.arguments for call in self.tool_calls)
        counts = self._usage
        given = _count(counts, "prompt_tokens"), _count(counts, "completion_tokens")
        total = _count(counts, "total_tokens")
        if not any(given) and not total:
            estimate = Usage(
                input_tokens=tokens_estimate(asked),
                output_tokens=tokens_estimate(written),
                estimated=True,
            )
            return estimate, 0
        if not any(given):
            output = min(total, tokens_estimate(written))
            return Usage(input_tokens=total - output, output_tokens=output, estimated=True), 0
        usage = Usage(
            input_tokens=given[0],
            output_tokens=max(given[1], total - given[0]),
            cached_tokens=_count(getattr(counts, "prompt_tokens_details", None), "cached_tokens"),
        )
        details = getattr(counts, "completion_tokens_details", None)
        return usage, _count(details, "reasoning_tokens")


def _count(counts: Any, name: str) -> int:
    value = counts.get(name) if isinstance(counts, Mapping) else getattr(counts, name, None)
    return value if isinstance(value, int) and value > 0 else 0


def _mended(text: str) -> str:
    """Join surrogate halves that came in two chunks; a half without its other becomes U+FFFD.

    NUL is dropped: no database column takes it.
    """
    text = text.replace("\0", "")
    if text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
