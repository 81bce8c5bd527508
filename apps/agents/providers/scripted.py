"""No model: repeats evidence as sentences, or plays a script.

For demos and tests, named by a profile like any provider, and never put in another one's place. It
sees what every provider sees, messages and tools, and says ``no_model`` in its metadata.
"""

import asyncio
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from apps.agents.phrasing import compose, nothing_to_say
from apps.agents.profiles import tokens_estimate
from apps.agents.providers.base import ProviderCall
from apps.agents.tooling import mentions, stems
from apps.runtime.canonical import canonical_json
from apps.runtime.ports import ModelFailed, ModelMessage, ModelReply, ModelToolCall
from apps.runtime.turn import Usage

NAME = "scripted"
_LANGUAGE = re.compile(r"^Language: ([A-Za-z-]+)", re.MULTILINE)
_DEFAULT_LANGUAGE = "pt-BR"
# A message asks for a tool when it shares this many telling words with the tool's description.
CLEAR_MATCH = 2
_EVIDENCE = re.compile(r"\{evidence(?::(?P<name>\w+))?(?:\.(?P<field>\w+))?\}")
_TELLING_LENGTH = 4
_FAILURES = ("auth", "wrong_model", "rate_limited", "timeout", "content_filter", "broken")


class Scripted:
    """Answers without a model, always the same for the same request.

    The n-th request of a turn gets the n-th script entry, later ones the last. An entry is text, or
    a JSON object: ``{"text", "finish_reason"}``, ``{"tool_calls": [{"name", "arguments"}]}`` or
    ``{"error": code}``, which raises ``ModelFailed``.

    In a script with conditions the first entry that fits is played, and without one the evidence is
    said: ``when`` are words that the last message said to it must have, ``noted`` a piece of what
    the system tells it, ``after`` the function that was answered last ("" for none yet). In texts
    and arguments ``{evidence}`` is what all results say, ``{evidence:name}`` that of one function,
    ``{evidence:name.field}`` one field of it.
    """

    async def complete(self, call: ProviderCall) -> ModelReply:
        if call.profile.delay_ms:
            await asyncio.sleep(call.profile.delay_ms / 1000)
        script = call.profile.script
        if any(_conditions(entry) for entry in script):
            fitting = next((entry for entry in script if _fits(entry, call.messages)), "")
            reply = _filled(_played(fitting, call.ordinal), call) if fitting else _composed(call)
        elif script:
            reply = _played(script[min(call.ordinal, len(script) - 1)], call.ordinal)
        else:
            reply = _composed(call)
        return ModelReply(
            text=reply.text,
            tool_calls=reply.tool_calls,
            usage=_usage(call.messages, reply),
            finish_reason=reply.finish_reason,
            provider=NAME,
            model=call.profile.model or NAME,
            metadata={"no_model": True},
        )


def _conditions(entry: str) -> Mapping[str, Any]:
    step = _script_object(entry) or {}
    return {key: step[key] for key in ("when", "noted", "after") if key in step}


def _fits(entry: str, messages: Sequence[ModelMessage]) -> bool:
    """Whether all conditions of ``entry`` hold for the request; one without any always fits."""
    found = _conditions(entry)
    asked, _after = _since_last_user(messages)
    last = messages[-1].name if messages and messages[-1].role == "tool" else ""
    if "after" in found and found["after"] != last:
        return False
    if "noted" in found and not any(
        found["noted"] in message.content for message in messages if message.role == "system"
    ):
        return False
    return mentions(stems(asked), str(found["when"])) if "when" in found else True


def _filled(reply: ModelReply, call: ProviderCall) -> ModelReply:
    """Return ``reply`` with what functions answered in the places for it."""
    language = _language(call.messages)

    def said(place: re.Match[str]) -> str:
        tools = [m for m in call.messages if m.role == "tool" and place["name"] in (None, m.name)]
        results = _results(tools)
        if place["field"]:
            results = [r.get(place["field"]) for r in results if isinstance(r, Mapping)]
        return "\n".join(
            r if isinstance(r, str) else compose([r], language=language) for r in results
        )

    def in_json(place: re.Match[str]) -> str:
        return json.dumps(said(place), ensure_ascii=False)[1:-1]

    calls = tuple(
        replace(asked, arguments=_EVIDENCE.sub(in_json, asked.arguments))
        for asked in reply.tool_calls
    )
    return replace(reply, text=_EVIDENCE.sub(said, reply.text).strip(), tool_calls=calls)


