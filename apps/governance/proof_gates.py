"""Gates that ask for proof: results about the manifest, and versions that work together.

The evidence gates are off until a tenant sets their level; whoever makes results (an evaluation, a
build) brings them with ``evidence_record``, or adds a gate of its own to ``RELEASE_GATES``. A request
may be submitted without; nobody approves or publishes it before they are there.
"""

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.governance.approval_models import Evidence
from apps.governance.compatibility import is_supported
from apps.governance.evidence import evidence_newest
from apps.releases.change_models import ChangeRequest
from apps.releases.changes.approvals import editors_of
from apps.releases.changes.states import OPEN
from apps.releases.gates import GateContext, Level, Problem, release_gate
from apps.tenants.issuing import with_issuer


@release_gate(
    title=gettext_lazy("Evidence: tests"),
    description=gettext_lazy("The newest test report about exactly this manifest passed."),
    level="off",
    asks_database=True,
)
def evidence_tests(context: GateContext) -> list[Problem]:
    """Gate: a test report of exactly this manifest."""
    return _proved(context, Evidence.What.TESTS)


@release_gate(
    title=gettext_lazy("Evidence: evaluation"),
    description=gettext_lazy("The newest evaluation of exactly this manifest passed."),
    level="off",
    asks_database=True,
)
def evidence_evaluation(context: GateContext) -> list[Problem]:
    """Gate: an evaluation of exactly this manifest."""
    return _proved(context, Evidence.What.EVALUATION)


@release_gate(
    title=gettext_lazy("Evidence: certification"),
    description=gettext_lazy("The newest certification of exactly this manifest passed."),
    level="off",
    asks_database=True,
)
def evidence_certification(context: GateContext) -> list[Problem]:
    """Gate: a certification of exactly this manifest, by somebody who did not make it."""
    missing = _proved(context, Evidence.What.CERTIFICATION)
    return missing or _certified_by_its_maker(context.manifest_sha256)


def _certified_by_its_maker(manifest_sha256: str) -> list[Problem]:
    newest = evidence_newest(manifest_sha256, Evidence.What.CERTIFICATION)
    bound = ChangeRequest.objects.filter(manifest_sha256=manifest_sha256, status__in=OPEN)
    makers = {name for request in bound for name in (request.author, *editors_of(request))}
    if newest is None or makers.isdisjoint(with_issuer(newest.recorded_by)):
        return []
    text = _("Certification report: who edited the request brought it; somebody else has to.")
    return [Problem(message=text, path=Evidence.What.CERTIFICATION.value)]


def _proved(context: GateContext, what: Evidence.What) -> list[Problem]:
    newest = evidence_newest(context.manifest_sha256, what)
    words = {"what": what.label, "sha256": context.manifest_sha256[:12]}
    if newest is None:
        text = _("%(what)s: there is none about the manifest %(sha256)s.")
    elif not newest.passed:
        text = _("%(what)s: the newest about the manifest %(sha256)s failed.")
    else:
        return []
    # The manifest is known once a request is submitted; proof of it is brought while it is reviewed.
    level: Level = "warn" if context.submitting else "block"
    return [Problem(message=text % words, path=what.value, level=level)]


@release_gate(
    title=gettext_lazy("Compatibility"),
    description=gettext_lazy("The running version is in a supported row of the matrix."),
    level="warn",
    asks_database=True,
)
def compatibility(context: GateContext) -> list[Problem]:
    """Gate: what runs is a combination the tenant supports."""
    if is_supported(settings.VERSION):
        return []
    text = _("Version %(version)s is in no supported row of the compatibility matrix.")
    return [Problem(message=text % {"version": settings.VERSION})]
