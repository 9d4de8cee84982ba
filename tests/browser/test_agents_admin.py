"""The agent editor: from a template to its versions, by mouse and keyboard."""

import re
from uuid import uuid4

import pytest
from playwright.sync_api import FrameLocator, Page, expect

from tests.browser.agent_editor import AGENTS, open_tab, publish
from tests.browser.test_accessibility import faults


def pane(page: Page) -> FrameLocator:
    return page.frame_locator("[data-test-frame]")


def tool(page: Page, name: str):
    return page.locator("[data-tool]").filter(has=page.get_by_label(name, exact=True))


def ask_draft(page: Page, question: str) -> None:
    page.get_by_label("Message the draft").fill(question)
    page.keyboard.press("Enter")


def create(page: Page, starter: str = "assistant") -> str:
    """Publish an agent from a template; return its name."""
    page.goto(f"{AGENTS}add/?start={starter}")
    page.locator("[name=name]").fill(name := f"agent-{uuid4().hex[:8]}")
    publish(page)
    return name


@pytest.mark.journey
def test_an_agent_is_created_from_a_template_tested_published_and_restored(page: Page, watch):
    page.goto(AGENTS)
    page.get_by_role("link", name="Add agent").first.click()
    page.get_by_role("link", name="Data analyst").click()
    page.locator("[name=name]").fill(name := f"counter-{uuid4().hex[:8]}")
    open_tab(page, "Tools")
    tool(page, "calculator").get_by_role("button", name="Settings").click()
    tool(page, "calculator").get_by_role("radiogroup").get_by_text("always", exact=True).click()

    ask_draft(page, "What is 6 * 7?")
    pane(page).get_by_role("button", name="Approve").click()
    expect(pane(page).locator(".answer")).to_contain_text("42")
    expect(pane(page).get_by_role("button", name="Stop")).to_have_count(0)

    publish(page)
    page.locator("[name=instructions]").fill("Count aloud.")
    expect(page.locator("[data-state]")).to_have_text("Draft · unpublished changes")
    page.get_by_role("button", name="Review changes").click()
    expect(page.locator(".change ins").first).to_contain_text("Count aloud")
    page.keyboard.press("Escape")
    publish(page, "So that one hears it.")
    open_tab(page, "Versions")
    expect(page.locator(".versions tbody tr").first).to_contain_text("So that one hears it.")

    page.locator(".versions").get_by_role("button", name="Restore").click()
    expect(page.locator(".messagelist .success")).to_contain_text("Version 1 is in the draft")
    expect(page.locator("[name=instructions]")).to_have_value(re.compile("^Answer questions"))
    page.get_by_role("button", name="Discard").click()
    expect(page.locator("[name=instructions]")).to_have_value("Count aloud.")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("[name=instructions]")).to_have_value(re.compile("^Answer questions"))

    page.get_by_role("button", name="More").click()
    page.get_by_role("button", name="Duplicate").click()
    expect(page.locator("[name=name]")).to_have_value(f"{name}-copy")


def test_typed_instructions_survive_a_closed_tab(page: Page):
    create(page)
    address = page.url
    page.locator("[name=instructions]").press_sequentially("Never lost.")
    other = page.context.new_page()
    page.close(run_before_unload=True)  # before the text is saved by the clock

    for _attempt in range(20):  # the request outlives its page
        other.goto(address)
        if other.locator("[name=instructions]").input_value():
            break
    expect(other.locator("[name=instructions]")).to_have_value("Never lost.")
    expect(other.locator("[data-state]")).to_have_text("Draft · unpublished changes")
    expect(other.locator("[data-was-of=instructions]")).to_have_text("was empty")
    expect(other.get_by_role("tab", name="Prompt")).to_have_attribute("data-changed", "")


def test_the_draft_chat_has_several_turns_with_their_steps(page: Page):
    page.goto(f"{AGENTS}add/?start=assistant")
    ask_draft(page, "What is 6 * 7?")
    expect(pane(page).locator(".answer").first).to_contain_text("42")
    ask_draft(page, "Which product sold best this year?")
    expect(pane(page).locator(".trial-turn")).to_have_count(2)
    expect(pane(page).locator(".run").last).to_have_attribute("data-status", "completed")
    expect(pane(page).locator(".steps").last).to_contain_text("database")

    page.goto(page.get_by_role("link", name="Open trace").get_attribute("href"))
    expect(page.locator(".asked .tag").last).to_have_text("draft test run")


