import sqlite3
from contextlib import closing, contextmanager

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import LOOKUP, ask, begin, html, last_run, tool_step
from tests.browser.stopped import letters

SLOW_ORDERS = """
ALTER TABLE orders RENAME TO kept;
CREATE VIEW orders AS SELECT a.* FROM kept AS a, kept AS b, kept AS c, kept AS d;
"""
QUICK_ORDERS = "DROP VIEW orders; ALTER TABLE kept RENAME TO orders;"


@pytest.mark.journey
def test_stop_ends_the_models_stream_and_keeps_its_text(slow_page: Page):
    run = begin(slow_page, LOOKUP)
    answer = run.locator(".answer")
    expect(answer).to_contain_text("Press Stop or Esc", timeout=30_000)

    stop_run(slow_page, slow_page.get_by_role("button", name="Stop").click)

    expect(answer).to_contain_text("Press Stop or Esc")
    expect(run.locator(".outcome")).to_have_attribute("data-status", "stopped")
    expect(run.locator(".step[data-live]")).to_have_count(0)
    watched = html(slow_page.locator("#messages"))
    slow_page.reload()
    assert html(slow_page.locator("#messages")) == watched


def test_escape_stops_the_run_and_the_next_question_is_answered(slow_page: Page):
    run = begin(slow_page, LOOKUP)
    expect(run.locator(".live-thought").first).not_to_be_empty()

    stop_run(slow_page, lambda: slow_page.locator("#text").press("Escape"))

    ask(slow_page, "What is 2 + 3?")
    expect(last_run(slow_page)).to_have_attribute("data-status", "completed")
    expect(last_run(slow_page).locator(".answer strong")).to_have_text("5")


def test_stop_cancels_a_tool(slow_page: Page, slow_server):
    with a_slow_shop(slow_server.sample):
        run = begin(slow_page, "How many orders are there?")
        expect(tool_step(run)).to_have_attribute("data-live", "")

        stop_run(slow_page, slow_page.get_by_role("button", name="Stop").click)

    expect(tool_step(run)).to_have_attribute("data-status", "cancelled")


def test_a_stopped_question_can_be_retried_with_a_click(slow_page: Page):
    run = begin(slow_page, "What is 2 + 3?")
    stop_run(slow_page, slow_page.get_by_role("button", name="Stop").click)

    run.get_by_role("button", name="Try again").click()

    expect(slow_page.locator(".fork-count")).to_contain_text("2/2")
    expect(slow_page.locator(".message")).to_have_count(1)
    expect(slow_page.locator(".question p").last).to_have_text("What is 2 + 3?")
    expect(last_run(slow_page)).to_have_attribute("data-status", "completed")


def test_retrying_keeps_the_current_draft(slow_page: Page):
    run = begin(slow_page, "What is 2 + 3?")
    stop_run(slow_page, slow_page.get_by_role("button", name="Stop").click)
    slow_page.locator("#text").fill("Other")

    run.get_by_role("button", name="Try again").click()

    expect(slow_page.locator(".fork-count")).to_contain_text("2/2")
    expect(slow_page.locator("#text")).to_have_value("Other")


@pytest.fixture(scope="module")
def stopped_letters(server) -> tuple[int, int]:
    return letters(server, is_stopped=True)


@pytest.mark.parametrize("folds_steps", [True, False])
def test_after_a_stop_every_call_with_effects_is_listed(
    visit, server, stopped_letters, folds_steps
):
    chat, _ = stopped_letters
    page = visit(server, folds_steps=folds_steps)
    page.goto(f"/chat/{chat}/")

    effects = last_run(page).get_by_role("region", name="Side effects")
    expect(effects).to_be_visible()
    for to, became in {
        "ada": "done",
        "ben": "may have completed",
        "eve": "not started",
    }.items():
        row = effects.locator("li", has_text=f"{to}@example.org")
        expect(row).to_contain_text("irreversible")
        expect(row.locator(".status")).to_have_text(became)
    steps = last_run(page).locator(".step[data-kind=tool]")
    expect(steps).to_have_count(3)
    if not folds_steps:
        expect(steps.last).to_be_visible()
        expect(steps.last).to_have_attribute("data-status", "unstarted")


def test_irreversible_effects_are_listed_when_steps_are_folded(visit, server):
    chat, _ = letters(server, is_stopped=False)
    page = visit(server, folds_steps=True)
    page.goto(f"/chat/{chat}/")
    effects = last_run(page).get_by_role("region", name="Side effects")

    expect(effects).to_contain_text("ada@example.org")
    expect(effects.locator(".status")).to_have_text("done")

    last_run(page).locator(".run-line").click()
    expect(effects).to_be_hidden()
    expect(last_run(page).locator(".step[data-kind=tool]")).to_be_visible()


def test_headings_of_the_side_effects_table_are_above_their_columns(
    page: Page, stopped_letters
):
    _, run = stopped_letters
    page.goto(f"/traces/{run}/")
    table = page.locator(".effects-table")

    heads = [cell.bounding_box() for cell in table.locator("thead th").all()]
    rows = table.locator("tbody tr").all()
    assert (len(heads), len(rows)) == (5, 3)
    for row in rows:
        for head, cell in zip(heads, row.locator("td").all(), strict=True):
            box = cell.bounding_box()
            assert box["y"] >= head["y"] + head["height"] - 1
            assert abs(box["x"] - head["x"]) < 1
    in_doubt = table.locator(".status[data-status=unknown]")
    expect(in_doubt).to_have_text("may have completed")
    assert ink(in_doubt) == ink(page.locator("body"), "--amber")


def ink(locator, variable: str = "") -> str:
    """Return an element's text color, or that of a CSS variable."""
    return locator.evaluate(
        """(element, variable) => {
          if (!variable) return getComputedStyle(element).color;
          const probe = element.appendChild(document.createElement("i"));
          probe.style.color = `var(${variable})`;
          const color = getComputedStyle(probe).color;
          probe.remove();
          return color;
        }""",
        variable,
    )


def stop_run(page: Page, stop) -> None:
    """Stop a run, and wait until the page says so; row F22 of the faults holds the seconds."""
    stop()
    expect(last_run(page)).to_have_attribute("data-status", "stopped")
    expect(page.get_by_role("button", name="Send")).to_be_visible()


@contextmanager
def a_slow_shop(path):
    """A shop in which counting the orders takes forever."""
    with closing(sqlite3.connect(path)) as shop:
        shop.executescript(SLOW_ORDERS)
        try:
            yield
        finally:
            shop.executescript(QUICK_ORDERS)
