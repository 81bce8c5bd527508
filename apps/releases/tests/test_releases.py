"""Publishing, deploying, rolling back."""

import json
from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.releases.environments.services import (
    UnboundBindings,
    UnknownEnvironment,
    binding_set,
    release_deploy,
)
from apps.releases.gates import GateContext, Problem
from apps.releases.models import Deployment, Release
from apps.releases.services import (
    CorruptRelease,
    DanglingReferences,
    GateRefused,
    InvalidContent,
    item_archive,
    release_publish,
)
from apps.releases.tests.conftest import ALICE, audited, item, save
from apps.runtime.canonical import canonical_json, sha256_text
from apps.runtime.release import manifest_text, release_parse
from apps.tenants.models import AuditEntry, Tenant
from apps.tenants.owned import AppendOnly
from apps.tenants.scope import tenant_transaction


def refuses_on_fridays(context: GateContext) -> list[Problem]:
    return [Problem(message=f"{context.actor} publishes {context.release.sha256} on a Friday.")]


def bind(environment: str = "production") -> None:
    binding_set(
        environment=environment,
        what="address",
        name="telecom_mcp",
        value="http://127.0.0.1:9001/mcp",
        actor=ALICE,
    )


def tampered(release: Release) -> Release:
    """Return a release whose stored bytes are not those it was published with."""
    changed: Release = Release.objects.create(
        number=release.number + 1,
        manifest=release.manifest.replace("You explain bills.", "You give refunds."),
        sha256=sha256_text(release.manifest + " "),
        published_by=ALICE,
    )
    assert changed.manifest != release.manifest
    return changed


# -- publish -----------------------------------------------------------------------------------
def test_release_publish__heads__freezes_kind_slug_and_content_only(acme: Tenant) -> None:
    save("prompt", "b", system="B")
    save("prompt", "a", system="Á")
    release = release_publish(actor=ALICE, note="first")

    document = json.loads(release.manifest)
    assert document["format"] == 1
    assert list(document["items"]) == ["prompt"]
    assert list(document["items"]["prompt"]) == ["a", "b"]
    assert document["items"]["prompt"]["a"]["system"] == "Á"
    assert release.manifest == canonical_json(document)
    assert release.sha256 == sha256_text(release.manifest)
    assert (release.number, release.parent, release.note) == (1, None, "first")
    passed = [result["gate"] for result in json.loads(release.gates) if result["level"] == "passed"]
    assert {"schema", "references_resolve", "next_states_exist"} <= set(passed)
    assert audited()[-1] == (ALICE, "release.published", "release:1")


def test_release_publish__nothing_changed__returns_the_release_that_is_there(
    billing: Tenant,
) -> None:
    first = release_publish(actor=ALICE)
    before = len(audited())
    assert release_publish(actor="user:bob", note="again") == first
    assert Release.objects.count() == 1
    assert len(audited()) == before


def test_release_publish__another_tenant_with_the_same_content__has_the_same_sha256(
    acme: Tenant,
) -> None:
    save("prompt", "a", system="x")
    ours = release_publish(actor=ALICE)
    with tenant_transaction(Tenant.objects.create(slug="other-releases", name="Other")):
        save("prompt", "a", system="old")
        save("prompt", "a", system="x")
        theirs = release_publish(actor="user:charlie")
        assert Release.objects.count() == 1
    assert theirs.sha256 == ours.sha256
    assert theirs.pk != ours.pk


def test_release_publish__changed__follows_the_newest_release(acme: Tenant) -> None:
    save("prompt", "a", system="1")
    first = release_publish(actor=ALICE)
    save("prompt", "a", system="2")
    second = release_publish(actor=ALICE)
    assert (second.number, second.parent) == (2, first)


