"""Choosing an agent in the composer and on a new chat."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import CALCULATION, last_run
from tests.browser.test_accessibility import faults

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def open_list(page: Page):
    page.locator("#agent-button").click()
    panel = page.locator("#agent-panel")
    expect(panel).to_be_visible()
    return panel


def test_an_agent_is_found_by_typing_and_chosen_with_enter(page: Page):
    page.goto("/")
    page.locator("#agent-button").focus()
    page.keyboard.press("ArrowDown")
    search = page.get_by_role("combobox", name="Search agents")
    expect(search).to_be_focused()

    search.press_sequentially("cites")
    expect(page.locator("#agent-options [role=option]:visible")).to_have_count(1)
    search.press("Enter")

    expect(page.locator("#agent-panel")).to_be_hidden()
    expect(page.locator("#text")).to_be_focused()
    expect(page.locator("#agent-button")).to_contain_text("librarian")
    expect(page.get_by_role("heading", name="Try asking librarian")).to_be_visible()
    page.reload()  # it isn't sent yet
    expect(page.locator("#agent-button")).to_contain_text("librarian")
    page.locator("[data-example]:visible").first.click()
    page.keyboard.press("Enter")
    expect(last_run(page)).to_have_attribute("data-status", "completed")
    expect(last_run(page).locator(".agent")).to_have_text("librarian")
    expect(page.locator("#agent-button")).to_contain_text("librarian")


def test_arrows_move_through_the_list_and_escape_changes_nothing(page: Page):
    page.goto("/")
    open_list(page)
    search = page.get_by_role("combobox", name="Search agents")
    first = search.get_attribute("aria-activedescendant")

    search.press("ArrowDown")
    expect(search).not_to_have_attribute("aria-activedescendant", first)
    search.press("ArrowUp")
    expect(search).to_have_attribute("aria-activedescendant", first)
    search.press_sequentially("no such agent")
    expect(page.get_by_text("No agent matches your search.")).to_be_visible()
    search.press("Enter")
    expect(page.locator("#agent-panel")).to_be_visible()
    search.press("Escape")

    expect(page.locator("#agent-panel")).to_be_hidden()
    expect(page.locator("#agent-button")).to_contain_text("helper")


def test_enter_of_an_input_method_neither_picks_nor_sends(page: Page):
    page.goto("/")
    open_list(page)
    search = page.get_by_role("combobox", name="Search agents")

    search.evaluate(
        """field => field.dispatchEvent(new KeyboardEvent("keydown",
            { key: "Enter", keyCode: 229, bubbles: true, cancelable: true }))"""
    )

    expect(page.locator("#agent-panel")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/$"))


def test_another_agent_has_other_examples(page: Page):
    page.goto("/")

    open_list(page).locator("[data-value=panel]").click()

    expect(page.locator("#agent-button")).to_contain_text("panel")
    expect(page.locator("select[name=agent]")).to_have_value("panel")
    expect(page.get_by_role("heading", name="Try asking panel")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/$"))


def test_new_chats_start_with_the_default_agent_and_each_agents_model(page: Page):
    page.goto("/")
    panel = open_list(page)
    panel.locator("[data-value=librarian]").click()
    page.locator("#text").fill(CALCULATION)
    page.locator("#text").press("Enter")
    expect(last_run(page)).to_have_attribute("data-status", "completed")
    page.goto("/")
    expect(page.locator("#agent-button")).to_contain_text("helper")

    panel = open_list(page)
    panel.locator("[data-value=planner]").click()
    panel.get_by_role("button", name="Start new chats with this agent").click()
    expect(panel.get_by_text("New chats start with this agent.")).to_be_visible()
    page.evaluate("sessionStorage.clear()")
    page.goto("/")
    expect(page.locator("#agent-button")).to_contain_text("planner")

    panel = open_list(page)
    panel.locator("[data-value=helper]").click()
    panel.get_by_role("button", name="Start new chats with this agent").click()
    expect(panel.get_by_text("New chats start with this agent.")).to_be_visible()


def test_escape_in_the_list_does_not_stop_the_run(slow_page: Page):
    slow_page.goto("/")
    slow_page.locator("#text").fill(CALCULATION)
    slow_page.keyboard.press("Enter")
    expect(slow_page.locator(".stop")).to_be_visible()
    open_list(slow_page)

    slow_page.keyboard.press("Escape")

    expect(slow_page.locator("#agent-panel")).to_be_hidden()
    expect(last_run(slow_page)).to_have_attribute("data-status", "completed")


@pytest.mark.parametrize("language", ["en-US", "ja-JP"])
def test_the_list_of_agents_fits_a_phone(visit, server, language):
    page = visit(server, locale=language, **PHONE)
    page.goto("/")
    whole, shown = page.locator("html").evaluate(
        "element => [element.scrollWidth, element.clientWidth]"
    )
    assert whole == shown
    open_list(page).locator("[data-value=planner]").tap()
    expect(page.locator("#agent-button")).to_contain_text("planner")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_new_chat_and_the_open_picker_are_accessible(visit, server, scheme):
    page = visit(server, color_scheme=scheme, reduced_motion="reduce")
    page.goto("/")
    assert faults(page) == []

    open_list(page)
    assert faults(page) == []


@pytest.fixture
def models(server):
    """Two configured models, one of which reasons."""
    rows = [
        {"label": "fast", "model": "openai/gpt-4.1", "base_url": "http://127.0.0.1:9/v1"},
        {"label": "deep", "model": "openai/gpt-5", "base_url": "http://127.0.0.1:9/v1"},
    ]
    create = f"""
