"""Learning in a browser: turned on for an agent, used in an answer, turned off again."""

import re

from playwright.sync_api import Page, expect

from tests.browser.agent_editor import open_agent, publish
from tests.browser.conversation import ask, last_run
from tests.browser.test_accessibility import faults

FITS = "document.documentElement.scrollWidth <= innerWidth"
QUESTION = "What was the GMV of the harbor shop in 2024?"
LESSON = "GMV means revenue."


def learn(page: Page, is_on: bool) -> None:
    """Switch learning of an agent, and publish it."""
    open_agent(page, "reporter", "Safety & privacy")
    page.get_by_label("Learns from feedback").set_checked(is_on)
    publish(page)


def test_what_an_agent_learned_is_used_until_it_is_turned_off(page):
    learn(page, True)
    page.goto("/admin/agents/experience/")
    assert faults(page) == []
    page.locator(".addlink").click()
    page.locator("[name=agent]").select_option(label="reporter")
    page.locator("[name=kind]").select_option("correction")
    page.locator("[name=question]").fill(QUESTION)
    page.locator("[name=text]").fill(LESSON)
    assert faults(page) == []
    page.locator("[name=_save]").click()
    row = page.locator("#result_list tbody tr", has_text=LESSON)
    expect(row.locator(".badge")).to_have_text("Active")

    page.goto("/?agent=reporter")
    ask(page, QUESTION)
    expect(last_run(page)).to_contain_text("Used 1 lesson.")
    expect(last_run(page)).to_have_attribute("data-status", re.compile("completed|failed"))

    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/admin/agents/experience/")
    row.get_by_role("link", name=LESSON).click()
    assert page.evaluate(FITS)
    page.get_by_role("button", name="Turn off").click()
    expect(row.locator(".badge")).to_have_text("Off")
    learn(page, False)


def test_a_user_chooses_an_answer_style_and_stops_learning_on_a_phone(phone):
    phone.goto("/account/personalization/")
    assert faults(phone) == []
    assert phone.evaluate(FITS)
    phone.get_by_label("Length").select_option(index=1)
    phone.get_by_label("Learn from my ratings").uncheck()
    phone.locator(".profile-save button").click()
    expect(phone.locator(".flash-message")).to_be_visible()
    expect(phone.get_by_label("Learn from my ratings")).not_to_be_checked()

    phone.get_by_label("Learn from my ratings").check()
    phone.get_by_label("Length").select_option(index=0)
    phone.locator(".profile-save button").click()
    expect(phone.get_by_label("Learn from my ratings")).to_be_checked()
