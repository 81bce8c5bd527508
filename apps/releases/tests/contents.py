"""Any valid content of a kind, for properties."""

import re
import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from hypothesis import strategies as st
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from apps.runtime.config import BindingTo, Config, KindConfig, RefTo

# What no browser sends back as it was: NUL, a lone surrogate, and CR, which means LF to it.
TEXT = st.text(st.characters(exclude_characters="\x00\r", exclude_categories=["Cs"]), max_size=30)
PROSE = st.one_of(
    TEXT,
    st.sampled_from(
        ["", " ", "\n", "\n\n a\n", "olá — ção", "a\n  b\n", "{{ x }}\n", "<b>&amp;\"'</b>", "\t"]
    ),
)
FILLED = PROSE.filter(bool)
SLUG = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,20}", fullmatch=True)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | PROSE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)


def contents(config_class: type[KindConfig]) -> st.SearchStrategy[Any]:
    """Yield valid objects of ``config_class``."""
    if config_class.kind == "workflow":
        return _workflows().map(config_class.model_validate)
    return (
        _fields(config_class)
        .filter(lambda fields: _valid(config_class, fields))
        .map(config_class.model_validate)
    )


@st.composite
def _workflows(draw: st.DrawFn) -> dict[str, Any]:
    """Yield workflows of nodes in a row: any contents would hardly ever be a way through."""
    ids = draw(
        st.lists(
            st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True),
            min_size=1,
            max_size=3,
            unique=True,
        )
    )
    literals = st.dictionaries(
        FILLED, PROSE.filter(lambda text: not text.startswith("$")), max_size=2
    )
    nodes = []
    for place, name in enumerate(ids):
        later = st.sampled_from(["", *ids[place + 1 :]])
        node: dict[str, Any] = {"id": name, "next": "".join(ids[place + 1 : place + 2])}
        if draw(st.booleans()):
            node |= {"tool": draw(SLUG), "params": draw(literals), "on_failure": draw(later)}
            node |= {
                "retries": draw(st.integers(0, 10)),
                "compensate_tool": draw(SLUG | st.just("")),
            }
        if draw(st.booleans()):
            node |= {"when": f"$.input.x == {draw(st.integers())}", "otherwise": draw(later)}
        if draw(st.booleans()) or not (node.get("tool") or node.get("when")):
            values = draw(st.lists(FILLED, max_size=2))
            node["pause"] = {
                "key": "k",
                "question": "?",
                "reprompt": draw(PROSE),
                "allowed_values": values,
            }
        nodes.append(node)
    flow = {
        "start": ids[0],
        "nodes": nodes,
        "description": draw(PROSE),
        "enabled": draw(st.booleans()),
    }
    return {**flow, "done_text": draw(PROSE), "repeat_seconds": draw(st.integers(0, 604_800))}


def _valid(config_class: type[Config], fields: dict[str, Any]) -> bool:
    try:
        config_class.model_validate(fields)
    except ValidationError:
        return False
    return True


def _fields(config_class: type[Config]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {},
        optional={
            name: _values(info.annotation, list(info.metadata), info)
            for name, info in config_class.model_fields.items()
            if not info.is_required()
        },
    ).flatmap(
        lambda optional: st.fixed_dictionaries(
            {
                name: _values(info.annotation, list(info.metadata), info)
                for name, info in config_class.model_fields.items()
                if info.is_required()
            }
        ).map(lambda required: {**optional, **required})
    )


def _values(annotation: Any, metadata: list[Any], info: FieldInfo | None) -> st.SearchStrategy[Any]:
    origin, args = get_origin(annotation), get_args(annotation)
    required = info is not None and info.is_required()
    if origin is Annotated:
        return _values(args[0], [*metadata, *args[1:]], info)
    if origin in (Union, types.UnionType):
        return st.one_of([_values(arg, metadata, None) for arg in args])
    if origin is Literal:
        return st.sampled_from(args)
    if origin is list:
        return st.lists(_filled(_values(args[0], metadata, None)), max_size=4)
    if origin is dict:
        return st.dictionaries(FILLED, _values(args[1], [], None), max_size=4)
    if isinstance(annotation, type) and issubclass(annotation, Config):
        return _fields(annotation)
    if any(isinstance(item, (RefTo, BindingTo)) for item in metadata):
        return SLUG if required else SLUG | st.just("")
    if annotation is str:
        return _text(metadata, required=required)
    simple = {bool: st.booleans(), type(None): st.none(), Any: JSON}
    return simple[annotation] if annotation in simple else _number(annotation, metadata)


def _filled(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """An empty row of a list is no row: it means the same as its absence."""
    return values.filter(lambda value: value != "")


def _text(metadata: list[Any], *, required: bool) -> st.SearchStrategy[str]:
    for item in metadata:
        if pattern := getattr(item, "pattern", None):
            return st.from_regex(re.compile(pattern.rstrip("$") + r"\Z")).map(str)
    return FILLED if required else PROSE


def _number(annotation: Any, metadata: list[Any]) -> st.SearchStrategy[Any]:
    limits: dict[str, Any] = {}
    for item in metadata:
        if isinstance(item, annotated_types.Ge):
            limits["min_value"] = item.ge
        elif isinstance(item, annotated_types.Le):
            limits["max_value"] = item.le
        elif isinstance(item, annotated_types.Gt):
            limits |= {"min_value": item.gt, "exclude_min": True}
    if annotation is int:
        return st.integers(**limits)
    return st.floats(allow_nan=False, allow_infinity=False, **limits)