def test_release_publish__dangling_references__are_refused_with_the_list(billing: Tenant) -> None:
    save("agent", "desk", prompt="nowhere", members=["billing_agent", "ghost"])
    item_archive(item=item("intent", "bill_explain"), actor=ALICE)

    with pytest.raises(DanglingReferences) as dangling:
        release_publish(actor=ALICE)
    assert [(p.kind, p.slug, p.path, p.missing) for p in dangling.value.references] == [
        ("agent", "desk", "prompt", "prompt:nowhere"),
        ("agent", "desk", "members[1]", "agent:ghost"),
    ]
    assert "agent desk: prompt names the missing prompt:nowhere." in str(dangling.value)
    assert not Release.objects.exists()
    assert "release.published" not in [action for _, action, _ in audited()]


def test_release_publish__reference_to_another_kind_of_that_slug__is_dangling(
    acme: Tenant,
) -> None:
    save("prompt", "a", system="x")
    save("intent", "i", agent="a")
    with pytest.raises(DanglingReferences):
        release_publish(actor=ALICE)


def test_release_publish__nothing_to_publish__is_refused(acme: Tenant) -> None:
    with pytest.raises(GateRefused, match="nothing to publish"):
        release_publish(actor=ALICE)


def test_release_publish__gate_of_the_settings__may_refuse(acme: Tenant, settings) -> None:
    settings.RELEASE_GATES = [
        *settings.RELEASE_GATES,
        "apps.releases.tests.test_releases.refuses_on_fridays",
    ]
    save("prompt", "a", system="x")
    with pytest.raises(GateRefused) as refused:
        release_publish(actor=ALICE)
    assert not isinstance(refused.value, DanglingReferences)
    assert refused.value.problems[0].message.startswith("user:alice publishes ")
    assert not Release.objects.exists()


