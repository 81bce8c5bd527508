"""Results somebody brings about exactly one manifest: tests, evaluation, certification.

Append-only. A manifest may have results before it is published, so they are kept by its sha256.
"""

import re
from collections.abc import Mapping

from django.core.exceptions import ValidationError
from django.core.validators import URLValidator
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from apps.governance.approval_models import Evidence
from apps.governance.governing import GovernanceRefused
from apps.releases.services import configuration_locked
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import audit_append

_SHA256 = re.compile(r"[0-9a-f]{64}")
_url = URLValidator(schemes=["http", "https"])
MAX_SUMMARY, MAX_LINK = 500, 500


class InvalidEvidence(GovernanceRefused):
    """A result cannot be recorded. ``errors``: field → sentence."""

    code = "invalid_evidence"

    def __init__(self, errors: Mapping[str, str]) -> None:
        self.errors = dict(errors)
        super().__init__(" ".join(self.errors.values()))


def evidence_record(
    *,
    manifest_sha256: str,
    what: str,
    passed: bool,
    result_sha256: str,
    actor: str,
    summary: str = "",
    link: str = "",
) -> Evidence:
    """Keep that a test, an evaluation … of the manifest passed or failed.

    ``result_sha256`` is that of the report, wherever it is kept; ``link`` says where. The same
    result brought again is the row that is there. Raises ``InvalidEvidence``.
    """
    _checked(manifest_sha256, what, result_sha256, summary, link)
    with tenant_transaction():
        configuration_locked()
        newest = evidence_of(manifest_sha256).filter(what=what).first()
        same = (newest.result_sha256, newest.passed) == (result_sha256, passed) if newest else False
        if newest is not None and same:
            return newest
        row: Evidence = Evidence.objects.create(
            manifest_sha256=manifest_sha256,
            what=what,
            passed=passed,
            result_sha256=result_sha256,
            summary=summary,
            link=link,
            recorded_by=actor,
        )
        audit_append(
            actor=actor,
            action="evidence.recorded",
            entity=f"manifest:{manifest_sha256}",
            detail={"what": what, "passed": passed, "result_sha256": result_sha256},
        )
        return row


def evidence_of(manifest_sha256: str) -> QuerySet[Evidence]:
    """Return what was brought about a manifest, newest first."""
    found: QuerySet[Evidence] = Evidence.objects.filter(manifest_sha256=manifest_sha256)
    return found.order_by("-recorded_at", "-pk")


def evidence_newest(manifest_sha256: str, what: str) -> Evidence | None:
    """Return the result that counts: the newest of its type."""
    return evidence_of(manifest_sha256).filter(what=what).first()


def link_error(link: str) -> str:
    """Return what is wrong with a link to a report, "" when nothing is."""
    if not link:
        return ""
    try:
        _url(link)
    except ValidationError:
        return _("Give a link that begins with https:// or http://, or none.")
    return "" if len(link) <= MAX_LINK else _("At most %(limit)s characters.") % {"limit": MAX_LINK}


def _checked(manifest: str, what: str, result: str, summary: str, link: str) -> None:
    errors: dict[str, str] = {}
    for field, value in (("manifest_sha256", manifest), ("result_sha256", result)):
        if not _SHA256.fullmatch(value):
            errors[field] = _("A sha256 has 64 digits and letters a to f, in lower case.")
    if what not in Evidence.What.values:
        known = ", ".join(Evidence.What.values)
        errors["what"] = _("Use one of %(known)s.") % {"known": known}
    if len(summary) > MAX_SUMMARY:
        errors["summary"] = _("At most %(limit)s characters.") % {"limit": MAX_SUMMARY}
    if "\0" in summary:
        errors["summary"] = _("The text holds a NUL.")
    if wrong := link_error(link):
        errors["link"] = wrong
    if errors:
        raise InvalidEvidence(errors)
