"""Streams that a kind server never sends: repeated, overlapping, cut, trimmed. The server is the test.

Each is a fault that was seen elsewhere: answers shown twice, fragments lost, digits swallowed.
"""

import json
import re
import uuid
from collections.abc import Sequence
from typing import Any

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from agentops.tests.e2e.conftest import Opened
from agentops.tests.e2e.steps import INVOICE, Conversation

pytestmark = pytest.mark.e2e
TURN = str(uuid.UUID(int=5))


class Server:
    """The other end of a page's websocket, saying what the test wants."""

    def __init__(self, page: Page) -> None:
        self.opened: list[WebSocketRoute] = []
        page.route_web_socket(re.compile(r"/ws/sessions/"), self._connect)

    def _connect(self, line: WebSocketRoute) -> None:
        self.opened.append(line)
        line.on_message(lambda message: None)
        line.send(json.dumps({"event": "connected", "id": None, "data": {}}))

    def send(self, event: str, number: int | None, **payload: Any) -> None:
        data = {"payload": {"turn_id": TURN, **payload}}
        self.opened[-1].send(json.dumps({"event": event, "id": number, "data": data}))

    def start(self) -> None:
        self.send("flow.start", 1, message_id="m")

    def deltas(self, texts: Sequence[str], first: int = 2) -> None:
        for number, text in enumerate(texts, first):
            self.send("message.delta", number, index=number - first, text=text)

    def cut(self, page: Page) -> None:
        """Break the line and wait until the page has opened another."""
        lines = len(self.opened)
        self.opened[-1].close(code=1012)
        for _ in range(200):
            if len(self.opened) > lines:
                return
            page.wait_for_timeout(50)
        raise AssertionError("the page did not connect again")


@pytest.fixture
def server(alice: Page) -> Server:
    server = Server(alice)
    Conversation.begin(alice, "billing_agent")
    return server


def text_of(page: Page) -> Any:
    return page.locator("#transcript .turn .answer .text")


@pytest.mark.parametrize(
    "texts",
    [
        ["Olá", " Ana"],
        ["\n", "\n", "Resposta"],
        ["R$ 150", "0"],
        ["ha", "ha", "ha"],
        ["ação ", "😀"],
    ],
    ids=["two", "repeated line ends", "repeated digit", "repeated word", "accents"],
)
def test_deltas__whatever_they_say__are_all_added_and_the_final_frame_replaces(
    alice: Page, server: Server, texts: list[str]
):
    whole = "".join(texts)
    server.start()
    server.deltas(texts)
    expect(alice.locator("#transcript .turn")).to_have_attribute("data-state", "answering")
    server.send("message.responded", 50, message_id="m", outcome="answered", text=whole)
    expect(alice.locator("#transcript .turn")).to_have_attribute("data-state", "answered")
    assert text_of(alice).text_content() == whole
    assert alice.locator("#transcript .turn").count() == 1
    assert alice.locator("#announcer").text_content() == whole


def test_deltas__before_the_final_frame__are_what_is_shown(alice: Page, server: Server):
    server.start()
    server.deltas(["R$ 150", "0"])
    expect(text_of(alice)).to_have_text("R$ 1500")


def test_replay__that_overlaps_the_live_stream__counts_each_number_once(
    alice: Page, server: Server
):
    words = ["A", "va", "li", "a", "ção"]
    server.start()
    server.deltas(words[:3])
    expect(text_of(alice)).to_have_text("Avali")
    server.cut(alice)
    assert server.opened[-1].url.endswith("?after=4")
    server.start()
    server.deltas(words[:3])
    server.deltas(words)
    expect(text_of(alice)).to_have_text("Avaliação")


def test_answer__that_differs_from_what_was_streamed__is_the_final_one(alice: Page, server: Server):
    server.start()
    server.deltas(["rascunho"])
    server.send("message.responded", 3, message_id="m", outcome="blocked", text="Não posso.")
    server.deltas(["rascunho"], first=2)
    expect(text_of(alice)).to_have_text("Não posso.")
    expect(alice.locator("[data-badge]")).to_have_text("Blocked")


def test_stream__that_says_resync__is_read_anew_and_goes_on(open_as: Opened):
    page = open_as("alice")
    chat = Conversation.begin(page, "billing_agent").as_customer("11999999999", "3000131180")
    text = chat.ask(INVOICE)
    server = Server(page)
    page.reload()
    chat.live()
    cursor = int(page.locator("#transcript").get_attribute("data-cursor") or 0)
    page.locator("#transcript .turn").evaluate("turn => turn.remove()")
    server.send("resync", None)
    server.send("message.delta", cursor, text="old")  # replayed: what was read anew holds it
    server.send("flow.start", cursor + 1, message_id="m")
    server.send("message.delta", cursor + 2, text="new")
    expect(chat.turns).to_have_count(2)
    assert chat.answer(chat.turns.first) == text
    expect(chat.turns.last.locator(".answer .text")).to_have_text("new")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (4401, "You are signed out. Reload the page to sign in again."),
        (4403, "This conversation is not open to you."),
        (4404, "This conversation is not open to you."),
    ],
)
def test_line__refused_for_good__says_why_and_is_not_tried_again(
    alice: Page, server: Server, code: int, said: str
):
    server.opened[-1].close(code=code)
    expect(alice.get_by_text(said)).to_be_visible()
    alice.evaluate("window.dispatchEvent(new Event('online'))")
    alice.wait_for_timeout(1_500)  # longer than the first try of a line that was only lost
    assert len(server.opened) == 1
