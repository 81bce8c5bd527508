"""Paths of the governance API."""

from apps.governance import api
from apps.releases.api.operations import route

urlpatterns = [
    route("v1/governance/matrix", get=api.MatrixGet),
    route("v1/governance/matrix/<str:activity>", put=api.MatrixSet),
    route("v1/governance/quorums", get=api.QuorumList),
    route("v1/governance/quorums/<str:risk>", put=api.QuorumSet),
    route("v1/governance/duties", get=api.DutyList, post=api.DutyGrant),
    route("v1/governance/duties/delegations", post=api.DutyDelegate),
    route("v1/governance/duties/<int:assignment>/end", post=api.DutyEnd),
]
