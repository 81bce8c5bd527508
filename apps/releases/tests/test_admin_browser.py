"""The admin of configuration in a real browser, with its scripts, by keyboard."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, Page, sync_playwright

from apps.releases.change_models import ChangeRequest
from apps.releases.changes.selectors import patched_content
from apps.releases.changes.services import comment_add, patch_save, request_open
from apps.releases.models import ConfigItem, Revision
from apps.releases.pages.links import item_link, list_link, request_link
from apps.releases.portable.files import sources_read
from apps.releases.portable.native import native_parse
from apps.releases.portable.transfer import tenant_import
from apps.releases.services import item_save
from apps.tenants.scope import tenant_transaction
from conftest import World

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]

DEMO = Path(settings.BASE_DIR) / "examples" / "tenants" / "default.yaml"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or ""
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
# What a browser, a form or an editor could lose.
AWKWARD = "\n\n  {{ agent }} & <b>“é”</b>\t\n\n{% if intent %}a\\nb{% endif %}  \n\n"


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


def item(world: World, kind: str, slug: str) -> ConfigItem:
    with tenant_transaction(world.acme):
        found: ConfigItem = ConfigItem.objects.select_related("head").get(kind=kind, slug=slug)
        return found


def content(world: World, kind: str, slug: str) -> dict[str, Any]:
    """Return the item as the one change request has it; what is accepted is unchanged."""
    head = item(world, kind, slug).head
    assert head is not None
    assert head.number == 1
    with tenant_transaction(world.acme):
        found = patched_content(ChangeRequest.objects.get(), kind, slug)
    assert found is not None
    assert found != json.loads(head.content)
    return found


def opened(screen: Page, world: World, kind: str, slug: str) -> None:
    screen.goto(item_link(kind, item(world, kind, slug).pk))
    screen.wait_for_load_state("networkidle")


def saved(screen: Page) -> str:
    screen.click("[name=_continue]")
    screen.wait_for_load_state("networkidle")
    return screen.inner_text("#main")


def test_every_kind_of_the_demo__opened_and_saved__makes_no_revision(
    screen: Page, world: World
) -> None:
    with tenant_transaction(world.acme):
        tenant_import(portable=native_parse(sources_read(DEMO)), actor="user:demo")
        item_save(
            kind="prompt",
            slug="awkward",
            content={"system": AWKWARD, "response_style": AWKWARD},
            actor="a",
        )
        item_save(
            kind="parameter_mapping",
            slug="awkward",
            content={
                "map": {"a": AWKWARD},
                "defaults": {"n": 12345678901234567890, "f": 0.1, "t": True, "x": None, "l": [1]},
            },
            actor="a",
        )
        items = {found.kind: found.slug for found in ConfigItem.objects.order_by("-slug")}
        items |= {"prompt": "awkward", "parameter_mapping": "awkward"}
        before = Revision.objects.count()
    assert len(items) == 13
    for kind, slug in items.items():
        opened(screen, world, kind, slug)
        assert "Nothing changed, so nothing was saved." in saved(screen), kind
    with tenant_transaction(world.acme):
        assert Revision.objects.count() == before
        assert not ChangeRequest.objects.exists()


def test_rows__by_keyboard__are_added_moved_and_removed(screen: Page, world: World) -> None:
    with tenant_transaction(world.acme):
        item_save(kind="prompt", slug="p", content={"system": "x"}, actor="a")
        item_save(kind="agent", slug="a", content={"prompt": "p"}, actor="a")
        words = {"agent": "a", "keywords": ["one", "two"]}
        item_save(kind="intent", slug="i", content=words, actor="a")
    opened(screen, world, "intent", "i")
    screen.focus("[name=content-keywords] >> nth=1")
    screen.keyboard.press("Enter")
    screen.keyboard.type("three")
    # From the new row: its "move up" button, then "remove" of the row that is first.
    screen.keyboard.press("Tab")
    screen.keyboard.press("Enter")
    screen.focus("[name=content-keywords] >> nth=0")
    for _ in range(3):
        screen.keyboard.press("Tab")
    screen.keyboard.press("Enter")
    assert "Saved in change request #1." in saved(screen)
    assert content(world, "intent", "i")["keywords"] == ["three", "two"]


def test_rows__pasted_lines__become_one_row_each(screen: Page, world: World) -> None:
    with tenant_transaction(world.acme):
        item_save(kind="identity_key", slug="customer_key", content={}, actor="a")
    opened(screen, world, "identity_key", "customer_key")
    screen.focus("[name=content-sources]")
    screen.evaluate(
        """() => {
            const data = new DataTransfer();
            data.setData("text", "a.b\\nc.d\\n\\ne.f");
            document.activeElement.dispatchEvent(
                new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true}));
        }"""
    )
    saved(screen)
    assert content(world, "identity_key", "customer_key")["sources"] == ["a.b", "c.d", "e.f"]


def test_objects__by_keyboard__are_added_moved_and_removed(screen: Page, world: World) -> None:
    with tenant_transaction(world.acme):
        rails = {"input": [{"code": "MSK"}, {"code": "PINJ"}]}
        item_save(kind="rail_policy", slug="default", content=rails, actor="a")
    opened(screen, world, "rail_policy", "default")
    section = screen.locator("[data-formset=content-input]")
    section.locator("[data-add-form]").press("Enter")
    screen.keyboard.type("VLOOP")
    rows = section.locator("[data-form-row]")
    rows.nth(2).locator("button", has_text="arrow_upward").press("Enter")
    screen.keyboard.press("Enter")
    rows.nth(1).locator(".ao-row-tools button", has_text="close").last.press("Enter")
    assert "Saved in change request #1." in saved(screen)
    codes = [rule["code"] for rule in content(world, "rail_policy", "default")["input"]]
    assert codes == ["VLOOP", "PINJ"]


def test_code_editor__typed_into__sends_what_is_seen_and_lets_tab_leave(
    screen: Page, world: World
) -> None:
    with tenant_transaction(world.acme):
        item_save(kind="prompt", slug="p", content={"system": "Hello"}, actor="a")
    opened(screen, world, "prompt", "p")
    screen.click("label[for=id_content-system]")
    screen.keyboard.press("Control+End")
    screen.keyboard.type(" {{ agent }}")
    screen.keyboard.press("Tab")
    assert screen.evaluate("document.activeElement.id") == "id_content-response_style"
    assert "Saved in change request #1." in saved(screen)
    assert content(world, "prompt", "p")["system"] == "Hello {{ agent }}"


def test_references__of_many_items__are_found_by_typing(screen: Page, world: World) -> None:
    with tenant_transaction(world.acme):
        item_save(kind="tool_server", slug="s", content={"endpoint": "e"}, actor="a")
        for number in range(230):
            tool = {"mcp_server": "s"}
            item_save(kind="tool", slug=f"tool_{number:03}", content=tool, actor="a")
        item_save(kind="prompt", slug="p", content={"system": "x"}, actor="a")
        agent = {"prompt": "p", "tools": ["tool_200", "tool_007"]}
        item_save(kind="agent", slug="a", content=agent, actor="a")
    opened(screen, world, "agent", "a")
    field = screen.locator("#id_content-tools + .select2 .select2-search__field")
    field.focus()
    screen.keyboard.type("_123")
    screen.locator(".select2-results__option--highlighted", has_text="tool_123").wait_for()
    screen.keyboard.press("Enter")
    assert "Saved in change request #1." in saved(screen)
    assert content(world, "agent", "a")["tools"] == ["tool_200", "tool_007", "tool_123"]


def test_filters_of_a_list__by_keyboard__open(screen: Page, world: World) -> None:
    screen.goto(list_link("agent"))
    screen.wait_for_load_state("networkidle")
    toggle = screen.get_by_role("button", name="Filters")
    toggle.focus()
    screen.keyboard.press("Enter")
    screen.get_by_role("link", name="Archived").wait_for(state="visible")


def test_request__by_keyboard__is_commented_and_turned_down(screen: Page, world: World) -> None:
    with tenant_transaction(world.acme):
        item_save(kind="prompt", slug="p", content={"system": "x"}, actor="a", owner="Olga")
        request = request_open(actor="user:olga", title="Words", reason="Because")
        content = {"system": "y"}
        patch_save(actor="user:olga", kind="prompt", slug="p", content=content, request=request)
        ChangeRequest.objects.filter(pk=request.pk).update(status="in_review")
    screen.goto(request_link(request))
    screen.wait_for_load_state("networkidle")
    screen.locator("summary", has_text="Comment on this field").focus()
    screen.keyboard.press("Enter")
    screen.keyboard.press("Tab")
    screen.keyboard.type("Why y?")
    screen.keyboard.press("Tab")
    screen.keyboard.press("Enter")
    screen.locator(".ao-comment", has_text="Why y?").wait_for()
    screen.locator("#id_decision_comment").focus()
    screen.keyboard.type("Say it better")
    # Approve is off: the request is bound to nothing yet. Then: request changes.
    screen.keyboard.press("Tab")
    screen.keyboard.press("Enter")
    screen.wait_for_load_state("networkidle")
    assert "Recorded: Changes requested." in screen.inner_text("#main")
    with tenant_transaction(world.acme):
        assert ChangeRequest.objects.get().status == "draft"


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_of_a_request__at_any_width_and_colour__do_not_scroll_sideways(
    screen: Page, world: World, tmp_path: Path, width: int, colours: Any
) -> None:
    with tenant_transaction(world.acme):
        tenant_import(portable=native_parse(sources_read(DEMO)), actor="user:demo")
        slug = "p" * 120
        prompt = {"system": "Be kind.\n" + "x" * 300, "response_style": "short"}
        item_save(kind="prompt", slug=slug, content=prompt, actor="a")
        request = request_open(
            actor="user:olga", title="t" * 200, reason="r" * 300, declared_risk="weakening"
        )
        for kind, name, changes in (
            ("prompt", slug, {"system": "Be brief.\n" + "y" * 300, "response_style": "m" * 200}),
            ("intent", "billing_invoice_explanation", {"keywords": ["fatura", "n" * 90]}),
            ("rail_policy", "default", {"input": []}),
        ):
            head = ConfigItem.objects.get(kind=kind, slug=name).head
            assert head is not None
            content = {**json.loads(head.content), **changes}
            patch_save(actor="user:olga", kind=kind, slug=name, content=content, request=request)
        comment_add(
            request=request, actor="user:dora", text="w" * 200, kind="prompt", slug=slug,
            path="response_style",
        )  # fmt: skip
        theirs = {**prompt, "response_style": "t" * 200}
        item_save(kind="prompt", slug=slug, content=theirs, actor="user:dora")
    screen.emulate_media(color_scheme=colours)
    screen.set_viewport_size({"width": width, "height": 900})
    page = request_link(request)
    urls = {
        "queue": "/admin/releases/changerequest/?queue=all",
        "request": page,
        "rebase": page.replace("/change/", "/rebase/"),
        "facts": page.replace("/change/", "/facts/"),
        "item": item_link("prompt", item(world, "prompt", slug).pk) + f"?request={request.number}",
    }
    for name, url in urls.items():
        screen.goto(url)
        screen.wait_for_load_state("networkidle")
        screen.screenshot(path=tmp_path / f"{name}.png", full_page=True)
        wider = screen.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert wider == 0, url


@pytest.mark.parametrize("width", [1280, 390])
def test_pages__at_any_width__do_not_scroll_sideways(
    screen: Page, world: World, width: int
) -> None:
    with tenant_transaction(world.acme):
        tenant_import(portable=native_parse(sources_read(DEMO)), actor="user:demo")
        long = {"system": "x" * 300, "response_style": "y" * 300}
        item_save(kind="prompt", slug="p" * 120, content=long, actor="a")
    screen.set_viewport_size({"width": width, "height": 900})
    long_item = item_link("prompt", item(world, "prompt", "p" * 120).pk)
    urls = [
        "/admin/",
        list_link("prompt"),
        long_item,
        long_item.replace("/change/", "/diff/"),
        item_link("tool", item(world, "tool", "consultar_fatura").pk),
        "/admin/releases/changerequest/?queue=all",
        "/admin/releases/changerequest/add/",
        "/admin/releases/release/import/",
    ]
    for url in urls:
        screen.goto(url)
        screen.wait_for_load_state("networkidle")
        wider = screen.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert wider == 0, url
