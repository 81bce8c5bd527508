"""What a server's input schema says of one argument, and where ours contradicts it. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from apps.runtime.i18n import gettext_noop as _
from apps.tools.config import Argument, ToolConfig

TYPES = ("string", "integer", "number", "boolean", "array", "object")
DEEPEST = 20
FILLED_BY_US = ("context", "extraction", "secret")


@dataclass(frozen=True)
class Declared:
    """One argument as the server declares it. ``type`` is "" when its schema allows several."""

    type: str = ""
    description: str = ""
    enum: tuple[str, ...] = ()
    items: str = ""
    nullable: bool = False
    required: bool = False


@dataclass(frozen=True)
class Contradiction:
    """A place where ``args_schema`` and the server's schema cannot both be right.

    ``words`` fill the placeholders of ``message``.
    """

    path: str
    message: str
    words: Mapping[str, str]
    level: Literal["block", "warn"] = "block"


def declared(schema: Mapping[str, Any]) -> dict[str, Declared] | None:
    """Return the arguments of an input schema; ``None`` when it does not list them."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return None
    required = schema.get("required")
    needed = set(required) if isinstance(required, list) else set()
    return {name: _declared(schema, inner, name in needed) for name, inner in properties.items()}


def is_closed(schema: Mapping[str, Any]) -> bool:
    """Return whether only the listed arguments are known: unless a schema says that more may come."""
    more = schema.get("additionalProperties")
    return not (more is True or isinstance(more, Mapping) or schema.get("patternProperties"))


def contradictions(tool: ToolConfig, schema: Mapping[str, Any]) -> Iterator[Contradiction]:
    """Yield where ``tool``'s arguments contradict the server's ``schema``."""
    server = declared(schema)
    if server is None:
        return
    for name, argument in tool.args_schema.items():
        path = f"args_schema.{name}"
        if name in server:
            yield from _differences(path, argument, server[name])
        elif is_closed(schema):
            yield Contradiction(path, _("the server knows no argument %(name)s."), {"name": name})
    for name, theirs in server.items():
        if not theirs.required:
            continue
        if name not in tool.args_schema:
            text = _("the server requires %(name)s, which is not among the arguments.")
            yield Contradiction("args_schema", text, {"name": name})
        elif name not in tool.requires and tool.args_schema[name].source in ("auto", "model"):
            text = _("the server requires %(name)s; here it may be left out.")
            yield Contradiction("requires", text, {"name": name}, level="warn")


def _differences(path: str, ours: Argument, theirs: Declared) -> Iterator[Contradiction]:
    words = {"ours": ours.type, "theirs": theirs.type}
    if (
        theirs.type
        and theirs.type != ours.type
        and (ours.type, theirs.type) != ("integer", "number")
    ):
        yield Contradiction(
            f"{path}.type", _("it is %(ours)s here and %(theirs)s at the server."), words
        )
        return
    if theirs.items and ours.items and theirs.items != ours.items:
        words = {"ours": ours.items, "theirs": theirs.items}
        yield Contradiction(
            f"{path}.items", _("its entries are %(ours)s here and %(theirs)s at the server."), words
        )
    if not theirs.enum or ours.source in FILLED_BY_US:
        return
    sent = (ours.constant,) if ours.source == "constant" else tuple(ours.enum)
    strange = [value for value in sent if value not in theirs.enum]
    accepted = {"theirs": ", ".join(theirs.enum)}
    if strange:
        text = _("the server does not accept %(ours)s, only: %(theirs)s.")
        yield Contradiction(f"{path}.enum", text, {"ours": ", ".join(strange), **accepted})
    elif not sent and "enum" not in ours.json_schema:
        text = _("any value is accepted here, at the server only: %(theirs)s.")
        yield Contradiction(f"{path}.enum", text, accepted)


def _declared(root: Mapping[str, Any], schema: Any, required: bool) -> Declared:
    found, nullable = _resolved(root, schema)
    of_entries, _null = _resolved(root, found.get("items"))
    types = _types(found)
    values = found.get("enum")
    if not isinstance(values, list) and "const" in found:
        values = [found["const"]]
    if not isinstance(values, list) and types == ["array"]:
        values = of_entries.get("enum")
    enum = [value for value in values if value is not None] if isinstance(values, list) else []
    scalars = all(isinstance(value, str | int | float | bool) for value in enum)
    entries = _types(of_entries)
    return Declared(
        type=types[0] if len(types) == 1 else "",
        description=str(found.get("description") or ""),
        enum=tuple(_written(value) for value in enum) if scalars else (),
        items=entries[0] if types == ["array"] and len(entries) == 1 else "",
        nullable=nullable or "null" in _all_types(found),
        required=required,
    )


def _written(value: str | float | bool) -> str:
    """Return an accepted value as ``Argument.enum`` holds it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _all_types(schema: Mapping[str, Any]) -> list[str]:
    named = schema.get("type")
    return [named] if isinstance(named, str) else list(named) if isinstance(named, list) else []


def _types(schema: Mapping[str, Any]) -> list[str]:
    types = [name for name in _all_types(schema) if name in TYPES]
    values = schema.get("enum")
    if (
        not types
        and isinstance(values, list)
        and all(isinstance(v, str) for v in values if v is not None)
    ):
        return ["string"]
    return types


def _resolved(root: Mapping[str, Any], schema: Any) -> tuple[Mapping[str, Any], bool]:
    """Return a property's schema behind references and "or null", and whether null is accepted.

    A choice between several shapes stays as it is: it says no single type.
    """
    nullable = False
    outer: dict[str, Any] = {}
    for _step in range(DEEPEST):
        if not isinstance(schema, Mapping):
            return {}, nullable
        outer = {
            **({"description": schema["description"]} if "description" in schema else {}),
            **outer,
        }
        choices = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(schema.get("$ref"), str):
            schema = _referred(root, schema["$ref"])
        elif isinstance(choices, list):
            real = [c for c in choices if not (isinstance(c, Mapping) and c.get("type") == "null")]
            nullable = nullable or len(real) < len(choices)
            if len(real) != 1:
                return outer, nullable
            schema = real[0]
        elif isinstance(schema.get("allOf"), list) and len(schema["allOf"]) == 1:
            schema = schema["allOf"][0]
        else:
            return {**schema, **outer}, nullable
    return {}, nullable


def _referred(root: Mapping[str, Any], reference: str) -> Any:
    """Return what a reference inside the document names; nothing for any other."""
    if not reference.startswith("#/"):
        return {}
    place: Any = root
    for part in reference[2:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        place = place.get(name) if isinstance(place, Mapping) else None
    return place