def test_errors_open_their_tab_and_are_marked_on_it(page: Page, watch):
    watch.expect("status of 422")
    page.goto(f"{AGENTS}add/?start=assistant")
    page.locator("[name=name]").fill("")
    open_tab(page, "Tools")
    tool(page, "search").get_by_role("button", name="Settings").click()
    tool(page, "search").get_by_label("timeout").fill("9999")
    open_tab(page, "Limits")
    ask_draft(page, "What is 6 * 7?")

    expect(page.locator("[data-errors-of=name]")).to_have_text("This field is required.")
    expect(page.locator("[name=name]")).to_be_focused()
    expect(page.get_by_role("tab", name="Tools")).to_have_attribute("data-wrong", "")
    open_tab(page, "Tools")
    expect(tool(page, "search").locator(".errorlist li")).to_contain_text("600")
    tool(page, "search").get_by_label("timeout").fill("60")
    expect(tool(page, "search").locator(".errorlist li")).to_have_count(0)


def test_a_draft_that_cannot_be_saved_says_so_and_is_saved_later(page: Page, watch):
    watch.expect("ERR_FAILED|ERR_INTERNET|Failed to load|drafts/save")
    create(page)
    page.route("**/drafts/save/", lambda route: route.abort())
    page.locator("[name=instructions]").fill("Offline.")
    expect(page.locator("[data-banner=failed]")).to_be_visible()

    page.unroute("**/drafts/save/")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("[data-banner=failed]")).to_be_hidden()
    page.reload()
    expect(page.locator("[name=instructions]")).to_have_value("Offline.")


def test_a_model_is_chosen_with_the_keyboard_and_a_schema_is_checked_at_its_position(
    page: Page,
):
    page.goto(f"{AGENTS}add/?start=assistant#model")
    page.get_by_role("combobox", name="Model", exact=True).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("[name=model]")).to_have_value("demo")

    page.get_by_role("button", name="List of items").click()
    expect(page.locator("[data-schema-fields]")).to_contain_text("items")
    page.locator("[name=output_schema]").fill('{"type": }')
    expect(page.locator("[data-schema-problem]")).to_contain_text("line 1, column 10")
    page.get_by_role("button", name="Go to the error").click()
    assert page.locator("[name=output_schema]").evaluate("field => field.selectionStart") == 9


def test_two_people_keep_what_both_typed(page: Page, watch):
    watch.expect("status of 409")
    create(page)
    other = page.context.new_page()
    other.goto(page.url)
    page.locator("[name=instructions]").fill("First.")
    page.keyboard.press("Control+s")
    expect(page.locator("[data-saved]")).to_contain_text("Draft saved")
    other.locator("[name=instructions]").fill("Second.")
    expect(other.locator("[data-banner=conflict]")).to_contain_text("Instructions")

    other.get_by_role("button", name="Use theirs").click()
    expect(other.locator("[name=instructions]")).to_have_value("First.")
    page.reload()
    page.locator("[name=description]").fill("Writes.")
    expect(page.locator("[data-change-count]")).to_have_text("2")


def test_the_editor_is_accessible(page: Page, watch):
    watch.expect("inline style|preload assets")  # of axe itself, where a sheet imports one
    page.goto(f"{AGENTS}1/change/")
    for tab in ("Prompt", "Model", "Tools", "Safety & privacy"):
        open_tab(page, tab)
        assert faults(page) == [], tab


def test_a_draft_run_is_stopped_in_its_pane(slow_page: Page):
    slow_page.goto(f"{AGENTS}add/?start=assistant")
    ask_draft(slow_page, "Which product sold best in each month?")
    pane(slow_page).get_by_role("button", name="Stop").click()

    expect(pane(slow_page).locator(".run")).to_have_attribute("data-status", "stopped")


@pytest.mark.parametrize("language", ["en-GB", "ja-JP"])
def test_the_agent_list_fits_a_desktop_screen(visit, server, language):
    page = visit(server, viewport={"width": 1280, "height": 800}, locale=language)
    page.goto(AGENTS)

    assert page.locator(".results").evaluate("e => e.scrollWidth <= e.clientWidth")


def test_the_agent_pages_work_on_a_phone(phone: Page):
    for place in ("", "add/", "add/?start=planner", "1/change/#tools", "1/history/"):
        phone.goto(AGENTS + place)
        assert phone.evaluate("() => document.documentElement.scrollWidth") <= 390, place

    phone.goto(f"{AGENTS}add/?start=assistant")
    phone.get_by_role("button", name="Test", exact=True).click()
    ask_draft(phone, "What is 6 * 7?")
    expect(pane(phone).locator(".answer")).to_contain_text("42")
    phone.get_by_role("button", name="Edit", exact=True).click()
    expect(phone.locator("[name=name]")).to_be_visible()
