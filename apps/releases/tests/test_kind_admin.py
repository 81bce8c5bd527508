"""The admin of configuration: Alice edits, Bob (auditor) reads, Charlie of another tenant sees nothing."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.releases.authority import setting_up
from apps.releases.change_models import ChangePatch, ChangeRequest
from apps.releases.changes.selectors import patched_content
from apps.releases.changes.services import patch_save, request_open
from apps.releases.kinds import proxies
from apps.releases.models import ConfigItem, Revision
from apps.releases.pages.links import item_link
from apps.releases.services import item_archive, item_save
from apps.releases.tests.browser import editable, send, submission
from apps.releases.tests.conftest import small_world
from apps.tenants.models import AuditEntry, Membership
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import membership_grant
from conftest import World

Page = Callable[[str], str]


@pytest.fixture
def small(world: World) -> World:
    """acme with an agent, its prompt and policies, an intent, a tool and its server."""
    with tenant_transaction(world.acme), setting_up("a test's world"):
        small_world()
    return world


def item(world: World, kind: str, slug: str) -> ConfigItem:
    with tenant_transaction(world.acme):
        found: ConfigItem = ConfigItem.objects.select_related("head").get(kind=kind, slug=slug)
        return found


def page_of(world: World, kind: str, slug: str, page: str = "") -> str:
    url = item_link(kind, item(world, kind, slug).pk)
    return url.replace("/change/", f"/{page}/") if page else url


def revisions(world: World, kind: str, slug: str) -> list[tuple[int, str, str]]:
    with tenant_transaction(world.acme):
        found = Revision.objects.filter(item__kind=kind, item__slug=slug).order_by("number")
        return list(found.values_list("number", "author", "note"))


def content(world: World, kind: str, slug: str) -> dict[str, Any]:
    head = item(world, kind, slug).head
    assert head is not None
    found: dict[str, Any] = json.loads(head.content)
    return found


def drafted(world: World, kind: str, slug: str, number: int = 1) -> dict[str, Any] | None:
    """Return the item's content as change request ``number`` has it."""
    with tenant_transaction(world.acme):
        return patched_content(ChangeRequest.objects.get(number=number), kind, slug)


def requests(world: World) -> list[tuple[int, str, str, list[str]]]:
    """Return (number, author, status, items) of every change request."""
    with tenant_transaction(world.acme):
        return [
            (found.number, found.author, found.status, [str(p) for p in found.patches.all()])
            for found in ChangeRequest.objects.order_by("number")
        ]


def text(response: Any) -> str:
    return str(response.content.decode())


# -- edit ----------------------------------------------------------------------------------------
def test_save__of_a_changed_field__lands_in_a_draft_of_the_editor_and_not_in_the_head(
    small: World, as_alice: Client
) -> None:
    before = content(small, "agent", "billing_agent")
    url = page_of(small, "agent", "billing_agent")
    data = submission(text(as_alice.get(url)))
    data["content-max_tool_rounds"] = "7"
    data["note"] = "More rounds"
    response = send(as_alice, url, data, follow=True)
    assert revisions(small, "agent", "billing_agent") == [(1, "user:alice", "")]
    assert content(small, "agent", "billing_agent") == before
    assert requests(small) == [(1, "user:alice", "draft", ["agent:billing_agent"])]
    assert drafted(small, "agent", "billing_agent") == {**before, "max_tool_rounds": 7}
    with tenant_transaction(small.acme):
        patch = ChangePatch.objects.get()
        assert (patch.note, patch.action, patch.edited_by) == (
            "More rounds",
            "change",
            "user:alice",
        )
        assert json.loads(patch.operations) == [
            {
                "op": "set",
                "path": "max_tool_rounds",
                "before": before["max_tool_rounds"],
                "after": 7,
            }
        ]
    assert "Saved in" in text(response)
    assert '<a class="underline" href="/admin/releases/changerequest/' in text(response)
    assert ">change request #1</a>" in text(response)


@pytest.mark.governed
def test_save__as_in_production__needs_no_authority(small: World, as_alice: Client) -> None:
    url = page_of(small, "prompt", "billing")
    data = submission(text(as_alice.get(url)))
    data["content-system"] = "New."
    assert send(as_alice, url, data).status_code == 302
    assert content(small, "prompt", "billing")["system"] == "You explain bills."
    assert (drafted(small, "prompt", "billing") or {})["system"] == "New."


