"""What each role may do with changes, and which scopes that gives."""

import pytest

from apps.tenants.auth import DEMO_SCOPES
from apps.tenants.models import Role
from apps.tenants.roles import (
    AREA_OF,
    EVERY_PERMISSION,
    KEY_SCOPES,
    PERMISSIONS,
    permission_for,
    permissions_of,
    scopes_of,
)

ADMIN, OWNER = Role.TENANT_ADMIN, Role.BUSINESS_OWNER
APPROVER, OPERATOR, AUDITOR = Role.APPROVER, Role.OPERATOR, Role.AUDITOR
EVERYBODY = {ADMIN, OWNER, APPROVER, OPERATOR, AUDITOR}

MAY: dict[str, set[Role]] = {
    "changes.view": EVERYBODY,
    "governance.view": EVERYBODY,
    "evidence.view": EVERYBODY,
    "notifications.view": EVERYBODY,
    "notifications.change": EVERYBODY,
    "config.change": {ADMIN, OWNER},
    "changes.review": {ADMIN, APPROVER, OPERATOR},
    "release.publish": {ADMIN, APPROVER},
    "release.deploy": {ADMIN, APPROVER, OPERATOR},
    "bindings.change": {ADMIN, OPERATOR},
    "evidence.change": {ADMIN, OWNER, APPROVER, OPERATOR},
    "governance.change": {ADMIN},
    "webhooks.view": {ADMIN, OPERATOR, AUDITOR},
    "webhooks.change": {ADMIN},
}
SCOPE_OF = {
    "changes.review": "change:review",
    "release.publish": "release:publish",
    "release.deploy": "release:deploy",
    "evidence.change": "evidence:write",
    "governance.change": "governance:write",
    "webhooks.view": "webhook:read",
    "config.change": "config:write",
}
NEW_TABLES = {
    "releases.changerequest": ("changes.view", "config.change"),
    "releases.changepatch": ("changes.view", "config.change"),
    "releases.changecomment": ("changes.view", "config.change"),
    "releases.approval": ("changes.view", "config.change"),
    "releases.deploymentevent": ("release.view", "release.deploy"),
    "releases.freezewindow": ("release.view", "release.deploy"),
    "releases.bindingproposal": ("bindings.view", "bindings.change"),
    "governance.racientry": ("governance.view", "governance.change"),
    "governance.riskquorum": ("governance.view", "governance.change"),
    "governance.dutyassignment": ("governance.view", "governance.change"),
    "governance.gatelevel": ("governance.view", "governance.change"),
    "governance.compatibilityrow": ("governance.view", "governance.change"),
    "governance.contractversion": ("governance.view", "governance.change"),
    "governance.evidence": ("evidence.view", "evidence.change"),
    "governance.readinesscheck": ("evidence.view", "evidence.change"),
    "governance.notification": ("notifications.view", "notifications.change"),
    "governance.webhookendpoint": ("webhooks.view", "webhooks.change"),
    "governance.webhookdelivery": ("webhooks.view", "webhooks.change"),
}


@pytest.mark.parametrize("permission", MAY)
def test_permission__is_held_by_these_roles_and_no_others(permission):
    assert {role for role in Role if permission in PERMISSIONS[role]} == MAY[permission]


@pytest.mark.parametrize("label", NEW_TABLES)
def test_table__is_seen_and_changed_with_these_permissions(label):
    assert label in AREA_OF
    seen, changed = NEW_TABLES[label]
    assert permission_for(label, "view") == seen
    for action in ("add", "change", "delete"):
        assert permission_for(label, action) == changed


@pytest.mark.parametrize("permission", SCOPE_OF)
def test_scope__comes_with_its_permission_only(permission):
    scope = SCOPE_OF[permission]
    assert scope in KEY_SCOPES
    assert scope in scopes_of(frozenset({permission}))
    assert scope not in scopes_of(EVERY_PERMISSION - {permission})


def test_auditor__changes_nothing_but_what_they_have_read():
    writes = {p for p in permissions_of(frozenset({AUDITOR})) if not p.endswith(".view")}
    assert writes == {"conversations.trace", "notifications.change"}
    assert scopes_of(permissions_of(frozenset({AUDITOR}))) == {
        "session:read", "trace:read", "config:read", "webhook:read", "tool:read",
    }  # fmt: skip


def test_keyless_demo_caller__changes_nothing():
    assert not DEMO_SCOPES & set(SCOPE_OF.values())
    assert set(KEY_SCOPES) >= DEMO_SCOPES
