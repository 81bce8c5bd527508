"""Reads of the console, and of turns: warm ones ask nothing."""

import uuid
from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.releases import selectors
from apps.releases.environments.services import binding_set, release_deploy
from apps.releases.freezing import CorruptRelease
from apps.releases.models import Release, Revision
from apps.releases.selectors import (
    Usage,
    bindings_load,
    deployed_release,
    item_heads,
    item_history,
    item_used_by,
    release_load,
    revision_diff,
)
from apps.releases.services import item_archive, item_restore_head, release_publish
from apps.releases.tests.conftest import ALICE, item, save
from apps.releases.tests.test_releases import bind, tampered
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction


def deployed(environment: str = "production") -> Release:
    bind(environment)
    release = release_publish(actor=ALICE)
    release_deploy(release=release, environment=environment, actor=ALICE)
    return release


# -- items -------------------------------------------------------------------------------------
def test_item_heads__kind__lists_its_items_with_heads_and_without_archived_ones(
    acme: Tenant,
) -> None:
    save("prompt", "b", system="B")
    save("prompt", "a", system="A")
    save("memory_policy", "default")
    item_archive(item=save("prompt", "gone", system="x").item, actor=ALICE)

    assert [found.slug for found in item_heads("prompt")] == ["a", "b"]
    assert [found.slug for found in item_heads("prompt", archived=True)] == ["a", "b", "gone"]
    assert [found.slug for found in item_heads()] == ["default", "a", "b"]


def test_item_heads__more_items__is_one_query(acme: Tenant) -> None:
    for number in range(20):
        save("prompt", f"p{number}", system="x")
    with CaptureQueriesContext(connection) as queries:
        digests = {found.head.digest for found in item_heads("prompt") if found.head}
    assert (len(digests), len(queries)) == (1, 1)


def test_item_history__newest_first__is_one_query(acme: Tenant) -> None:
    for number in range(5):
        save("prompt", "p", system=str(number))
    found = item("prompt", "p")
    with CaptureQueriesContext(connection) as queries:
        assert [revision.number for revision in item_history(found)] == [5, 4, 3, 2, 1]
    assert len(queries) == 1


def test_item_used_by__heads_and_deployed_releases__are_told_apart(billing: Tenant) -> None:
    deployed()
    save("agent", "billing_agent", prompt="billing")
    save("agent", "desk", prompt="billing", tools=["get_bill"])

    assert item_used_by(item("tool", "get_bill")) == [
        Usage("agent", "desk", "tools[0]"),
        Usage("intent", "bill_explain", "mcp_tools[0]"),
        Usage("agent", "billing_agent", "tools[0]", environment="production"),
        Usage("intent", "bill_explain", "mcp_tools[0]", environment="production"),
    ]
    assert item_used_by(item("intent", "bill_explain")) == []


def test_item_used_by__head_set_back__follows_the_head(billing: Tenant) -> None:
    first = item("agent", "billing_agent").head
    assert first is not None
    save("agent", "billing_agent", prompt="billing")
    assert [u.kind for u in item_used_by(item("tool", "get_bill"))] == ["intent"]
    item_restore_head(item=first.item, revision=first, actor=ALICE)
    assert [u.kind for u in item_used_by(item("tool", "get_bill"))] == ["agent", "intent"]


def test_item_used_by__more_users__asks_no_more_queries(billing: Tenant) -> None:
    deployed()
    tool = item("tool", "get_bill")
    item_used_by(tool)
    with CaptureQueriesContext(connection) as few:
        item_used_by(tool)
    for number in range(20):
        save("intent", f"i{number}", agent="billing_agent", mcp_tools=["get_bill"])
    with CaptureQueriesContext(connection) as many:
        assert len(item_used_by(tool)) == 24
    assert len(few) == len(many) == 2


def test_revision_diff__two_revisions__shows_changed_fields_only(billing: Tenant) -> None:
    old = item("intent", "bill_explain").head
    new = save(
        "intent",
        "bill_explain",
        agent="billing_agent",
        keywords=["invoice", "charge"],
        mcp_tools=["get_bill"],
        priority=7,
    )
    assert [(c["change"], c["path"], c["before"], c["after"]) for c in revision_diff(old, new)] == [
        ("removed", "keywords", "bill", None),
        ("added", "keywords", None, "charge"),
        ("changed", "priority", 100, 7),
    ]


def test_revision_diff__first_revision__shows_every_field_as_added(acme: Tenant) -> None:
    new = save("memory_policy", "default")
    found = revision_diff(None, new)
    assert {c["change"] for c in found} == {"added"}
    assert {c["path"] for c in found} == {
        "strategy",
        "recent_messages",
        "max_chars_per_message",
    }


def test_revision_diff__field_the_class_gained_since__is_no_change(acme: Tenant) -> None:
    new = save("memory_policy", "default")
    old = Revision(item=new.item, content='{"strategy":"window","recent_messages":4}')
    assert [c["path"] for c in revision_diff(old, new)] == ["recent_messages"]