def test_save__again__lands_in_the_same_draft_which_the_page_then_shows(
    small: World, as_alice: Client
) -> None:
    url = page_of(small, "prompt", "billing")
    data = submission(text(as_alice.get(url)))
    data["content-system"] = "Two."
    send(as_alice, url, data)
    page = text(as_alice.get(url))
    assert "You are editing change request #1; the accepted version is revision 1." in page
    data = submission(page)
    assert data["content-system"] == "Two."
    data["content-system"] = "Three."
    send(as_alice, url, data)
    assert requests(small) == [(1, "user:alice", "draft", ["prompt:billing"])]
    assert (drafted(small, "prompt", "billing") or {})["system"] == "Three."
    shown = submission(text(as_alice.get(url, {"request": "new"})))
    assert shown["content-system"] == "You explain bills."
    compared = page_of(small, "prompt", "billing", "diff")
    assert "From revision 1 to change request #1" in text(as_alice.get(compared, {"request": "1"}))


def test_save__back_to_the_head__takes_the_item_out_of_the_draft(
    small: World, as_alice: Client
) -> None:
    url = page_of(small, "prompt", "billing")
    for words in ("Two.", "You explain bills."):
        data = submission(text(as_alice.get(url)))
        data["content-system"] = words
        response = send(as_alice, url, data, follow=True)
    assert requests(small) == [(1, "user:alice", "draft", [])]
    assert "it was taken out of" in text(response)


def test_save__into_a_chosen_request__lands_there(small: World, as_alice: Client) -> None:
    with tenant_transaction(small.acme):
        for title in ("first", "second"):
            request_open(actor="user:alice", title=title)
    url = page_of(small, "prompt", "billing")
    data = submission(text(as_alice.get(url)))
    assert data["request"] == "2", "the newest own draft is proposed"
    assert submission(text(as_alice.get(url, {"request": "1"})))["request"] == "1"
    data["request"], data["content-system"] = "1", "Into the first."
    send(as_alice, url, data)
    data["request"], data["content-system"] = "new", "Into a new one."
    send(as_alice, url, data)
    assert [items for _number, _author, _status, items in requests(small)] == [
        ["prompt:billing"],
        [],
        ["prompt:billing"],
    ]


def test_save__over_what_a_request_has_and_the_page_did_not_show__is_refused(
    small: World, as_alice: Client
) -> None:
    with tenant_transaction(small.acme):
        other = request_open(actor="user:alice", title="other")
        patch_save(
            actor="user:alice",
            kind="prompt",
            slug="billing",
            content={"system": "Theirs."},
            request=other,
        )
    url = page_of(small, "prompt", "billing")
    data = submission(text(as_alice.get(url, {"request": "new"})))
    data["request"], data["content-system"] = "1", "Mine."
    assert "already changes this item" in text(send(as_alice, url, data))
    assert (drafted(small, "prompt", "billing") or {})["system"] == "Theirs."


def test_save__after_somebody_saved_in_the_same_request__is_refused(
    small: World, as_alice: Client
) -> None:
    url = page_of(small, "prompt", "billing")
    data = submission(text(as_alice.get(url)))
    data["content-system"] = "Mine."
    send(as_alice, url, data)
    data = submission(text(as_alice.get(url)))
    with tenant_transaction(small.acme):
        patch_save(
            actor="user:dora",
            kind="prompt",
            slug="billing",
            content={"system": "Theirs."},
            request=ChangeRequest.objects.get(),
        )
    data["content-system"] = "Mine again."
    page = text(send(as_alice, url, data))
    assert "user:dora changed this item in the same request" in page
    assert submission(page)["content-system"] == "Mine again.", "nothing typed is lost"
    assert (drafted(small, "prompt", "billing") or {})["system"] == "Theirs."


def test_item_page__of_an_item_others_change__names_their_requests(
    small: World, as_alice: Client, as_bob: Client
) -> None:
    with tenant_transaction(small.acme):
        mine = request_open(actor="user:dora", title="Softer words")
        patch_save(
            actor="user:dora",
            kind="prompt",
            slug="billing",
            content={"system": "x"},
            request=mine,
        )
    page = text(as_bob.get(page_of(small, "prompt", "billing")))
    assert "Also being changed in" in page
    assert "#1 Softer words" in page
    assert "by dora" in page
    assert submission(page)["content-system"] == "You explain bills."


