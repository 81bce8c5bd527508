"""The requests of a release as its page shows them: who approved exactly what it holds."""

import json
from dataclasses import dataclass
from typing import Any

from apps.releases.change_models import Approval, ChangeRequest
from apps.releases.evidence.record import release_requests
from apps.releases.models import Release
from apps.releases.pages.change_forms import person_name
from apps.releases.pages.change_shown import duty_label
from apps.releases.pages.links import kind_label, request_link, slug_link


@dataclass(frozen=True)
class ShownDecision:
    """A decision; ``is_of_this``: it was about exactly what the release holds."""

    decision: Approval
    person: str
    on_behalf_of: str
    duties: list[str]
    is_of_this: bool


@dataclass(frozen=True)
class ShownRequest:
    """A request that was published as the release."""

    request: ChangeRequest
    url: str
    author: str
    editors: list[str]
    items: list[dict[str, Any]]
    decisions: list[ShownDecision]


def requests_shown(release: Release) -> list[ShownRequest]:
    """Return the requests of ``release``, oldest first."""
    return [
        ShownRequest(
            request=request,
            url=request_link(request),
            author=person_name(request.author),
            editors=[person_name(name) for name in json.loads(request.editors)],
            items=[
                {
                    "kind": kind_label(patch.kind),
                    "slug": patch.slug,
                    "url": slug_link(patch.kind, patch.slug),
                    "action": patch.get_action_display(),
                }
                for patch in request.patches.all()
            ],
            decisions=[
                ShownDecision(
                    decision=decision,
                    person=person_name(decision.person),
                    on_behalf_of=person_name(decision.on_behalf_of),
                    duties=[duty_label(duty) for duty in json.loads(decision.duties)],
                    is_of_this=decision.manifest_sha256 == release.sha256,
                )
                for decision in request.approvals.all()
            ],
        )
        for request in release_requests(release)
    ]
