"""From heads to a manifest, and what a manifest needs from an environment. Reads only."""

import json
from collections.abc import Iterable

from django.utils.translation import gettext as _
from pydantic import ValidationError

from apps.releases.content import FieldError, InvalidContent, field_errors
from apps.releases.models import Binding, ConfigItem, Release
from apps.runtime import release as runtime_release
from apps.runtime.canonical import canonical_json, sha256_text
from apps.runtime.config import KINDS, bindings


class CorruptRelease(RuntimeError):
    """The stored bytes of a release do not have the sha256 it was published with."""


HeadRow = tuple[str, str, str]
"""An item's head as a manifest needs it: kind, slug, canonical content."""


def head_rows() -> list[HeadRow]:
    """Return the heads of all items that are not archived: one query."""
    rows = ConfigItem.objects.filter(archived_at=None, head__isnull=False).order_by()
    return list(rows.values_list("kind", "slug", "head__content"))


def manifest_of_heads() -> str:
    """Return the canonical manifest of the heads of all items that are not archived: one query."""
    return manifest_of_rows(head_rows())


def manifest_of_rows(rows: Iterable[HeadRow]) -> str:
    """Return the canonical manifest of ``rows``: the same text as ``runtime.release.manifest_text``.

    Contents are canonical text already, so they are put together and not read and written again.
    """
    kinds: dict[str, dict[str, str]] = {}
    for kind, slug, content in rows:
        kinds.setdefault(kind, {})[slug] = content
    items = _joined({kind: _joined(slugs) for kind, slugs in kinds.items()})
    return _joined({"format": str(runtime_release.MANIFEST_FORMAT), "items": items})


def _joined(parts: dict[str, str]) -> str:
    return "{" + ",".join(f"{canonical_json(key)}:{parts[key]}" for key in sorted(parts)) + "}"


def manifest_parsed(manifest: str) -> runtime_release.Release:
    """Parse ``manifest``. Raises ``InvalidContent`` that names each item that no longer fits."""
    try:
        return runtime_release.release_parse(manifest=manifest)
    except ValueError:
        raise InvalidContent(_misfits(manifest)) from None


def _misfits(manifest: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for kind, entries in json.loads(manifest)["items"].items():
        for slug, content in entries.items():
            try:
                KINDS[kind].model_validate(content)
            except KeyError:
                errors.append({"field": f"{kind}:{slug}", "message": _("There is no such kind.")})
            except ValidationError as error:
                errors += field_errors(error, prefix=f"{kind}:{slug}")
    return errors


def manifest_stored(release: Release) -> str:
    """Read the stored bytes anew and return them; raise ``CorruptRelease`` when they changed."""
    stored: str = Release.objects.values_list("manifest", flat=True).get(pk=release.pk)
    if sha256_text(stored) != release.sha256:
        raise CorruptRelease(
            f"release #{release.number} does not have the sha256 it was published with"
        )
    return stored


def bindings_needed(release: runtime_release.Release) -> list[dict[str, str]]:
    """Return every binding that ``release`` names, as {kind, slug, path, what, name}."""
    return [
        {"kind": kind, "slug": slug, "path": found.path, "what": found.what, "name": found.name}
        for (kind, slug), config in sorted(release.items.items(), key=lambda entry: entry[0])
        for found in bindings(config)
    ]


def bindings_missing(release: runtime_release.Release, environment: str) -> list[dict[str, str]]:
    """Return the bindings that ``release`` names and ``environment`` has no value for."""
    bound = set(
        Binding.objects.filter(environment=environment)
        .exclude(value="")
        .values_list("what", "name")
    )
    return [
        needed
        for needed in bindings_needed(release)
        if (needed["what"], needed["name"]) not in bound
    ]
