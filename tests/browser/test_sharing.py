"""A run is shared by a link, and read without an account."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import (
    ask_and_wait,
    number_in,
    open_trace,
)
from tests.browser.server import Server

MAIL = "ada@example.com"
QUESTION = f"What is 12.5% of 3480? My address is {MAIL}."
NOBODY = {"cookies": [], "origins": []}


@pytest.fixture(scope="module")
def run(browser, server, signed_in) -> int:
    """The number of a run that contains personal data."""
    context = browser.new_context(base_url=server.url, storage_state=signed_in(server))
    page = context.new_page()
    open_trace(ask_and_wait(page, QUESTION))
    expect(page).to_have_url(re.compile(r"/traces/\d+/"))
    number = number_in(page)
    context.close()
    return number


def make(page: Page, run: int, level: str = "person") -> str:
    page.goto(f"/traces/{run}/share/")
    page.locator(f"#share [value={level}]").check()
    page.locator("#share .primary").click()
    return page.locator("#share-url").inner_text()


def open_elsewhere(visit, server: Server, link: str, **options) -> Page:
    reader = visit(server, storage_state=NOBODY, **options)
    assert reader.goto(link).status == 200
    return reader


def test_a_visitor_without_an_account_reads_a_shared_run(visit, server, page, run):
    reader = open_elsewhere(visit, server, make(page, run))

    heading = reader.get_by_role("heading", level=1)
    expect(heading).to_have_text(QUESTION.replace(MAIL, "‹email›"))
    expect(reader.get_by_text("435").first).to_be_visible()
    expect(reader.locator(".shared-steps > li")).not_to_have_count(0)
    expect(reader.locator(".shared-steps details")).to_have_count(0)
    assert MAIL not in reader.content()


def test_a_link_with_a_higher_level_shows_more(visit, server, page, run):
    reader = open_elsewhere(visit, server, make(page, run, "auditor"))

    expect(reader.get_by_role("heading", level=1)).to_have_text(QUESTION)
    step = reader.locator(".shared-steps > li").filter(has_text="calculator").first
    step.locator("summary").click()
    expect(step.locator("pre").first).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("locale", ["en-GB", "ja"])
def test_a_shared_run_fits_a_phone_without_javascript(visit, server, page, run, theme, locale):
    narrow = {"viewport": {"width": 390, "height": 844}, "java_script_enabled": False}
    link = make(page, run, "reviewer")
    reader = open_elsewhere(visit, server, link, locale=locale, color_scheme=theme, **narrow)

    expect(reader.locator("html")).to_have_attribute("lang", locale[:2])
    for details in reader.locator(".shared-steps summary").all():
        details.click()
    expect(reader.locator(".shared-steps pre").first).to_be_visible()
    box = reader.locator("main").bounding_box()
    assert box["width"] <= 390


def test_a_link_is_created_and_revoked_on_the_run_page(page, run):
    page.goto(f"/traces/{run}/")
    page.locator(".run-menu > summary").click()
    page.locator("#share > summary").click()
    page.locator("#share .primary").click()
    expect(page.locator("#share-url")).to_contain_text("/shared/")
    before = page.locator("#share .links li").count()

    page.locator("#share .links button").first.click()

    expect(page.locator("#share .links li")).to_have_count(before - 1)
    expect(page).to_have_url(re.compile(rf"/traces/{run}/$"))


@pytest.mark.journey
def test_another_users_run_is_masked_until_a_reason_is_given(visit, server, page, guest):
    asker = visit(server, storage_state=guest)
    open_trace(ask_and_wait(asker, QUESTION))
    expect(asker.get_by_role("heading", level=1)).to_have_text(QUESTION)
    heading = page.get_by_role("heading", level=1)

    page.goto(f"/traces/{number_in(asker)}/")
    expect(heading).to_have_text(QUESTION.replace(MAIL, "‹email›"))
    assert MAIL not in page.content()
    page.get_by_text("Unmask").click()
    page.get_by_label("Why do you need to see the personal data?").fill("A complaint")
    page.keyboard.press("Enter")

    expect(heading).to_have_text(QUESTION)
    page.get_by_role("button", name="Mask again").click()
    expect(heading).to_contain_text("‹email›")
