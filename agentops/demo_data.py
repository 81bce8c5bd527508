"""Loads the demo tenants, people and keys; says what it did. Repeating it changes nothing.

Whatever somebody else changed since the last run stays: items, releases, bindings, roles, keys.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from django.conf import settings
from django.db import transaction
from django.db.models import Max

from agentops.env import BASE_DIR
from apps.governance.approval_models import Duty
from apps.governance.duty_services import duty_grant
from apps.releases.authority import setting_up
from apps.releases.content import content_same, content_validate
from apps.releases.environments.services import binding_set, release_deploy
from apps.releases.models import Binding, ConfigItem, Deployment, Release, Revision
from apps.releases.portable.native import Portable, PortableItem, native_parse
from apps.releases.portable.transfer import tenant_import
from apps.releases.portable.yaml_source import source_read
from apps.releases.selectors import item_heads
from apps.releases.services import release_publish
from apps.tenants.models import ApiKey, Role, Tenant, User
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import api_key_issue, membership_grant, tenant_create

ACTOR = "command:demo_load"
FOLDER = BASE_DIR / "examples" / "tenants"
TENANTS = {"default": "Demo", "tim": "TIM (demo)", "loja": "Loja (demo)"}
PEOPLE = {
    "alice": Role.TENANT_ADMIN,
    "olga": Role.BUSINESS_OWNER,
    "ana": Role.APPROVER,
    "otto": Role.OPERATOR,
    "bob": Role.AUDITOR,
}
# So that what the tenant admin edits, and what weakens safety, finds its second person too.
DUTIES = {"ana": Duty.PLATFORM, "otto": Duty.SECURITY}
KEYS = {
    "demo channel": ("message:write", "session:read", "identity:assert"),
    "demo operator": (
        "message:write", "session:read", "identity:assert", "debug", "trace:read", "config:read",
        "config:write",
    ),
}  # fmt: skip


def tenant_load(slug: str, addresses: Mapping[str, str]) -> list[str]:
    """Create the demo tenant ``slug`` and bring its configuration to what its file says.

    ``addresses``: binding name → URL of this machine's tool servers. Returns what was done and what
    was left alone, in sentences; nothing when all was as it should be. All or nothing.
    """
    portable = native_parse([source_read(FOLDER / f"{slug}.yaml", f"{slug}.yaml")])
    with transaction.atomic(), setting_up("a demo tenant"):
        tenant = Tenant.objects.filter(slug=slug).first()
        said = [] if tenant else ["created"]
        tenant = tenant or tenant_create(
            slug=slug, name=TENANTS[slug], demo_keyless=True, actor=ACTOR
        )
        with tenant_transaction(tenant):
            missing, kept = _compared(portable)
            if missing:
                tenant_import(
                    portable=Portable(items=missing), actor=ACTOR, note="demo configuration"
                )
                said.append(f"{len(missing)} items saved")
            said += [f"{kind} {name} was edited here: left as it is" for kind, name in kept]
            said += _bind(portable, addresses)
            said += _release(changed=bool(missing))
    return said


def _compared(portable: Portable) -> tuple[list[PortableItem], list[tuple[str, str]]]:
    """Return the items to save, and those that differ from the file by somebody's hand."""
    stored = {(item.kind, item.slug): item for item in item_heads(archived=True)}
    missing: list[PortableItem] = []
    differing: list[tuple[PortableItem, ConfigItem]] = []
    for item in portable.items:
        found = stored.get((item.kind, item.slug))
        if found is None:
            missing.append(item)
        elif found.archived_at or not _same(item, found):
            differing.append((item, found))
    touched = _touched([found for _item, found in differing])
    # Only the content of an older demo file is replaced, never the labels somebody gave.
    missing += [replace(i, labels={}) for i, found in differing if found.pk not in touched]
    return missing, [(i.kind, i.slug) for i, found in differing if found.pk in touched]


