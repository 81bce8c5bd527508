"""How the console's pages look: at two widths, in both colours; pictures are kept for the eye."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from agentops.tests.e2e.conftest import Opened
from agentops.tests.e2e.steps import INVOICE, Conversation

pytestmark = pytest.mark.e2e
WIDTHS = {1280: 800, 390: 844}


def sideways(page: Page) -> int:
    root = "document.documentElement"
    return int(page.evaluate(f"{root}.scrollWidth - {root}.clientWidth"))


def brightness(page: Page) -> int:
    """Return the lightness of the page's ground, 0 to 255."""
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return max(int(part) for part in colour.strip("rgb()").split(","))


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_pages__at_both_widths_and_colours__fit_and_follow_the_system(
    open_as: Opened, tmp_path: Path, width: int, colours: str
):
    viewport = {"width": width, "height": WIDTHS[width]}
    page = open_as("alice", viewport=viewport, color_scheme=colours)
    chat = Conversation.begin(page, "billing_agent").as_customer("11999999999", "3000131180")
    chat.ask(INVOICE)
    chat.turns.first.get_by_role("link", name="Details of turn 1").click()
    expect(chat.details.get_by_role("heading", name="Turn 1")).to_be_visible()
    addresses = {"chat": page.url}
    page.screenshot(path=tmp_path / "details.png")
    assert sideways(page) == 0
    page.goto("/console/sessions/")
    page.locator("tbody a").first.click()
    addresses |= {"session": page.url, "home": "/console/", "sessions": "/console/sessions/"}
    addresses["absent"] = "/console/turns/00000000-0000-4000-8000-000000000000/"
    for name, address in addresses.items():
        page.goto(address)
        page.wait_for_load_state("networkidle")
        page.screenshot(path=tmp_path / f"{name}.png")
        assert sideways(page) == 0, name
        assert (brightness(page) > 127) == (colours == "light"), name


def test_details__on_a_narrow_screen__cover_the_chat_and_go_away(open_as: Opened):
    page = open_as("alice", viewport={"width": 390, "height": 844})
    chat = Conversation.begin(page, "billing_agent").as_customer("11999999999", "3000131180")
    chat.ask(INVOICE)
    expect(chat.details).to_be_hidden()
    page.get_by_role("link", name="Details of turn 1").click()
    expect(chat.details).to_be_visible()
    page.get_by_role("button", name="Close").click()
    expect(chat.details).to_be_hidden()
    expect(page.get_by_role("link", name="Details of turn 1")).to_be_focused()


def test_colours__toggled__stay_so_on_the_next_page(open_as: Opened):
    page = open_as("alice", color_scheme="light")
    assert brightness(page) > 127
    page.locator("summary", has_text="Your menu").click()
    page.get_by_role("button", name="Light or dark").click()
    assert brightness(page) < 127
    page.goto("/console/sessions/")
    assert brightness(page) < 127


def test_language__chosen_in_the_menu__is_that_of_every_page(open_as: Opened):
    page = open_as("alice")
    page.locator("summary", has_text="Your menu").click()
    page.get_by_role("button", name="Português Brasileiro").click()
    expect(page.get_by_role("heading", name="Fale com um agente")).to_be_visible()
    page.goto("/console/sessions/")
    expect(page.get_by_role("heading", name="Sessões")).to_be_visible()


def test_tenant__picked_in_the_menu__shows_that_tenants_agents(open_as: Opened):
    page = open_as("admin")
    tenants = page.locator("summary", has_text="Tenant:")
    expect(tenants).to_contain_text("Demo")
    tenants.click()
    page.get_by_role("button", name="Loja (demo)").click()
    expect(page.locator("summary", has_text="Tenant:")).to_contain_text("Loja (demo)")
    expect(page.locator("[data-agent=orders_agent]")).to_be_visible()
    assert page.locator("[data-agent=billing_agent]").count() == 0