def test_release_publish__head_that_no_longer_fits__names_the_item_and_field(
    acme: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apps.runtime import config

    save("prompt", "a", system="x")
    save("memory_policy", "default")
    # As if the class of the kind had changed since.
    monkeypatch.setitem(config.KINDS, "memory_policy", config.KINDS["judge_policy"])
    with pytest.raises(InvalidContent) as invalid:
        release_publish(actor=ALICE)
    assert {error["field"] for error in invalid.value.errors} == {
        "memory_policy:default.strategy",
        "memory_policy:default.recent_messages",
        "memory_policy:default.max_chars_per_message",
    }


def test_release_publish__stored_text__is_what_the_runtime_would_write(billing: Tenant) -> None:
    release = Release.objects.get(pk=release_publish(actor=ALICE).pk)
    parsed = release_parse(manifest=release.manifest)
    written = {key: config.model_dump(mode="json") for key, config in parsed.items.items()}
    assert manifest_text(written) == release.manifest


def test_release__changed_or_deleted__is_refused(acme: Tenant) -> None:
    save("prompt", "a", system="x")
    release = release_publish(actor=ALICE)
    attempts: list[Callable[[], object]] = [
        release.save,
        release.delete,
        lambda: Release.objects.update(note="x"),
        lambda: Release.objects.all().delete(),
    ]
    for attempt in attempts:
        with pytest.raises(AppendOnly):
            attempt()
    assert Release.objects.get().manifest == release.manifest


def test_release_publish__more_items__asks_no_more_queries(billing: Tenant) -> None:
    with CaptureQueriesContext(connection) as few:
        release_publish(actor=ALICE)
    for number in range(30):
        save("intent", f"intent_{number}", agent="billing_agent", mcp_tools=["get_bill"])
    with CaptureQueriesContext(connection) as many:
        release_publish(actor=ALICE)
    # The first release has no parent to look up and to read for the gates.
    assert abs(len(many) - len(few)) <= 4
    # On PostgreSQL two more, which set the tenant.
    assert len(many) <= 27


# -- deploy ------------------------------------------------------------------------------------
def test_release_deploy__first_time__points_the_environment_at_it(billing: Tenant) -> None:
    bind()
    release = release_publish(actor=ALICE)
    deployment = release_deploy(release=release, environment="production", actor=ALICE)

    assert Deployment.objects.get(environment="production").release == release
    assert (deployment.bindings_version, deployment.deployed_by) == (1, ALICE)
    assert audited()[-1] == (ALICE, "release.deployed", "environment:production")
    detail = json.loads(AuditEntry.objects.latest("sequence").detail)
    assert (detail["previous"], detail["release"], detail["sha256"]) == (None, 1, release.sha256)
    assert (detail["in_flight"], detail["max_pin_hours"], detail["verb"]) == (
        "follow", 72, "deploy",
    )  # fmt: skip


def test_release_deploy__older_release__is_audited_as_rolled_back(billing: Tenant) -> None:
    bind()
    first = release_publish(actor=ALICE)
    save("prompt", "billing", system="Two.")
    second = release_publish(actor=ALICE)
    for release in (first, second, first):
        release_deploy(release=release, environment="production", actor=ALICE)

    trail = [entry for entry in audited() if entry[2] == "environment:production"]
    assert [action for _, action, _ in trail] == [
        "release.deployed",
        "release.deployed",
        "release.rolled_back",
    ]
    assert json.loads(AuditEntry.objects.latest("sequence").detail)["previous"] == 2
    assert Deployment.objects.get().release == first


def test_release_deploy__already_there__writes_nothing(billing: Tenant) -> None:
    bind()
    release = release_publish(actor=ALICE)
    first = release_deploy(release=release, environment="production", actor=ALICE)
    before = len(audited())
    again = release_deploy(release=release, environment="production", actor="user:bob")
    assert again.pk == first.pk
    assert again.deployed_by == ALICE
    assert len(audited()) == before


def test_release_deploy__one_release_to_every_environment__keeps_its_sha256(
    billing: Tenant,
) -> None:
    release = release_publish(actor=ALICE)
    for environment in ("dev", "staging", "production"):
        bind(environment)
        release_deploy(release=release, environment=environment, actor=ALICE)
    deployed = Deployment.objects.values_list("release__sha256", flat=True)
    assert list(deployed) == [release.sha256] * 3


def test_release_deploy__unbound_address_and_credential__is_refused_with_the_list(
    billing: Tenant,
) -> None:
    save("tool_server", "telecom", endpoint="telecom_mcp", credential="telecom_key")
    save("model_profile", "default", provider="openai_compatible", base_url="llm")
    release = release_publish(actor=ALICE)
    bind()

    with pytest.raises(UnboundBindings) as unbound:
        release_deploy(release=release, environment="production", actor=ALICE)
    assert unbound.value.missing == [
        {
            "kind": "model_profile",
            "slug": "default",
            "path": "base_url",
            "what": "address",
            "name": "llm",
        },
        {
            "kind": "tool_server",
            "slug": "telecom",
            "path": "credential",
            "what": "credential",
            "name": "telecom_key",
        },
    ]
    assert str(unbound.value) == "Not bound in production: address llm, credential telecom_key."
    assert not Deployment.objects.exists()


def test_release_deploy__bound_in_another_environment_only__is_refused(billing: Tenant) -> None:
    bind("dev")
    release = release_publish(actor=ALICE)
    with pytest.raises(UnboundBindings):
        release_deploy(release=release, environment="production", actor=ALICE)
    assert release_deploy(release=release, environment="dev", actor=ALICE).release == release


def test_release_deploy__stored_bytes_changed__is_refused(billing: Tenant) -> None:
    bind()
    release = tampered(release_publish(actor=ALICE))
    with pytest.raises(CorruptRelease):
        release_deploy(release=release, environment="production", actor=ALICE)
    assert not Deployment.objects.exists()


def test_release_deploy__unknown_environment__is_refused(acme: Tenant) -> None:
    save("prompt", "a", system="x")
    with pytest.raises(UnknownEnvironment):
        release_deploy(release=release_publish(actor=ALICE), environment="moon", actor=ALICE)


def test_release_deploy__another_tenants_release__is_as_absent(acme: Tenant) -> None:
    save("prompt", "a", system="x")
    release = release_publish(actor=ALICE)
    with tenant_transaction(Tenant.objects.create(slug="other-releases", name="Other")):
        with pytest.raises(Release.DoesNotExist):
            release_deploy(release=release, environment="dev", actor="user:charlie")
        assert not Deployment.objects.exists()
