"""Who approves what and duties in a real browser: by keyboard, on a desk and on a phone."""

import os
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Browser, Page, sync_playwright

from apps.governance.approval import POLICY, raci_matrix
from apps.governance.duty_services import duty_delegate, duty_grant
from apps.tenants.models import Role, User
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import membership_grant
from conftest import World

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or ""
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
# A folder for pictures, when somebody wants to look at them.
PICTURES = os.environ.get("AGENTOPS_PICTURES", "")
MATRIX = "admin:governance_racientry_changelist"
DUTIES = "admin:governance_dutyassignment_changelist"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def screen(
    chromium: Browser, live_server: Any, world: World, as_alice: Client, settings: Any
) -> Iterator[Page]:
    """A page in which Alice is signed in; an error of a script fails the test."""
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = False
    settings.CHANGE_LISTENERS = []
    context = chromium.new_context(base_url=live_server.url, locale="en")
    name = settings.SESSION_COOKIE_NAME
    value = as_alice.cookies[name].value
    context.add_cookies([{"name": name, "value": value, "url": live_server.url}])
    page = context.new_page()
    page.set_default_timeout(10_000)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield page
    context.close()
    assert problems == []


@pytest.fixture
def people(world: World) -> World:
    """Ana approves and is away: Bob stands in for her, and was granted operations."""
    with tenant_transaction(world.acme):
        ana = User.objects.create_user("ana")
        membership_grant(user=ana, role=Role.APPROVER, actor="world")
        duty_grant(user=world.bob, duty="sre", actor="user:alice", reason="nights")
        until = timezone.now() + timedelta(days=3)
        duty_delegate(
            user=world.bob, duty="domain", actor="user:ana", expires_at=until, reason="holiday"
        )
    return world


def picture(page: Page, name: str) -> None:
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)


def tab_to(page: Page, text: str) -> None:
    """Press Tab until what has the focus says ``text``."""
    for _step in range(120):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == text:
            return
    raise AssertionError(f"the keyboard does not reach “{text}”")


@pytest.mark.parametrize("width", [1280, 390])
def test_pages__at_this_width__are_read_without_scrolling_sideways(screen, people, width):
    screen.set_viewport_size({"width": width, "height": 900})
    pages = [
        reverse(MATRIX),
        reverse("admin:governance_raci_row", args=["model_profile_change"]),
        reverse("admin:governance_quorum", args=["weakening"]),
        reverse(DUTIES),
        reverse("admin:governance_dutyassignment_add"),
        reverse("admin:governance_duty_delegate"),
    ]
    for number, url in enumerate(pages):
        screen.goto(url)
        picture(screen, f"governance-{number}-{width}")
        beyond = screen.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert beyond <= 0, url


def test_row__by_keyboard_alone__is_changed_and_its_problem_is_gone(screen, people):
    screen.goto(reverse(MATRIX))
    assert screen.get_by_text("has nobody accountable").is_visible()
    tab_to(screen, "Change the row")
    screen.keyboard.press("Enter")
    screen.locator("#id_domain").focus()
    screen.keyboard.press("A")
    tab_to(screen, "Save")
    screen.keyboard.press("Enter")
    screen.wait_for_url(f"**{reverse(MATRIX)}")
    assert screen.get_by_text("has nobody accountable").count() == 0
    with tenant_transaction(people.acme):
        assert raci_matrix()["model_profile_change"]["domain"] == "A"


def test_delegation__typed_on_a_phone__is_held(screen, people):
    screen.set_viewport_size({"width": 390, "height": 800})
    screen.goto(reverse(DUTIES))
    screen.get_by_role("link", name="Delegate a duty").click()
    screen.locator("#id_user").select_option("bob")
    screen.locator("#id_duty").select_option("security")
    until = timezone.localtime(timezone.now() + timedelta(days=2))
    screen.locator("#id_expires_at").fill(f"{until:%Y-%m-%dT%H:%M}")
    screen.locator("#id_reason").fill("away until Thursday")
    screen.get_by_role("button", name="Save").click()
    screen.wait_for_url(f"**{reverse(DUTIES)}")
    assert screen.get_by_text("away until Thursday").is_visible()
    with tenant_transaction(people.acme):
        assert ("security", "user:alice") in [
            (held.duty, held.on_behalf_of) for held in POLICY.duties_of("user:bob")
        ]
