"""Panels: the members' answers are collapsed below the merged answer."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import (
    last_run,
    open_trace,
)
from tests.browser.test_accessibility import faults
from tests.browser.test_agents import ask_agent, assert_equals_its_reload

FIGURE = "How many orders were refunded?"


def test_a_panel_shows_its_members_their_answers_and_differences(page: Page):
    run = ask_agent(page, "panel", FIGURE)
    expect(run).to_have_attribute("data-status", "completed")

    names = run.locator(".step[data-depth='2'] .speaker").all_inner_texts()
    assert {*names} == {"helper", "librarian"}
    expect(run.locator(".answer")).to_contain_text("(helper)")
    expect(run.locator(".answer")).to_contain_text("Differences")
    heads = run.get_by_role("region", name="Panel of 2 agents · Synthesis with attribution")
    names = heads.locator(".panel-member h4")
    expect(names).to_have_text(["helper differs", "librarian differs"])
    said = heads.locator(".panel-member").first
    expect(said.locator(".prose")).to_be_hidden()
    said.get_by_text("Answer from helper").click()
    expect(said.locator(".prose")).to_be_visible()
    expect(said.locator(".prose")).to_contain_text("refunded")
    said.get_by_text("Answer from helper").click()
    expect(heads).to_contain_text("The panel gave 2 different answers.")
    assert_equals_its_reload(page)


def test_agreeing_members_are_shown_as_agreeing(page: Page):
    run = ask_agent(page, "panel", "How do I approve a tool call?")
    expect(run).to_have_attribute("data-status", "completed")

    expect(run.locator(".panel-members")).to_contain_text("All members agree.")
    labels = ["agrees with librarian", "agrees with helper"]
    expect(run.locator(".panel-members .stance")).to_have_text(labels)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_panel_fits_a_phone_and_is_accessible(visit, server, scheme):
    page = visit(server, color_scheme=scheme, viewport={"width": 390, "height": 844})
    run = ask_agent(page, "panel", FIGURE)
    expect(run).to_have_attribute("data-status", "completed")

    assert faults(page) == []
    for folded in run.locator(".head summary").all():
        folded.click()
    cut = ".some(head => head.scrollHeight > head.clientHeight + 1)"
    assert not page.evaluate(f"[...document.querySelectorAll('.panel-member .prose')]{cut}")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    open_trace(last_run(page))
    expect(page.locator(".panel-members .panel-member")).to_have_count(2)
    assert faults(page) == []
