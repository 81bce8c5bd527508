"""How people of the demo bring a change live in the admin, in the tests' words."""

import re
from pathlib import Path

from playwright.sync_api import Page, expect

MAIN = "#main"
LOOKS = {1280: 800, 390: 844}


def edit(page: Page, kind: str, slug: str, field: str, value: str) -> None:
    """Change one field of an item; it lands in the person's draft."""
    page.goto(f"/admin/{kind}/by-slug/{slug}/")
    page.locator(f"[name={field}]").last.fill(value)
    save(page)


def save(page: Page) -> str:
    """Save the item that is open; return the number of the request it went to."""
    page.locator("[name=_continue]").click()
    told = page.locator(MAIN)
    expect(told).to_contain_text("Saved in change request")
    found = re.search(r"Saved in change request #(\d+)", told.inner_text())
    assert found is not None
    return found[1]


def request_open(page: Page, number: str) -> None:
    """Go to a request through the queue."""
    page.goto(f"/admin/releases/changerequest/?queue=all&q=%23{number}")
    page.get_by_role("link", name=re.compile(f"^#{number} ")).click()
    expect(page.get_by_role("heading", name="Discussion")).to_be_visible()


def submit(page: Page, number: str, *, title: str, reason: str, risk: str = "behaviour") -> None:
    """Say what a draft is about and ask for review."""
    request_open(page, number)
    page.get_by_role("link", name="Edit these facts").click()
    page.get_by_label("Title").fill(title)
    page.get_by_label("Reason").fill(reason)
    page.get_by_label("Declared risk").select_option(risk)
    page.get_by_label("Target environment").select_option("production")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Submit for review").click()
    expect(page.locator(MAIN)).to_contain_text("Submitted for review.")


def approve(page: Page, number: str) -> str:
    """Approve what the request's page shows; return the sha256 that was decided on."""
    request_open(page, number)
    sha256 = page.locator("input[name=sha256]").input_value()
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator(MAIN)).to_contain_text("Everybody who must has approved.")
    return sha256


def publish(page: Page, number: str) -> tuple[str, str]:
    """Publish an approved request into staging; return the release's number and sha256."""
    request_open(page, number)
    page.get_by_role("link", name="Publish or schedule").click()
    page.get_by_role("button", name="Publish to staging now").click()
    expect(page.locator(MAIN)).to_contain_text("Published as release")
    page.get_by_role("link", name=re.compile(r"^release #\d+$")).first.click()
    return release_shown(page)


def release_open(page: Page, number: str) -> tuple[str, str]:
    """Go to the page of a release; return its number and sha256."""
    page.goto("/admin/releases/release/")
    page.get_by_role("link", name=f"#{number}", exact=True).click()
    return release_shown(page)


def release_shown(page: Page) -> tuple[str, str]:
    """Return the number and sha256 of the release whose page is open."""
    facts = page.locator(".ao-facts").first
    expect(facts).to_contain_text("verified")
    number = facts.locator("dd").first.inner_text().removeprefix("#")
    sha256 = facts.locator("code").first.inner_text()
    assert number.isdigit()
    assert re.fullmatch("[0-9a-f]{64}", sha256)
    return number, sha256


def looked(page: Page, folder: Path, name: str) -> None:
    """Keep pictures of the open page at both widths, light and dark; nothing is wider than it."""
    for width, height in LOOKS.items():
        page.set_viewport_size({"width": width, "height": height})
        for colours in ("light", "dark"):
            page.emulate_media(color_scheme=colours)
            page.reload()
            page.wait_for_load_state("networkidle")
            page.screenshot(path=folder / f"{name}-{width}-{colours}.png", full_page=True)
            root = "document.documentElement"
            wider = page.evaluate(f"{root}.scrollWidth - {root}.clientWidth")
            assert wider == 0, (name, width)
    page.set_viewport_size({"width": 1280, "height": 800})


def running(page: Page, environment: str = "production") -> str:
    """Return the number of the release that an environment runs."""
    page.goto(f"/admin/releases/deployment/environment/{environment}/")
    name = page.locator(".ao-facts").first.locator("dd").first
    found = re.search(r"#(\d+)", name.inner_text())
    assert found is not None
    return found[1]


def bring(page: Page, number: str) -> tuple[str, str]:
    """Promote a release to production, or roll production back to it; return number and sha256."""
    shown = release_open(page, number)
    page.get_by_role("link", name="To production").click()
    act = page.get_by_role("button", name=re.compile("^(Promote to|Roll back) production$"))
    expect(act).to_be_visible()
    page.locator("[name=reason]").first.fill("as agreed")
    act.click()
    expect(page.locator(MAIN)).to_contain_text("runs in production")
    assert running(page) == number
    return shown
