"""Typing a message: Japanese input, touch keyboards, drafts, and what is announced."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import ask_and_wait

# Safari ends the composition before it sends the Enter that ended it.
SAFARI = """field => {
    const fire = (Kind, type, more) =>
        field.dispatchEvent(new Kind(type, { bubbles: true, cancelable: true, ...more }));
    fire(CompositionEvent, "compositionstart", { data: "" });
    fire(CompositionEvent, "compositionupdate", { data: "日本" });
    field.value = "日本";
    fire(InputEvent, "input", { data: "日本", isComposing: true });
    fire(CompositionEvent, "compositionend", { data: "日本" });
    return fire(KeyboardEvent, "keydown", { key: "Enter", code: "Enter", keyCode: 229 });
}"""


@pytest.mark.journey
def test_the_enter_that_ends_a_composition_sends_nothing(page: Page):
    page.goto("/")
    text = page.locator("#text")
    text.focus()
    assert text.evaluate(SAFARI), "its default must not be prevented either"
    expect(text).to_have_value("日本")
    expect(page).to_have_url(re.compile(r"/$"))

    # Chrome's order: Enter while it is composed, through the browser's own input method.
    text.fill("")
    devtools = page.context.new_cdp_session(page)
    devtools.send(
        "Input.imeSetComposition", {"text": "にほん", "selectionStart": 3, "selectionEnd": 3}
    )
    enter = {"key": "Process", "code": "Enter", "windowsVirtualKeyCode": 229}
    devtools.send("Input.dispatchKeyEvent", {"type": "rawKeyDown", **enter})
    expect(page).to_have_url(re.compile(r"/$"))
    devtools.send("Input.insertText", {"text": "日本の首都は？"})
    expect(text).to_have_value("日本の首都は？")
    text.press("Enter")
    expect(page).to_have_url(re.compile(r"/chat/\d+/$"))


def test_keys_of_an_input_method_do_not_end_a_rename(page: Page):
    ask_and_wait(page, "What is 2 + 3?")
    row = page.locator("#sessions .session").first
    row.hover()
    row.locator("[data-rename]").click()
    name = row.locator(".rename input")
    for key in ["Escape", "Enter"]:
        name.evaluate(
            "(field, key) => field.dispatchEvent(new KeyboardEvent('keydown', "
            "{ key, bubbles: true, cancelable: true, keyCode: 229 }))",
            key,
        )
        expect(name).to_be_focused()
    name.press("Escape")
    expect(name).to_have_count(0)
