"""What a message says about the arguments of one tool. Deterministic; a model is asked elsewhere.

A value is read only where the shape tells: an enumeration's word, a number, an amount, a date, an
identifier. Free text is taken as it stands, and only for the argument that was asked.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from apps.runtime.dialogue import Sense
from apps.runtime.identifiers import answer_value
from apps.runtime.text import fold, words
from apps.tools.config import Argument, ToolConfig
from apps.tools.extraction import amount_read, typed_value

Extract = Callable[[str, str], Any]
"""(argument, text) -> the value its configured extraction reads, ``None`` for none."""

_IDENTIFIER = re.compile(r"(?<![\w<])[A-Za-z0-9][\w./-]*\d[\w./-]*|<[A-Z_]+_\d+>")
MIN_DIGITS = 3
"""An identifier that begins with a digit has so many of them: "2 dias", "2a via" are none."""
MAX_FREE_TEXT = 500
# A message that denies something takes back what it names; in words that are folded.
_DENIED = frozenset({"nao", "nem", "nunca", "not", "no", "never", "errado", "errada", "wrong"})


@dataclass(frozen=True)
class Asked:
    """What is read for: the tool, its open arguments, those it may correct, the one asked.

    ``identifiers``: arguments that name something (a canonical key feeds them); they are read from
    any place in the message. ``customer``: those that name the customer; never read from a message.
    """

    tool: ToolConfig
    open: tuple[str, ...]
    known: Mapping[str, Any]
    asked: str
    identifiers: Collection[str]
    customer: Collection[str]


def values_said(asked: Asked, text: str, sense: Sense, extract: Extract) -> dict[str, Any]:
    """Return argument -> value that ``text`` plainly says, in the declared types.

    First the configured extraction, then the shape. An open argument is filled; a known one is
    corrected only when the message names it ("o motivo é outro") or it is the only identifier.
    """
    found: dict[str, Any] = {}
    wanted = [name for name in asked.tool.args_schema if name not in asked.customer]
    for name in wanted:
        value = extract(name, text)
        if value is None:
            value = _named(asked.tool.args_schema[name], name, text)
        if value is None and name in asked.open:
            value = _shaped(asked, name, text)
        if value is None and name in asked.known and name in asked.identifiers:
            value = _lone_identifier(asked, name, text)
        typed = typed_value(asked.tool.args_schema[name], value)
        if typed is not None and asked.known.get(name) != typed:
            found[name] = typed
    if asked.asked and asked.asked not in found and asked.asked in asked.open:
        free = _free(asked, text, sense, found)
        if free is not None:
            found[asked.asked] = free
    return found


def values_before(
    asked: Asked, texts: Iterable[str], sense_of: Callable[[str], Sense]
) -> dict[str, Any]:
    """Return open argument -> value that earlier messages plainly say, the newest first.

    Only what was called by its name or is an identifier: any other number or word may have been said
    of something else. A message that names several values, or denies one, leaves the argument open for good:
    what was taken back is never revived by an older message. One that gives up ends the search.
    """
    found: dict[str, Any] = {}
    left = {name for name in asked.open if name not in asked.customer}
    for text in texts:
        sense = sense_of(text)
        if sense.abandons or sense.stops or not left:
            break
        denied = bool(_DENIED.intersection(words(text)))
        for name in sorted(left):
            argument = asked.tool.args_schema[name]
            value = _named(argument, name, text)
            identifiers = identifiers_in(text) if name in asked.identifiers else []
            if value is None and len(identifiers) == 1:
                value = _lone_identifier(asked, name, text)
            typed = typed_value(argument, value)
            if typed is not None or identifiers:
                left.discard(name)
            if typed is not None and not denied and len(identifiers) < 2:
                found[name] = typed
    return found


def _named(argument: Argument, name: str, text: str) -> Any:
    """Return the value after the argument's own name: "o motivo é defeito", "pedido: 9001"."""
    for label in (argument.label, name, *argument.aliases):
        if not label:
            continue
        spelled = re.escape(fold(label)).replace("_", r"[_\s]")
        pattern = rf"\b{spelled}\b\s*(?:certo\s+|correto\s+|right\s+)?(?::|=|\be\b|\bis\b|\bes\b|\bera\b)\s*(.+)$"
        match = re.search(pattern, fold(text))
        if match and match[1].strip():
            # Folding keeps the length of composed text, so the original words are cut out by place.
            start = match.start(1) if len(fold(text)) == len(text) else 0
            said = text[start:].strip() if start else match[1].strip()
            said = re.split(r"[,;\n]\s*", said)[0].strip(" .!")
            if argument.type != "string":
                return amount_read(said)
            identifier = _IDENTIFIER.search(said)
            return identifier[0].rstrip(".") if identifier and _names(identifier[0]) else said
    return None


def _shaped(asked: Asked, name: str, text: str) -> Any:
    argument = asked.tool.args_schema[name]
    if argument.enum:
        said = f" {' '.join(words(text))} "
        hits = [value for value in argument.enum if f" {' '.join(words(value))} " in said]
        return hits[0] if len(hits) == 1 and argument.type != "array" else None
    if argument.type in ("integer", "number"):
        if name != asked.asked and len(asked.open) > 1:
            return None
        return amount_read(text)
    if argument.type == "string" and name in asked.identifiers:
        return _lone_identifier(asked, name, text)
    return None


def _lone_identifier(asked: Asked, name: str, text: str) -> str | None:
    """Return the one identifier in ``text``; none when there are several, or two places for it."""
    rivals = [other for other in asked.open if other in asked.identifiers and other != name]
    if rivals and name != asked.asked:
        return None
    if (whole := answer_value(text)) and _names(whole):
        return whole
    found = identifiers_in(text)
    if len(found) != 1:
        return None
    if found[0].startswith("<") and not asked.tool.args_schema[name].restricted:
        return None
    return found[0]


def identifiers_in(text: str) -> list[str]:
    """Return what in ``text`` names something, each once."""
    return list(dict.fromkeys(m.rstrip(".-/") for m in _IDENTIFIER.findall(text) if _names(m)))


def _names(token: str) -> bool:
    """Whether ``token`` names something: a placeholder, "PED-77", or a number of some length."""
    if token.startswith("<") or token[0].isalpha():
        return True
    return sum(char.isdigit() for char in token) >= MIN_DIGITS


def _free(asked: Asked, text: str, sense: Sense, found: Mapping[str, Any]) -> str | None:
    """Return the whole message as the answer to the question for a text, when it can be one."""
    argument = asked.tool.args_schema[asked.asked]
    if argument.type != "string" or argument.enum or asked.asked in asked.identifiers:
        return None
    if found or sense.abandons or sense.stops or sense.requests or sense.yes or sense.no:
        return None
    said = text.strip()
    return said[:MAX_FREE_TEXT] if words(said) else None