@pytest.mark.parametrize("number", ["99", "x", "²", "9" * 30])
def test_item_page__in_a_request_that_is_none__is_404(
    small: World, as_alice: Client, number: str
) -> None:
    url = page_of(small, "prompt", "billing")
    assert as_alice.get(url, {"request": number}).status_code == 404


@pytest.mark.parametrize(
    ("kind", "slug"),
    [
        ("prompt", "billing"),
        ("model_profile", "default"),
        ("memory_policy", "default"),
        ("rail_policy", "default"),
        ("judge_policy", "default"),
        ("agent", "billing_agent"),
        ("tool_server", "telecom"),
        ("tool", "get_bill"),
        ("intent", "bill_explain"),
    ],
)
def test_save__of_an_untouched_page__makes_no_revision(
    small: World, as_alice: Client, kind: str, slug: str
) -> None:
    url = page_of(small, kind, slug)
    response = send(as_alice, url, submission(text(as_alice.get(url))), follow=True)
    assert len(revisions(small, kind, slug)) == 1
    assert requests(small) == [], "no empty request stays behind"
    assert "Nothing changed, so nothing was saved." in text(response)


def test_save__of_a_new_name_only__is_a_change_like_any_other(
    small: World, as_alice: Client
) -> None:
    url = page_of(small, "agent", "billing_agent")
    data = submission(text(as_alice.get(url)))
    data["name"], data["owner"] = "Bills", "Finance"
    send(as_alice, url, data)
    saved = item(small, "agent", "billing_agent")
    assert (saved.name, saved.owner) == ("", "")
    with tenant_transaction(small.acme):
        patch = ChangePatch.objects.get()
        assert json.loads(patch.labels) == {"name": "Bills", "owner": "Finance"}
        assert patch.operations == "[]"
    again = submission(text(as_alice.get(url)))
    assert (again["name"], again["owner"]) == ("Bills", "Finance")


def test_save__after_somebody_else__is_refused_and_loses_nothing(
    small: World, as_alice: Client
) -> None:
    url = page_of(small, "prompt", "billing")
    data = submission(text(as_alice.get(url)))
    with tenant_transaction(small.acme):
        item_save(kind="prompt", slug="billing", content={"system": "Theirs."}, actor="user:dora")
    data["content-system"] = "Mine, \r\nof two lines."
    response = send(as_alice, url, data)
    page = text(response)
    assert "user:dora saved revision 2" in page
    assert "?from=1&amp;to=2" in page
    assert submission(page)["content-system"] == "Mine, \r\nof two lines."
    assert content(small, "prompt", "billing")["system"] == "Theirs."

    again = submission(page)
    assert "user:dora saved revision 2" in text(send(as_alice, url, again)), "no box, no overwrite"
    assert requests(small) == []
    again["overwrite"] = "2"
    send(as_alice, url, again)
    assert (drafted(small, "prompt", "billing") or {})["system"] == "Mine, \nof two lines."
    assert content(small, "prompt", "billing")["system"] == "Theirs."


def test_save__over_a_revision_that_is_no_longer_the_head__is_refused_again(
    small: World, as_alice: Client
) -> None:
    url = page_of(small, "prompt", "billing")
    data = submission(text(as_alice.get(url)))
    with tenant_transaction(small.acme):
        for words in ("Two.", "Three."):
            item_save(kind="prompt", slug="billing", content={"system": words}, actor="user:dora")
    data["content-system"], data["overwrite"] = "Mine.", "2"
    assert "user:dora saved revision 3" in text(send(as_alice, url, data))
    assert content(small, "prompt", "billing")["system"] == "Three."


def test_save__of_content_the_class_refuses__says_so_at_the_field(
    small: World, as_alice: Client
) -> None:
    url = page_of(small, "rail_policy", "default")
    data = submission(text(as_alice.get(url)))
    data["content-input-0-code"] = "NONSENSE"
    page = text(send(as_alice, url, data))
    assert "unknown rail" in page
    assert submission(page)["content-input-0-code"] == "NONSENSE"
    assert len(revisions(small, "rail_policy", "default")) == 1


