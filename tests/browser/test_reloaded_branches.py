"""A page that was watched while branches changed equals the reloaded one."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import ask, ask_and_wait, html, last_run

READERS = {
    "desktop": {},
    "phone": {"viewport": {"width": 390, "height": 844}, "locale": "ja-JP"},
}


def compare_reloaded(page: Page) -> None:
    """Compare the conversation with a page that loads it now."""
    expect(page.locator("#messages .run[data-live]")).to_have_count(0)
    expect(last_run(page)).to_have_attribute("data-status", "completed")
    watched = content(page)
    page.reload()
    assert content(page) == watched


def content(page: Page) -> list[str]:
    """Return the parts of the conversation, without what scripts add to a page they read."""
    text = html(page.locator("#messages"))
    text = re.sub(r' (?:data-sent|data-ready|data-seen|hidden)="[^"]*"', "", text)
    text = re.sub(r' class="htmx-[a-z]+"| htmx-[a-z]+(?=")', "", text)
    return re.sub(r">\s+<", ">\n<", text).strip().splitlines()


@pytest.mark.parametrize("reader", READERS)
def test_reloading_changes_nothing_after_each_change_of_branches(visit, server, reader):
    page = visit(server, **READERS[reader])
    ask_and_wait(page, "What is 2 + 3?")
    ask(page, "What is 6 * 7?")
    expect(page.locator('#messages .run[data-status="completed"]')).to_have_count(2)
    compare_reloaded(page)

    page.locator("#text").focus()
    page.keyboard.press("ArrowUp")
    page.locator("#edited-text").fill("What is 9 * 9?")
    page.keyboard.press("Control+Enter")
    question, answer = page.locator(".fork .pager"), page.locator(".answer-versions .pager")
    expect(question).to_contain_text("2/2")
    expect(answer).to_have_count(0)
    compare_reloaded(page)

    last_run(page).locator("[data-regenerate]").click()
    expect(question).to_contain_text("2/2")
    expect(answer).to_contain_text("2/2")
    compare_reloaded(page)

    answer.locator("[data-switch=previous]").click()
    expect(answer).to_contain_text("1/2")
    question.locator("[data-switch=previous]").click()
    expect(question).to_contain_text("1/2")
    expect(answer).to_have_count(0)
    expect(page.locator("#messages .question p").last).to_have_text("What is 6 * 7?")
    compare_reloaded(page)

    page.locator("#text").focus()
    page.keyboard.press("ArrowUp")
    page.locator("#edited-text").fill("What is 6 times 7?")
    page.keyboard.press("Control+s")
    expect(page.locator(".edit-mark")).to_be_visible()
    compare_reloaded(page)

    last = page.locator(".message").last
    last.hover()
    last.locator("a[hx-get$='/delete/']").click()
    page.locator("#delete-message button[value=pair]").click()
    expect(question).to_have_count(0)
    expect(answer).to_contain_text("/2")
    compare_reloaded(page)
