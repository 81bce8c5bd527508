"""What a person does in the console, in the tests' words."""

import json
import re
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Locator, Page, WebSocketRoute, expect

INVOICE = "Quero entender minha fatura"
PASSWORD = "demo"


def sign_in(page: Page, name: str) -> None:
    page.goto("/console/")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Talk to an agent")).to_be_visible()


@dataclass
class Conversation:
    """A chat that is open in ``page``."""

    page: Page

    @classmethod
    def begin(cls, page: Page, agent: str) -> "Conversation":
        """Pick ``agent`` on the first page and wait until the line is up."""
        page.goto("/console/")
        page.get_by_role("link", name=f"Start {agent}", exact=True).click()
        return cls(page).live()

    @classmethod
    def at(cls, page: Page, address: str) -> "Conversation":
        page.goto(address)
        return cls(page).live()

    def live(self) -> "Conversation":
        expect(self.page.get_by_text("Connected", exact=True)).to_be_visible()
        return self

    def as_customer(self, customer: str, contract: str) -> "Conversation":
        self.page.get_by_text("Demo identity").click()
        self.page.get_by_label("Customer key").fill(customer)
        self.page.get_by_label("Contract key").fill(contract)
        return self

    def say(self, text: str) -> Locator:
        """Write ``text``, press Enter, and return its turn."""
        box = self.page.get_by_role("textbox", name="Message")
        box.fill(text)
        count = self.turns.count()
        box.press("Enter")
        return self.turns.nth(count)

    def ask(self, text: str) -> str:
        """Say ``text`` and return the answer when the turn is done."""
        turn = self.say(text)
        expect(turn).to_have_attribute("data-settled", "")
        return self.answer(turn)

    @property
    def turns(self) -> Locator:
        return self.page.locator("#transcript .turn")

    @property
    def details(self) -> Locator:
        return self.page.locator("#details")

    @staticmethod
    def answer(turn: Locator) -> str:
        return turn.locator(".answer .text").text_content() or ""

    @staticmethod
    def release(turn: Locator) -> tuple[str, str]:
        """Return the number and the short sha256 of the release that a turn names."""
        chip = turn.locator("[data-release]")
        return chip.get_attribute("data-release") or "", chip.locator("code").inner_text()


class Line:
    """The websocket of a page, under the test's control. Made before the page opens it."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.received: list[dict[str, Any]] = []
        self.sent: list[dict[str, Any]] = []
        self.addresses: list[str] = []
        self.cut_after: int | None = None
        self.lose_next = False
        self._open: WebSocketRoute | None = None
        page.route_web_socket(re.compile(r"/ws/sessions/"), self._connect)

    def _connect(self, browser: WebSocketRoute) -> None:
        self.addresses.append(browser.url)
        self._open = browser
        server = browser.connect_to_server()

        broken = False

        def down(message: str | bytes) -> None:
            nonlocal broken
            frame = json.loads(message)
            if self.cut_after is not None and frame["id"] is not None:
                if self.cut_after == 0:
                    self.cut_after = None
                    broken = True
                    self._close(browser, server)
                else:
                    self.cut_after -= 1
            if not broken:  # what was on its way when the line broke is lost
                self.received.append(frame)
                browser.send(message)

        def up(message: str | bytes) -> None:
            nonlocal broken
            self.sent.append(json.loads(message))
            if self.lose_next:
                self.lose_next = False
                broken = True
                self._close(browser, server)
            elif not broken:
                server.send(message)

        server.on_message(down)
        browser.on_message(up)

    def wait_sent(self, count: int) -> list[str]:
        """Return the ids of the messages sent, once there are ``count``."""
        for _ in range(200):
            if len(self.sent) >= count:
                break
            self._page.wait_for_timeout(50)
        return [frame["message_id"] for frame in self.sent]

    def cut(self) -> None:
        """Break the line now, as a lost network does."""
        assert self._open is not None
        self._open.close(code=1012)

    @staticmethod
    def _close(browser: WebSocketRoute, server: WebSocketRoute) -> None:
        server.close()
        browser.close(code=1012)

    def events(self, name: str) -> list[dict[str, Any]]:
        return [frame["data"]["payload"] for frame in self.received if frame["event"] == name]
