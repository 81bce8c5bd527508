"""What a release must pass before it is published.

A gate is a callable ``gate(context) -> list[Problem]`` named in ``settings.RELEASE_GATES``; an empty
list lets the release pass. Gates see the parsed configuration and write nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from apps.runtime.config import references
from apps.runtime.release import Release


@dataclass(frozen=True)
class GateContext:
    """What is to be published, by whom, and what it follows."""

    tenant_id: int
    actor: str
    note: str
    release: Release
    parent_id: str


@dataclass(frozen=True)
class Problem:
    """One reason against publishing: where (kind, slug, path), and in words.

    ``missing`` is the absent ``kind:slug`` when the problem is a dangling reference.
    """

    message: str
    kind: str = ""
    slug: str = ""
    path: str = ""
    missing: str = ""


Gate = Callable[[GateContext], list[Problem]]


def gates_run(context: GateContext) -> list[Problem]:
    """Run every gate of ``settings.RELEASE_GATES`` and return all problems."""
    problems: list[Problem] = []
    for name in settings.RELEASE_GATES:
        gate: Gate = import_string(name)
        problems.extend(gate(context))
    return problems


def references_resolve(context: GateContext) -> list[Problem]:
    """Gate: every reference names an item of the same release."""
    items = context.release.items
    return [
        Problem(
            kind=kind,
            slug=slug,
            path=found.path,
            missing=f"{found.kind}:{found.slug}",
            message=_("%(kind)s %(slug)s: %(path)s names the missing %(missing)s.")
            % {
                "kind": kind,
                "slug": slug,
                "path": found.path,
                "missing": f"{found.kind}:{found.slug}",
            },
        )
        for (kind, slug), config in sorted(items.items(), key=lambda entry: entry[0])
        for found in references(config)
        if (found.kind, found.slug) not in items
    ]
