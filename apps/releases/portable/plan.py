"""What files would change, in words and as JSON: for people and for CI."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from apps.releases.changes.policy import RISKS
from apps.releases.changes.selectors import PatchView, RequestView
from apps.releases.patches.diff import FieldChange, text_lines
from apps.releases.portable.proposing import Proposed

SIGNS = {"created": "+", "changed": "~", "archived": "-"}
LONGEST = 120


def plan_json(proposed: Proposed) -> dict[str, Any]:
    """Return the plan as JSON values."""
    view = proposed.view
    document: dict[str, Any] = {
        "counts": proposed.counts(),
        "bindings": proposed.bound,
        "request": None,
        "items": [],
    }
    if view is None:
        return document
    patches = {(v.patch.kind, v.patch.slug): v for v in view.patches}
    return {
        **document,
        "request": {"number": view.request.number, "status": view.request.status},
        "items": [
            {
                "kind": kind,
                "slug": slug,
                "change": change,
                "fields": patches[(kind, slug)].changes if (kind, slug) in patches else [],
                "labels": _labels(patches.get((kind, slug))),
                "head": _head(proposed, kind, slug),
            }
            for (kind, slug), change in sorted(proposed.changes.items())
            if change != "unchanged"
        ],
        "sha256": view.sha256,
        "risk": view.risk,
        "risks": [asdict(risk) for risk in view.risks],
        "must_approve": {
            "people": view.requirement.approvals,
            "duties": list(view.requirement.duties),
            "activities": list(view.requirement.activities),
            "missing": list(view.missing),
            "more": view.more,
            "problems": list(view.requirement.problems),
        },
        "gates": [asdict(finding) for finding in proposed.findings],
        "blocked": any(finding.level == "block" for finding in proposed.findings),
    }


def plan_text(proposed: Proposed) -> str:
    """Return the plan in lines."""
    return "\n".join(_lines(proposed))


def _lines(proposed: Proposed) -> Iterator[str]:
    view = proposed.view
    if view is None:
        yield "No change: the files say what is accepted."
    else:
        for patch in view.patches:
            yield from _patch_lines(proposed, patch)
        yield from _risk_lines(view)
        yield from _approval_lines(view)
        yield from _gate_lines(proposed)
    told = ", ".join(f"{count} {name}" for name, count in proposed.counts().items())
    yield f"items: {told}; bindings to set or propose: {proposed.bound}"


def _patch_lines(proposed: Proposed, view: PatchView) -> Iterator[str]:
    key = view.patch.kind, view.patch.slug
    head = _head(proposed, *key)
    now = f"  (now revision {head['revision']} by {head['author']})" if head else ""
    yield f"{SIGNS[proposed.changes[key]]} {view.patch.kind} {view.patch.slug}{now}"
    for field, text in _labels(view).items():
        yield f"    {field}: {_short(text)}"
    if proposed.changes[key] == "changed":
        for change in view.changes:
            yield from _field_lines(change)


def _field_lines(change: FieldChange) -> Iterator[str]:
    if change["change"] != "text":
        yield f"    {change['path']}: {_short(change['before'])} → {_short(change['after'])}"
        return
    yield f"    {change['path']}:"
    for sign, line in text_lines(change["before"], change["after"]):
        if sign != " ":
            yield f"      {sign} {line}"


def _risk_lines(view: RequestView) -> Iterator[str]:
    declared = view.request.declared_risk
    milder = RISKS.index(declared) < RISKS.index(view.risk)
    hint = f" (declared {declared}: give --risk {view.risk})" if milder else ""
    yield f"risk: {view.risk}{hint}"
    for risk in view.risks:
        if risk.risk == view.risk:
            yield f"    {risk.kind} {risk.slug} {risk.path}: {risk.message}"


def _approval_lines(view: RequestView) -> Iterator[str]:
    need = view.requirement
    yield f"must approve: {need.approvals} people; duties: {', '.join(need.duties) or 'any'}"
    for problem in need.problems:
        yield f"    {problem}"


def _gate_lines(proposed: Proposed) -> Iterator[str]:
    against = [f for f in proposed.findings if f.level in ("block", "warn")]
    blocks = sum(found.level == "block" for found in against)
    yield f"gates: {blocks} block, {len(against) - blocks} warn"
    for found in against:
        place = " ".join(part for part in (found.kind, found.slug, found.path) if part)
        yield f"    {found.level} {found.gate}: {place}: {found.message}"


def _head(proposed: Proposed, kind: str, slug: str) -> dict[str, Any] | None:
    item = proposed.heads.get((kind, slug))
    if item is None or item.head is None:
        return None
    return {"revision": item.head.number, "author": item.head.author}


def _labels(view: PatchView | None) -> dict[str, str]:
    labels: dict[str, str] = json.loads(view.patch.labels) if view else {}
    return labels


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
