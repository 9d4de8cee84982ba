"""Problems in the console: resolved, opened again by a new occurrence, announced."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import ask_and_wait
from tests.browser.test_accessibility import faults

# Ended runs are grouped every minute.
GROUPED_MS = 80_000
QUESTION = "What is 10 / 0?"


def expect_soon(page: Page, address: str, text: str) -> None:
    """Reload until the page has this text."""
    for _ in range(GROUPED_MS // 1_000):
        page.goto(address)
        if page.get_by_text(text).count():
            return
        page.wait_for_timeout(1_000)
    expect(page.get_by_text(text).first).to_be_visible()


@pytest.mark.timeout(300)
def test_a_resolved_problem_opens_again_and_is_announced(server, visit):
    page = visit(server)
    page.goto("/admin/alerts/alertchannel/add/?kind=notification")
    page.locator("[name=name]").fill("Me")
    page.get_by_label("demo").check()
    page.locator("[name=_save]").click()
    page.goto("/admin/alerts/alertrule/add/")
    page.locator("[name=name]").fill("Returned")
    page.locator("[name=event]").select_option("problem.reopened")
    page.get_by_label("Me", exact=True).check()
    page.locator("[name=_save]").click()

    ask_and_wait(page, QUESTION)
    expect_soon(page, "/admin/problems/problem/", "Tool error · helper · calculator")
    assert faults(page) == []
    title = page.locator(".status-title").first.inner_text()
    page.locator(".status-title").first.click()
    assert faults(page) == []
    page.get_by_role("button", name="Resolve", exact=True).click()
    expect(page.locator(".problem-status")).to_contain_text("Resolved.")
    address = page.url

    ask_and_wait(page, QUESTION)
    expect_soon(page, address, "Opened again by a run of version")
    expect(page.get_by_role("button", name="Resolve", exact=True)).to_be_visible()
    expect_soon(page, "/notifications/", f"Problem opened again: {title}")
    assert faults(page) == []
