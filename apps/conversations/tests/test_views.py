"""Console pages of sessions and turns: Alice and Bob read, Charlie finds nothing."""

import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from apps.conversations.models import Session, TurnRecord
from apps.conversations.tests.told import MARKUP, PATTERN, ask, release_run, told
from apps.tenants.scope import tenant_scope, tenant_transaction

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}
LIST = "/console/sessions/"
NOBODY = uuid.UUID(int=7)


@pytest.fixture
def turn(world: Any) -> Any:
    release_run(world.acme)
    return told(world.acme, "What is in my bill?", f"{MARKUP} 214,37\nsecond line")


def queries_of(read: Callable[[], Any]) -> int:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        read()
    return len(captured)


def sessions_add(tenant: Any, count: int) -> None:
    with tenant_scope(tenant), tenant_transaction(tenant):
        Session.objects.bulk_create(
            Session(
                key=f"{tenant.slug}:helper:n{number}",
                name=f"n{number}",
                agent="helper",
                channel="web",
                principal="user:alice",
            )
            for number in range(count)
        )


# -- who ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["console-sessions", "console-session", "console-turn"])
def test_page__for_a_member__is_shown_and_for_an_outsider_absent(
    turn: Any, page: str, as_alice: Client, as_bob: Client, as_charlie: Client
):
    ids = {"console-session": turn.session_id, "console-turn": turn.turn_id}
    address = reverse(page, args=[ids[page]] if page in ids else [])
    for browser in (as_alice, as_bob):
        response = browser.get(address)
        assert response.status_code == 200
        assert "214,37" in response.content.decode() or page == "console-sessions"
    outsider = as_charlie.get(address)
    if page in ids:
        assert outsider.status_code == 404
        absent = as_charlie.get(reverse(page, args=[NOBODY]))
        assert outsider.content == absent.content
    else:
        assert "s1" not in outsider.content.decode()
        assert "Nobody has talked to an agent yet." in outsider.content.decode()


def test_page__for_nobody__asks_to_sign_in(turn: Any, client: Client):
    address = reverse("console-session", args=[turn.session_id])
    response = client.get(address)
    assert response.status_code == 302
    assert response["Location"] == f"/console/login?next={address}"


def test_fragment__for_nobody__sends_the_whole_page_to_sign_in(turn: Any, client: Client):
    response = client.get(reverse("console-turn", args=[turn.turn_id]), headers=HTMX)
    assert response["HX-Redirect"] == "/console/login"
    assert "Location" not in response
    assert response.content == b""


def test_pages__only_read(turn: Any, as_alice: Client):
    for address in (LIST, reverse("console-turn", args=[turn.turn_id])):
        assert as_alice.post(address).status_code == 405


# -- the list ----------------------------------------------------------------------------------


def test_list__of_many_sessions__shows_each_once_on_its_way_to_the_end(
    world: Any, as_alice: Client
):
    sessions_add(world.acme, 60)
    with tenant_transaction(world.acme):  # half of them at the same moment: the id orders those
        Session.objects.filter(name__endswith="1").update(updated_at=timezone.now())
        Session.objects.filter(name__lt="n4").update(updated_at=timezone.now())
    address, seen = LIST, []
    while address:
        html = as_alice.get(address).content.decode()
        seen += re.findall(r">(n\d+)</a>", html)
        older = re.search(r'rel="next" href="([^"]+)"', html)
        address = LIST + older[1].replace("&amp;", "&") if older else ""
    assert sorted(seen) == sorted(f"n{number}" for number in range(60))


def test_list__of_more_sessions__asks_no_more_queries(world: Any, as_alice: Client):
    sessions_add(world.acme, 3)
    few = queries_of(lambda: as_alice.get(LIST))
    sessions_add(world.other, 200)
    with tenant_transaction(world.acme):
        Session.objects.bulk_create(
            Session(key=f"acme:helper:m{n}", name=f"m{n}", agent="helper", channel="web")
            for n in range(200)
        )
    assert queries_of(lambda: as_alice.get(LIST)) == few


def test_list__searched__shows_what_is_called_so(world: Any, as_alice: Client):
    sessions_add(world.acme, 12)
    html = as_alice.get(LIST, {"q": "N11"}).content.decode()
    assert re.findall(r">(n\d+)</a>", html) == ["n11"]


