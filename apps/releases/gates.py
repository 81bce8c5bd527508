"""What a release must pass before it is published.

A gate is a callable ``gate(context) -> list[Problem]`` named in ``settings.RELEASE_GATES``; an empty
list lets the release pass. Gates see the parsed configuration and write nothing. A finding blocks or
warns: the gate says which, and the tenant may set another level (``settings.GATE_LEVELS``).
"""

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypedDict

from django.conf import settings
from django.db import transaction
from django.utils.functional import Promise
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.releases.content import config_errors
from apps.releases.models import ConfigItem
from apps.runtime.config import references
from apps.runtime.release import Release

log = logging.getLogger(__name__)

Level = Literal["block", "warn", "off", "passed"]
# Results are stored with every release and read by people.
MAX_FINDINGS = 200
Key = tuple[str, str]


class ItemLabels(TypedDict):
    """What is said of an item outside its content."""

    name: str
    owner: str
    technical_owner: str


@dataclass(frozen=True)
class GateContext:
    """What is to be published, by whom, and what it follows.

    ``gates_run`` fills what is not given: ``parent`` is the parsed release of ``parent_id``,
    ``manifest_sha256`` that of ``release``, ``labels`` those of the tenant's items today.
    ``submitting``: review begins only now, so what reviewers wait for may still be missing.
    """

    tenant_id: int
    actor: str
    note: str
    release: Release
    parent_id: str
    parent: Release | None = None
    manifest_sha256: str = ""
    risk: str = ""
    labels: Mapping[Key, ItemLabels] | None = None
    submitting: bool = False


@dataclass(frozen=True)
class Problem:
    """One finding: where (kind, slug, path), and in words.

    ``missing`` is the absent ``kind:slug`` when the problem is a dangling reference. ``level``:
    ``block`` or ``warn``; ``passed`` for what a gate notes without objecting; a gate that the tenant
    switched off leaves one finding ``off``. ``gate`` is the gate's code; who runs the gates fills it in.
    """

    message: str
    kind: str = ""
    slug: str = ""
    path: str = ""
    missing: str = ""
    level: Level = "block"
    gate: str = ""


Gate = Callable[[GateContext], list[Problem]]


@dataclass(frozen=True)
class GateInfo:
    """What is known of a gate: ``code`` names it in results and levels.

    ``locked``: no tenant may set it lower than ``block``. ``asks_database``: an error in it must not
    spoil the transaction of whoever publishes.
    """

    code: str
    run: Gate
    title: str | Promise
    description: str | Promise = ""
    level: Level = "block"
    locked: bool = False
    asks_database: bool = False


def release_gate(
    *,
    title: str | Promise,
    description: str | Promise,
    level: Level = "block",
    locked: bool = False,
    asks_database: bool = False,
) -> Callable[[Gate], Gate]:
    """Describe a gate, whose code is the function's name."""

    def described(run: Gate) -> Gate:
        code = run.__name__
        info = GateInfo(code, run, title, description, level, locked, asks_database)
        run.info = info  # type: ignore[attr-defined]
        return run

    return described


def gates_known() -> list[GateInfo]:
    """Return every gate of ``settings.RELEASE_GATES``, in order.

    One that does not describe itself blocks, and is taken to ask the database.
    """
    return [_info(import_string(name), name) for name in settings.RELEASE_GATES]


def _info(run: Gate, name: str) -> GateInfo:
    code = name.rpartition(".")[2]
    return getattr(run, "info", None) or GateInfo(code, run, code, asks_database=True)


def gates_run(context: GateContext) -> list[Problem]:
    """Run every gate and return all findings at the level that holds for this tenant.

    A gate that breaks is a finding that blocks: what could not be checked is not published.
    """
    levels = import_string(settings.GATE_LEVELS)()
    context = _completed(context)
    problems: list[Problem] = []
    for info in gates_known():
        level = gate_level(info, levels)
        if level == "off":
            text = _("Switched off for this tenant.")
            problems.append(Problem(message=text, level="off", gate=info.code))
        else:
            problems += _findings(info, level, context)
    return problems


def gate_level(info: GateInfo, levels: Mapping[str, str]) -> Level:
    """Return the level of a gate under the tenant's own ``levels`` (code → level)."""
    own = levels.get(info.code, "")
    if info.locked or own not in ("block", "warn", "off"):
        return info.level
    return own  # type: ignore[return-value]


def _findings(info: GateInfo, level: Level, context: GateContext) -> list[Problem]:
    try:
        # On PostgreSQL a failed query would end the publisher's transaction as well.
        with transaction.atomic() if info.asks_database else nullcontext():
            found = info.run(context)
    except Exception:
        log.exception("gate %s broke", info.code)
        text = _("The gate “%(gate)s” broke, so nothing was checked by it. The log says why.")
        return [Problem(message=text % {"gate": info.title}, gate=info.code)]
    return _capped(
        info.code,
        [replace(problem, gate=info.code, level=_lower(level, problem.level)) for problem in found],
    )


