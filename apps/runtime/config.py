"""Base of everything a release pins, and the registry of kinds.

A *kind* is one frozen pydantic class with a ``kind`` name. An app registers its kinds in
``AppConfig.ready()``; pure code names the class and asks ``release.get(AgentConfig, slug)``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, StringConstraints

from apps.runtime.outcomes import KINDS as OUTCOMES

Slug = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:-]*$", max_length=120)]


@dataclass(frozen=True)
class RefTo:
    """Field metadata: the string names an item of ``kind`` in the same release."""

    kind: str


@dataclass(frozen=True)
class BindingTo:
    """Field metadata: the string names a per-environment binding, ``address`` or ``credential``.

    Values of bindings are outside the manifest, so one manifest serves every environment.
    """

    what: str


class Config(BaseModel):
    """A frozen, closed configuration object: unknown fields are an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=False)


class KindConfig(Config):
    """Content of one configuration item. ``kind`` is the name used in manifests and references."""

    kind: ClassVar[str]
    label: ClassVar[str] = ""
    label_plural: ClassVar[str] = ""


def outcomes_check(next_state: dict[str, str]) -> dict[str, str]:
    """Return a map from outcome to state; raise ``ValueError`` for an outcome there is not."""
    for outcome in next_state:
        if outcome not in OUTCOMES:
            raise ValueError(f"unknown outcome {outcome!r}; known: {', '.join(OUTCOMES)}")
    return next_state


KINDS: dict[str, type[KindConfig]] = {}


def register_kind(config_class: type[KindConfig]) -> None:
    """Make ``config_class`` known under its ``kind``. Raises ``ValueError`` on a second class."""
    known = KINDS.setdefault(config_class.kind, config_class)
    if known is not config_class:
        raise ValueError(f"kind {config_class.kind!r} is already registered by {known!r}")


@dataclass(frozen=True)
class FoundRef:
    """One reference found in content: where (dotted path), to which kind, to which slug."""

    path: str
    kind: str
    slug: str


@dataclass(frozen=True)
class FoundBinding:
    """One binding name found in content."""

    path: str
    what: str
    name: str


def references(config: BaseModel) -> Iterator[FoundRef]:
    """Yield every ``RefTo`` value of ``config`` that is not empty, nested fields included."""
    for path, marker, value in _marked(config, RefTo):
        yield FoundRef(path=path, kind=marker.kind, slug=value)


def bindings(config: BaseModel) -> Iterator[FoundBinding]:
    """Yield every ``BindingTo`` value of ``config`` that is not empty."""
    for path, marker, value in _marked(config, BindingTo):
        yield FoundBinding(path=path, what=marker.what, name=value)


def _marked(
    config: BaseModel, marker: type[Any], prefix: str = ""
) -> Iterator[tuple[str, Any, str]]:
    for name, found in _places(type(config), marker):  # type: ignore[arg-type]
        yield from _walk(getattr(config, name), found, marker, f"{prefix}{name}")


@cache
def _places(config_class: type[BaseModel], marker: type[Any]) -> tuple[tuple[str, Any], ...]:
    """Return the fields to look into, with their own marker or None: every other field of the class
    holds none, whatever its value. A publication asks this of thousands of items several times.
    """
    places = []
    for name, field in config_class.model_fields.items():
        found = next((m for m in field.metadata if isinstance(m, marker)), None)
        found = found or _inner_marker(field.annotation, marker)
        if found is not None or _holds_models(field.annotation):
            places.append((name, found))
    return tuple(places)


def _holds_models(annotation: Any) -> bool:
    """Return whether a value of this type may be or contain another model."""
    if annotation is Any or annotation is object:
        return True
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return True
    return any(_holds_models(part) for part in get_args(annotation))


def _walk(value: Any, found: Any, marker: type[Any], path: str) -> Iterator[tuple[str, Any, str]]:
    if isinstance(value, BaseModel):
        yield from _marked(value, marker, f"{path}.")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _walk(item, found, marker, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _walk(item, found, marker, f"{path}[{index}]")
    elif isinstance(value, str) and value and found is not None:
        yield path, found, value


def _inner_marker(annotation: Any, marker: type[Any]) -> Any:
    """Return the marker inside ``list[Annotated[str, RefTo(..)]]``, ``X | None`` and the like."""
    if get_origin(annotation) is Annotated:
        for item in annotation.__metadata__:
            if isinstance(item, marker):
                return item
    args = get_args(annotation)
    for arg in args:
        found = _inner_marker(arg, marker)
        if found is not None:
            return found
    return None
