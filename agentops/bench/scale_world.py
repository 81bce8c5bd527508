"""A tenant after years: 5,000 items, 20,000 revisions, 200 releases, made with bulk inserts.

The rows are those the services would have written; only the way there is shorter.
"""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from unittest.mock import patch

from django.db import transaction
from django.utils import timezone

from agentops.bench.in_process import words
from apps.releases.authority import setting_up
from apps.releases.change_models import ChangePatch, ChangeRequest, HeadMove
from apps.releases.content import content_validate
from apps.releases.environments.services import binding_set, release_deploy
from apps.releases.freezing import manifest_of_rows
from apps.releases.models import ConfigItem, Reference, Release, Revision
from apps.releases.patches.patching import patch_make
from apps.runtime.canonical import canonical_json, sha256_text
from apps.runtime.config import references
from apps.tenants.models import Role, Tenant, User
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import membership_grant, tenant_create

ACTOR = "command:bench"
PEOPLE = {
    "alice": Role.TENANT_ADMIN,
    "olga": Role.BUSINESS_OWNER,
    "ana": Role.APPROVER,
    "otto": Role.OPERATOR,
}
ITEMS, REVISIONS_EACH, RELEASES = 5_000, 4, 200
AGENTS, TOOLS, INTENTS, STATES = 200, 700, 2_900, 50
Key = tuple[str, str]


@dataclass
class ScaleWorld:
    """The tenant, its people, and how many rows of each table there are."""

    tenant: Tenant
    people: dict[str, User]
    rows: Counter[str]


def world_make() -> ScaleWorld:
    """Make the tenant in the configured database, which is empty."""
    with transaction.atomic(), setting_up("a benchmark's tenant"), at(days_ago=RELEASES + 1):
        tenant = tenant_create(slug="grande", name="Grande", actor=ACTOR)
        people = {name: User.objects.create_user(name, password=None) for name in PEOPLE}
        with tenant_transaction(tenant):
            for name, role in PEOPLE.items():
                membership_grant(user=people[name], role=role, actor=ACTOR)
            states = _items_make()
            _releases_make(states)
            rows = _counted()
    return ScaleWorld(tenant, people, rows)


def at(*, days_ago: int) -> AbstractContextManager[Any]:
    """Let the block's rows be of another day: nothing of a tenant is all of today."""
    moment = timezone.now() - timedelta(days=days_ago)
    return patch("django.utils.timezone.now", lambda: moment)


def contents() -> Iterator[tuple[Key, dict[str, Any]]]:
    """Yield kind and slug with the content of 5,000 items, as a large tenant has them."""
    lexicon = words(INTENTS * 3)
    for kind in ("model_profile", "memory_policy", "rail_policy", "judge_policy"):
        yield (kind, "default"), {"provider": "scripted"} if kind == "model_profile" else {}
    yield ("routing_policy", "default"), {"default_agent": "agent-0"}
    yield ("tool_server", "crm"), {"endpoint": "crm", "description": "Customers"}
    for number in range(AGENTS):
        members = [f"agent-{n}" for n in range(1, AGENTS)] if number == 0 else []
        yield ("prompt", f"prompt-{number}"), {"system": f"You are number {number}. " * 60}
        yield (
            ("agent", f"agent-{number}"),
            {
                "prompt": f"prompt-{number}",
                "members": members,
                "tools": [f"tool-{n}" for n in range(number, TOOLS, AGENTS)],
            },
        )
    for number in range(TOOLS):
        argument = {"type": "string", "description": "The customer's key"}
        yield (
            ("tool", f"tool-{number}"),
            {
                "mcp_server": "crm",
                "description": f"Reads part {number} of a customer's record.",
                "args_schema": {"customer_key": argument, "detail": {"type": "string"}},
                "requires": ["customer_key"],
            },
        )
        yield (
            ("parameter_mapping", f"tool-{number}"),
            {"tool": f"tool-{number}", "map": {"customer_key": "customer_key"}},
        )
    for number in range(INTENTS):
        mine = lexicon[number * 3 : number * 3 + 3]
        yield (
            ("intent", f"intent-{number}"),
            {
                "agent": f"agent-{number % AGENTS}",
                "keywords": mine,
                "examples": [f"quero saber de {mine[0]} e {mine[1]}", f"onde vejo {mine[2]}"],
            },
        )
    for number in range(STATES):
        agent = f"agent-{number % AGENTS}"
        yield ("state_policy", f"state-{number}"), {"state": f"WAITING_{number}", "agent": agent}
    made = 6 + 2 * AGENTS + 2 * TOOLS + INTENTS + STATES
    for number in range(ITEMS - made):
        yield ("identity_key", f"key-{number}"), {"description": f"Key number {number}"}


States = dict[Key, list[Revision]]


