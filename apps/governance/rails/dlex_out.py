"""DLEX_OUT: the answer gives away what is inside the platform."""

import re

from apps.governance.detection.masks import BULLET
from apps.governance.detection.prompts import prompt_runs, word_runs
from apps.governance.detection.secrets import secrets_find
from apps.governance.detection.spans import ENTITIES
from apps.governance.rails.base import Rail, RailContext, RailResult
from apps.governance.vault import PLACEHOLDER
from apps.runtime.text import fold
from apps.runtime.turn import Turn

# So many words of the prompt in a row are a quotation; shorter runs happen by chance.
PROMPT_WORDS = 12

_INTERNAL_KINDS = ("agent", "tool", "tool_server", "intent", "prompt", "model_profile")
_TOKEN = re.compile(r"[a-z0-9]+(?:[_.][a-z0-9]+)+|\bmcp\b")
_SELF_DISCLOSURE = re.compile(
    r"\b(?:my|the) system prompt (?:is|says|reads)\b|\bmeu prompt de sistema\b|"
    r"\bmy (?:system |internal )?instructions (?:are|say)\b|"
    r"\bminhas instrucoes (?:internas|de sistema|sao)\b|\bmis instrucciones (?:internas|son)\b"
)
_GUIDANCE = "Do not name tools, agents, servers or other internals of the platform."


class DataLeakExit(Rail):
    """Prompt and credentials block; names of internals are written anew; placeholders are masked.

    A name that the customer wrote is no leak. Parameter ``prompt_words``: how many words of the
    prompt in a row count as a quotation.
    """

    code = "DLEX_OUT"
    sanitizes = True

    def check(self, text: str, context: RailContext) -> RailResult:
        clean = _without_placeholders(text)
        folded = fold(text)
        changed = clean if clean != text else None
        if next(secrets_find(text), None) is not None:
            return self.deny(context, "credential", text=changed)
        if _SELF_DISCLOSURE.search(folded) or _quotes_prompt(text, context):
            return self.deny(context, "prompt", text=changed)
        if _internal_names(folded, context.turn):
            return self.deny(
                context, "internal name", action="retry", guidance=_GUIDANCE, text=changed
            )
        if changed is not None:
            return self.deny(context, "placeholder", action="sanitize", text=changed)
        return self.allow(context)


def _without_placeholders(text: str) -> str:
    return PLACEHOLDER.sub(
        lambda m: BULLET * 6 if m.group(1) in ENTITIES else m.group(), text
    ).replace("<WITHHELD>", BULLET * 6)


def _quotes_prompt(text: str, context: RailContext) -> bool:
    length = int(context.number("prompt_words", PROMPT_WORDS))
    runs = prompt_runs(context.turn, length)
    return bool(runs) and not runs.isdisjoint(word_runs(text, length))


def _internal_names(folded: str, turn: Turn) -> set[str]:
    said = set(_TOKEN.findall(folded))
    if not said:
        return said
    return (said & _names(turn)) - set(_TOKEN.findall(fold(turn.text)))


def _names(turn: Turn) -> frozenset[str]:
    """Return the release's internal names that no customer would use by chance."""
    derived = turn.release.derived
    if "governance:names" not in derived:
        items = turn.release.items.items()
        names = {slug for (kind, slug), _ in items if kind in _INTERNAL_KINDS}
        names |= {
            str(getattr(item, "remote_name", "")) for (kind, _), item in items if kind == "tool"
        }
        written = {fold(name).replace("-", "_") for name in names}
        derived["governance:names"] = frozenset(n for n in written if "_" in n or "." in n) | {
            "mcp"
        }
    kept: frozenset[str] = derived["governance:names"]
    return kept
