"""Setting up an agent, from a template to its versions, by mouse and keyboard."""

import re
from uuid import uuid4

import pytest
from playwright.sync_api import FrameLocator, Page, expect

AGENTS = "/admin/agents/agent/"


def pane(page: Page) -> FrameLocator:
    return page.frame_locator("#try iframe")


def tool(page: Page, name: str):
    return page.locator(".agent-tools tr").filter(has=page.get_by_label(name, exact=True))


@pytest.mark.journey
def test_an_agent_is_created_from_a_template_tested_saved_and_restored(page: Page, watch):
    page.goto(AGENTS)
    page.get_by_role("link", name="Add agent").click()
    page.get_by_role("link", name="Data analyst").click()
    page.locator("[name=name]").fill(name := f"counter-{uuid4().hex[:8]}")
    tool(page, "calculator").get_by_label("requires approval").select_option("always")

    page.get_by_label("Message:").fill("What is 6 * 7?")
    page.get_by_role("button", name="Run", exact=True).click()
    pane(page).get_by_role("button", name="Approve").click()
    expect(pane(page).locator(".answer")).to_contain_text("42")
    expect(pane(page).get_by_role("button", name="Stop")).to_have_count(0)

    page.get_by_role("button", name="Save and continue editing").click()
    page.locator("[name=instructions]").fill("Count aloud.")
    page.get_by_label("Change note").fill("So that one hears it.")
    page.get_by_role("button", name="Save and continue editing").click()
    page.get_by_role("link", name="Versions (2)").click()
    expect(page.locator(".agents-versions tbody tr").first).to_contain_text(
        "So that one hears it."
    )

    page.get_by_role("link", name="Version 2").click()
    expect(page.locator(".agents-change ins")).to_have_text("Count aloud")
    page.go_back()
    page.get_by_role("link", name="Version 1", exact=True).click()
    page.get_by_role("button", name="Restore this version").click()
    expect(page.locator(".messagelist .success")).to_have_text("Version 1 is active again.")
    expect(page.locator(".agents-versions tbody tr")).to_have_count(3)

    page.locator(".breadcrumbs").get_by_role("link", name=name).click()
    expect(page.locator("[name=instructions]")).to_have_value(re.compile("^Answer questions"))
    page.get_by_role("button", name="Duplicate").click()
    expect(page.locator("[name=name]")).to_have_value(f"{name}-copy")
    asks = tool(page, "calculator").get_by_label("requires approval")
    expect(asks).to_have_value("always")


def test_an_invalid_draft_has_errors_at_its_fields(page: Page, watch):
    watch.expect("status of 422")
    page.goto(f"{AGENTS}add/?start=assistant")
    page.locator("[name=name]").fill("")
    tool(page, "search").get_by_label("timeout").fill("9999")
    page.get_by_label("Message:").fill("What is 6 * 7?")
    page.get_by_role("button", name="Run", exact=True).click()

    expect(page.locator(".field-name .errorlist")).to_have_text("This field is required.")
    expect(tool(page, "search").locator(".errorlist")).to_contain_text("600")
    expect(page.locator("[name=name]")).to_be_focused()
    expect(page.locator("#try iframe")).to_be_hidden()

    page.locator("[name=name]").fill("reader")
    tool(page, "search").get_by_label("timeout").fill("60")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(pane(page).locator(".answer")).to_contain_text("42")
    expect(page.locator(".errorlist")).to_have_count(0)


def test_a_draft_is_tested_with_the_keyboard(page: Page):
    page.goto(f"{AGENTS}add/?start=assistant")
    page.get_by_label("calculator", exact=True).focus()
    page.keyboard.press("Space")
    expect(page.get_by_label("calculator", exact=True)).not_to_be_checked()
    page.keyboard.press("Space")
    page.get_by_label("Message:").focus()
    page.keyboard.type("What is 6 * 7?")
    page.keyboard.press("Control+Enter")

    expect(pane(page).locator(".answer")).to_contain_text("42")
    link = page.get_by_role("link", name="Open trace")
    page.goto(link.get_attribute("href"))
    expect(page.locator(".asked .tag")).to_have_text("draft test run")


def test_a_draft_run_is_stopped_in_its_pane(slow_page: Page):
    slow_page.goto(f"{AGENTS}add/?start=assistant")
    slow_page.get_by_label("Message:").fill("Which product sold best in each month?")
    slow_page.get_by_role("button", name="Run", exact=True).click()
    pane(slow_page).get_by_role("button", name="Stop").click()

    expect(pane(slow_page).locator(".run")).to_have_attribute("data-status", "stopped")


@pytest.mark.parametrize("language", ["en-GB", "ja-JP"])
def test_the_agent_list_fits_a_desktop_screen(visit, server, language):
    page = visit(server, viewport={"width": 1280, "height": 800}, locale=language)
    page.goto(AGENTS)

    assert page.locator(".results").evaluate("e => e.scrollWidth <= e.clientWidth")


def test_the_agent_pages_work_on_a_phone(phone: Page):
    for place in ("", "add/", "add/?start=planner", "1/change/", "1/history/"):
        phone.goto(AGENTS + place)
        assert phone.evaluate("() => document.documentElement.scrollWidth") <= 390, place

    phone.goto(f"{AGENTS}add/?start=assistant")
    expect(tool(phone, "search").get_by_label("timeout")).to_be_visible()
    expect(tool(phone, "ask_person").get_by_label("timeout")).to_be_hidden()
    phone.get_by_label("Message:").fill("What is 6 * 7?")
    phone.get_by_role("button", name="Run", exact=True).click()
    expect(pane(phone).locator(".answer")).to_contain_text("42")
