"""Configuration edited, published and deployed in the admin holds from the very next message."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from agentops.tests.e2e.conftest import Opened
from agentops.tests.e2e.steps import INVOICE, Conversation

pytestmark = pytest.mark.e2e
# A word that no intent of the demo knows.
WORD = "mensalinho"
BEFORE, BETWEEN, AFTER = (f"{words} {WORD}" for words in ("me fale do", "veja o", "quero ver o"))


@pytest.fixture
def admin(open_as: Opened) -> Iterator[Page]:
    """Alice's page of the admin; what production ran before runs again afterwards."""
    page = open_as("alice")
    before = running(page)
    yield page
    if running(page) != before:
        deploy(page, before)


def running(page: Page) -> str:
    """Return the number of the release that production runs."""
    page.goto("/admin/releases/deployment/")
    row = page.locator("tr", has_text="production")
    found = re.search(r"#(\d+)", row.inner_text())
    assert found is not None
    return found[1]


def edit(page: Page, kind: str, slug: str, field: str, value: str) -> None:
    page.goto(f"/admin/{kind}/by-slug/{slug}/")
    page.locator(f"[name={field}]").last.fill(value)
    page.locator("[name=_continue]").click()
    expect(page.locator("#main")).to_contain_text("Saved as revision")


def publish(page: Page) -> tuple[str, str]:
    """Publish what is edited; return the release's number and sha256.

    What equals an earlier release is that release: the page says so and leads there.
    """
    page.goto("/admin/releases/release/publish/")
    known = page.get_by_role("status").filter(has_text="there is nothing to publish")
    if known.count():
        known.get_by_role("link").click()
    else:
        page.get_by_role("button", name="Publish", exact=True).click()
    return release_shown(page)


def release_shown(page: Page) -> tuple[str, str]:
    facts = page.locator(".ao-facts").first
    expect(facts).to_contain_text("verified")
    number = facts.locator("dd").first.inner_text().removeprefix("#")
    sha256 = facts.locator("code").first.inner_text()
    assert number.isdigit()
    assert re.fullmatch("[0-9a-f]{64}", sha256)
    return number, sha256


def deploy(page: Page, number: str) -> tuple[str, str]:
    """Deploy a release to production from its page; return its number and sha256."""
    page.goto("/admin/releases/release/")
    page.get_by_role("link", name=f"#{number}", exact=True).click()
    shown = release_shown(page)
    page.get_by_role("link", name="Deploy", exact=True).click()
    if page.locator("#id_environment").input_value() != "production":
        page.locator("#id_environment").select_option("production")
        page.get_by_role("button", name="Compare").click()
    page.get_by_role("button", name=re.compile("^(Deploy to|Roll back) production$")).click()
    expect(page.locator("#main")).to_contain_text("production")
    assert running(page) == number
    return shown


def test_prompt_and_keyword__edited_published_and_deployed__hold_from_the_next_message(
    admin: Page, open_as: Opened
):
    chat = Conversation.begin(open_as("alice"), "assistente")
    chat.as_customer("11999999999", "3000131180")
    assert "214,37" in chat.ask(INVOICE)
    first = chat.release(chat.turns.nth(0))
    assert "214,37" not in chat.ask(BEFORE)  # nobody knows the word
    expect(chat.turns.nth(1)).to_contain_text("fallback")

    edit(admin, "agents/prompt", "billing_agent", "content-language", "en")
    admin.goto("/admin/routing/intent/by-slug/billing_invoice_explanation/")
    admin.locator("[name=content-keywords]").last.press("Enter")
    admin.keyboard.type(WORD)
    admin.locator("[name=_continue]").click()
    expect(admin.locator("#main")).to_contain_text("Saved as revision")
    published = publish(admin)

    assert "214,37" not in chat.ask(BETWEEN)  # published is not deployed
    assert chat.release(chat.turns.nth(2)) == first
    assert deploy(admin, published[0]) == published

    answer = chat.ask(AFTER)
    assert "Invoice 3000131180" in answer  # the prompt: in English now
    expect(chat.turns.nth(3)).to_contain_text("billing_invoice_explanation")
    assert chat.release(chat.turns.nth(3)) == (published[0], published[1][:12])
    assert published[0] != first[0]

    back = deploy(admin, first[0])
    assert (back[0], back[1][:12]) == first
    assert "Fatura 3000131180" in chat.ask("Quero ver a fatura")
    assert chat.release(chat.turns.nth(4)) == first

    # A conversation's old turns still name the release they ran with, also when read anew.
    chat.page.reload()
    chat.live()
    named = [chat.release(turn)[0] for turn in chat.turns.all()]
    assert named == [first[0], first[0], first[0], published[0], first[0]]


def test_head__set_back_and_published__gives_the_release_from_before_again(admin: Page):
    before = publish(admin)
    edit(admin, "agents/prompt", "billing_agent", "content-response_style", "short")
    changed = publish(admin)
    assert changed[1] != before[1]
    admin.goto("/admin/agents/prompt/by-slug/billing_agent/")
    admin.locator(".ao-tabs").get_by_role("link", name="History").click()
    admin.get_by_role("button", name="Make this the head again").first.click()
    expect(admin.locator("#main")).to_contain_text("head")
    assert publish(admin) == before