def test_save__with_a_reference_to_another_tenants_item__is_refused(
    small: World, as_alice: Client
) -> None:
    with tenant_transaction(small.other):
        item_save(kind="prompt", slug="secret_of_other", content={"system": "x"}, actor="c")
    url = page_of(small, "agent", "billing_agent")
    data = submission(text(as_alice.get(url)))
    assert "secret_of_other" not in text(as_alice.get(url))
    data["content-prompt"] = "secret_of_other"
    assert "There is no “secret_of_other” to choose." in text(send(as_alice, url, data))


@pytest.mark.parametrize("base", ["", "-1", "x", "9" * 400])
def test_save__with_a_broken_base__is_refused(small: World, as_alice: Client, base: str) -> None:
    url = page_of(small, "prompt", "billing")
    data = submission(text(as_alice.get(url)))
    data["base"], data["content-system"] = base, "Changed."
    assert send(as_alice, url, data).status_code == 200
    assert len(revisions(small, "prompt", "billing")) == 1


def test_add__with_a_new_slug__drafts_an_item_that_is_not_there_yet(
    small: World, as_alice: Client
) -> None:
    url = reverse("admin:agents_prompt_add")
    data = submission(text(as_alice.get(url)))
    data["slug"], data["content-system"] = "greeting", "Hello {{ agent }}.\r\n"
    data["_continue"] = ""
    response = send(as_alice, url, data, follow=True)
    assert response.status_code == 200
    with tenant_transaction(small.acme):
        assert not ConfigItem.objects.filter(slug="greeting").exists()
    assert requests(small) == [(1, "user:alice", "draft", ["prompt:greeting"])]
    assert (drafted(small, "prompt", "greeting") or {})["system"] == "Hello {{ agent }}.\n"

    page = text(response)
    assert "there is no accepted version yet" in page
    again = submission(page)
    assert 'id="id_slug"' not in page
    again["content-system"] = "Hi."
    send(as_alice, response.redirect_chain[-1][0], again)
    assert (drafted(small, "prompt", "greeting") or {})["system"] == "Hi."
    listing = text(as_alice.get(reverse("admin:agents_prompt_changelist")))
    assert "In open change requests only:" in listing
    assert "?request=1&amp;slug=greeting" in listing
    assert "greeting" not in text(as_alice.get(reverse("admin:agents_agent_changelist")))


def test_add__of_what_a_request_adds_already__is_refused(small: World, as_alice: Client) -> None:
    url = reverse("admin:agents_prompt_add")
    data = submission(text(as_alice.get(url)))
    data["slug"], data["content-system"] = "greeting", "Hello."
    send(as_alice, url, data)
    data["request"] = "1"
    assert "already changes this item" in text(send(as_alice, url, data))


def test_references__to_an_item_of_an_open_request__can_be_chosen(
    small: World, as_alice: Client
) -> None:
    with tenant_transaction(small.acme):
        patch_save(actor="user:alice", kind="prompt", slug="fresh", content={"system": "x"})
    url = page_of(small, "agent", "billing_agent")
    page = text(as_alice.get(url))
    assert "fresh — new in #1" in page
    data = submission(page)
    data["content-prompt"] = "fresh"
    assert send(as_alice, url, data).status_code == 302
    assert (drafted(small, "agent", "billing_agent") or {})["prompt"] == "fresh"
    options = reverse("admin:releases_options", args=["prompt"])
    found = as_alice.get(options, {"term": "FRE"}).json()["results"]
    assert found == [{"id": "fresh", "text": "fresh — new in #1"}]


@pytest.mark.parametrize(
    ("slug", "message"),
    [
        ("billing", "There is already an item with this slug."),
        ("with space", "Use letters, digits"),
        ("", "This field is required."),
        ("x" * 121, "at most 120 characters"),
        ("a\x00b", "Null characters are not allowed."),
    ],
)
def test_add__with_a_slug_that_cannot_be__is_refused(
    small: World, as_alice: Client, slug: str, message: str
) -> None:
    url = reverse("admin:agents_prompt_add")
    data = submission(text(as_alice.get(url)))
    data["slug"], data["content-system"] = slug, "Changed."
    assert message in text(send(as_alice, url, data))
    assert content(small, "prompt", "billing")["system"] == "You explain bills."