def test_revision_diff__content_the_class_no_longer_reads__is_compared_as_stored(
    acme: Tenant,
) -> None:
    new = save("memory_policy", "default")
    old = Revision(item=new.item, content='{"gone":1,"strategy":"window"}')
    assert ("removed", "gone") in [(c["change"], c["path"]) for c in revision_diff(old, new)]


# -- releases ----------------------------------------------------------------------------------
def test_deployed_release__environment__is_its_release_without_the_manifest(
    billing: Tenant,
) -> None:
    assert deployed_release("production") is None
    release = deployed()
    found = deployed_release("production")
    assert found == release
    assert found is not None
    assert "manifest" in found.get_deferred_fields()
    assert deployed_release("dev") is None


def test_release_load__warm__asks_nothing_and_is_the_same_object(billing: Tenant) -> None:
    release = release_publish(actor=ALICE)
    first = release_load(billing.pk, release.pk)
    with CaptureQueriesContext(connection) as queries:
        again = release_load(billing.pk, str(release.pk))
    assert again is first
    assert len(queries) == 0
    assert (first.id, first.number, first.sha256) == (str(release.pk), 1, release.sha256)


def test_release_load__more_releases_than_kept__loads_the_oldest_again(
    acme: Tenant, settings
) -> None:
    settings.RELEASE_CACHE_SIZE = 2
    releases = []
    for number in range(3):
        save("prompt", "p", system=str(number))
        releases.append(release_publish(actor=ALICE))
    for release in releases:
        release_load(acme.pk, release.pk)

    with CaptureQueriesContext(connection) as queries:
        release_load(acme.pk, releases[2].pk)
        release_load(acme.pk, releases[1].pk)
    assert len(queries) == 0
    with CaptureQueriesContext(connection) as queries:
        assert release_load(acme.pk, releases[0].pk).number == 1
    assert len(queries) > 0
    assert len(selectors._releases._values) == 2


@pytest.mark.parametrize("release_id", [uuid.UUID(int=0), "not-an-id"])
def test_release_load__absent__raises_does_not_exist(
    acme: Tenant, release_id: uuid.UUID | str
) -> None:
    with pytest.raises(Release.DoesNotExist):
        release_load(acme.pk, release_id)


def test_release_load__another_tenants__is_as_absent_cold_and_warm(billing: Tenant) -> None:
    release = release_publish(actor=ALICE)
    other = Tenant.objects.create(slug="other-releases", name="Other")
    with pytest.raises(Release.DoesNotExist):
        release_load(other.pk, release.pk)
    release_load(billing.pk, release.pk)
    with pytest.raises(Release.DoesNotExist):
        release_load(other.pk, release.pk)


def test_release_load__stored_bytes_changed__is_refused(billing: Tenant) -> None:
    release = tampered(release_publish(actor=ALICE))
    with pytest.raises(CorruptRelease):
        release_load(billing.pk, release.pk)


def test_release_load__same_content_under_another_id__names_the_id_asked_for(
    billing: Tenant,
) -> None:
    release = release_publish(actor=ALICE)
    first = release_load(billing.pk, release.pk)
    # What a rolled back publication leaves behind in a process.
    selectors._releases.put((billing.pk, release.sha256), replace(first, id="gone"))
    assert release_load(billing.pk, release.pk).id == str(release.pk)


# -- bindings ----------------------------------------------------------------------------------
def test_bindings_load__warm__asks_nothing(billing: Tenant) -> None:
    deployed()
    binding_set(
        environment="production",
        what="credential",
        name="llm",
        value="OPENAI_API_KEY",
        actor=ALICE,
    )
    first = bindings_load(billing.pk, "production", 2)
    with CaptureQueriesContext(connection) as queries:
        again = bindings_load(billing.pk, "production", 2)
    assert len(queries) == 0
    assert again == first
    assert first == {
        "address:telecom_mcp": "http://127.0.0.1:9001/mcp",
        "credential:llm": "OPENAI_API_KEY",
    }


def test_bindings_load__version_that_is_not_current__is_not_kept(billing: Tenant) -> None:
    bind()
    assert bindings_load(billing.pk, "production", 1) == {
        "address:telecom_mcp": "http://127.0.0.1:9001/mcp"
    }
    binding_set(
        environment="production",
        what="address",
        name="telecom_mcp",
        value="http://127.0.0.1:9002/mcp",
        actor=ALICE,
    )
    assert bindings_load(billing.pk, "production", 1) == {
        "address:telecom_mcp": "http://127.0.0.1:9002/mcp"
    }


def test_bindings_load__another_tenant__sees_none_of_them(billing: Tenant) -> None:
    deployed()
    bindings_load(billing.pk, "production", 1)
    other = Tenant.objects.create(slug="other-releases", name="Other")
    with tenant_transaction(other):
        assert bindings_load(other.pk, "production", 1) == {}
