"""The page with the installation's name, logo, color and banner in a browser."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_accessibility import READERS, faults

PAGE = "/admin/settings/branding/"


@pytest.fixture
def branded(page: Page):
    """A saved banner and color, which the other tests don't get to see."""
    page.goto(PAGE)
    page.get_by_label("Banner (English)").fill("Maintenance on Friday")
    page.get_by_label("Banner (Japanese)").fill("金曜日にメンテナンスを行います。")
    page.locator("#id_brand_color").fill("#ffff00")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("body > .site-banner")).to_be_visible()
    yield page
    page.goto(PAGE)
    page.locator(".settings-save [popovertarget]").click()
    page.locator("#branding-reset .primary").click()
    expect(page.locator("body > .site-banner")).to_have_count(0)


def test_the_preview_follows_the_form(page: Page):
    page.goto(PAGE)
    page.get_by_label("Name (English)").fill("Teahouse")
    page.locator("#id_brand_color").fill("#0f766e")

    preview = page.locator(".branding-preview[data-mode=light]")
    expect(preview).to_contain_text("Teahouse")
    expect(preview.locator(".send")).to_have_css("background-color", "rgb(15, 118, 110)")
    expect(page.locator("[data-color-for]")).to_have_value("#0f766e")
    expect(page.locator(".sidebar > header .brand")).to_contain_text("Ashiato")


@pytest.mark.parametrize("reader", READERS)
def test_a_banner_and_a_color_fit_every_screen(branded, visit, server, reader):
    page = visit(server, **READERS[reader])
    for address in ("/", PAGE):
        page.goto(address)
        expect(page.locator("body > .site-banner")).to_be_visible()
        assert faults(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.goto("/")
    assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")
    page.locator("body > .site-banner button").click()
    expect(page.locator("body > .site-banner")).to_have_count(0)
