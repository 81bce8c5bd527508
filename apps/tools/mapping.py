"""Where each argument of a tool call comes from.

In order, the first that is not empty wins: an explicit value (the agent step's request, then the
client's ``tool_arguments``), the business context through the parameter mapping, a payload field
of the argument's own name or alias, a default. Only declared arguments come out; an explicit value
is never overwritten (reference faults 21, 23, 24).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from apps.runtime.release import Release
from apps.runtime.text import words
from apps.runtime.turn import CANONICAL_KEYS, Turn
from apps.tools.config import Argument, ParameterMappingConfig, ToolConfig

GLOBAL_MAPPING = "_global"
CONFIRMATION_NAMES = frozenset({"confirmed", "confirmation"})
"""A client or a model cannot confirm: these names are never taken from them (fault 22)."""


@dataclass(frozen=True)
class Sources:
    """What a release says about filling one tool's arguments.

    ``context``: argument -> canonical keys that may fill it, the first wins. ``customer``: the
    arguments that name the customer. ``defaults``: argument -> value.
    """

    context: Mapping[str, tuple[str, ...]]
    customer: frozenset[str]
    defaults: Mapping[str, Any]


@dataclass(frozen=True)
class Mapped:
    """``arguments`` to validate; ``foreign``: explicit ones that named another customer and were
    left out; ``undeclared``: explicit ones the tool does not know and that were left out."""

    arguments: Mapping[str, Any]
    foreign: tuple[str, ...] = ()
    undeclared: tuple[str, ...] = ()


def sources_of(release: Release, slug: str, tool: ToolConfig) -> Sources:
    """Return how tool ``slug`` is filled; compiled once per release."""
    key = f"tools:sources:{slug}"
    if key not in release.derived:
        release.derived[key] = _compile(release, slug, tool)
    compiled: Sources = release.derived[key]
    return compiled


def arguments_map(turn: Turn, slug: str, tool: ToolConfig, explicit: Mapping[str, Any]) -> Mapped:
    """Return the arguments of a call of ``slug`` in ``turn``, before validation."""
    sources = sources_of(turn.release, slug, tool)
    given = [_declared(tool, explicit), _declared(tool, turn.inbound.tool_arguments)]
    arguments: dict[str, Any] = {}
    foreign: list[str] = []
    for name, argument in tool.args_schema.items():
        context = _from_context(turn, sources, name)
        asked = _first(values.get(name) for values in given)
        if not argument.restricted and isinstance(asked, str) and asked in turn.vault:
            asked = None  # a placeholder alone means nothing to a tool that may not see its value
        if name in sources.customer and not _may_name_customer(turn):
            # Identity comes from the credential: neither a client's field nor a model's wish
            # may ask for another customer's data (fault 6).
            if not _empty(asked) and not _same(turn, asked, context):
                foreign.append(name)
            asked, payload = None, None
        else:
            payload = _from_payload(turn.inbound.payload, name, argument)
        value = _first((asked, context, payload, sources.defaults.get(name)))
        if not _empty(value):
            arguments[name] = value
    unknown = {*explicit, *turn.inbound.tool_arguments} - _known_names(tool)
    return Mapped(arguments, tuple(foreign), tuple(sorted(map(str, unknown))))


def _compile(release: Release, slug: str, tool: ToolConfig) -> Sources:
    own = release.find(ParameterMappingConfig, slug) or _by_tool(release).get(slug)
    shared = release.find(ParameterMappingConfig, GLOBAL_MAPPING)
    layers = [mapping for mapping in (own, shared) if mapping is not None]
    context: dict[str, list[str]] = {}
    defaults: dict[str, Any] = {}
    for mapping in layers:
        for canonical in sorted(mapping.map, key=_canonical_order):
            context.setdefault(mapping.map[canonical], []).append(canonical)
        for name, value in mapping.defaults.items():
            # A default never stands in for what a person has to say (fault 21).
            if name not in tool.requires and name not in CONFIRMATION_NAMES:
                defaults.setdefault(name, value)
    declared = {name: tuple(keys) for name, keys in context.items() if name in tool.args_schema}
    protected = _customer_keys(release)
    return Sources(
        context=declared,
        customer=frozenset(n for n, keys in declared.items() if protected.intersection(keys)),
        defaults=defaults,
    )


def _by_tool(release: Release) -> dict[str, ParameterMappingConfig]:
    """Return tool → the first mapping that names it."""
    key = "tools:mapping_by_tool"
    if key not in release.derived:
        found: dict[str, ParameterMappingConfig] = {}
        for mapping in release.all(ParameterMappingConfig).values():
            found.setdefault(mapping.tool, mapping)
        release.derived[key] = found
    by_tool: dict[str, ParameterMappingConfig] = release.derived[key]
    return by_tool


def _customer_keys(release: Release) -> set[str]:
    """Return the canonical keys that only a credential may set.

    The kind belongs to a sibling app, so it is met by its name: an identity key that says it
    identifies the customer. ``customer_key`` always does.
    """
    key = "tools:customer_keys"
    if key not in release.derived:
        release.derived[key] = {"customer_key"} | {
            slug
            for (kind, slug), item in release.items.items()
            if kind == "identity_key" and getattr(item, "identifies_customer", False)
        }
    marked: set[str] = release.derived[key]
    return marked


def _canonical_order(key: str) -> tuple[int, str]:
    known = CANONICAL_KEYS.index(key) if key in CANONICAL_KEYS else len(CANONICAL_KEYS)
    return known, key


def _may_name_customer(turn: Turn) -> bool:
    return turn.inbound.caller.may_name_customer or turn.inbound.caller.demo


def _same(turn: Turn, asked: Any, context: str | None) -> bool:
    """Tell whether both name one customer; spelling (blanks, dots, case) does not count."""
    real = turn.vault.get(asked, asked) if isinstance(asked, str) else asked
    return context is not None and "".join(words(str(real))) == "".join(words(context))


def _declared(tool: ToolConfig, values: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, argument in tool.args_schema.items():
        if name not in CONFIRMATION_NAMES:
            found[name] = _first(values.get(n) for n in (name, *argument.aliases))
    return found


def _known_names(tool: ToolConfig) -> set[str]:
    aliases = (alias for argument in tool.args_schema.values() for alias in argument.aliases)
    return {*tool.args_schema, *aliases} - CONFIRMATION_NAMES


def _from_context(turn: Turn, sources: Sources, name: str) -> str | None:
    values = (turn.business_context.get(key) for key in sources.context.get(name, ()))
    return next((value for value in values if not _empty(value)), None)


def _from_payload(payload: Mapping[str, Any], name: str, argument: Argument) -> Any:
    if name in CONFIRMATION_NAMES:
        return None
    names = (name, *argument.aliases)
    return _first(place.get(n) for n in names for place in _places(payload))


def _places(payload: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield where a payload may hold a field: itself, then its business context and context."""
    yield payload
    for key in ("business_context", "context"):
        nested = payload.get(key)
        if isinstance(nested, Mapping):
            yield nested


def _first(values: Iterable[Any]) -> Any:
    return next((value for value in values if not _empty(value)), None)


def _empty(value: Any) -> bool:
    """Empty is what says nothing: null, blank text, an empty list or object. 0 and false are not."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or value == [] or value == {}