def _same(item: PortableItem, stored: ConfigItem) -> bool:
    valid = content_validate(kind=item.kind, slug=item.slug, content=item.content)
    return stored.head is not None and content_same(item.kind, stored.head.content, valid)


def _touched(items: list[ConfigItem]) -> set[int]:
    """Return those that somebody edited, archived, or set back to an older revision."""
    revisions = Revision.objects.filter(item__in=items)
    foreign = set(revisions.exclude(author=ACTOR).values_list("item_id", flat=True))
    newest = dict(revisions.order_by().values_list("item_id").annotate(Max("number")))
    return {
        item.pk
        for item in items
        if item.archived_at
        or item.pk in foreign
        or (item.head is not None and item.head.number != newest[item.pk])
    }


def _bind(portable: Portable, addresses: Mapping[str, str]) -> list[str]:
    bound = {(b.environment, b.name): b for b in Binding.objects.filter(what="address")}
    said: list[str] = []
    for _what, name in portable.binding_names:
        done = []
        for environment in settings.RELEASE_ENVIRONMENTS:
            found, address = bound.get((environment, name)), addresses[name]
            if found is not None and found.value == address:
                continue
            if found is not None and found.updated_by != ACTOR:
                said.append(f"binding {name} in {environment} was set here: left as it is")
                continue
            binding_set(
                environment=environment, what="address", name=name, value=address, actor=ACTOR
            )
            done.append(environment)
        if done:
            said.append(f"bound {name} to {addresses[name]} in {', '.join(done)}")
    return said


def _release(*, changed: bool) -> list[str]:
    """Publish and deploy, unless that would publish somebody's unfinished edits or undo their choice."""
    said = []
    latest = Release.objects.defer("manifest").order_by("-number").first()
    published = latest is None or (changed and not _edited_by_others())
    if latest is None or published:
        latest = release_publish(actor=ACTOR, note="demo configuration")
        said.append(f"published release {latest.number} ({latest.sha256[:12]})")
    elif changed:
        said.append("not published: others edited here, publish when they are done")
    deployed = {d.environment: d for d in Deployment.objects.all()}
    done = []
    for environment in settings.RELEASE_ENVIRONMENTS:
        current = deployed.get(environment)
        ours = current is not None and current.deployed_by == ACTOR
        if current is None or (published and ours and current.release_id != latest.pk):
            release_deploy(release=latest, environment=environment, actor=ACTOR)
            done.append(environment)
    if done:
        said.append(f"deployed release {latest.number} to {', '.join(done)}")
    return said


def _edited_by_others() -> bool:
    edited = item_heads().exclude(head__author=ACTOR).exists()
    return edited or ConfigItem.objects.exclude(archived_at=None).exists()


def people_load(tenant: Tenant, password: str) -> list[str]:
    """Create the demo's people with ``password``; those who are there keep theirs and their roles."""
    there = set(User.objects.values_list("username", flat=True))
    said = []
    if "admin" not in there:
        User.objects.create_superuser("admin", "admin@example.com", password)
        said.append("admin (platform admin)")
    for name, role in PEOPLE.items():
        if name in there:
            continue
        with tenant_transaction(tenant), setting_up("the demo's people"):
            user = User.objects.create_user(name, f"{name}@example.com", password)
            membership_grant(user=user, role=role, actor=ACTOR)
            if name in DUTIES:
                duty_grant(user=user, duty=DUTIES[name], actor=ACTOR, reason="demo")
        said.append(f"{name} ({role.label})")
    return said


def keys_load(tenant: Tenant) -> Iterable[tuple[str, str]]:
    """Issue the demo's keys that are not there; return name and text, which is shown only now."""
    with tenant_transaction(tenant):
        there = set(ApiKey.objects.values_list("name", flat=True))
        return [
            (name, api_key_issue(
                name=name, scopes=scopes, environment=settings.DEFAULT_ENVIRONMENT,
                expires_at=None, actor=ACTOR,
            )[1])
            for name, scopes in KEYS.items()
            if name not in there
        ]  # fmt: skip
