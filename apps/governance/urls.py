"""Paths of the governance API."""

from apps.governance import api, evidence_api, notices_api, versions_api, webhooks_api
from apps.releases.api.operations import route

CHECK = "v1/governance/readiness/<str:agent>/<str:check>"
WEBHOOK = "v1/governance/webhooks/<uuid:webhook>"

urlpatterns = [
    route("v1/governance/matrix", get=api.MatrixGet),
    route("v1/governance/matrix/<str:activity>", put=api.MatrixSet),
    route("v1/governance/quorums", get=api.QuorumList),
    route("v1/governance/quorums/<str:risk>", put=api.QuorumSet),
    route("v1/governance/duties", get=api.DutyList, post=api.DutyGrant),
    route("v1/governance/duties/delegations", post=api.DutyDelegate),
    route("v1/governance/duties/<int:assignment>/end", post=api.DutyEnd),
    route("v1/governance/gates", get=evidence_api.GateList),
    route("v1/governance/gates/<str:gate>", put=evidence_api.GateLevelSet),
    route(
        "v1/governance/evidence", get=evidence_api.EvidenceList, post=evidence_api.EvidenceRecord
    ),
    route("v1/governance/readiness/<str:agent>", get=evidence_api.ReadinessGet),
    route(CHECK, put=evidence_api.ReadinessSet),
    route(f"{CHECK}/exemption", post=evidence_api.ExemptionAsk),
    route(f"{CHECK}/exemption/approve", post=evidence_api.ExemptionApprove),
    route(
        "v1/governance/compatibility",
        get=versions_api.CompatibilityList,
        post=versions_api.CompatibilityAdd,
    ),
    route("v1/governance/compatibility/<int:row>", put=versions_api.CompatibilityChange),
    route("v1/notifications", get=notices_api.NotificationList),
    route("v1/notifications/read", post=notices_api.NotificationRead),
    route("v1/governance/contracts", get=versions_api.ContractList),
    route("v1/governance/contracts/<str:name>/<int:version>", put=versions_api.ContractSet),
    route("v1/governance/webhooks", get=webhooks_api.WebhookList, post=webhooks_api.WebhookAdd),
    route(WEBHOOK, get=webhooks_api.WebhookGet, patch=webhooks_api.WebhookChange),
    route(f"{WEBHOOK}/deliveries", get=webhooks_api.WebhookDeliveries),
]