def _lower(gate: Level, problem: Level) -> Level:
    """Return the level of a finding in a tenant where its gate has the level ``gate``."""
    return "warn" if gate == "warn" and problem == "block" else problem


def _capped(gate: str, found: list[Problem]) -> list[Problem]:
    """Return the findings a person still reads, those that block first, and how many more."""
    if len(found) <= MAX_FINDINGS:
        return found
    found = sorted(found, key=lambda problem: problem.level != "block")
    shown, rest = found[:MAX_FINDINGS], found[MAX_FINDINGS:]
    text = _("… and %(count)s more of this gate.") % {"count": len(rest)}
    return [*shown, replace(rest[0], message=text, kind="", slug="", path="", missing="")]


def _completed(context: GateContext) -> GateContext:
    from apps.releases.selectors import release_load

    parent = context.parent
    if parent is None and context.parent_id:
        parent = release_load(context.tenant_id, context.parent_id)
    return replace(
        context,
        parent=parent,
        manifest_sha256=context.manifest_sha256 or context.release.sha256,
        labels=item_labels() if context.labels is None else context.labels,
    )


def item_labels() -> dict[Key, ItemLabels]:
    """Return the labels of every item of the tenant that is in use: one query."""
    rows = ConfigItem.objects.filter(archived_at=None).order_by()
    return {
        (kind, slug): {"name": name, "owner": owner, "technical_owner": technical}
        for kind, slug, name, owner, technical in rows.values_list(
            "kind", "slug", "name", "owner", "technical_owner"
        )
    }


# -- results -----------------------------------------------------------------------------------
def blocking(problems: Iterable[Problem]) -> list[Problem]:
    """Return the findings that forbid publishing."""
    return [problem for problem in problems if problem.level == "block"]


def gate_results(problems: Sequence[Problem]) -> list[dict[str, str]]:
    """Return findings as JSON values to store, with an entry ``passed`` for each gate without any."""
    found = {problem.gate for problem in problems}
    passed = [
        Problem(message="", level="passed", gate=info.code)
        for info in gates_known()
        if info.code not in found
    ]
    return findings_shown([*problems, *passed])


def findings_shown(problems: Iterable[Problem]) -> list[dict[str, str]]:
    """Return findings as JSON values."""
    return [dict(asdict(problem)) for problem in problems]


def gate_results_read(stored: str) -> list[dict[str, str]]:
    """Return stored results. Releases from before levels hold the names of the gates they passed."""
    results: list[Any] = json.loads(stored or "[]")
    return [
        result
        if isinstance(result, dict)
        else {
            **asdict(Problem(message="", level="passed")),
            "gate": str(result).rpartition(".")[2],
        }
        for result in results
    ]


# -- gates of this app -------------------------------------------------------------------------
@release_gate(
    title=gettext_lazy("Form of the content"),
    description=gettext_lazy("Every item fits its kind: names, required references, values."),
    locked=True,
)
def schema(context: GateContext) -> list[Problem]:
    """Gate: what parsing does not see, such as a required reference that is empty."""
    return [
        Problem(
            kind=kind,
            slug=slug,
            path=error["field"],
            message=_("%(kind)s %(slug)s: %(path)s: %(message)s")
            % {"kind": kind, "slug": slug, "path": error["field"], "message": error["message"]},
        )
        for (kind, slug), config in sorted(context.release.items.items(), key=lambda i: i[0])
        for error in config_errors(slug, config)
    ]


@release_gate(
    title=gettext_lazy("References"),
    description=gettext_lazy("Every item that is named is in the release."),
    locked=True,
)
def references_resolve(context: GateContext) -> list[Problem]:
    """Gate: every reference names an item of the same release."""
    items = context.release.items
    return [
        missing_problem(kind, slug, found.path, f"{found.kind}:{found.slug}")
        for (kind, slug), config in sorted(items.items(), key=lambda entry: entry[0])
        for found in references(config)
        if (found.kind, found.slug) not in items
    ]


def missing_problem(kind: str, slug: str, path: str, missing: str) -> Problem:
    """Return the finding that an item names something (``kind:slug``) that is not there."""
    words = {"kind": kind, "slug": slug, "path": path, "missing": missing}
    return Problem(
        kind=kind,
        slug=slug,
        path=path,
        missing=missing,
        message=_("%(kind)s %(slug)s: %(path)s names the missing %(missing)s.") % words,
    )
