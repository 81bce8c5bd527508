"""A business owner changes how an agent answers, an approver brings it live, and it can be taken back."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from agentops.tests.e2e.changing import (
    approve,
    bring,
    edit,
    looked,
    publish,
    release_open,
    request_open,
    running,
    save,
    submit,
)
from agentops.tests.e2e.conftest import Opened
from agentops.tests.e2e.steps import INVOICE, Conversation

pytestmark = pytest.mark.e2e
# A word that no intent of the demo knows.
WORD = "mensalinho"
BEFORE, BETWEEN, AFTER = (f"{words} {WORD}" for words in ("me fale do", "veja o", "quero ver o"))


@pytest.fixture
def olga(open_as: Opened) -> Page:
    """The business owner's page: she edits, and neither approves nor publishes."""
    return open_as("olga")


@pytest.fixture
def ana(open_as: Opened) -> Iterator[Page]:
    """The approver's page; what production ran before runs again afterwards."""
    page = open_as("ana")
    before = running(page)
    yield page
    if running(page) != before:
        bring(page, before)


def test_prompt_and_keyword__asked_for_approved_and_promoted__hold_from_the_next_message(
    olga: Page, ana: Page, open_as: Opened, tmp_path: Path
):
    chat = Conversation.begin(open_as("alice"), "assistente")
    chat.as_customer("11999999999", "3000131180")
    assert "214,37" in chat.ask(INVOICE)
    first = chat.release(chat.turns.nth(0))
    assert "214,37" not in chat.ask(BEFORE)  # nobody knows the word
    expect(chat.turns.nth(1)).to_contain_text("fallback")

    edit(olga, "agents/prompt", "billing_agent", "content-language", "en")
    olga.goto("/admin/routing/intent/by-slug/billing_invoice_explanation/")
    olga.locator("[name=content-keywords]").last.press("Enter")
    olga.keyboard.type(WORD)
    number = save(olga)
    submit(olga, number, title="English invoices", reason="Customers abroad ask for it")
    assert olga.get_by_role("button", name="Approve").count() == 0
    assert olga.get_by_role("link", name="Publish or schedule").count() == 0

    request_open(ana, number)
    changes = ana.locator(".ao-main")
    expect(changes).to_contain_text("billing_agent")
    expect(changes.locator(".ao-ins", has_text=WORD)).to_be_visible()
    expect(changes.locator(".ao-ins", has_text="en").first).to_be_visible()
    approved = approve(ana, number)
    published = publish(ana, number)
    assert published[1] == approved  # what was seen is what was frozen
    assert running(ana, "staging") == published[0]

    assert "214,37" not in chat.ask(BETWEEN)  # in staging is not in production
    assert chat.release(chat.turns.nth(2)) == first
    assert bring(ana, published[0]) == published
    release_open(ana, published[0])
    looked(ana, tmp_path, "release")

    answer = chat.ask(AFTER)
    assert "Invoice 3000131180" in answer  # the prompt: in English now
    expect(chat.turns.nth(3)).to_contain_text("billing_invoice_explanation")
    assert chat.release(chat.turns.nth(3)) == (published[0], published[1][:12])
    assert published[0] != first[0]

    back = bring(ana, first[0])
    assert (back[0], back[1][:12]) == first
    assert "Fatura 3000131180" in chat.ask("Quero ver a fatura")
    assert chat.release(chat.turns.nth(4)) == first

    # A conversation's old turns still name the release they ran with, also when read anew.
    chat.page.reload()
    chat.live()
    named = [chat.release(turn)[0] for turn in chat.turns.all()]
    assert named == [first[0], first[0], first[0], published[0], first[0]]


def test_older_content__asked_for_again__gives_the_release_from_before_again(olga: Page, ana: Page):
    before = running(ana, "staging")
    edit(olga, "agents/prompt", "billing_agent", "content-response_style", "short")
    number = save_number(olga)
    submit(olga, number, title="Short answers", reason="Try it")
    approve(ana, number)
    changed = publish(ana, number)
    assert changed[0] != before
    olga.goto("/admin/agents/prompt/by-slug/billing_agent/")
    olga.locator(".ao-tabs").get_by_role("link", name="History").click()
    olga.get_by_role("button", name="Ask for this content again").first.click()
    number = save_number(olga)
    submit(olga, number, title="As before", reason="It was better")
    approve(ana, number)
    assert publish(ana, number)[0] == before


def save_number(page: Page) -> str:
    """Return the number of the request that the page says was saved in."""
    link = page.get_by_role("link", name="change request #").first
    return link.inner_text().partition("#")[2]


def test_pages_of_review__at_both_widths_and_colours__fit(olga: Page, ana: Page, tmp_path: Path):
    number = weakening_asked(olga)
    request_open(ana, number)
    request = ana.url
    looked(ana, tmp_path, "request")
    for name, address in (
        ("queue", "/admin/releases/changerequest/?queue=team"),
        ("publish", request.replace("/change/", "/publish/")),
        ("emergency", request.replace("/change/", "/break-glass/")),
        ("rebase", request.replace("/change/", "/rebase/")),
    ):
        ana.goto(address)
        looked(ana, tmp_path, name)
    request_open(olga, number)
    olga.locator("summary", has_text="Close without publishing").click()
    olga.get_by_role("button", name="Withdraw").click()
    expect(olga.locator("#main")).to_contain_text("Withdrawn.")


def weakening_asked(page: Page) -> str:
    """Submit a request that rewords a prompt and relaxes a rail; return its number."""
    page.goto("/admin/agents/prompt/by-slug/billing_agent/")
    page.locator("label[for=id_content-system]").click()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text("\nNever promise a discount; offer a payment plan instead.\n")
    number = save(page)
    page.goto("/admin/governance/railpolicy/by-slug/default/")
    for summary in page.locator("[data-formset=content-input] summary").all():
        summary.click()
    page.locator("[name=content-input-2-on_deny]").select_option("observe")
    assert save(page) == number
    submit(page, number, title="Softer words for late payers", reason=REASON, risk="weakening")
    return number


REASON = "Customers who pay late feel blamed. The owner of billing asked for softer words."
