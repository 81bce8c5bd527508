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
    "releases.release": "release",
    "releases.deployment": "release",
    "releases.binding": "bindings",
    "conversations.session": "conversations",
    "conversations.turnrecord": "conversations",
    "conversations.message": "conversations",
    "conversations.event": "conversations",
    "conversations.ledgerentry": "conversations",
    "conversations.outboundmessage": "conversations",
}

_VIEW = {
    "members.view",
    "config.view",
    "release.view",
    "bindings.view",
    "conversations.view",
}
_CHAT = {"chat"}

PERMISSIONS: dict[str, frozenset[str]] = {
    Role.TENANT_ADMIN: frozenset(
        _VIEW
        | _CHAT
        | {
            "members.change",
            "keys.view",
            "keys.change",
            "audit.view",
            "config.change",
            "release.publish",
            "release.deploy",
            "bindings.change",
            "conversations.change",
            "conversations.trace",
            "debug",
        }
    ),
    Role.BUSINESS_OWNER: frozenset(_VIEW | _CHAT | {"config.change", "conversations.trace"}),
    Role.APPROVER: frozenset(
        _VIEW | _CHAT | {"release.publish", "release.deploy", "conversations.trace"}
    ),
    Role.OPERATOR: frozenset(
        _VIEW
        | _CHAT
        | {"release.deploy", "bindings.change", "conversations.change", "conversations.trace"}
        | {"debug"}
    ),
    Role.AUDITOR: frozenset(_VIEW | {"keys.view", "audit.view", "conversations.trace"}),
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
    "config:write",
)
_SCOPES_OF_PERMISSION = {
    "chat": {"message:write", "identity:assert"},
    "conversations.view": {"session:read"},
    "conversations.trace": {"trace:read"},
    "config.view": {"config:read"},
    "config.change": {"config:write"},
    "debug": {"debug"},
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
    return {"release": "release.deploy"}.get(area, f"{area}.change")
