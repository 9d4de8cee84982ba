"""The dashboard in a browser: filtered, with the runs behind a figure, on a phone, too."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import ask_and_wait
from tests.browser.server import Server
from tests.browser.test_accessibility import faults

FITS = "document.documentElement.scrollWidth <= innerWidth"


def count_listed(page: Page) -> int:
    """Return how many runs the list has, as a user who selects all of them reads it."""
    text = page.locator(".pick-all").text_content() or ""
    return int("".join(filter(str.isdigit, text)))


@pytest.fixture(scope="module")
def own_server(start_server) -> Iterator[Server]:
    """A separate server: runs of deleted chats are counted, but no longer listed."""
    yield from start_server("dashboard", 0.003)


def test_a_figure_of_an_agent_leads_to_exactly_its_runs_and_a_phone_fits(visit, own_server):
    page = visit(own_server)
    ask_and_wait(page, "What is 2 + 2?")
    page.goto("/admin/dashboard/")
    expect(page.get_by_role("heading", name="Dashboard", level=1)).to_be_visible()
    assert faults(page) == []

    page.locator(".dashboard-filters [name=agent]").select_option("helper")
    expect(page.locator(".dashboard .chips")).to_contain_text("helper")
    number = page.locator("#figures-outcomes tbody td.num a").first
    count = int(number.inner_text().replace(",", ""))
    number.click()
    expect(page.locator(".runs tbody tr").first).to_be_visible()
    assert count_listed(page) == count > 0

    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/admin/dashboard/?by=time")
    expect(page.locator("#by")).to_be_visible()
    assert page.evaluate(FITS)