from tests.language_models import make_model
for row in {rows!r}:
    make_model(provider="compatible", api_key="sk-1", **row)
"""
    server.manage("shell", "-c", create)
    yield
    server.manage(
        "shell",
        "-c",
        "from agents.models import ModelConnection; ModelConnection.objects.all().delete()",
    )


@pytest.mark.usefixtures("models")
def test_a_model_and_its_settings_are_chosen_and_the_run_says_so(page: Page):
    page.goto("/")
    panel = open_list(page)
    page.get_by_role("combobox", name="Search models").press_sequentially("deep")
    page.keyboard.press("Enter")
    open_list(page)
    panel.get_by_text("High", exact=True).click()
    expect(panel.get_by_label("Temperature")).to_be_hidden()
    expect(page.locator("#agent-button")).to_have_text(re.compile(r"helper\s*deep\s*High"))
    assert faults(page) == []
    page.keyboard.press("Escape")
    page.reload()
    expect(page.locator("#agent-button")).to_have_text(re.compile(r"helper\s*deep\s*High"))

    page.locator("#text").fill("Hello")
    page.keyboard.press("Enter")

    head = page.locator(".run-facts")
    expect(head.locator(".model")).to_contain_text("deep")
    expect(head.locator(".model .tag").first).to_have_text("high effort")
    page.locator(".stop").click()
    expect(last_run(page)).to_have_attribute("data-status", re.compile("stopped|failed"))
    page.reload()
    expect(page.locator("#agent-button")).to_have_text(re.compile(r"helper\s*deep\s*High"))
    expect(head.locator(".model .tag").first).to_have_text("high effort")


@pytest.mark.usefixtures("models")
def test_an_agent_that_allows_no_choice_has_only_its_model(page: Page):
    page.goto("/")
    panel = open_list(page)
    expect(panel.locator("#model-options")).to_be_visible()

    panel.locator("[data-value=librarian]").click()

    expect(panel.locator("#model-options")).to_be_hidden()
    expect(panel.locator(".picker-model")).to_contain_text(
        "librarian always answers with this model: Demo model"
    )
    assert page.locator("select[name=model]").is_disabled()


@pytest.mark.usefixtures("models")
def test_a_temperature_that_is_too_high_is_an_error(page: Page):
    page.goto("/")
    open_list(page).locator("#model-options [data-value=fast]").click()
    open_list(page).locator("#temperature").fill("3")
    page.keyboard.press("Escape")
    page.locator("#text").fill("Hello")

    page.locator("#text").press("Enter")

    expect(page.locator("#temperature")).to_be_focused()
    expect(page).to_have_url(re.compile(r"/$"))


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize("options", [{}, PHONE | {"locale": "ja-JP"}], ids=["desktop", "phone"])
def test_an_answer_is_regenerated_with_another_model(visit, server, options):
    page = visit(server, **options)
    page.goto("/")
    page.locator("#text").fill(CALCULATION)
    page.locator("#ask .send").click()
    expect(last_run(page)).to_have_attribute("data-status", "completed")
    opener = page.locator("[data-regenerate-menu]")
    opener.click()
    menu = page.get_by_role("menu")
    expect(menu.get_by_role("menuitem", name="fast")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(menu.get_by_role("menuitem", name="deep")).to_be_focused()
    assert faults(page) == []
    menu.get_by_role("menuitem", name="deep").press("Enter")

    expect(page.locator(".fork-count")).to_contain_text("2/2")
    expect(page.locator(".run-facts .model")).to_contain_text("deep")
    page.locator(".stop").click()
    expect(last_run(page)).to_have_attribute("data-status", re.compile("stopped|failed"))
    expect(page.locator("#agent-button .picked-model")).not_to_have_text("deep")
    opener.click()
    expect(page.locator("#agent-menu-models [aria-current=true]")).to_contain_text("deep")
