"""Caches in a browser: turned on for an agent, a reply used again, cleared."""

import re

from playwright.sync_api import Page, expect

from tests.browser.agent_editor import open_agent, publish
from tests.browser.conversation import (
    ask,
    last_run,
    open_trace,
)
from tests.browser.test_accessibility import faults

FITS = "document.documentElement.scrollWidth <= innerWidth"
QUESTION = "What is 17 times 23?"
# A cache that was just turned on starts when every process knows of it.
MAX_QUESTIONS = 20


def cache_replies(page: Page, mode: str) -> None:
    open_agent(page, "reporter", "Model")
    page.locator("[name=reply_cache]").select_option(mode)
    publish(page)


def ask_until_cached(page: Page) -> None:
    """Ask in new chats, because a question asked again in a chat wants another answer."""
    for _ in range(MAX_QUESTIONS):
        page.goto("/?agent=reporter")
        ask(page, QUESTION)
        expect(last_run(page)).to_have_attribute("data-status", "completed")
        if last_run(page).get_by_text("from cache").count():
            return
        page.wait_for_timeout(1_000)
    expect(last_run(page)).to_contain_text("from cache")


def test_a_cached_reply_is_used_again_and_the_step_says_so(page):
    cache_replies(page, "person")
    ask_until_cached(page)
    open_trace(last_run(page))
    step = page.locator(".run .step", has_text="from cache").first
    step.locator("summary").click()
    expect(page.locator("#panel .kind")).to_contain_text("from cache")
    expect(page.locator("#panel")).to_contain_text("From cache (no cost): saved")
    assert faults(page) == []

    page.goto("/admin/caches/")
    row = page.locator("tbody tr[data-source]", has_text="reporter")
    saved = row.locator("td[data-label=Entries]")
    expect(saved).to_have_text(re.compile(r"\d"))
    assert faults(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate(FITS)
    page.get_by_role("button", name="Clear the cache of reporter").click()
    expect(saved).to_have_text("—")
    assert faults(page) == []
    cache_replies(page, "")
