import sqlite3
import time
from contextlib import closing, contextmanager

from playwright.sync_api import Page, expect

from tests.browser.conversation import LOOKUP, ask, begin, html, last_run, tool_step

WITHIN = 2
SLOW_ORDERS = """
ALTER TABLE orders RENAME TO kept;
CREATE VIEW orders AS SELECT a.* FROM kept AS a, kept AS b, kept AS c, kept AS d;
"""
QUICK_ORDERS = "DROP VIEW orders; ALTER TABLE kept RENAME TO orders;"


def test_stop_ends_the_models_stream_and_keeps_what_was_said(slow_page: Page):
    run = begin(slow_page, LOOKUP)
    answer = run.locator(".answer")
    expect(answer).to_contain_text("press Stop while", timeout=30_000)

    took = stopped(slow_page, slow_page.get_by_role("button", name="Stop").click)

    assert took < WITHIN
    expect(answer).to_contain_text("press Stop while")
    expect(run.locator(".outcome")).to_contain_text("You stopped this run")
    expect(run.locator(".step[data-live]")).to_have_count(0)
    watched = html(slow_page.locator("#messages"))
    slow_page.reload()
    assert html(slow_page.locator("#messages")) == watched


def test_escape_stops_too_and_the_next_question_is_answered(slow_page: Page):
    run = begin(slow_page, LOOKUP)
    expect(run.locator(".live-thought").first).not_to_be_empty()

    took = stopped(slow_page, lambda: slow_page.locator("#text").press("Escape"))

    assert took < WITHIN
    ask(slow_page, "What is 2 + 3?")
    expect(last_run(slow_page)).to_have_attribute("data-status", "completed")
    expect(last_run(slow_page).locator(".answer strong")).to_have_text("5")


def test_stop_reaches_into_a_tool(slow_page: Page, slow_server):
    with a_slow_shop(slow_server.sample):
        run = begin(slow_page, "How many orders are there?")
        expect(tool_step(run)).to_have_attribute("data-live", "")

        took = stopped(slow_page, slow_page.get_by_role("button", name="Stop").click)

    assert took < WITHIN
    expect(tool_step(run)).to_have_attribute("data-status", "cancelled")


def test_a_question_that_was_stopped_can_be_asked_again_with_a_click(slow_page: Page):
    run = begin(slow_page, "What is 2 + 3?")
    stopped(slow_page, slow_page.get_by_role("button", name="Stop").click)

    run.get_by_role("button", name="Ask again").click()

    expect(slow_page.locator(".message")).to_have_count(2)
    expect(slow_page.locator(".question p").last).to_have_text("What is 2 + 3?")
    expect(last_run(slow_page)).to_have_attribute("data-status", "completed")


def test_asking_again_does_not_throw_away_what_is_being_written(slow_page: Page):
    run = begin(slow_page, "What is 2 + 3?")
    stopped(slow_page, slow_page.get_by_role("button", name="Stop").click)
    slow_page.locator("#text").fill("Something else")

    run.get_by_role("button", name="Ask again").click()

    expect(slow_page.locator("#text")).to_have_value("Something else")
    expect(slow_page.locator(".message")).to_have_count(1)


def stopped(page: Page, stop) -> float:
    """The seconds from asking for it to seeing it."""
    began = time.monotonic()
    stop()
    expect(last_run(page)).to_have_attribute("data-status", "stopped")
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    return time.monotonic() - began


@contextmanager
def a_slow_shop(path):
    """A shop in which to count the orders takes longer than anybody waits."""
    with closing(sqlite3.connect(path)) as shop:
        shop.executescript(SLOW_ORDERS)
        try:
            yield
        finally:
            shop.executescript(QUICK_ORDERS)
