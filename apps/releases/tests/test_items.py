"""Saving, restoring and archiving items."""

import json
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from apps.releases.content import content_validate
from apps.releases.models import ConfigItem, Reference, Revision
from apps.releases.selectors import item_history
from apps.releases.services import (
    ForeignRevision,
    InvalidContent,
    ItemInUse,
    StaleBase,
    item_archive,
    item_restore_head,
    item_save,
    release_publish,
)
from apps.releases.tests.conftest import ALICE, audited, item, save
from apps.tenants.models import AuditEntry, Tenant
from apps.tenants.owned import AppendOnly
from apps.tenants.scope import ForeignTenant, tenant_transaction


def test_item_save__new_item__makes_revision_one_its_head(acme: Tenant) -> None:
    revision = item_save(
        kind="prompt",
        slug="billing",
        content={"system": "Hello."},
        actor=ALICE,
        name="Billing prompt",
        owner="Care",
        note="first",
    )

    stored = item("prompt", "billing")
    assert stored.head == revision
    assert (stored.name, stored.owner, stored.technical_owner) == ("Billing prompt", "Care", "")
    assert (revision.number, revision.version, revision.author, revision.note) == (
        1,
        "1.0.0",
        ALICE,
        "first",
    )
    assert revision.base is None
    assert audited() == [(ALICE, "item.created", "prompt:billing")]
    assert json.loads(AuditEntry.objects.get().detail) == {
        "note": "first",
        "previous": None,
        "revision": 1,
        "sha256": revision.digest,
    }


def test_item_save__defaults_left_out__stores_them_written_out(acme: Tenant) -> None:
    short = save("memory_policy", "a")
    long = save("memory_policy", "b", strategy="window", recent_messages=8)

    assert short.content == long.content
    assert short.digest == long.digest
    assert json.loads(short.content) == {
        "max_chars_per_message": 1200,
        "recent_messages": 8,
        "strategy": "window",
    }


def test_item_save__changed__adds_a_revision_based_on_the_head(acme: Tenant) -> None:
    first = save("prompt", "billing", system="One.")
    second = save("prompt", "billing", system="Two.")

    assert (second.number, second.version, second.base) == (2, "1.1.0", first)
    assert item("prompt", "billing").head == second
    assert list(item_history(second.item)) == [second, first]
    assert [action for _, action, _ in audited()] == ["item.created", "item.saved"]


def test_item_save__nothing_changed__writes_nothing(acme: Tenant) -> None:
    first = save("prompt", "billing", system="One.")
    again = save("prompt", "billing", system="One.", response_style="")

    assert again == first
    assert Revision.objects.count() == 1
    assert len(audited()) == 1


def test_item_save__stored_before_a_default_was_added__counts_as_unchanged(acme: Tenant) -> None:
    first = save("memory_policy", "default")
    older = Revision.objects.create(
        item=first.item, number=2, content='{"strategy":"window"}', digest="x", author="old"
    )
    ConfigItem.objects.filter(pk=first.item_id).update(head=older)

    assert save("memory_policy", "default") == older
    assert Revision.objects.count() == 2


def test_item_save__only_the_owner_changed__keeps_the_revision_and_says_so(acme: Tenant) -> None:
    first = save("prompt", "billing", system="One.")
    again = item_save(
        kind="prompt", slug="billing", content={"system": "One."}, actor=ALICE, owner="Care"
    )

    assert again == first
    assert item("prompt", "billing").owner == "Care"
    assert audited()[-1] == (ALICE, "item.described", "prompt:billing")


def test_item_save__name_not_given__keeps_the_name(acme: Tenant) -> None:
    item_save(kind="prompt", slug="p", content={"system": "1"}, actor=ALICE, name="Name")
    save("prompt", "p", system="2")
    assert item("prompt", "p").name == "Name"

    item_save(kind="prompt", slug="p", content={"system": "2"}, actor=ALICE, name="")
    assert item("prompt", "p").name == ""


def test_item_save__references__are_kept_with_their_paths(billing: Tenant) -> None:
    head = item("intent", "bill_explain").head
    found = Reference.objects.filter(revision=head).values_list("path", "kind", "slug")
    assert sorted(found) == [
        ("agent", "agent", "billing_agent"),
        ("mcp_tools[0]", "tool", "get_bill"),
    ]


