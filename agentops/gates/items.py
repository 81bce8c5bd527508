"""Gates: nothing lies unused, and everything that must has an owner."""

from collections.abc import Iterator
from typing import Any, get_args

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import BaseModel

from apps.agents.config import AgentConfig
from apps.releases.gates import GateContext, Problem, release_gate
from apps.runtime.config import KINDS, RefTo, references
from apps.runtime.release import Release
from apps.tools.config import ParameterMappingConfig, ToolConfig
from apps.tools.mapping import GLOBAL_MAPPING

DEFAULT = "default"
# Agents have a gate of their own: they are reached, not only named.
REACHED = ("agent",)
# The records of the governance model that name an owner, and what else is kept of each.
OWNED: dict[str, tuple[str, ...]] = {
    "agent": ("owner", "technical_owner"),
    "prompt": ("owner",),
    "tool": ("owner",),
    "rail_policy": ("owner",),
    "judge_policy": ("owner",),
}


@release_gate(
    title=gettext_lazy("Unused items"),
    description=gettext_lazy("Something names every tool, prompt, profile, mapping and policy."),
    level="warn",
)
def unused_items(context: GateContext) -> list[Problem]:
    """Gate: an item of a kind that others name, and nobody does. ``default`` items are used."""
    release = context.release
    named = {(ref.kind, ref.slug) for item in release.items.values() for ref in references(item)}
    kinds = kinds_named() - set(REACHED)
    unused = [
        key for key in release.items if key[0] in kinds and key[1] != DEFAULT and key not in named
    ]
    unused += [("parameter_mapping", slug) for slug in _mappings_of_nothing(release)]
    unused += [key for key in release.items if key[0] == "routing_policy" and key[1] != DEFAULT]
    text = _("%(kind)s %(slug)s is used by nothing in this release.")
    return [
        Problem(kind=kind, slug=slug, message=text % {"kind": kind, "slug": slug})
        for kind, slug in sorted(unused)
    ]


def _mappings_of_nothing(release: Release) -> Iterator[str]:
    tools = release.all(ToolConfig)
    for slug, mapping in release.all(ParameterMappingConfig).items():
        if slug != GLOBAL_MAPPING and (mapping.tool or slug) not in tools:
            yield slug
        elif (
            mapping.tool
            and mapping.tool != slug
            and mapping.tool in release.all(ParameterMappingConfig)
        ):
            # The tool's own mapping, by slug, is taken first.
            yield slug


def kinds_named() -> set[str]:
    """Return the kinds that a field of some kind can name."""
    return {kind for config_class in KINDS.values() for kind in _targets(config_class)}


def _targets(config_class: type[BaseModel]) -> Iterator[str]:
    for field in config_class.model_fields.values():
        for part in (*field.metadata, *_parts(field.annotation)):
            if isinstance(part, RefTo):
                yield part.kind
            elif isinstance(part, type) and issubclass(part, BaseModel):
                yield from _targets(part)


def _parts(annotation: Any) -> Iterator[Any]:
    yield annotation
    yield from getattr(annotation, "__metadata__", ())
    for arg in get_args(annotation):
        yield from _parts(arg)


@release_gate(
    title=gettext_lazy("Owners and objectives"),
    description=gettext_lazy(
        "Agents have an owner, a technical owner and an objective; prompts, tools, rail and judge"
        " policies an owner."
    ),
    level="warn",
)
def missing_owners(context: GateContext) -> list[Problem]:
    """Gate: the records of reference 13.1 are complete. Owners are labels, not content."""
    labels = context.labels or {}
    text = _("%(kind)s %(slug)s has no %(field)s.")
    fields = {
        "owner": _("owner"),
        "technical_owner": _("technical owner"),
        "objective": _("objective"),
    }
    lacking = [
        (kind, slug, field)
        for kind, slug in sorted(context.release.items)
        for field in OWNED.get(kind, ())
        if not dict(labels.get((kind, slug), {})).get(field)
    ]
    lacking += [
        ("agent", slug, "objective")
        for slug, agent in context.release.all(AgentConfig).items()
        if not agent.objective.strip()
    ]
    return [
        Problem(
            kind=kind,
            slug=slug,
            path=field,
            message=text % {"kind": kind, "slug": slug, "field": fields[field]},
        )
        for kind, slug, field in lacking
    ]
