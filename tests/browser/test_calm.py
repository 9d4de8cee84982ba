"""How much a page asks of its reader: the number of things that can be used at a glance."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import CALCULATION, ask_and_wait

pytestmark = pytest.mark.journey

# What can be used without scrolling or hovering, apart from the list of chats.
CONTROLS = """
() => [...document.querySelectorAll(
  "a[href], button, input, select, textarea, summary"
)].filter((control) => {
  const { top, left, width, height } = control.getBoundingClientRect();
  return control.checkVisibility({ opacityProperty: true, visibilityProperty: true })
    && width > 2 && height > 2 && top < innerHeight && left < innerWidth && top + height > 0
    && getComputedStyle(control).pointerEvents !== "none"
    && !control.closest(".sessions, .visually-hidden, [aria-hidden=true]");
}).map((control) => control.outerHTML.slice(0, 120))
"""


def controls(page: Page) -> list[str]:
    page.mouse.move(0, 0)
    return page.evaluate(CONTROLS)


def test_a_new_chat_has_few_controls(visit, server):
    page = visit(server, folds_steps=True, viewport={"width": 1280, "height": 860})
    page.goto("/")
    expect(page.locator("#agent-button")).to_be_visible()

    found = controls(page)
    assert len(found) <= 18, "\n".join(found)


def test_an_answer_has_few_controls(visit, server):
    page = visit(server, folds_steps=True, viewport={"width": 1280, "height": 860})
    ask_and_wait(page, CALCULATION)

    found = controls(page)
    assert len(found) <= 26, "\n".join(found)


def test_the_console_has_fourteen_entries(page: Page):
    page.goto("/admin/")
    expect(page.locator(".console-menu a")).to_have_count(14)
