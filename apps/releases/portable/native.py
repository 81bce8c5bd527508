"""The product's own format: a whole tenant as YAML text.

    format: agentops-config-v1
    items:
      <kind>:
        <slug>: {name?, owner?, technical_owner?, every field of the kind}
    bindings:            # names only; values belong to an environment
      address: [telecom_mcp]

Kinds and slugs stand in alphabetical order, fields in the order of their class, so the same
configuration has the same text. Several documents (a folder, a zip) add up to one.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from apps.releases.content import InvalidContent, content_validate, slug_is_valid
from apps.releases.portable.yaml_source import Problem, Source, SourceRefused, join
from apps.releases.portable.yaml_text import yaml_text
from apps.runtime.config import KINDS

FORMAT = "agentops-config-v1"
LABELS = ("name", "owner", "technical_owner")
WHATS = ("address", "credential")
_LABEL_LENGTH = 200


@dataclass(frozen=True)
class PortableItem:
    """One configuration item on its way in or out. ``content`` is JSON types."""

    kind: str
    slug: str
    content: Mapping[str, Any]
    labels: Mapping[str, str] = field(default_factory=dict)
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class PortableBinding:
    """A value for one environment. Not part of a document unless asked for."""

    what: str
    name: str
    environment: str
    value: str


@dataclass(frozen=True)
class Portable:
    """A tenant's configuration outside the database."""

    items: Sequence[PortableItem]
    binding_names: Sequence[tuple[str, str]] = ()
    bindings: Sequence[PortableBinding] = ()


# -- out ---------------------------------------------------------------------------------------
def native_text(portable: Portable) -> str:
    """Return ``portable`` as one document."""
    return yaml_text(_document(portable.items, portable))


def native_files(portable: Portable) -> dict[str, str]:
    """Return ``portable`` as file name → text: one file per kind, and one for binding names."""
    kinds = sorted({item.kind for item in portable.items})
    files = {
        f"{kind}.yaml": yaml_text(
            _document([item for item in portable.items if item.kind == kind], None)
        )
        for kind in kinds
    }
    if portable.binding_names:
        files["bindings.yaml"] = yaml_text(_document([], portable))
    return files


def _document(items: Iterable[PortableItem], bound: Portable | None) -> dict[str, Any]:
    document: dict[str, Any] = {"format": FORMAT}
    kinds: dict[str, dict[str, Any]] = {}
    for item in sorted(items, key=lambda item: (item.kind, item.slug)):
        kinds.setdefault(item.kind, {})[item.slug] = _body(item)
    if kinds:
        document["items"] = kinds
    if bound and bound.binding_names:
        document["bindings"] = _bindings(bound)
    return document


def _body(item: PortableItem) -> dict[str, Any]:
    labels = {name: item.labels[name] for name in LABELS if item.labels.get(name)}
    order = list(KINDS[item.kind].model_fields) if item.kind in KINDS else []
    fields = sorted(
        item.content, key=lambda name: (order.index(name) if name in order else len(order), name)
    )
    return {**labels, **{name: item.content[name] for name in fields}}


def _bindings(portable: Portable) -> dict[str, Any]:
    values: dict[tuple[str, str], dict[str, str]] = {}
    for binding in portable.bindings:
        values.setdefault((binding.what, binding.name), {})[binding.environment] = binding.value
    document: dict[str, Any] = {}
    for what in WHATS:
        names = sorted(name for found, name in portable.binding_names if found == what)
        if names and values:
            document[what] = {
                name: dict(sorted(values.get((what, name), {}).items())) for name in names
            }
        elif names:
            document[what] = names
    return document


def portable_content(text: str) -> dict[str, Any]:
    """Return a revision's canonical ``text`` as content."""
    content: dict[str, Any] = json.loads(text)
    return content


# -- in ----------------------------------------------------------------------------------------
def native_parse(sources: Sequence[Source]) -> Portable:
    """Return what ``sources`` say together, checked against the kinds.

    Raises ``SourceRefused`` with every problem: unknown keys, kinds and fields, bad values, items
    that stand twice.
    """
    reading = _Reading()
    for source in sources:
        reading.source(source)
    if reading.problems:
        raise SourceRefused(reading.problems)
    return Portable(
        items=sorted(reading.items.values(), key=lambda item: (item.kind, item.slug)),
        binding_names=sorted(reading.names),
        bindings=reading.bindings,
    )