# -- who may ---------------------------------------------------------------------------------------
def test_change_page__for_an_auditor__shows_everything_and_saves_nothing(
    small: World, as_alice: Client, as_bob: Client
) -> None:
    url = page_of(small, "intent", "bill_explain")
    page = text(as_bob.get(url))
    assert "bill_explain" in page
    assert 'value="invoice"' in page
    form = page[page.index('id="item_form"') :]
    assert editable(form[: form.index("</form>")]) == []
    data = submission(text(as_alice.get(url)))
    data["content-priority"] = "1"
    assert send(as_bob, url, data).status_code == 403
    assert as_bob.get(reverse("admin:routing_intent_add")).status_code == 403
    assert len(revisions(small, "intent", "bill_explain")) == 1


@pytest.mark.parametrize("page", ["", "history", "diff", "used-by", "archive", "restore"])
def test_item_pages__for_another_tenant__are_the_404_of_an_absent_item(
    small: World, as_charlie: Client, page: str
) -> None:
    url = page_of(small, "agent", "billing_agent", page)
    absent = url.replace(str(item(small, "agent", "billing_agent").pk), "987654321")
    for method in (as_charlie.get, as_charlie.post):
        foreign, missing = method(url), method(absent)
        assert foreign.status_code == 404
        assert missing.status_code == 404
        assert foreign.content == missing.content


@pytest.mark.parametrize("page", ["archive", "restore"])
def test_item_changes__for_an_auditor__are_forbidden(
    small: World, as_bob: Client, page: str
) -> None:
    url = page_of(small, "agent", "billing_agent", page)
    assert as_bob.post(url, {"revision": "1"}).status_code == 403


@pytest.mark.parametrize("role", ["business_owner", "approver", "operator"])
def test_saving__by_role__is_for_admins_and_business_owners(
    small: World, as_alice: Client, as_bob: Client, role: str
) -> None:
    with tenant_transaction(small.acme):
        Membership.objects.filter(user=small.bob).delete()
        membership_grant(user=small.bob, role=role, actor="test")
    url = page_of(small, "agent", "billing_agent")
    data = submission(text(as_alice.get(url)))
    data["content-max_tool_rounds"] = "9"
    expected = 302 if role == "business_owner" else 403
    assert send(as_bob, url, data).status_code == expected


def test_delete__of_an_item__has_no_page(small: World, as_alice: Client) -> None:
    url = page_of(small, "agent", "billing_agent", "delete")
    assert as_alice.post(url, {"post": "yes"}).status_code == 403
    changelist = reverse("admin:agents_agent_changelist")
    key = item(small, "agent", "billing_agent").pk
    as_alice.post(changelist, {"action": "delete_selected", "_selected_action": [key]})
    assert item(small, "agent", "billing_agent").pk == key


def test_anonymous__asking_for_an_item__is_sent_to_sign_in(small: World, client: Client) -> None:
    response = client.get(page_of(small, "agent", "billing_agent"))
    assert response.status_code == 302
    assert "/login/" in response.headers["Location"]


# -- history, differences, used by, archive ------------------------------------------------------
def test_history__of_an_item__lists_author_note_and_head(small: World, as_bob: Client) -> None:
    with tenant_transaction(small.acme):
        item_save(
            kind="prompt",
            slug="billing",
            content={"system": "You explain invoices."},
            actor="user:dora",
            note="Clearer <b>words</b>",
        )
    page = text(as_bob.get(page_of(small, "prompt", "billing", "history")))
    assert "user:dora" in page
    assert "Clearer &lt;b&gt;words&lt;/b&gt;" in page
    assert "Ask for this content again" not in page


def test_diff__of_a_long_text__marks_words_by_more_than_colour(
    small: World, as_bob: Client
) -> None:
    before = (
        "You explain bills to customers.\nAlways name the due date and the amount of each bill."
    )
    after = before.replace("bills", "invoices").replace(" and the amount", "")
    with tenant_transaction(small.acme):
        for words in (before, after):
            item_save(kind="prompt", slug="billing", content={"system": words}, actor="user:dora")
    page = text(as_bob.get(page_of(small, "prompt", "billing", "diff")))
    assert "From revision 2 to revision 3" in page
    assert '<del><span class="ao-sr">[removed: </span>bills<' in page
    assert '<ins><span class="ao-sr">[added: </span>invoices<' in page
    assert "System prompt" in page
    any_two = text(
        as_bob.get(page_of(small, "prompt", "billing", "diff"), {"from": "1", "to": "2"})
    )
    assert "From revision 1 to revision 2" in any_two


