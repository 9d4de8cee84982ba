"""The trace list's menus, columns and selection, and standing approvals, in a browser."""

import re

from playwright.sync_api import Page, expect

from tests.browser.conversation import CALCULATION, ask_and_wait


def test_two_runs_are_found_by_menu_sorted_selected_and_compared(page: Page):
    ask_and_wait(page, CALCULATION)
    ask_and_wait(page, "What is 5 + 5?")
    page.goto("/traces/")
    page.locator("[data-menu=date] summary").click()
    page.get_by_role("link", name="Last hour").click()
    expect(page.get_by_label("Filter runs")).to_have_value("after:-1h")
    page.locator("[data-menu=status] summary").click()
    page.get_by_role("link", name="completed", exact=True).click()
    expect(page.get_by_label("Filter runs")).to_have_value("after:-1h status:completed")

    page.get_by_role("columnheader", name="Tokens").get_by_role("link").click()
    expect(page.get_by_role("columnheader", name="Tokens")).to_have_attribute(
        "aria-sort", "descending"
    )
    expect(page).to_have_url(re.compile(r"sort=-tokens"))
    rows = page.locator(".runs tbody tr")
    expect(rows.first).to_have_css("height", "40px")
    compare = page.get_by_role("button", name="Compare")
    expect(compare).to_be_hidden()
    rows.nth(0).get_by_role("checkbox").check()
    rows.nth(1).get_by_role("checkbox").check()
    expect(page.locator("#picked-count")).to_have_text("2 runs selected")
    compare.click()
    expect(page).to_have_url(re.compile(r"/traces/\d+/compare/\d+/"))


def test_columns_are_chosen_and_exported(page: Page):
    ask_and_wait(page, CALCULATION)
    page.goto("/traces/")
    page.locator(".choose-columns summary").click()
    page.get_by_label("Tokens").uncheck()
    page.get_by_label("Model").check()
    page.locator(".choose-columns").get_by_role("button", name="Apply").click()
    expect(page.get_by_role("columnheader", name="Model")).to_be_visible()
    expect(page.get_by_role("columnheader", name="Tokens")).to_have_count(0)

    page.locator(".picked .export summary").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()

    text = download.value.path().read_text()
    assert text.splitlines()[0].startswith("run,status,question,agent,model")
    page.locator(".choose-columns summary").click()
    page.get_by_role("button", name="Reset columns").click()
    expect(page.get_by_role("columnheader", name="Tokens")).to_be_visible()


def test_the_list_fits_a_phone_in_japanese(page: Page, phone: Page):
    ask_and_wait(page, CALCULATION)
    phone.goto("/traces/")
    phone.context.add_cookies([{"name": "django_language", "value": "ja", "url": phone.url}])
    phone.goto("/traces/?sort=-tokens")

    expect(phone.locator(".runs tbody tr").first).to_be_visible()
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
