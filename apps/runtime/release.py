"""A release as a turn sees it: parsed once, never changed."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from apps.runtime.canonical import canonical_json, sha256_text
from apps.runtime.config import KINDS, KindConfig

ConfigT = TypeVar("ConfigT", bound=KindConfig)
MANIFEST_FORMAT = 1


class UnknownItem(LookupError):
    """The release has no item of that kind and slug."""


@dataclass(frozen=True)
class Release:
    """Every configuration item of one tenant at one moment.

    ``items`` maps (kind, slug) to the parsed configuration; ``sha256`` is that of the stored
    manifest text. ``derived`` keeps what steps compile from a release (an index of keywords, a
    template), so that it is made once per process and release.
    """

    sha256: str
    items: Mapping[tuple[str, str], KindConfig]
    id: str = ""
    number: int = 0
    derived: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def get(self, config_class: type[ConfigT], slug: str) -> ConfigT:
        """Return the item ``slug`` of ``config_class``; raise ``UnknownItem`` when there is none."""
        try:
            return cast("ConfigT", self.items[(config_class.kind, slug)])
        except KeyError:
            raise UnknownItem(
                f"release {self.sha256[:12]} has no {config_class.kind} {slug!r}"
            ) from None

    def find(self, config_class: type[ConfigT], slug: str | None) -> ConfigT | None:
        """Return the item, or ``None`` when the slug is empty or unknown."""
        return cast("ConfigT | None", self.items.get((config_class.kind, slug or "")))

    def all(self, config_class: type[ConfigT]) -> dict[str, ConfigT]:
        """Return every item of ``config_class`` by slug, slugs in alphabetical order."""
        key = f"all:{config_class.kind}"
        if key not in self.derived:
            mine = [
                (slug, item)
                for (kind, slug), item in self.items.items()
                if kind == config_class.kind
            ]
            self.derived[key] = dict(sorted(mine, key=lambda entry: entry[0]))
        return cast("dict[str, ConfigT]", self.derived[key])


def manifest_text(items: Mapping[tuple[str, str], Mapping[str, Any]]) -> str:
    """Return the canonical manifest of ``items``: kind, slug and content only.

    No ids, numbers, dates or tenant are in it, so the same configuration has the same sha256
    everywhere.
    """
    kinds: dict[str, dict[str, Any]] = {}
    for (kind, slug), content in items.items():
        kinds.setdefault(kind, {})[slug] = content
    return canonical_json({"format": MANIFEST_FORMAT, "items": kinds})


def release_parse(*, manifest: str, id: str = "", number: int = 0) -> Release:
    """Parse ``manifest`` (canonical text) with the registered kinds.

    A kind that is not registered or content that no longer validates raises ``ValueError``: old
    releases stay loadable through ``model_validator(mode="before")`` beside the class that changed.
    """
    document = json.loads(manifest)
    items: dict[tuple[str, str], KindConfig] = {}
    for kind, entries in document["items"].items():
        if kind not in KINDS:
            raise ValueError(f"manifest names the unknown kind {kind!r}")
        for slug, content in entries.items():
            items[(kind, slug)] = KINDS[kind].model_validate(content)
    return Release(sha256=sha256_text(manifest), items=items, id=id, number=number)