def test_item_save__stale_base__names_who_and_when(acme: Tenant) -> None:
    seen = save("prompt", "billing", system="One.")
    theirs = save("prompt", "billing", system="Two.", actor="user:bob")

    with pytest.raises(StaleBase) as stale:
        item_save(
            kind="prompt", slug="billing", content={"system": "Mine."}, actor=ALICE, base=seen
        )
    assert stale.value.author == "user:bob"
    assert stale.value.saved_at == theirs.created_at
    assert "user:bob saved revision 2" in str(stale.value)
    assert item("prompt", "billing").head == theirs


@pytest.mark.parametrize("base", ["revision", 1])
def test_item_save__current_base__is_accepted(acme: Tenant, base: str | int) -> None:
    seen = save("prompt", "billing", system="One.")
    saved = item_save(
        kind="prompt",
        slug="billing",
        content={"system": "Two."},
        actor=ALICE,
        base=base if isinstance(base, int) else seen,
    )
    assert saved.number == 2


def test_item_save__base_zero__refuses_to_overwrite_an_item_made_meanwhile(acme: Tenant) -> None:
    save("prompt", "billing", system="Theirs.", actor="user:bob")
    with pytest.raises(StaleBase):
        item_save(kind="prompt", slug="billing", content={"system": "Mine."}, actor=ALICE, base=0)


def test_item_save__base_of_an_absent_item__stores_nothing(acme: Tenant) -> None:
    with pytest.raises(StaleBase):
        item_save(kind="prompt", slug="new", content={"system": "x"}, actor=ALICE, base=3)
    assert not ConfigItem.objects.exists()


def test_item_save__too_long_a_name__is_an_error_of_that_field(acme: Tenant) -> None:
    with pytest.raises(InvalidContent) as invalid:
        item_save(kind="prompt", slug="p", content={"system": "x"}, actor=ALICE, name="n" * 201)
    assert [error["field"] for error in invalid.value.errors] == ["name"]


@pytest.mark.parametrize("field", ["name", "owner", "technical_owner", "note"])
def test_item_save__label_no_store_keeps__is_an_error_of_that_field(
    acme: Tenant, field: str
) -> None:
    for value in ("a\x00b", "a\ud800b"):
        label: dict[str, Any] = {field: value}
        with pytest.raises(InvalidContent) as invalid:
            item_save(kind="prompt", slug="p", content={"system": "x"}, actor=ALICE, **label)
        assert [error["field"] for error in invalid.value.errors] == [field]
    assert not ConfigItem.objects.exists()


def test_item_restore_head__older_revision__is_the_head_again(acme: Tenant) -> None:
    first = save("prompt", "billing", system="One.")
    second = save("prompt", "billing", system="Two.")

    assert item_restore_head(item=first.item, revision=first, actor=ALICE) == first
    assert item("prompt", "billing").head == first
    assert audited()[-1] == (ALICE, "item.head_restored", "prompt:billing")

    third = save("prompt", "billing", system="Three.")
    assert (third.number, third.base) == (3, first)
    assert second.number == 2


def test_item_restore_head__is_the_head_already__writes_nothing(acme: Tenant) -> None:
    first = save("prompt", "billing", system="One.")
    item_restore_head(item=first.item, revision=first, actor=ALICE)
    assert len(audited()) == 1


def test_item_restore_head__another_items_revision__is_refused(acme: Tenant) -> None:
    one = save("prompt", "one", system="One.")
    two = save("prompt", "two", system="Two.")
    with pytest.raises(ForeignRevision):
        item_restore_head(item=one.item, revision=two, actor=ALICE)


def test_item_restore_head__content_the_class_no_longer_accepts__is_refused(acme: Tenant) -> None:
    head = save("prompt", "billing", system="One.")
    older = Revision.objects.create(
        item=head.item, number=9, content='{"gone":1}', digest="x", author="old"
    )
    with pytest.raises(InvalidContent) as invalid:
        item_restore_head(item=head.item, revision=older, actor=ALICE)
    assert {error["field"] for error in invalid.value.errors} == {"system", "gone"}


