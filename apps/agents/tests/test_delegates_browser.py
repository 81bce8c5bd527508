"""The agent's form in a real browser: delegates are rows that can be filled, added and read again."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Page, sync_playwright

from apps.releases.change_models import ChangeRequest
from apps.releases.changes.selectors import patched_content
from apps.releases.models import ConfigItem
from apps.releases.pages.links import item_link
from apps.releases.services import item_save
from apps.tenants.scope import tenant_transaction
from conftest import World

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or ""
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PICTURES = os.environ.get("AGENTOPS_PICTURES", "")
"""A folder for pictures, when somebody wants to look at them."""


@pytest.fixture
def screen(live_server: Any, world: World, as_alice: Client, settings: Any) -> Iterator[Page]:
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = False
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        context = browser.new_context(
            base_url=live_server.url, locale="en", viewport={"width": 1400, "height": 1600}
        )
        name = settings.SESSION_COOKIE_NAME
        value = as_alice.cookies[name].value
        context.add_cookies([{"name": name, "value": value, "url": live_server.url}])
        page = context.new_page()
        page.set_default_timeout(10_000)
        yield page
        context.close()
        browser.close()


def test_agent_form__delegates__are_rows_one_can_fill(screen: Page, world: World) -> None:
    with tenant_transaction(world.acme):
        item_save(kind="prompt", slug="p", content={"system": "s"}, actor="t")
        item_save(kind="model_profile", slug="default", content={"provider": "scripted"}, actor="t")
        for slug in ("expert", "main"):
            content: dict[str, Any] = {"prompt": "p"}
            if slug == "main":
                content["delegates"] = [{"kind": "consult", "agent": "expert", "purpose": "Fines."}]
            item_save(kind="agent", slug=slug, content=content, actor="t")
        link = item_link("agent", ConfigItem.objects.get(kind="agent", slug="main").pk)
    screen.goto(link)
    screen.wait_for_load_state("networkidle")
    rows = screen.locator("[name^='content-delegates'][name$='agent']")
    assert rows.first.input_value() == "expert"
    screen.locator("[data-formset=content-delegates] summary").first.click()
    if PICTURES:
        rows.first.scroll_into_view_if_needed()
        screen.screenshot(path=f"{PICTURES}/delegates.png", full_page=True)
    kind = screen.locator("[name^='content-delegates'][name$='kind']").first
    kind.select_option("sub_conversation")
    screen.locator("[name^='content-delegates'][name$='role']").first.fill("fines")
    screen.locator("[name^='content-delegates'][name$='max_turns']").first.fill("4")
    screen.click("[name=_continue]")
    screen.wait_for_load_state("networkidle")
    assert "Saved in change request #1." in screen.inner_text("#main")
    with tenant_transaction(world.acme):
        changed = patched_content(ChangeRequest.objects.get(), "agent", "main")
    assert changed is not None
    [delegate] = changed["delegates"]
    assert (delegate["kind"], delegate["role"], delegate["max_turns"]) == (
        "sub_conversation", "fines", 4,
    )  # fmt: skip
    assert delegate["purpose"] == "Fines."
