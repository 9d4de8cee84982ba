"""The command palette, shortcuts and the profile, as users find them."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import CALCULATION, ask_and_wait
from tests.browser.test_accessibility import faults

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
COMPOSE = """field => {
    const enter = new KeyboardEvent("keydown", { key: "Enter", bubbles: true, keyCode: 229 });
    field.dispatchEvent(enter);
}"""


def options(page: Page):
    return page.locator("#palette [role=option]")


@pytest.mark.journey
def test_chats_agents_pages_and_actions_are_found_by_name(page: Page):
    ask_and_wait(page, CALCULATION)
    chat, title = page.url, page.locator("#session-title").inner_text()
    page.goto("/traces/")
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Search chats")
    expect(field).to_be_focused()
    assert faults(page) == []

    field.press_sequentially(title[:12])
    expect(options(page).filter(has_text=title).first).to_be_visible()
    field.fill("workfl")
    expect(options(page).first).to_have_attribute("aria-selected", "true")
    expect(options(page).first).to_contain_text("Workflows")
    field.evaluate(COMPOSE)
    expect(page).to_have_url(re.compile("/traces/"))
    field.press("Enter")
    expect(page).to_have_url(re.compile("/workflows/"))

    page.wait_for_load_state()  # before, no script notices the keys
    page.keyboard.press("Control+k")
    expect(page.get_by_role("group", name="Recent")).to_contain_text("Workflows")
    page.get_by_role("combobox", name="Search chats").fill("nothing at all like this")
    expect(page.locator("#palette").get_by_role("status")).to_contain_text("Nothing matches")
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()
    page.keyboard.press("Control+Shift+o")
    expect(page).to_have_url(re.compile(r"/$"))
    assert chat != page.url


def test_the_palette_opens_from_the_icon_on_a_phone_in_japanese(visit, server):
    phone = visit(server, locale="ja-JP", **PHONE)
    phone.goto("/admin/")
    phone.locator(".phone-bar [data-palette]").tap()
    phone.get_by_role("combobox").fill("せってい")  # not converted yet
    expect(options(phone).filter(has_text="プロフィール")).to_be_visible()
    phone.get_by_role("combobox").fill("ﾄﾚｰｽ")
    expect(options(phone).first).to_contain_text("トレース")
    assert faults(phone) == []
    options(phone).first.tap()

    expect(phone).to_have_url(re.compile("/traces/"))


def test_the_theme_is_the_same_in_the_chat_and_the_console(page: Page):
    page.goto("/admin/")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Search chats").fill("theme")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.goto("/")

    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.locator("[name=theme][value=dark]")).to_be_checked()


def test_single_keys_can_be_switched_off(page: Page):
    page.goto("/traces/")
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keyboard shortcuts")).to_be_visible()
    assert faults(page) == []
    page.keyboard.press("Escape")

    page.goto("/account/profile/")
    page.get_by_label("Single-key shortcuts").uncheck()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Profile saved.")).to_be_visible()
    page.goto("/traces/")
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keyboard shortcuts")).to_be_hidden()
    page.goto("/account/profile/")
    page.get_by_label("Single-key shortcuts").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Profile saved.")).to_be_visible()


@pytest.mark.parametrize("locale", ["en-US", "ja-JP"])
def test_every_page_is_reachable_on_a_phone(visit, server, locale):
    phone = visit(server, locale=locale, **PHONE)
    for start in ("/traces/", "/account/profile/", "/approvals/"):
        phone.goto(start)
        phone.locator(".phone-bar [popovertarget]").tap()
        expect(phone.locator('.sidebar footer a[href="/traces/"]')).to_be_visible()
        phone.locator(".account-button").tap()
        for there in ("/workflows/", "/admin/", "/account/profile/"):
            expect(phone.locator(f'.account-menu a[href="{there}"]')).to_be_visible()
        expect(phone.locator(".account-menu [data-theme-control]")).to_be_visible()
        wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        assert not phone.evaluate(wide), start


@pytest.mark.parametrize("locale", ["en-US", "ja-JP"])
def test_every_page_of_the_console_is_reachable_on_a_phone(visit, server, locale):
    phone = visit(server, locale=locale, **PHONE)
    phone.goto("/admin/")
    phone.locator(".phone-bar [popovertarget]").tap()
    side = phone.locator("#sidebar")

    expect(side.locator('[href="/admin/auth/user/"]')).to_be_visible()
    expect(side.locator(".console-menu a")).to_have_count(14)
    assert faults(phone) == []
    side.locator(".new-chat").tap()
    expect(phone.locator("#text")).to_be_visible()


@pytest.mark.parametrize("locale", ["en-US", "ja-JP"])
def test_the_sidebar_folds_to_icons_and_stays_so(visit, server, locale):
    page = visit(server, locale=locale, viewport={"width": 1024, "height": 768})
    page.goto("/traces/")
    expect(page.locator("#sessions")).to_be_visible()
    page.keyboard.press("Control+b")
    expect(page.locator("#sessions")).to_be_hidden()
    for there in ("/", "/library/", "/admin/"):
        page.goto(there)
        box = page.locator("#sidebar").bounding_box()
        assert box is not None
        assert box["width"] < 64, there
        assert faults(page) == []
    page.locator("[data-fold]").click()
    expect(
        page.locator(".console-menu").get_by_text(re.compile("Agents|エージェント"))
    ).to_be_visible()


def test_live_and_reloaded_times_are_in_the_zone_of_the_profile(page: Page):
    save_zone(page, "Asia/Tokyo")
    ask_and_wait(page, CALCULATION)
    time = page.locator(".question time").last
    expect(time).to_have_attribute("title", re.compile(r"\(Asia/Tokyo, UTC\+09:00\)$"))
    live = time.evaluate("time => time.outerHTML")
    page.reload()

    assert page.locator(".question time").last.evaluate("time => time.outerHTML") == live
    save_zone(page, "UTC")


def save_zone(page: Page, zone: str) -> None:
    page.goto("/account/profile/")
    page.get_by_label("Time zone").fill(zone)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Profile saved.")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_profile_page_is_accessible(visit, server, scheme):
    page = visit(server, color_scheme=scheme)
    page.goto("/account/profile/")

    assert faults(page) == []