class _Reading:
    def __init__(self) -> None:
        self.items: dict[tuple[str, str], PortableItem] = {}
        self.names: set[tuple[str, str]] = set()
        self.bindings: list[PortableBinding] = []
        self.problems: list[Problem] = []

    def source(self, source: Source) -> None:
        document = source.value
        if document is None:
            self._problem(source, "", _("The file is empty."))
            return
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            path = "format" if isinstance(document, dict) else ""
            message = _("The file must be a mapping with 'format: %(format)s'.")
            self._problem(source, path, message % {"format": FORMAT})
            return
        for key in document:
            if key not in ("format", "items", "bindings"):
                self._problem(source, key, _("This field is not known here."))
        for kind, slugs in self._map(source, document.get("items", {}), "items").items():
            self._kind(source, kind, slugs)
        for what, names in self._map(source, document.get("bindings", {}), "bindings").items():
            self._binding_names(source, what, names)

    def _kind(self, source: Source, kind: str, slugs: Any) -> None:
        path = join("items", kind)
        if kind not in KINDS:
            known = ", ".join(sorted(KINDS))
            self._problem(source, path, _("Unknown kind; known: %(kinds)s.") % {"kinds": known})
            return
        for slug, body in self._map(source, slugs, path).items():
            here = join(path, slug)
            if (kind, slug) in self.items:
                first = self.items[(kind, slug)]
                message = _("The item stands twice; first in %(file)s, line %(line)s.")
                found = {"file": first.file, "line": first.line}
                self._problem(source, here, message % found)
            else:
                self._item(source, kind, slug, self._map(source, body, here), here)

    def _item(
        self, source: Source, kind: str, slug: str, body: Mapping[str, Any], path: str
    ) -> None:
        labels = {name: body[name] for name in LABELS if name in body}
        for name, value in labels.items():
            if not isinstance(value, str) or len(value) > _LABEL_LENGTH:
                message = _("Text of at most %(limit)s characters is expected.")
                self._problem(source, join(path, name), message % {"limit": _LABEL_LENGTH})
        content = {key: value for key, value in body.items() if key not in LABELS}
        try:
            content_validate(kind=kind, slug=slug, content=content)
        except InvalidContent as error:
            for found in error.errors:
                self._problem(source, _below(path, found["field"]), found["message"])
        self.items[(kind, slug)] = PortableItem(
            kind=kind,
            slug=slug,
            content=content,
            labels=labels,
            file=source.file,
            line=source.line(path),
        )

    def _binding_names(self, source: Source, what: str, names: Any) -> None:
        path = join("bindings", what)
        if what not in WHATS:
            self._problem(source, path, _("Expected address or credential."))
            return
        if not isinstance(names, (list, dict)):
            self._problem(source, path, _("Expected a list of names."))
            return
        for key, name in [(n, n) for n in names] if isinstance(names, dict) else enumerate(names):
            if not slug_is_valid(name):
                self._problem(source, join(path, key), _("This is not a binding's name."))
                continue
            self.names.add((what, name))
            if isinstance(names, dict):
                self._binding_values(source, what, name, names[name], join(path, name))

    def _binding_values(self, source: Source, what: str, name: str, values: Any, path: str) -> None:
        for environment, value in self._map(source, values, path).items():
            if isinstance(value, str):
                self.bindings.append(PortableBinding(what, name, environment, value))
            else:
                self._problem(source, join(path, environment), _("Text is expected."))

    def _map(self, source: Source, value: Any, path: str) -> Mapping[str, Any]:
        if isinstance(value, dict):
            return value
        self._problem(source, path, _("Expected a map of names."))
        return {}

    def _problem(self, source: Source, path: str, message: str) -> None:
        self.problems.append(source.problem(path, message))


def _below(path: str, found: str) -> str:
    if not found or found == "slug":
        return path
    return f"{path}.{found}"
