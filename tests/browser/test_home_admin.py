"""The console's home in a browser."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import begin
from tests.browser.test_accessibility import READERS, faults


@pytest.mark.parametrize("reader", READERS)
def test_the_home_is_accessible_and_fits_the_screen(visit, server, reader):
    page = visit(server, **READERS[reader])
    page.goto("/admin/")
    expect(page.locator(".metric .mini-chart")).to_have_count(4)

    assert faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_figures_lead_to_their_runs_and_the_checklist_is_hidden(page: Page):
    run = begin(page, "What is 2 + 2?")
    expect(run).to_have_attribute("data-status", "completed")
    page.goto("/admin/?period=24h")
    expect(page.locator(".segmented [aria-current]")).to_have_text("24 h")
    page.get_by_role("button", name="Hide setup checklist").click()
    expect(page.locator("#setup-title")).to_have_count(0)
    page.get_by_role("button", name="Show setup checklist").click()
    expect(page.locator("#setup-title")).to_be_visible()

    page.locator("[data-metric=runs]").click()
    expect(page.get_by_role("link", name="What is 2 + 2?").first).to_be_visible()
