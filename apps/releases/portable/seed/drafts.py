"""What foreign files add up to, while they are read: items, bindings, and the report."""

from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from apps.releases.content import InvalidContent, content_validate
from apps.releases.portable.native import Portable, PortableBinding, PortableItem
from apps.releases.portable.report import Report
from apps.releases.portable.seed.record import Record, as_slug
from apps.releases.portable.yaml_source import Problem, Source
from apps.runtime.config import KINDS, bindings


@dataclass
class Draft:
    """An item that later files may still add to."""

    kind: str
    slug: str
    content: dict[str, Any]
    source: Source
    path: str
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def line(self) -> int:
        return self.source.line(self.path)


class Drafts:
    """All drafts by kind and slug. ``environment`` is the one that addresses are bound in."""

    def __init__(self, report: Report, environment: str) -> None:
        self.report = report
        self.environment = environment
        self.items: dict[tuple[str, str], Draft] = {}
        self.bindings: dict[tuple[str, str, str], str] = {}

    def add(
        self,
        kind: str,
        name: str,
        content: dict[str, Any],
        record: Record,
        *,
        label: str = "",
        at: str = "",
    ) -> Draft | None:
        """Take ``content`` as the item ``name``; a second one of that name refuses the import.

        The record's ``owner`` and ``technical_owner`` become the item's. ``at`` is the field of the
        record that the item stands for.
        """
        slug = as_slug(name)
        if slug != name:
            record.warn(at, _("The name becomes %(slug)s.") % {"slug": slug})
        labels = {
            "name": label,
            "owner": record.text("owner"),
            "technical_owner": record.text("technical_owner"),
        }
        path = f"{record.path}.{at}" if at and record.path else at or record.path
        draft = Draft(kind, slug, content, record.source, path, labels)
        first = self.items.get((kind, slug))
        if first is not None:
            message = _("%(kind)s %(slug)s stands twice; first in %(file)s, line %(line)s.")
            found = {"kind": kind, "slug": slug, "file": first.source.file, "line": first.line}
            record.refuse(at, message % found)
            return None
        self.items[(kind, slug)] = draft
        return draft

    def of(self, kind: str) -> dict[str, Draft]:
        return {slug: draft for (found, slug), draft in self.items.items() if found == kind}

    def bind(self, what: str, name: str, value: str, environment: str = "") -> None:
        self.bindings[(environment or self.environment, what, name)] = value

    def portable(self) -> Portable:
        """Return the drafts, checked; what is wrong is added to the report's problems."""
        names: set[tuple[str, str]] = set()
        for draft in self.items.values():
            try:
                valid = content_validate(kind=draft.kind, slug=draft.slug, content=draft.content)
                names |= {(found.what, found.name) for found in bindings(valid.config)}
            except InvalidContent as error:
                self.report.problems += [
                    Problem(
                        draft.source.file,
                        draft.line,
                        draft.path,
                        f"{draft.kind} {draft.slug}, {found['field']}: {found['message']}",
                    )
                    for found in error.errors
                ]
        return Portable(
            items=[
                PortableItem(d.kind, d.slug, d.content, d.labels, d.source.file, d.line)
                for d in sorted(self.items.values(), key=lambda d: (d.kind, d.slug))
            ],
            binding_names=sorted(names),
            bindings=[
                PortableBinding(what, name, environment, value)
                for (environment, what, name), value in sorted(self.bindings.items())
                if (what, name) in names
            ],
        )


def takes(kind: str, content: dict[str, Any]) -> bool:
    """Return whether ``kind`` accepts ``content``: which rails, judges, transports it knows."""
    try:
        KINDS[kind].model_validate(content)
    except ValueError:
        return False
    return True