@pytest.mark.parametrize("number", ["99", "x", "-1", "²", "9" * 30, "1\x00"])
def test_diff__with_a_revision_that_is_none__is_404(
    small: World, as_bob: Client, number: str
) -> None:
    url = page_of(small, "prompt", "billing", "diff")
    assert as_bob.get(url, {"from": number}).status_code == 404


def test_restore__of_an_older_revision__asks_for_its_content_again(
    small: World, as_alice: Client
) -> None:
    with tenant_transaction(small.acme):
        item_save(kind="prompt", slug="billing", content={"system": "New."}, actor="user:dora")
    url = page_of(small, "prompt", "billing", "restore")
    assert as_alice.get(url).status_code == 404
    response = as_alice.post(url, {"revision": "1"}, follow=True)
    assert "Saved in" in text(response)
    assert content(small, "prompt", "billing")["system"] == "New."
    assert (drafted(small, "prompt", "billing") or {})["system"] == "You explain bills."
    assert len(revisions(small, "prompt", "billing")) == 2


def test_restore__to_a_revision_of_another_item__is_404(small: World, as_alice: Client) -> None:
    url = page_of(small, "prompt", "billing", "restore")
    assert as_alice.post(url, {"revision": "2"}).status_code == 404


def test_used_by__of_a_prompt__links_to_the_agent(small: World, as_bob: Client) -> None:
    page = text(as_bob.get(page_of(small, "prompt", "billing", "used-by")))
    link = reverse("admin:agents_agent_by_slug", args=["billing_agent"])
    assert f'<a href="{link}">billing_agent</a>' in page
    response = as_bob.get(link)
    assert response.headers["Location"] == page_of(small, "agent", "billing_agent")


def test_archive__of_an_item_in_use__shows_its_users_before(small: World, as_alice: Client) -> None:
    page = text(as_alice.get(page_of(small, "prompt", "billing", "archive")))
    assert "Other items still name it." in page
    assert "billing_agent" in page


def test_archive__of_an_item__is_asked_for_and_not_done(small: World, as_alice: Client) -> None:
    url = page_of(small, "intent", "bill_explain", "archive")
    assert "Archive “bill_explain”?" in text(as_alice.get(url))
    assert "Saved in" in text(as_alice.post(url, follow=True))
    assert item(small, "intent", "bill_explain").archived_at is None
    with tenant_transaction(small.acme):
        patch = ChangePatch.objects.get()
        assert (str(patch), patch.action) == ("intent:bill_explain", "archive")
    page = text(as_alice.get(page_of(small, "intent", "bill_explain")))
    assert "The request archives this item" in page


def test_archived_item__is_hidden_until_asked_for_and_can_be_asked_back(
    small: World, as_alice: Client
) -> None:
    with tenant_transaction(small.acme):
        item_archive(item=ConfigItem.objects.get(slug="bill_explain"), actor="a")
    listing = reverse("admin:routing_intent_changelist")
    assert "bill_explain" not in text(as_alice.get(listing)).split('id="changelist"')[1]
    assert "bill_explain" in text(as_alice.get(listing, {"state": "archived"}))
    history = page_of(small, "intent", "bill_explain", "history")
    assert "Ask for this content again" in text(as_alice.get(history))
    as_alice.post(page_of(small, "intent", "bill_explain", "restore"), {"revision": "1"})
    assert item(small, "intent", "bill_explain").archived_at is not None
    with tenant_transaction(small.acme):
        patch = ChangePatch.objects.get()
        assert (str(patch), patch.action) == ("intent:bill_explain", "create")


# -- every kind, many rows ---------------------------------------------------------------------
@pytest.mark.parametrize("model", sorted(proxies(), key=str))
def test_pages_of_a_kind__in_an_empty_tenant__are_there(
    world: World, as_alice: Client, model: type[ConfigItem]
) -> None:
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
    assert as_alice.get(reverse(f"{name}_changelist")).status_code == 200
    assert as_alice.get(reverse(f"{name}_add")).status_code == 200


def queries_of(client: Client, url: str) -> int:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert client.get(url).status_code == 200
    return len(captured)