def test_list__searched_in_vain__says_so_and_shows_the_words_as_text(world: Any, as_alice: Client):
    html = as_alice.get(LIST, {"q": MARKUP}).content.decode()
    assert MARKUP not in html
    assert "No session is called like" in html


@pytest.mark.parametrize(
    "query",
    ["?before=nonsense", "?before=2026-11-30,7", "?before=%00", "?q=%00", "?before=2026-99-99T,x"],
)
def test_list__with_a_cursor_that_is_none__begins_at_the_newest(
    world: Any, as_alice: Client, query: str
):
    sessions_add(world.acme, 1)
    assert ">n0</a>" in as_alice.get(LIST + query).content.decode()


# -- a session ---------------------------------------------------------------------------------


def test_session__shows_texts_as_text(turn: Any, as_alice: Client):
    html = as_alice.get(reverse("console-session", args=[turn.session_id])).content.decode()
    assert MARKUP not in html
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt; 214,37\nsecond line" in html
    assert "What is in my bill?" in html


def test_session__with_more_turns__asks_no_more_queries(world: Any, turn: Any, as_alice: Client):
    address = reverse("console-session", args=[turn.session_id])
    one = queries_of(lambda: as_alice.get(address))
    for _ in range(5):
        told(world.acme)
    assert queries_of(lambda: as_alice.get(address)) == one


def test_session__with_many_turns__is_read_page_by_page(
    world: Any, turn: Any, as_alice: Client, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("apps.conversations.browsing.TURNS_PER_PAGE", 2)
    for number in range(2, 6):
        told(world.acme, f"question {number}")
    address = reverse("console-session", args=[turn.session_id])

    def questions(query: str) -> list[str]:
        return re.findall(r"question \d", as_alice.get(address + query).content.decode())

    assert questions("") == ["question 4", "question 5"]
    assert 'href="?before=4"' in as_alice.get(address).content.decode()
    assert questions("?before=4") == ["question 2", "question 3"]
    assert questions("?before=x") == ["question 4", "question 5"]


def test_session__with_an_open_turn__does_not_unseal_its_message(
    world: Any, turn: Any, as_alice: Client
):
    ask(world.acme, "my CPF is 111.444.777-35")
    html = as_alice.get(reverse("console-session", args=[turn.session_id])).content.decode()
    assert "111.444.777-35" not in html
    assert "The message is kept sealed until it is answered." in html
    assert 'data-state="queued"' in html


# -- a turn ------------------------------------------------------------------------------------


def test_turn__asked_by_htmx__is_a_fragment_of_the_same(turn: Any, as_bob: Client):
    address = reverse("console-turn", args=[turn.turn_id])
    fragment = as_bob.get(address, headers=HTMX)
    assert not re.search(r"<html|<script", fragment.content.decode())
    assert "HX-Request" in fragment["Vary"]
    page = as_bob.get(address).content.decode()
    assert "<html" in page
    for html in (fragment.content.decode(), page):
        for shown in (
            "bill_explained", "order_status", "get_bill", "&quot;contract&quot;: &quot;C-77&quot;",
            "214.37", "is required", "MSK", "one CPF", "groundedness", "0.91", "448 in, 113 out",
            "unknown", "RunAgent", "customer_key",
        ):  # fmt: skip
            assert shown in html, shown
        assert MARKUP not in html
        assert PATTERN not in html


def test_turn__names_its_release_and_links_to_it(world: Any, turn: Any, as_alice: Client):
    with tenant_transaction(world.acme):
        release = TurnRecord.objects.select_related("release").get(pk=turn.turn_id).release
    html = as_alice.get(reverse("console-turn", args=[turn.turn_id])).content.decode()
    assert reverse("admin:releases_release_change", args=[release.pk]) in html
    assert release.sha256[:12] in html
    assert f"release {release.number}" in html


def test_turn__for_a_role_without_traces__keeps_arguments_and_results(
    turn: Any, as_bob: Client, monkeypatch: pytest.MonkeyPatch
):
    from apps.tenants import roles

    seen = roles.PERMISSIONS["auditor"] - {"conversations.trace"}
    monkeypatch.setitem(roles.PERMISSIONS, "auditor", seen)
    html = as_bob.get(reverse("console-turn", args=[turn.turn_id]), headers=HTMX).content.decode()
    assert "get_bill" in html
    for hidden in ("C-77", "is required", "one CPF", "order_status", "RunAgent", "user:alice"):
        assert hidden not in html, hidden
    assert "need a role that may see traces" in html
