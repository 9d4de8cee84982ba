"""Typing a message: Japanese input, touch keyboards, drafts, and what is announced."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import CALCULATION, LOOKUP, ask_and_wait, begin
from tests.browser.server import NAME, PASSWORD

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
    row.locator("[data-menu]").click()
    page.locator("[data-act=rename]").click()
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


LIVE_REGIONS = (
    "[aria-live]:not([aria-live=off]), [role=log], [role=status], [role=alert], output"
)


def drafts(page: Page) -> list[str]:
    stored = "Object.entries(localStorage).filter(([key]) => key.startsWith('ashiato-draft'))"
    return page.evaluate(f"{stored}.map(([, value]) => JSON.parse(value).text).filter(Boolean)")


def type_draft(page: Page, text: str) -> None:
    """Type once the page's script has focused the field, and wait until it is saved."""
    expect(page.locator("#text")).to_be_focused()
    page.locator("#text").fill(text)
    is_saved = "Object.values(localStorage).some(value => value.includes(JSON.stringify(text)))"
    page.wait_for_function(f"text => !text || {is_saved}", arg=text)


def test_a_touch_keyboard_has_enter_for_new_lines_and_opens_only_when_touched(phone: Page):
    phone.goto("/")
    text = phone.locator("#text")
    expect(text).not_to_be_focused()
    expect(text).to_have_attribute("enterkeyhint", "enter")
    phone.locator("[data-example]").first.tap()
    expect(text).not_to_have_value("")
    expect(text).not_to_be_focused()
    text.fill("What is")
    text.press("Enter")
    text.press_sequentially("6 * 7?")
    expect(text).to_have_value("What is\n6 * 7?")
    phone.locator(".send").tap()
    expect(phone).to_have_url(re.compile(r"/chat/\d+/$"))
    expect(phone.locator(".run")).to_have_attribute("data-status", "completed")
    expect(phone.locator("#text")).not_to_be_focused()
    # A narrow window with a mouse is no phone, and a keyboard at a tablet can still send.
    phone.locator("#text").fill("And 6 * 8?")
    phone.locator("#text").press("Control+Enter")
    expect(phone.locator("#text")).to_have_value("")


def test_enter_sends_in_a_narrow_window(visit, server):
    page = visit(server, viewport={"width": 390, "height": 844})
    page.goto("/")
    page.locator("#text").fill(CALCULATION)
    page.locator("#text").press("Enter")
    expect(page).to_have_url(re.compile(r"/chat/\d+/$"))


def test_a_draft_stays_with_its_chat_until_it_is_sent(page: Page):
    page.goto("/")
    type_draft(page, "Started on the new page")
    other = page.context.new_page()
    other.goto("/")
    other.locator("#text").fill(CALCULATION)
    other.locator("#text").press("Enter")
    expect(other.locator(".run")).to_have_attribute("data-status", "completed")
    chat = other.url

    type_draft(other, "Half a follow-up\nin two lines")
    other.close()
    page.goto(chat)  # not the draft of the new chat, but that of the closed tab
    expect(page.locator("#text")).to_have_value("Half a follow-up\nin two lines")
    page.reload()
    expect(page.locator("#text")).to_have_value("Half a follow-up\nin two lines")

    page.locator("#text").press("Enter")
    expect(page.locator("#text")).to_have_value("")
    assert drafts(page) == ["Started on the new page"]
    page.goto("/")
    expect(page.locator("#text")).to_have_value("Started on the new page")


def test_two_tabs_with_the_same_chat_keep_their_own_drafts(page: Page):
    page.goto("/")
    type_draft(page, "One")
    other = page.context.new_page()
    other.goto("/")
    expect(other.locator("#text")).to_have_value("One")  # it can't know that it is open
    type_draft(other, "Another")
    page.reload()
    expect(page.locator("#text")).to_have_value("One")
    other.reload()
    expect(other.locator("#text")).to_have_value("Another")
    type_draft(other, "")
    other.reload()
    page.reload()
    assert sorted(drafts(page)) == ["One"]


def test_signing_out_leaves_no_draft_behind(visit, server):
    page = visit(server, storage_state=None)
    page.goto("/login/")
    page.locator("[name=username]").fill(NAME)
    page.locator("[name=password]").fill(PASSWORD)
    page.locator("form.credentials button").click()
    type_draft(page, "My salary is")
    page.locator("#text").press("End")
    page.keyboard.type(" high")  # leaving the page saves what the last pause didn't

    # Elsewhere in the product, where no composer cleans up.
    page.goto("/traces/")
    assert drafts(page) == ["My salary is high"]
    page.locator(".account-button").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.locator("form.credentials")).to_be_visible()
    page.wait_for_function(
        "() => !Object.keys(localStorage).some(key => key.includes('draft'))"
    )


def test_an_expired_session_keeps_the_draft_for_its_user_only(visit, server, guest):
    page = visit(server, storage_state=None)
    page.goto("/login/")
    page.locator("[name=username]").fill(NAME)
    page.locator("[name=password]").fill(PASSWORD)
    page.locator("form.credentials button").click()
    type_draft(page, "Long thought out")
    page.context.clear_cookies()
    page.goto("/")
    expect(page.locator("form.credentials")).to_be_visible()
    assert drafts(page) == ["Long thought out"]
    page.context.add_cookies(guest["cookies"])
    page.goto("/")
    expect(page.locator("#text")).to_have_value("")
    assert drafts(page) == []


def test_one_line_announces_a_run_and_no_live_region_has_its_text(slow_page: Page):
    slow_page.clock.install()
    begin(slow_page, LOOKUP)
    announcer = slow_page.locator("#announcer")
    expect(announcer).to_have_text("The agent is working.")
    slow_page.clock.fast_forward(20_500)
    expect(announcer).to_have_text("The agent is still working.")
    around = "(run, regions) => Boolean(run.closest(regions) ?? run.querySelector(regions))"
    assert not slow_page.locator(".run").evaluate(f"run => ({around})(run, {LIVE_REGIONS!r})")
    slow_page.locator("button.stop").click()
    expect(announcer).to_have_text("The run stopped before it finished.")
