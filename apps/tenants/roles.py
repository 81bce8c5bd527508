"""What each role may do. A platform admin is a superuser and may do everything in every tenant."""

from apps.tenants.models import Role

# What a permission is about, by table (of a proxy: of the table below it).
AREA_OF = {
    "tenants.membership": "members",
    "tenants.apikey": "keys",
    "tenants.auditentry": "audit",
    "releases.configitem": "config",
    "releases.revision": "config",
    "releases.reference": "config",
    "releases.headmove": "config",
    "releases.release": "release",
    "releases.deployment": "release",
    "releases.binding": "bindings",
    "releases.bindingproposal": "bindings",
    "releases.deploymentevent": "release",
    "releases.freezewindow": "release",
    "releases.changerequest": "changes",
    "releases.changepatch": "changes",
    "releases.changecomment": "changes",
    "releases.approval": "changes",
    "governance.racientry": "governance",
    "governance.riskquorum": "governance",
    "governance.dutyassignment": "governance",
    "governance.gatelevel": "governance",
    "governance.compatibilityrow": "governance",
    "governance.contractversion": "governance",
    "governance.evidence": "evidence",
    "governance.readinesscheck": "evidence",
    "governance.notification": "notifications",
    "governance.webhookendpoint": "webhooks",
    "governance.webhookdelivery": "webhooks",
    "tools.serverstate": "tools",
    "tools.seentool": "tools",
    "tools.toolquarantine": "tools",
    "tools.toolmock": "tools",
    "tools.toolanswer": "tools",
    "routing.examplevector": "tools",
    "routing.vectorwork": "tools",
    "tools.workflowrun": "conversations",
    "tools.workflownoderun": "conversations",
    "conversations.session": "conversations",
    "conversations.turnrecord": "conversations",
    "conversations.message": "conversations",
    "conversations.event": "conversations",
    "conversations.ledgerentry": "conversations",
    "conversations.outboundmessage": "conversations",
    "conversations.confirmation": "conversations",
    "tools.toolinvocation": "conversations",
    "tools.toolconnection": "bindings",
    "tools.toolsignin": "bindings",
    "tools.toolclient": "bindings",
}

# Where changing has another name than "<area>.change".
_CHANGE_OF = {
    "release": "release.deploy",
    # Whoever may edit configuration does it in a change request: there is no other way.
    "changes": "config.change",
}

_VIEW = {
    "members.view",
    "config.view",
    "release.view",
    "bindings.view",
    "conversations.view",
    "changes.view",
    "governance.view",
    "evidence.view",
    "tools.view",
    # One's own, of every role.
    "notifications.view",
    "notifications.change",
}
_CHAT = {"chat"}
# Decide on a request and discuss it. Whether somebody's approval counts is not a permission but a
# duty (``apps/governance/approval.py``), and never for what they edited themselves.
_REVIEW = {"changes.review"}
# Bring what is asked for: readiness answers, and results of tests and evaluations.
_PROVE = {"evidence.change"}
# Ask servers what they offer, and try tools that only read; ``tools.act``: try those that change
# something; ``tools.personal``: see personal data in what a tried tool answered.
_TRY = {"tools.change"}

# ``config.change``: edit, in a change request. ``release.publish``: publish or schedule a request
# that was approved. ``release.deploy``: deploy, promote, roll back, canary, freeze.
# ``governance.change``: who must approve what, gate levels, duties of others, contracts.
PERMISSIONS: dict[str, frozenset[str]] = {
    Role.TENANT_ADMIN: frozenset(
        _VIEW
        | _CHAT
        | _REVIEW
        | _PROVE
        | _TRY
        | {
            "tools.act",
            "tools.personal",
            "members.change",
            "keys.view",
            "keys.change",
            "audit.view",
            "config.change",
            "release.publish",
            "release.deploy",
            "bindings.change",
            "governance.change",
            "webhooks.view",
            "webhooks.change",
            "conversations.change",
            "conversations.trace",
            "debug",
        }
    ),
    Role.BUSINESS_OWNER: frozenset(
        _VIEW | _CHAT | _PROVE | _TRY | {"config.change", "conversations.trace"}
    ),
    Role.APPROVER: frozenset(
        _VIEW
        | _CHAT
        | _REVIEW
        | _PROVE
        | {"release.publish", "release.deploy", "conversations.trace"}
    ),
    Role.OPERATOR: frozenset(
        _VIEW
        | _CHAT
        | _REVIEW
        | _PROVE
        | _TRY
        | {"tools.act"}
        | {"release.deploy", "bindings.change", "conversations.change", "conversations.trace"}
        | {"webhooks.view", "debug"}
    ),
    Role.AUDITOR: frozenset(
        _VIEW | {"keys.view", "audit.view", "webhooks.view", "conversations.trace"}
    ),
}
EVERY_PERMISSION = frozenset[str]().union(*PERMISSIONS.values())

# What a key may be given. A person's scopes follow from the permissions of their roles.
KEY_SCOPES = (
    "message:write",
    "session:read",
    "debug",
    "identity:assert",
    "trace:read",
    "config:read",
    # Drafts only: an edit through a key lands in a change request.
    "config:write",
    # Decide on a request. Counts only for a person's key: a system approves nothing.
    "change:review",
    "release:publish",
    "release:deploy",
    # Bring results of tests and evaluations about a manifest: what a build needs.
    "evidence:write",
    "governance:write",
    # Addresses of webhooks: some carry a token in their path, so not for everybody who reads.
    "webhook:read",
    # The tools of the agent a key is bound to: see them, call them.
    "tool:read",
    "tool:invoke",
    # Say yes to an action in somebody's place: for a system that asked them itself.
    "tool:confirm",
    # Name any agent in a tool call: for a key that is bound to none.
    "agent:assert",
    # Ask the tool servers again what they offer. Activates nothing.
    "discovery:sync",
)
_SCOPES_OF_PERMISSION = {
    "chat": {"message:write", "identity:assert"},
    "conversations.view": {"session:read"},
    "conversations.trace": {"trace:read"},
    "config.view": {"config:read", "tool:read"},
    "config.change": {"config:write", "discovery:sync"},
    "changes.review": {"change:review"},
    "release.publish": {"release:publish"},
    "release.deploy": {"release:deploy"},
    "evidence.change": {"evidence:write"},
    "governance.change": {"governance:write"},
    "webhooks.view": {"webhook:read"},
    "conversations.change": {"tool:confirm"},
    "debug": {"debug", "tool:invoke", "agent:assert"},
}


def permissions_of(roles: frozenset[str]) -> frozenset[str]:
    """Return the permissions that ``roles`` give together; an unknown role gives none."""
    return frozenset[str]().union(*(PERMISSIONS.get(role, frozenset()) for role in roles))


def scopes_of(permissions: frozenset[str]) -> frozenset[str]:
    """Return the scopes a signed-in person's requests carry."""
    return frozenset[str]().union(*(_SCOPES_OF_PERMISSION.get(p, set()) for p in permissions))


def permission_for(label: str, action: str) -> str | None:
    """Return the permission that Django's ``action`` (view, add, change, delete) on the table
    ``label`` (``app.model``) asks for, or None when no role has it."""
    area = AREA_OF.get(label)
    if area is None:
        return None
    if action == "view":
        return f"{area}.view"
    return _CHANGE_OF.get(area, f"{area}.change")