def test_item_archive__named_by_heads__is_refused_with_the_users(billing: Tenant) -> None:
    save("agent", "desk", prompt="billing", tools=["get_bill"])
    with pytest.raises(ItemInUse) as in_use:
        item_archive(item=item("tool", "get_bill"), actor=ALICE)

    assert [(u.kind, u.slug, u.path) for u in in_use.value.users] == [
        ("agent", "billing_agent", "tools[0]"),
        ("agent", "desk", "tools[0]"),
        ("intent", "bill_explain", "mcp_tools[0]"),
    ]
    assert item("tool", "get_bill").archived_at is None


def test_item_archive__named_only_by_old_or_archived_revisions__is_left_out(
    billing: Tenant,
) -> None:
    save("intent", "bill_explain", agent="billing_agent")
    save("agent", "desk", prompt="billing", tools=["get_bill"])
    item_archive(item=item("agent", "desk"), actor=ALICE)
    save("agent", "billing_agent", prompt="billing")
    item_archive(item=item("tool", "get_bill"), actor=ALICE)

    manifest = json.loads(release_publish(actor=ALICE).manifest)
    assert list(manifest["items"]["agent"]) == ["billing_agent"]
    assert "tool" not in manifest["items"]
    assert (ALICE, "item.archived", "tool:get_bill") in audited()


def test_item_archive__item_that_names_itself__is_archived(acme: Tenant) -> None:
    save("prompt", "p", system="x")
    head = save("agent", "loner", prompt="p", members=["loner"])
    assert item_archive(item=head.item, actor=ALICE).archived_at is not None


def test_item_archive__twice__is_audited_once(acme: Tenant) -> None:
    head = save("prompt", "p", system="x")
    item_archive(item=head.item, actor=ALICE)
    item_archive(item=head.item, actor=ALICE)
    assert [action for _, action, _ in audited()] == ["item.created", "item.archived"]


def test_item_save__archived_item__comes_back(acme: Tenant) -> None:
    head = save("prompt", "p", system="x")
    item_archive(item=head.item, actor=ALICE)

    saved = save("prompt", "p", system="x")
    assert item("prompt", "p").archived_at is None
    assert saved.number == 2


def test_item_restore_head__archived_item__comes_back_with_the_same_revision(acme: Tenant) -> None:
    head = save("prompt", "p", system="x")
    item_archive(item=head.item, actor=ALICE)
    assert item_restore_head(item=head.item, revision=head, actor=ALICE) == head
    assert item("prompt", "p").archived_at is None


def test_revision__changed_or_deleted__is_refused(acme: Tenant) -> None:
    revision = save("prompt", "p", system="x")
    revision.note = "changed"
    with pytest.raises(AppendOnly):
        revision.save()
    with pytest.raises(AppendOnly):
        revision.delete()
    with pytest.raises(AppendOnly):
        Revision.objects.update(note="changed")
    with pytest.raises(AppendOnly):
        Revision.objects.all().delete()
    with pytest.raises(AppendOnly), transaction.atomic():
        Revision.objects.bulk_update([revision], ["note"])
    impostor = Revision(
        pk=revision.pk, item=revision.item, number=2, content="{}", digest="x", author=ALICE
    )
    with pytest.raises(IntegrityError), transaction.atomic():
        impostor.save()
    assert Revision.objects.get().note == ""


def test_item_services__another_tenants_item__is_as_absent(billing: Tenant) -> None:
    theirs = item("prompt", "billing")
    head = theirs.head
    assert head is not None
    other = Tenant.objects.create(slug="other-releases", name="Other")
    with tenant_transaction(other):
        with pytest.raises(ConfigItem.DoesNotExist):
            item_archive(item=theirs, actor="user:charlie")
        with pytest.raises((ConfigItem.DoesNotExist, ForeignTenant)):
            item_restore_head(item=theirs, revision=head, actor="user:charlie")
        assert not ConfigItem.objects.exists()
        saved = save("prompt", "billing", system="Charlie's.", actor="user:charlie")
        assert saved.number == 1
    assert item("prompt", "billing").head == head


def test_item_save__same_meaning__has_the_same_digest_as_its_parsed_form(acme: Tenant) -> None:
    revision = save("prompt", "p", system="Olá, “você”\n")
    valid = content_validate(kind="prompt", slug="p", content=json.loads(revision.content))
    assert (valid.text, valid.digest) == (revision.content, revision.digest)
    again = item_save(kind="prompt", slug="p", content=valid.config, actor=ALICE)
    assert again == revision