def _played(entry: str, ordinal: int) -> ModelReply:
    step = _script_object(entry)
    if step is None:
        return ModelReply(text=entry)
    if "error" in step:
        code = step["error"] if step["error"] in _FAILURES else "broken"
        raise ModelFailed("the script says so", code=code)
    calls = tuple(
        _asked(str(asked.get("name", "")), asked.get("arguments", {}), f"script_{ordinal}_{place}")
        for place, asked in enumerate(step.get("tool_calls", ()))
    )
    finish = step.get("finish_reason", "tool_calls" if calls else "stop")
    return ModelReply(text=str(step.get("text", "")), tool_calls=calls, finish_reason=finish)


def _script_object(entry: str) -> Mapping[str, Any] | None:
    """Return the entry's JSON object when it is one of the known forms; else it is plain text."""
    if not entry.lstrip().startswith("{"):
        return None
    try:
        step = json.loads(entry)
    except ValueError:
        return None
    known = isinstance(step, dict) and any(k in step for k in ("error", "tool_calls", "text"))
    return step if known else None


def _asked(name: str, arguments: Any, call_id: str) -> ModelToolCall:
    """Arguments given as text are what the model "wrote", broken or not."""
    written = arguments if isinstance(arguments, str) else canonical_json(arguments)
    return ModelToolCall(id=call_id, name=name, arguments=written)


def _composed(call: ProviderCall) -> ModelReply:
    asked, after = _since_last_user(call.messages)
    tools = [message for message in after if message.role == "tool"]
    if not tools:
        wanted = _wanted(asked, call.tools)
        if wanted:
            asking = _asked(wanted, {}, f"scripted_{call.ordinal}")
            return ModelReply(text="", tool_calls=(asking,), finish_reason="tool_calls")
    language = _language(call.messages)
    text = compose(_results(tools), language=language)
    return ModelReply(text=text or nothing_to_say(language=language))


def _since_last_user(messages: Sequence[ModelMessage]) -> tuple[str, Sequence[ModelMessage]]:
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "user":
            return messages[index].content, messages[index + 1 :]
    return "", messages


def _results(tools: Iterable[ModelMessage]) -> list[Any]:
    """Return what the tools answered; an ``{ok, result}`` envelope is opened, a failure left out."""
    results = []
    for message in tools:
        try:
            value = json.loads(message.content, parse_float=Decimal)
        except (ValueError, RecursionError):
            value = message.content
        if isinstance(value, dict) and "ok" in value:
            if not value["ok"]:
                continue
            value = value.get("result", value.get("excerpt"))
        results.append(value)
    return results


def _wanted(asked: str, tools: Sequence[Mapping[str, Any]]) -> str:
    """Return the tool the message clearly asks for; "" when none or more than one fits best."""
    said = {word for word in stems(asked) if len(word) >= _TELLING_LENGTH}
    scores: dict[str, int] = {}
    for tool in tools:
        function = tool.get("function", {})
        name = str(function.get("name", ""))
        described = stems(f"{name.replace('_', ' ')} {function.get('description', '')}")
        scores[name] = len(said & set(described))
    best = max(scores.values(), default=0)
    fitting = [name for name, score in scores.items() if score == best]
    return fitting[0] if best >= CLEAR_MATCH and len(fitting) == 1 else ""


def _language(messages: Iterable[ModelMessage]) -> str:
    for message in messages:
        if message.role == "system" and (found := _LANGUAGE.search(message.content)):
            return found[1]
    return _DEFAULT_LANGUAGE


def _usage(messages: Iterable[ModelMessage], reply: ModelReply) -> Usage:
    written = reply.text + "".join(call.name + call.arguments for call in reply.tool_calls)
    return Usage(
        input_tokens=sum(tokens_estimate(message.content) for message in messages),
        output_tokens=tokens_estimate(written),
        estimated=True,
    )