def _items_make() -> States:
    """Insert items, four revisions of each and their references; the last one is the head."""
    made = [
        (key, content_validate(kind=key[0], slug=key[1], content=content))
        for key, content in contents()
    ]
    named = {"owner": "olga", "technical_owner": "otto"}
    items = ConfigItem.objects.bulk_create(
        [ConfigItem(kind=kind, slug=slug, name=slug, **named) for (kind, slug), _valid in made],
        batch_size=500,
    )
    states: States = {key: [] for key, _valid in made}
    for number in range(1, REVISIONS_EACH + 1):
        texts = [_state(key[0], valid.text, number) for key, valid in made]
        revisions = [
            Revision(
                item=item,
                number=number,
                version=f"1.{number - 1}.0",
                content=text,
                digest=sha256_text(text),
                author="user:olga",
                base=states[key][-1] if states[key] else None,
            )
            for item, (key, _valid), text in zip(items, made, texts, strict=True)
        ]
        Revision.objects.bulk_create(revisions, batch_size=500)
        for (key, _valid), revision in zip(made, revisions, strict=True):
            states[key].append(revision)
    _references_make(made, states)
    for item, (key, _valid) in zip(items, made, strict=True):
        item.head = states[key][-1]
    ConfigItem.objects.bulk_update(items, ["head"], batch_size=500)
    return states


def _state(kind: str, text: str, number: int) -> str:
    """Return another state of a content: some text of it differs."""
    content = json.loads(text)
    field = "system" if kind == "prompt" else "description"
    if field in content:
        content[field] = f"{content[field]} (state {number})"
    elif kind == "parameter_mapping":
        content["defaults"] = {"detail": f"state {number}"}
    return canonical_json(content)


def _references_make(made: list[tuple[Key, Any]], states: States) -> None:
    found = [
        Reference(revision=revision, path=ref.path[:200], kind=ref.kind, slug=ref.slug)
        for key, valid in made
        for ref in list(references(valid.config))
        for revision in states[key]
    ]
    Reference.objects.bulk_create(found, batch_size=1000)


def _releases_make(states: States) -> None:
    """Insert 200 releases: each with an equal share of the revisions newer than the one before."""
    current = {key: revisions[0] for key, revisions in states.items()}
    later = [
        (key, revision)
        for number in range(1, REVISIONS_EACH)
        for key, revisions in states.items()
        for revision in [revisions[number]]
    ]
    # Release n holds everything before ``ends[n - 1]``.
    ends = [len(later) * n // (RELEASES - 1) for n in range(RELEASES)]
    moves = [HeadMove(item=r.item, revision=r, actor=ACTOR) for r in current.values()]
    parent: Release | None = None
    today = timezone.now() + timedelta(days=RELEASES + 1)
    for number in range(1, RELEASES + 1):
        changed = later[ends[number - 2] : ends[number - 1]] if number > 1 else []
        current.update(changed)
        moves += [HeadMove(item=r.item, revision=r, actor=ACTOR) for _key, r in changed]
        manifest = manifest_of_rows((*key, revision.content) for key, revision in current.items())
        sha256 = sha256_text(manifest)
        moment = today - timedelta(days=RELEASES + 1 - number)
        with patch("django.utils.timezone.now", lambda moment=moment: moment):
            release = Release.objects.create(
                number=number, manifest=manifest, sha256=sha256, parent=parent, published_by="ana"
            )
            _request_make(release, changed, number)
        parent = Release.objects.defer("manifest").get(pk=release.pk)
    HeadMove.objects.bulk_create(moves, batch_size=1000)
    assert parent is not None
    for environment in ("dev", "staging", "production"):
        binding_set(
            environment=environment,
            what="address",
            name="crm",
            value="http://127.0.0.1:9/mcp",
            actor=ACTOR,
        )
        release_deploy(release=parent, environment=environment, actor=ACTOR)


def _request_make(release: Release, changed: list[tuple[Key, Revision]], number: int) -> None:
    """Insert the published request that led to ``release``, with its patches."""
    now = timezone.now()
    request = ChangeRequest.objects.create(
        number=number,
        title=f"Change {number}",
        reason="As the business asked.",
        status="deployed",
        author="user:olga",
        editors='["user:olga"]',
        risk="behaviour",
        manifest_sha256=release.sha256,
        release=release,
        submitted_at=now,
        bound_at=now,
        published_at=now,
        closed_at=now,
    )
    ChangePatch.objects.bulk_create(
        [
            ChangePatch(
                request=request,
                kind=key[0],
                slug=key[1],
                action="change",
                base=revision.base,
                operations=canonical_json(
                    patch_make(json.loads(revision.base.content), json.loads(revision.content))
                ),
                edited_by="user:olga",
            )
            for key, revision in changed
            if revision.base is not None
        ],
        batch_size=500,
    )


def _counted() -> Counter[str]:
    models: list[Any] = [ConfigItem, Revision, Reference, Release, ChangeRequest, ChangePatch]
    return Counter({model.__name__: model.objects.count() for model in models})