def test_pages__with_300_items__ask_as_many_queries_as_with_three(
    small: World, as_alice: Client
) -> None:
    urls = [
        reverse("admin:tools_tool_changelist"),
        page_of(small, "agent", "billing_agent"),
        page_of(small, "agent", "billing_agent", "history"),
        page_of(small, "tool", "get_bill", "used-by"),
        reverse("admin:index"),
    ]

    def add(numbers: range) -> None:
        with tenant_transaction(small.acme):
            for number in numbers:
                tool = {"mcp_server": "telecom", "description": str(number)}
                item_save(kind="tool", slug=f"tool_{number}", content=tool, actor="a")
            tools = {"prompt": "billing", "tools": [f"tool_{n}" for n in range(numbers.stop)]}
            item_save(kind="agent", slug="billing_agent", content=tools, actor="a")

    add(range(2))
    for url in urls:
        as_alice.get(url)
    few = [queries_of(as_alice, url) for url in urls]
    add(range(2, 300))
    many = [queries_of(as_alice, url) for url in urls]
    # Too many tools to list: their labels are asked for by slug, once for the field and once more.
    assert [after - before for before, after in zip(few, many, strict=True)] == [0, 1, 0, 0, 0]


def test_item_page__of_an_item_that_many_requests_change__shows_the_newest(
    small: World, as_alice: Client
) -> None:
    url = page_of(small, "prompt", "billing")

    def change(numbers: range) -> None:
        with tenant_transaction(small.acme):
            head = ConfigItem.objects.get(kind="prompt", slug="billing").head
            made = ChangeRequest.objects.bulk_create(
                ChangeRequest(number=number, author="user:dora", title=f"Request {number}.")
                for number in numbers
            )
            ChangePatch.objects.bulk_create(
                ChangePatch(
                    request=request,
                    kind="prompt",
                    slug="billing",
                    action="change",
                    base=head,
                    edited_by="user:dora",
                )
                for request in made
            )

    change(range(1, 3))
    as_alice.get(url)
    few = queries_of(as_alice, url)
    change(range(3, 2000))
    assert queries_of(as_alice, url) == few
    page = text(as_alice.get(url))
    assert "Request 1999." in page
    assert page.count("by dora") == 10


def test_options__searched_by_an_auditor__are_the_tenants_own(
    small: World, as_bob: Client, as_charlie: Client, client: Client
) -> None:
    url = reverse("admin:releases_options", args=["tool"])
    found = {"results": [{"id": "get_bill", "text": "get_bill"}], "pagination": {"more": False}}
    assert as_bob.get(url, {"term": "BILL"}).json() == found
    assert as_bob.get(url, {"term": "nothing", "page": "x"}).json()["results"] == []
    assert as_charlie.get(url, {"term": "bill"}).json()["results"] == []
    assert as_bob.get(reverse("admin:releases_options", args=["sandwich"])).status_code == 404
    assert client.get(url).status_code == 302


def test_options__of_many_items__come_page_by_page(small: World, as_alice: Client) -> None:
    with tenant_transaction(small.acme):
        for number in range(70):
            item_save(
                kind="tool",
                slug=f"t{number:03}",
                content={"mcp_server": "telecom"},
                actor="a",
                name=f"Número {number}",
            )
        item_archive(item=ConfigItem.objects.get(slug="t000"), actor="a")
    url = reverse("admin:releases_options", args=["tool"])
    pages = [as_alice.get(url, {"term": "númer", "page": str(page)}).json() for page in (1, 2, 3)]
    assert [len(page["results"]) for page in pages] == [30, 30, 9]
    assert [page["pagination"]["more"] for page in pages] == [True, True, False]
    assert pages[0]["results"][0] == {"id": "t001", "text": "t001 — Número 1"}


def test_saving_in_the_admin__is_told_by_the_audit_trail(small: World, as_alice: Client) -> None:
    url = page_of(small, "agent", "billing_agent")
    data = submission(text(as_alice.get(url)))
    data["content-label_answers"] = "on"
    send(as_alice, url, data)
    with tenant_transaction(small.acme):
        last = AuditEntry.objects.order_by("-sequence")[0]
    assert (last.actor, last.action, last.entity) == ("user:alice", "change.edited", "change:1")
    assert json.loads(last.detail)["item"] == "agent:billing_agent"
