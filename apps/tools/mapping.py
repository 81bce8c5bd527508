"""Where each argument of a tool call comes from.

For an argument of source ``auto``, the first that is not empty wins: an explicit value (the agent
step's request, then the client's ``tool_arguments``), the business context through the parameter
mapping, a payload field of the argument's own name or alias, what its extraction reads in the
message, what a model read there (``turn.extracted``), a default. The other sources are one of these
alone, or a fixed value. Only declared arguments come out; an explicit value is never overwritten where
it may be given at all (reference faults 21, 23, 24, 25).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from apps.runtime.release import Release
from apps.runtime.text import words
from apps.runtime.turn import CANONICAL_KEYS, Turn
from apps.tools.config import Argument, Extraction, ParameterMappingConfig, ToolConfig
from apps.tools.extraction import (
    DETERMINISTIC,
    WITH_MODEL,
    today_in,
    typed_value,
    value_extract,
)

GLOBAL_MAPPING = "_global"
CONFIRMATION_NAMES = frozenset({"confirmed", "confirmation"})
"""A client or a model cannot confirm: these names are never taken from them (fault 22)."""


@dataclass(frozen=True)
class Sources:
    """What a release says about filling one tool's arguments.

    ``context``: argument -> canonical keys that may fill it, the first wins. ``customer``: the
    arguments that name the customer. ``defaults``: argument -> value. ``extract``: argument -> how it
    is read in a message; never what a canonical key names, and never what is required: a person says
    that, in so many words, to a question. ``forms``: argument that a canonical key fills -> the
    pattern its values have; a value of another form is about something else and fills nothing.
    """

    context: Mapping[str, tuple[str, ...]]
    customer: frozenset[str]
    defaults: Mapping[str, Any]
    extract: Mapping[str, Extraction] = field(default_factory=dict)
    forms: Mapping[str, Extraction] = field(default_factory=dict)


@dataclass(frozen=True)
class Mapped:
    """``arguments`` to validate; ``secrets``: argument -> the binding that names its value.

    ``foreign``: explicit ones that named another customer and were left out; ``undeclared``: explicit
    ones the tool does not know; ``overwritten``: explicit ones that are not the caller's to give.
    """

    arguments: Mapping[str, Any]
    foreign: tuple[str, ...] = ()
    undeclared: tuple[str, ...] = ()
    overwritten: tuple[str, ...] = ()
    secrets: Mapping[str, str] = field(default_factory=dict)


def sources_of(release: Release, slug: str, tool: ToolConfig) -> Sources:
    """Return how tool ``slug`` is filled; compiled once per release."""
    key = f"tools:sources:{slug}"
    if key not in release.derived:
        release.derived[key] = _compile(release, slug, tool)
    compiled: Sources = release.derived[key]
    return compiled


def arguments_map(
    turn: Turn,
    slug: str,
    tool: ToolConfig,
    explicit: Mapping[str, Any],
    *,
    confirmed: bool = False,
) -> Mapped:
    """Return the arguments of a call of ``slug`` in ``turn``, before validation.

    ``confirmed``: ``explicit`` is what the customer was asked about, or what a workflow gives its
    node. It stands as it is, and nothing of this turn's message is added to it.
    """
    sources = sources_of(turn.release, slug, tool)
    filling = _Filling(turn, slug, tool, sources, explicit, confirmed)
    arguments: dict[str, Any] = {}
    for name, argument in tool.args_schema.items():
        value = filling.value(name, argument)
        if value is not _ABSENT:
            arguments[name] = value
    said = {*explicit} if confirmed else {*explicit, *turn.inbound.tool_arguments}
    return Mapped(
        arguments=arguments,
        foreign=tuple(filling.foreign),
        undeclared=tuple(sorted(map(str, said - _known_names(tool)))),
        overwritten=tuple(filling.overwritten),
        secrets={n: a.secret for n, a in tool.args_schema.items() if a.source == "secret"},
    )


_ABSENT = object()


class _Filling:
    """Fills the arguments of one call, and notes what was asked for and not taken."""

    def __init__(
        self,
        turn: Turn,
        slug: str,
        tool: ToolConfig,
        sources: Sources,
        explicit: Mapping[str, Any],
        confirmed: bool,
    ) -> None:
        self.turn = turn
        self.tool = tool
        self.sources = sources
        self.confirmed = confirmed
        self.request = _declared(tool, explicit)
        self.client = {} if confirmed else _declared(tool, turn.inbound.tool_arguments)
        self.read = {} if confirmed else turn.extracted.get(slug, {})
        self.foreign: list[str] = []
        self.overwritten: list[str] = []
        self._today: date | None = None

    def value(self, name: str, argument: Argument) -> Any:
        """Return the value of argument ``name``, or ``_ABSENT``."""
        if argument.source in ("constant", "secret"):
            self._not_theirs(name)
            return argument.constant_value() if argument.source == "constant" else _ABSENT
        asked = self._asked(name, argument)
        context = _from_context(self.turn, self.sources, name)
        payload = (
            None if self.confirmed else _from_payload(self.turn.inbound.payload, name, argument)
        )
        if name in self.sources.customer and not may_name_customer(self.turn):
            # Identity comes from the credential: neither a client's field nor a model's wish
            # may ask for another customer's data (fault 6).
            if not _empty(asked) and not _same(self.turn, asked, context):
                self.foreign.append(name)
            return _ABSENT if _empty(context) else context
        if not argument.for_model and not self.confirmed:
            self._not_theirs(name)
            asked = None
        if argument.source == "model":
            context = payload = None
        value = _first((asked, context, payload) if argument.source != "extraction" else (asked,))
        if not _empty(value):
            return value
        if argument.for_model and (bare := self._said_empty(name, argument)) is not _ABSENT:
            return bare
        value = _first((self._extracted(name, argument), self._default(name, argument)))
        return _ABSENT if _empty(value) else value

    def _asked(self, name: str, argument: Argument) -> Any:
        """Return the explicit value: the request's, then the client's."""
        asked = _first(values.get(name) for values in (self.request, self.client))
        if not argument.restricted and isinstance(asked, str) and asked in self.turn.vault:
            return None  # a placeholder alone means nothing to a tool that may not see its value
        return asked

    def _said_empty(self, name: str, argument: Argument) -> Any:
        """Return what the request says and is empty: that is not the same as saying nothing.

        Null counts where the tool takes it (elsewhere it is refused by the validation), an empty text
        or list where the argument may be left out.
        """
        if name not in self.request:
            nulled = argument.nullable and name in self.client and self.client[name] is None
            return None if nulled else _ABSENT
        value = self.request[name]
        if not _empty(value) or (
            name in self.tool.requires and not (argument.nullable and value is None)
        ):
            return _ABSENT
        return value

    def _extracted(self, name: str, argument: Argument) -> Any:
        extraction = self.sources.extract.get(name)
        if extraction is None or self.confirmed:
            return None
        if extraction.strategy in DETERMINISTIC:
            if self._today is None:
                self._today = today_in(self.turn.release)
            vault = self.turn.vault if argument.restricted else None
            value = value_extract(extraction, self.turn.text, self._today, vault)
            if value in self.turn.vault or typed_value(argument, value) is not None:
                return value
        return self.read.get(name) if extraction.strategy in WITH_MODEL else None

    def _default(self, name: str, argument: Argument) -> Any:
        return None if argument.source == "model" else self.sources.defaults.get(name)

    def _not_theirs(self, name: str) -> None:
        if name in self.request or name in self.client:
            self.overwritten.append(name)


def extractor_of(turn: Turn, slug: str) -> Callable[[str, str], Any]:
    """Return ``(argument, text) -> value``: what the configured extraction of ``slug`` reads.

    Also of required arguments, for whoever collects them from the customer; never of those that a
    canonical key of the customer names.
    """
    tool = turn.release.find(ToolConfig, slug)
    if tool is None:
        return lambda name, text: None
    found = _extractions(turn.release, slug)
    customer = sources_of(turn.release, slug, tool).customer
    today = today_in(turn.release)

    def read(name: str, text: str) -> Any:
        if name not in found or name not in tool.args_schema or name in customer:
            return None
        argument = tool.args_schema[name]
        return value_extract(found[name], text, today, turn.vault if argument.restricted else None)

    return read


def pending_for_model(turn: Turn, slug: str, tool: ToolConfig) -> tuple[str, ...]:
    """Return the arguments that only a model can still read in the message, in declared order."""
    extract = sources_of(turn.release, slug, tool).extract
    known = arguments_map(turn, slug, tool, {}).arguments
    return tuple(
        name
        for name in tool.args_schema
        if name in extract
        and extract[name].strategy in WITH_MODEL
        and (name not in known or known[name] == _defaults_of(turn, slug, tool).get(name))
    )


def _defaults_of(turn: Turn, slug: str, tool: ToolConfig) -> Mapping[str, Any]:
    return sources_of(turn.release, slug, tool).defaults


def _compile(release: Release, slug: str, tool: ToolConfig) -> Sources:
    layers = _layers(release, slug)
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
    protected = customer_keys(release)
    customer = frozenset(n for n, keys in declared.items() if protected.intersection(keys))
    return Sources(
        context=declared,
        customer=customer,
        defaults=defaults,
        extract={
            name: how
            for name, how in _extractions(release, slug).items()
            if name in tool.args_schema and name not in declared and name not in tool.requires
        },
        forms={
            name: how
            for name, how in _extractions(release, slug).items()
            if name in declared and name not in customer and _is_form(tool.args_schema[name], how)
        },
    )


def _is_form(argument: Argument, how: Extraction) -> bool:
    """Whether ``how`` is a pattern for the whole value; a masked one shows no form."""
    return how.strategy == "regex" and how.group == 0 and not argument.restricted


def _layers(release: Release, slug: str) -> list[ParameterMappingConfig]:
    """Return the mappings of tool ``slug``: its own, then the one of every tool."""
    own = release.find(ParameterMappingConfig, slug) or _by_tool(release).get(slug)
    shared = release.find(ParameterMappingConfig, GLOBAL_MAPPING)
    return [mapping for mapping in (own, shared) if mapping is not None]


def _extractions(release: Release, slug: str) -> dict[str, Extraction]:
    found: dict[str, Extraction] = {}
    for mapping in _layers(release, slug):
        for name, extraction in mapping.extract.items():
            if name not in CONFIRMATION_NAMES:
                found.setdefault(name, extraction)
    return found


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


def customer_keys(release: Release) -> set[str]:
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


def may_name_customer(turn: Turn) -> bool:
    return turn.inbound.caller.may_name_customer or turn.inbound.caller.demo


def _same(turn: Turn, asked: Any, context: str | None) -> bool:
    """Tell whether both name one customer; spelling (blanks, dots, case) does not count."""
    real = turn.vault.get(asked, asked) if isinstance(asked, str) else asked
    return context is not None and "".join(words(str(real))) == "".join(words(context))


def _declared(tool: ToolConfig, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return argument -> value for what ``values`` has under a name or alias, empty values too."""
    found = {}
    for name, argument in tool.args_schema.items():
        names = (name, *argument.aliases)
        given = [n for n in names if n in values and n not in CONFIRMATION_NAMES]
        if given and name not in CONFIRMATION_NAMES:
            full = [n for n in given if not _empty(values[n])]
            found[name] = values[(full or given)[0]]
    return found


def _known_names(tool: ToolConfig) -> set[str]:
    aliases = (alias for argument in tool.args_schema.values() for alias in argument.aliases)
    return {*tool.args_schema, *aliases} - CONFIRMATION_NAMES


def _from_context(turn: Turn, sources: Sources, name: str) -> str | None:
    values = (turn.business_context.get(key) for key in sources.context.get(name, ()))
    form = sources.forms.get(name)
    return next((v for v in values if not _empty(v) and (form is None or _has_form(v, form))), None)


def _has_form(value: str | None, form: Extraction) -> bool:
    return value is not None and value_extract(form, value, date.min) == value


def _from_payload(payload: Mapping[str, Any], name: str, argument: Argument) -> Any:
    if name in CONFIRMATION_NAMES:
        return None
    names = [n for n in (name, *argument.aliases) if n not in CONFIRMATION_NAMES]
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
