"""Messages in the browser: edit, versions, regenerate, quote, delete, listen."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import (
    ask,
    ask_and_wait,
    choose_from_menu,
    last_run,
    open_trace,
)
from tests.browser.test_accessibility import faults

PHONE = {"width": 390, "height": 800}
SPEECH = """
window.spoken = [];
window.SpeechSynthesisUtterance = class { constructor(text) { this.text = text; } };
Object.defineProperty(window, "speechSynthesis", {
  value: { speak: (words) => window.spoken.push([words.lang, words.text]), cancel() {} },
});
"""


@pytest.fixture
def talk(page: Page) -> Page:
    """A chat of two questions."""
    ask_and_wait(page, "What is 2 + 3?")
    ask(page, "What is 6 * 7?")
    expect(page.locator('#messages .run[data-status="completed"]')).to_have_count(2)
    return page


def questions(page: Page):
    return page.locator("#messages .question p")


def edit_last(page: Page, text: str, key: str) -> None:
    page.locator("#text").focus()
    page.keyboard.press("ArrowUp")
    expect(page.locator("#edited-text")).to_be_focused()
    page.locator("#edited-text").fill(text)
    page.keyboard.press(key)


@pytest.mark.journey
def test_an_edited_question_is_a_version_one_click_from_the_other(talk: Page):
    edit_last(talk, "What is 9 * 9?", "Control+Enter")

    expect(talk.locator(".fork-count")).to_contain_text("2/2")
    expect(talk.locator("#text")).to_be_focused()
    expect(questions(talk)).to_have_text(["What is 2 + 3?", "What is 9 * 9?"])
    expect(last_run(talk)).to_have_attribute("data-status", "completed")
    expect(talk.get_by_role("button", name="Next version")).to_be_disabled()

    talk.get_by_role("button", name="Previous version").click()
    expect(questions(talk)).to_have_text(["What is 2 + 3?", "What is 6 * 7?"])
    expect(talk.get_by_role("button", name="Next version")).to_be_focused()
    talk.reload()
    expect(questions(talk)).to_have_text(["What is 2 + 3?", "What is 6 * 7?"])
    talk.keyboard.press("Escape")
    talk.get_by_role("button", name="Next version").press("Enter")
    expect(questions(talk)).to_have_text(["What is 2 + 3?", "What is 9 * 9?"])


def test_a_corrected_text_is_marked_and_starts_no_run(talk: Page):
    edit_last(talk, "What is 6 times 7?", "Control+s")

    expect(talk.locator(".message-editor")).to_have_count(0)
    expect(questions(talk).last).to_have_text("What is 6 times 7?")
    expect(talk.locator(".edit-mark")).to_have_text("edited")
    expect(talk.locator(".run")).to_have_count(2)
    talk.reload()
    expect(talk.locator(".edit-mark")).to_have_text("edited")


def test_escape_closes_the_editor_and_keeps_the_text(talk: Page):
    edit_last(talk, "Something else", "Escape")

    expect(talk.locator(".message-editor")).to_have_count(0)
    expect(questions(talk).last).to_have_text("What is 6 * 7?")
    expect(talk.locator(".fork-count")).to_have_count(0)


def test_a_rejected_edit_stays_open_with_the_reason(talk: Page):
    edit_last(talk, "", "Control+Enter")
    talk.locator("#edited-text").fill("あ" * 199_000)
    talk.locator(".message-editor").get_by_role("button", name="Send").click()

    expect(talk.locator("#edit-problem")).to_contain_text("too long")
    expect(talk.locator("#edited-text")).to_be_editable()
    talk.locator("#edited-text").fill("What is 9 * 9?")
    talk.locator(".message-editor").get_by_role("button", name="Send").click()
    expect(talk.locator(".fork-count")).to_contain_text("2/2")


def test_an_answer_is_regenerated_quoted_and_copied(talk: Page):
    run = last_run(talk)
    choose_from_menu(run, "Quote in my message")
    expect(talk.locator("#text")).to_have_value(re.compile(r"^> .*42.*\n\n$"))
    talk.locator("#text").fill("")

    run.get_by_role("button", name="Regenerate", exact=True).click()

    expect(talk.locator(".fork-count")).to_contain_text("2/2")
    expect(questions(talk)).to_have_text(["What is 2 + 3?", "What is 6 * 7?"])
    expect(last_run(talk)).to_have_attribute("data-status", "completed")


def test_a_message_is_deleted_alone_or_with_all_after_it_and_restored(talk: Page):
    first = talk.locator(".message").first
    first.hover()
    first.get_by_role("link", name="Delete message").click()
    dialog = talk.get_by_role("dialog")
    expect(dialog).to_contain_text("Delete this and 1 later message")
    dialog.get_by_role("button", name="Delete only this message").click()
    expect(questions(talk)).to_have_text(["What is 6 * 7?"])
    talk.locator("#toast").get_by_role("button", name="Undo").click()
    expect(questions(talk)).to_have_text(["What is 2 + 3?", "What is 6 * 7?"])
    talk.reload()
    expect(questions(talk)).to_have_text(["What is 2 + 3?", "What is 6 * 7?"])


def test_an_answer_is_read_aloud_and_stopped(page: Page):
    page.add_init_script(SPEECH)
    run = ask_and_wait(page, "What is 6 * 7?")

    choose_from_menu(run, "Read aloud")
    run.get_by_role("button", name="More", exact=True).click()

    stop = run.get_by_role("button", name="Stop reading")
    expect(stop).to_have_attribute("aria-pressed", "true")
    [[language, text], *_] = page.evaluate("window.spoken")
    assert "42" in text
    assert language.startswith("en")
    stop.click()
    run.get_by_role("button", name="More", exact=True).click()
    expect(run.get_by_role("button", name="Read aloud")).to_be_visible()


def test_a_link_opens_the_branch_of_its_message(talk: Page):
    old = talk.locator(".message").last.get_attribute("id")
    edit_last(talk, "What is 9 * 9?", "Control+Enter")
    expect(talk.locator(".fork-count")).to_contain_text("2/2")
    address = talk.url.split("?")[0].split("#")[0]

    talk.goto("/traces/")
    talk.goto(f"{address}#{old}")

    expect(questions(talk)).to_have_text(["What is 2 + 3?", "What is 6 * 7?"])


def test_a_page_opened_by_a_link_stays_on_its_branch(talk: Page):
    old = talk.locator(".message").last.get_attribute("id").removeprefix("message-")
    edit_last(talk, "What is 9 * 9?", "Control+Enter")
    expect(talk.locator(".fork-count")).to_contain_text("2/2")
    address = talk.url.split("?")[0].split("#")[0]

    talk.goto(f"{address}?leaf={old}")
    expect(questions(talk)).to_have_text(["What is 2 + 3?", "What is 6 * 7?"])
    ask(talk, "What is 3 * 3?")

    expect(questions(talk).last).to_have_text("What is 3 * 3?")
    expect(last_run(talk)).to_have_attribute("data-status", "completed")
    talk.goto(address)
    expect(questions(talk)).to_have_text(["What is 2 + 3?", "What is 6 * 7?", "What is 3 * 3?"])


def test_the_message_actions_are_accessible(talk: Page):
    edit_last(talk, "What is 9 * 9?", "Control+Enter")
    expect(talk.locator(".fork-count")).to_contain_text("2/2")
    expect(last_run(talk)).to_have_attribute("data-status", "completed")
    assert faults(talk) == []

    talk.keyboard.press("ArrowUp")
    talk.locator(".message").last.hover()
    talk.get_by_role("link", name="Delete message").last.click()
    expect(talk.get_by_role("dialog")).to_be_visible()
    assert faults(talk) == []


def test_a_runs_page_compares_two_versions_with_a_click(talk: Page):
    edit_last(talk, "What is 9 * 9?", "Control+Enter")
    expect(talk.locator(".fork-count")).to_contain_text("2/2")
    expect(last_run(talk)).to_have_attribute("data-status", "completed")

    open_trace(last_run(talk))
    expect(talk.locator(".turns li")).to_have_count(3)
    assert faults(talk) == []
    talk.locator(".turns").get_by_role("link", name="Compare").click()

    expect(talk).to_have_url(re.compile(r"/traces/\d+/compare/\d+/$"))


def test_the_message_actions_work_on_a_phone(talk: Page):
    talk.set_viewport_size(PHONE)
    talk.locator(".message").last.get_by_role("link", name="Edit message").click()
    talk.locator("#edited-text").fill("What is 9 * 9?")
    talk.locator(".message-editor").get_by_role("button", name="Send").click()

    expect(talk.get_by_role("button", name="Previous version")).to_be_visible()
    assert talk.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
