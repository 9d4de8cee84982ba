"""The prompt library and the suggestions after / and @."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import CALCULATION, ask_and_wait, last_run
from tests.browser.test_accessibility import READERS, faults


def save_prompt(page: Page, title: str, text: str, name: str = "") -> None:
    page.goto("/prompts/new/")
    page.get_by_label("Title").fill(title)
    page.get_by_label("Name").fill(name)
    page.get_by_label("Text", exact=True).fill(text)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name=title)).to_be_visible()


@pytest.mark.journey
def test_a_prompt_is_saved_found_by_a_slash_filled_in_and_sent(page: Page):
    save_prompt(page, "Times", "What is {{number}} times {{factor: 6 | 7}}?", "times")
    page.goto("/")
    text = page.locator("#text")
    text.press_sequentially("/")
    expect(page.get_by_role("option", name="/new")).to_be_visible()
    text.press_sequentially("tim")
    expect(page.get_by_role("option")).to_have_count(1)
    text.press("Enter")
    dialog = page.get_by_role("dialog", name="Times")
    dialog.get_by_label("number").fill("6")
    page.keyboard.press("Escape")  # nothing typed is lost
    expect(dialog).to_be_hidden()
    expect(text).to_have_value("/tim")
    text.press_sequentially("es")
    text.press("Tab")
    expect(dialog.get_by_label("number")).to_have_value("6")
    page.mouse.click(5, 5)  # outside
    expect(dialog).to_be_visible()
    dialog.get_by_label("factor").select_option("7")
    dialog.get_by_role("button", name="Insert").click()
    expect(text).to_have_value("What is 6 times 7?")
    text.press("Enter")
    expect(page.locator(".run")).to_contain_text("42")


def test_the_library_edits_duplicates_deletes_and_restores(page: Page):
    save_prompt(page, "Thanks", "Thank {{name}}.", "thanks")
    row = page.locator(".prompt-row").filter(has_text="/thanks")
    row.get_by_role("button", name="Duplicate").first.click()
    page.get_by_label("Title").fill("Apology")
    page.get_by_label("Name").fill("sorry")
    page.get_by_role("button", name="Save").click()
    page.get_by_label("Search prompts").fill("sorr")
    expect(page.locator(".prompt-row")).to_have_count(1)
    page.locator(".prompt-row").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("“Apology” was deleted.")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("heading", name="Apology")).to_be_visible()
    page.locator(".prompt-row", has_text="/sorry").get_by_role("link", name="Use").click()
    page.get_by_role("dialog").get_by_label("name").fill("Ada")
    page.get_by_role("button", name="Insert").click()
    expect(page.locator("#text")).to_have_value("Thank Ada.")
    expect(page).to_have_url(re.compile(r"/$"))


def test_commands_of_the_page_are_listed_and_other_slashes_are_text(page: Page):
    ask_and_wait(page, CALCULATION)
    text = page.locator("#text")
    text.press_sequentially("/etc/hosts")
    expect(page.locator("#offers")).to_be_hidden()
    text.press("Enter")
    expect(page.locator(".question").last).to_contain_text("/etc/hosts")
    expect(last_run(page)).to_have_attribute("data-status", "completed")
    expect(page.locator(".composer .stop")).to_be_hidden()
    text.fill("")
    text.press_sequentially("/")
    expect(page.get_by_role("option", name="/stop")).to_have_count(0)  # nothing to stop
    text.press("Escape")
    expect(page.locator("#offers")).to_be_hidden()
    text.press_sequentially("new")
    text.press("Enter")
    expect(page).to_have_url(re.compile(r"/$"))
    expect(page.locator("#text")).to_have_value("")


def test_a_mentioned_agent_answers_once(page: Page, watch):
    watch.expect("status of 422")
    page.goto("/")
    agents = page.locator("select[name=agent] option").evaluate_all(
        "all => all.map(o => o.value)"
    )
    chosen = page.locator("select[name=agent]").input_value()
    other = next(name for name in agents if name != chosen)
    text = page.locator("#text")
    text.press_sequentially("@nobody-here hello")
    text.press("Enter")
    expect(page.locator("#notice")).to_contain_text("There's no agent “nobody-here”")
    expect(page.locator("#text")).to_have_value("@nobody-here hello")
    text.fill("")
    text.press_sequentially(f"＠{other[:3]}")
    page.get_by_role("option", name=f"@{other}").first.click()
    expect(text).to_have_value(f"@{other} ")
    expect(page.locator("#mention-note")).to_have_text(f"Asks {other} once.")
    text.press_sequentially(CALCULATION)
    text.press("Enter")
    expect(page).to_have_url(re.compile(r"/chat/\d+/$"))
    expect(page.locator(".question p")).to_have_text(CALCULATION)
    expect(page.locator(".run")).to_contain_text(other)
    expect(page.locator("select[name=agent]")).to_have_value(chosen)


def test_a_sent_message_is_saved_as_a_prompt(page: Page):
    ask_and_wait(page, CALCULATION)
    last_run(page).get_by_role("button", name="More").click()
    page.get_by_role("button", name="Save question as prompt").click()
    expect(page.get_by_label("Text", exact=True)).to_have_value(CALCULATION)
    page.get_by_label("Name").fill("percent")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".prompt-row", has_text="/percent")).to_be_visible()


@pytest.mark.parametrize("reader", READERS)
def test_prompts_and_suggestions_are_accessible(visit, server, reader):
    page = visit(server, **READERS[reader])
    page.goto("/prompts/new/")
    assert faults(page) == []
    page.locator("[name=title]").fill(f"Times {reader}")
    page.locator("[name=text]").fill("What is {{number}} times {{factor: 6 | 7}}?")
    page.locator(".prompt-buttons button").click()
    expect(page.locator(".prompt-row").first).to_be_visible()
    assert faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.goto("/")
    for typed in ("@", "/times-"):
        page.locator("#text").fill("")
        page.locator("#text").press_sequentially(typed)
        expect(page.locator("#offers")).to_be_visible()
        assert faults(page, "#offers") == [], typed
    page.locator("#offers li").first.click()
    expect(page.locator("#prompt-dialog")).to_be_visible()
    assert faults(page) == []
