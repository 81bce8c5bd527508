"""The pages of releases and environments in a real browser: they fit, and the acts work by hand."""

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect, sync_playwright

from apps.releases.authority import setting_up
from apps.releases.change_models import ChangeRequest, FreezeWindow
from apps.releases.environments.services import binding_propose, canary_start
from apps.releases.models import Release
from apps.releases.services import item_archive, item_save
from apps.releases.tests import test_environment_pages as pages
from apps.releases.tests.conftest import item
from apps.releases.tests.test_environment_pages import acme as acme
from apps.releases.tests.test_environment_pages import approved as approved
from apps.tenants.scope import tenant_transaction
from conftest import World

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True), pytest.mark.governed]
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or ""
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
LOOKS = {1280: 800, 390: 844}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def opened(chromium: Browser, live_server: Any, acme: World, settings: Any) -> Iterator[Any]:
    """Return a function that opens a page in which somebody is signed in."""
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = False
    contexts, problems = [], []

    def open_as(name: str, **options: Any) -> Page:
        context = chromium.new_context(base_url=live_server.url, locale="en", **options)
        contexts.append(context)
        cookie = settings.SESSION_COOKIE_NAME
        value = pages.signed_in(name).cookies[cookie].value
        context.add_cookies([{"name": cookie, "value": value, "url": live_server.url}])
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: problems.append(str(error)))
        return page

    yield open_as
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture
def busy(acme: World, approved: ChangeRequest, settings: Any) -> World:
    """Production with a canary, a window, a proposal and talks; a release that weakens and removes."""
    settings.OPEN_CONVERSATIONS = f"{pages.__name__}.talking"
    settings.TURN_RATES = f"{pages.__name__}.rates"
    with tenant_transaction(acme.acme), setting_up("a test's world"):
        for kind, slug in (("intent", "bill_explain"), ("agent", "billing_agent")):
            item_archive(item=item(kind, slug), actor="a")
        item_save(kind="rail_policy", slug="default", content={"input": []}, actor="a")
        pages.publish("Fourth")
        canary_start(
            release=Release.objects.get(number=2),
            environment="production",
            share=10,
            actor="user:otto",
        )
        proposal: dict[str, Any] = {**pages.PROPOSAL, "environment": "production"}
        binding_propose(**proposal, actor="user:otto")
        FreezeWindow.objects.create(
            environment="production",
            starts_at=timezone.now() - timedelta(hours=1),
            ends_at=timezone.now() + timedelta(hours=2),
            reason="Black Friday: nothing moves while the shops are full",
            created_by="user:alice",
        )
    return acme


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", LOOKS)
def test_pages__at_both_widths_and_colours__fit(
    busy: World, opened: Any, tmp_path: Path, width: int, colours: str
) -> None:
    viewport = {"width": width, "height": LOOKS[width]}
    page = opened("alice", viewport=viewport, color_scheme=colours)
    with tenant_transaction(busy.acme):
        tool = item("tool", "get_bill").pk
        prompt = item("prompt", "billing").pk
    moment = timezone.now() + timedelta(seconds=2)
    now = f"?at={moment:%Y-%m-%dT%H:%M:%S}&zone=UTC"
    going = f"{pages.going(busy, 4)}?environment=staging"
    addresses = {
        "releases": reverse("admin:releases_release_changelist"),
        "release": reverse("admin:releases_release_change", args=[pages.release(busy, 2).pk]),
        "weakening": reverse("admin:releases_release_change", args=[pages.release(busy, 4).pk]),
        "environment": f"{pages.page()}?what=address&name=new",
        "staging": pages.page("staging"),
        "environments": reverse("admin:releases_deployment_changelist"),
        "environment-history": reverse("admin:releases_environment_history", args=["production"])
        + now,
        "going": going,
        "as-of": reverse("admin:releases_as_of") + now,
        "item-as-of": reverse("admin:agents_prompt_as_of", args=[prompt]) + now,
        "reach": reverse("admin:tools_tool_reach", args=[tool]),
    }
    for name, address in addresses.items():
        page.goto(address)
        page.wait_for_load_state("networkidle")
        for details in page.locator("#content-main details").all():
            details.evaluate("it => it.open = true")
        page.screenshot(path=tmp_path / f"{name}.png", full_page=True)
        root = "document.documentElement"
        assert page.evaluate(f"{root}.scrollWidth - {root}.clientWidth") == 0, name


def test_otto__promotes_starts_a_canary_and_rolls_back__by_hand(acme: World, opened: Any) -> None:
    page = opened("otto")
    page.goto(pages.page())
    page.get_by_role("link", name="Promote #2 from staging").click()
    page.get_by_label("Open conversations").select_option("pin")
    page.get_by_role("button", name="Promote to production").click()
    expect(page.locator("#content-main .ao-facts").first).to_contain_text("#2")
    page.get_by_role("link", name="Roll back to this #1").click()
    page.get_by_label("Reason").fill("Wrong prices")
    page.get_by_role("button", name="Roll back production").click()
    expect(page.locator("#content-main .ao-facts").first).to_contain_text("#1")
    page.get_by_role("link", name="Promote #2 from staging").click()
    page.get_by_text("A share of the conversations first (canary)").click()
    form = page.locator("form", has=page.get_by_role("button", name="Start the canary"))
    form.get_by_label("Share in per cent").fill("25")
    form.get_by_role("button", name="Start the canary").click()
    expect(page.locator("#canary")).to_contain_text("25 % of the conversations")
    assert pages.running(acme) == 1
    page.get_by_text("Change, finish or stop it").click()
    stop = page.locator("form", has=page.get_by_role("button", name="Stop the canary"))
    stop.get_by_label("Reason").fill("Odd answers")
    stop.get_by_role("button", name="Stop the canary").click()
    expect(page.locator("#canary")).to_have_count(0)
    expect(page.locator("#content-main")).to_contain_text("Odd answers")
