"""The console's chat: who may write, who may watch, and what a reload shows."""

import re
import uuid
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client

from apps.conversations.models import Session, TurnRecord
from apps.conversations.tests.told import MARKUP, ask, release_run, told
from apps.tenants.scope import tenant_transaction

pytestmark = pytest.mark.django_db
CHAT = "/console/chat/helper/s1"


@pytest.fixture
def acme(world: Any) -> Any:
    release_run(world.acme)
    return world.acme


def cursor_in(html: str) -> int:
    found = re.search(r'data-cursor="(\d+)"', html)
    assert found is not None
    return int(found[1])


def page(browser: Client, address: str = CHAT) -> str:
    response = browser.get(address)
    assert response.status_code == 200
    return response.content.decode()


# -- home --------------------------------------------------------------------------------------


def test_home__of_a_tenant_with_a_release__offers_its_agents(acme: Any, as_alice: Client):
    html = page(as_alice, "/console/")
    assert "Helps with bills." in html
    assert 'href="/console/chat/helper"' in html


def test_home__for_an_auditor__shows_agents_and_starts_nothing(acme: Any, as_bob: Client):
    html = page(as_bob, "/console/")
    assert "Helps with bills." in html
    assert 'href="/console/chat/helper"' not in html


def test_home__without_a_release__says_what_to_do(world: Any, as_charlie: Client):
    html = page(as_charlie, "/console/")
    assert "No release runs here yet." in html
    assert 'href="/admin/"' in html


def test_root__leads_to_the_console():
    assert Client().get("/")["Location"] == "/console/"


# -- beginning ---------------------------------------------------------------------------------


def test_new__each_time__is_another_conversation(acme: Any, as_alice: Client):
    first, second = (as_alice.get("/console/chat/helper")["Location"] for _ in range(2))
    assert first != second
    assert re.fullmatch(r"/console/chat/helper/[\w-]{16}", first)
    assert 'id="composer"' in page(as_alice, first)


def test_new__for_who_may_not_write_or_an_unknown_agent__is_refused(
    acme: Any, as_alice: Client, as_bob: Client
):
    assert as_bob.get("/console/chat/helper").status_code == 403
    assert as_alice.get("/console/chat/nobody").status_code == 404


def test_chat__by_role__writes_or_only_watches(acme: Any, as_alice: Client, as_bob: Client):
    told(acme, says="214,37")
    written, watched = page(as_alice), page(as_bob)
    assert 'id="composer"' in written
    assert 'name="customer_key"' in written
    assert 'id="composer"' not in watched
    assert "Your role reads conversations" in watched
    assert "214,37" in watched


@pytest.mark.parametrize(
    "address",
    [
        CHAT,
        f"{CHAT}/transcript",
        "/console/chat/nobody/s1",
        "/console/chat/helper/two%20words",
        "/console/chat/helper/nul%00",
        f"/console/chat/helper/{'x' * 201}",
        "/console/chat/helper/s1:x/transcript",
    ],
)
def test_chat__of_another_tenant_or_of_nobody__is_absent(
    acme: Any, as_alice: Client, as_charlie: Client, address: str
):
    told(acme, says="214,37")
    answer = as_charlie.get(address)
    assert answer.status_code == 404
    assert answer.content == as_charlie.get("/console/chat/nobody/nothing").content
    if address not in (CHAT, f"{CHAT}/transcript", "/console/chat/helper/s1:x/transcript"):
        assert as_alice.get(address).status_code == 404


def test_chat__whose_address_splits_a_key_otherwise__is_absent(acme: Any, as_alice: Client):
    told(acme, session="a:b")
    assert as_alice.get("/console/chat/helper/a:b").status_code == 200
    assert as_alice.get("/console/chat/helper:a/b").status_code == 404


# -- what a reload shows -----------------------------------------------------------------------


def test_transcript__of_answered_turns__goes_on_after_their_events(acme: Any, as_alice: Client):
    turns = [told(acme, f"question {n}", f"{MARKUP} answer {n}") for n in (1, 2)]
    html = page(as_alice, f"{CHAT}/transcript")
    assert re.findall(r"question \d", html) == ["question 1", "question 2"]
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt; answer 2" in html
    assert MARKUP not in html
    with tenant_transaction(acme):
        session = Session.objects.get(pk=turns[0].session_id)
    assert cursor_in(html) == session.event_sequence > 0


def test_transcript__with_an_open_turn__shows_its_message_masked_and_replays_its_events(
    acme: Any, as_alice: Client
):
    told(acme)
    with tenant_transaction(acme):
        before = Session.objects.get(name="s1").event_sequence
    accepted = ask(acme, "my CPF is 111.444.777-35, the bill please")
    html = page(as_alice)
    assert cursor_in(html) == before
    assert "111.444.777-35" not in html
    assert "my CPF is &lt;CPF_1&gt;, the bill please" in html
    assert f'id="turn-{accepted.turn_id}"' in html
    fragment = page(as_alice, f"/console/chat-turns/{accepted.turn_id}")
    assert "my CPF is &lt;CPF_1&gt;, the bill please" in fragment


def test_transcript__of_a_message_sealed_with_a_lost_key__still_shows_the_turn(
    acme: Any, as_alice: Client
):
    accepted = ask(acme, "oi")
    with tenant_transaction(acme):
        TurnRecord.objects.filter(pk=accepted.turn_id).update(inbound="gAAAAABnothing")
    assert "The message is kept sealed until it is answered." in page(as_alice)


def test_transcript__of_a_new_conversation__begins_at_the_first_event(acme: Any, as_alice: Client):
    html = page(as_alice, "/console/chat/helper/fresh")
    assert cursor_in(html) == 0
    assert "Nothing was said yet." in html


def test_turn_fragment__for_members_only__is_the_row_of_the_conversation(
    acme: Any, as_alice: Client, as_bob: Client, as_charlie: Client
):
    accepted = told(acme, "question 1", "214,37")
    address = f"/console/chat-turns/{accepted.turn_id}"
    for browser in (as_alice, as_bob):
        html = page(browser, address)
        assert html.lstrip().startswith("<article")
        assert "214,37" in html
    foreign = as_charlie.get(address)
    assert foreign.status_code == 404
    assert foreign.content == as_charlie.get(f"/console/chat-turns/{uuid.UUID(int=9)}").content


# -- what a browser may run --------------------------------------------------------------------


class Inline(HTMLParser):
    """Collects code inside the page, and addresses of other servers."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "style" or (
            tag == "script" and "src" not in given and given.get("type") != "application/json"
        ):
            self.found.append(f"<{tag}>")
        for name, value in attrs:
            if name == "style" or name.startswith(("on", "hx-on")):
                self.found.append(f"{tag} {name}")
            if name in ("src", "href", "action") and re.match(r"(\w+:)?//", value or ""):
                self.found.append(f"{tag} {name}={value}")


@pytest.mark.parametrize(
    "address",
    [
        "/console/", CHAT, "/console/sessions/", "/console/login", "/console/chat/nobody/x",
        "/console/sessions/{session}/", "/console/turns/{turn}/",
    ],
)  # fmt: skip
def test_page__has_no_code_inside_and_asks_no_other_server(
    acme: Any, as_alice: Client, address: str
):
    accepted = told(acme)
    browser = Client() if "login" in address else as_alice
    response = browser.get(address.format(session=accepted.session_id, turn=accepted.turn_id))
    policy = response["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert response["Cache-Control"] == "private, no-store"
    inline = Inline()
    inline.feed(response.content.decode())
    assert inline.found == []
