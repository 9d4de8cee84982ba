"""A running tool call: its progress bar, and the form with which it asks the user."""

import re
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import serve
from tests.browser.conversation import ask, html, last_run
from tests.browser.server import Server

TOOLS = {"ASHIATO_TOOLS": "tests.browser.live_tools"}
AGENT = """
from agents.models import Agent, AgentTool, ToolRegistration
agent = Agent.objects.create(name="lab", model="demo")
tool, _ = ToolRegistration.objects.get_or_create(name="live_calculator")
AgentTool.objects.create(agent=agent, tool=tool)
"""


@pytest.fixture(scope="module")
def live_server(tmp_path_factory, furnished) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("live")
    shutil.copytree(furnished, folder / "data")
    server = Server(folder, 0)
    server.environment |= TOOLS
    server.manage("setup")
    server.manage("shell", "-c", AGENT)
    yield from serve(folder, 0.003, **TOOLS)


@pytest.fixture
def page(visit, live_server) -> Page:
    return visit(live_server)


def calculate(page: Page, expression: str) -> Locator:
    page.goto("/")
    page.locator("select[name=agent]").select_option("lab")
    ask(page, f"What is {expression}?")
    return last_run(page)


@pytest.mark.journey
def test_a_tool_shows_its_progress_while_it_runs(page: Page):
    run = calculate(page, "1 + 1")

    bar = run.get_by_role("progressbar", name="Adding, 40 of 100")
    expect(bar).to_have_attribute("value", "40")
    expect(run.locator(".call-progress")).to_contain_text("40%")

    expect(run).to_have_attribute("data-status", "completed")
    expect(run.locator("progress")).to_have_count(0)
    run.locator(".step[data-kind=tool] summary").click()
    expect(run.locator(".step[data-kind=tool] .notes")).to_have_text(
        "Last progress: 100%, Added"
    )


@pytest.mark.journey
def test_a_tool_asks_the_user_with_a_form(page: Page):
    run = calculate(page, "2 + 2")
    form = run.locator(".elicitation[data-verdict=waiting]")
    expect(form).to_contain_text("registry asks you")
    expect(form).to_contain_text("Don’t enter passwords")
    expect(run).to_have_attribute("data-status", "running")
    expect(page.locator(".to-approvals .badge")).to_be_visible()
    expect(form.get_by_label("Seats")).to_have_value("2")

    form.get_by_label("Email").fill("nobody")
    form.get_by_label("Team").check()
    form.get_by_label("Support").check()
    form.get_by_role("button", name="Send answer").click()
    expect(form).to_contain_text("Enter an email address, e.g. ana@example.com.")
    expect(form.get_by_label("Email")).to_have_value("nobody")
    expect(form.get_by_label("Email")).to_be_focused()
    expect(form.get_by_label("Team")).to_be_checked()
    expect(form.get_by_label("Support")).to_be_checked()

    form.get_by_label("Email").fill("ana@example.org")
    form.get_by_role("button", name="Send answer").click()

    expect(run).to_have_attribute("data-status", "completed")
    expect(run.locator(".elicitation")).to_contain_text("Answered by demo")
    expect(run.locator(".elicitation")).to_contain_text("ana@example.org")
    run.locator(".step[data-kind=tool] summary").click()
    expect(run.locator(".step[data-kind=tool] .seen")).to_contain_text("accept")
    watched = html(page.locator("#messages"))
    page.reload()
    expect(last_run(page).locator(".elicitation")).to_contain_text("Answered by demo")
    assert without_open(html(page.locator("#messages"))) == without_open(watched)


def without_open(text: str) -> str:
    """Return the HTML without what only this page knows."""
    return re.sub(r' (open|tabindex)="[^"]*"', "", text)


def test_typed_text_survives_a_reconnect_and_a_question_can_be_declined(page: Page):
    run = calculate(page, "2 + 2")
    form = run.locator(".elicitation[data-verdict=waiting]")
    form.get_by_label("Email").fill("half")
    form.get_by_label("Free").check()
    page.context.set_offline(True)
    page.wait_for_timeout(300)
    page.context.set_offline(False)
    expect(form.get_by_label("Email")).to_have_value("half")

    form.get_by_role("button", name="Decline").click()

    expect(run).to_have_attribute("data-status", "completed")
    expect(run.locator(".elicitation")).to_contain_text("Declined by demo")


def test_a_page_to_open_is_spelled_out_and_stop_closes_the_question(page: Page):
    run = calculate(page, "3 + 3")
    form = run.locator(".elicitation[data-verdict=waiting]")
    link = form.get_by_role("link", name="Open example.org")
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    expect(form).to_contain_text("https://example.org/ok")

    page.get_by_role("button", name="Stop").click()

    expect(run).to_have_attribute("data-status", "stopped")
    expect(run.locator(".elicitation")).to_contain_text("Closed without an answer")


def test_a_question_can_be_answered_in_the_list_of_approvals(page: Page, visit, live_server):
    run = calculate(page, "2 + 2")
    expect(run.locator(".elicitation")).to_be_visible()
    other = visit(live_server)
    other.goto("/approvals/")
    form = other.locator(".elicitation")
    form.get_by_label("Email").fill("ana@example.org")
    form.get_by_label("Free").check()

    form.get_by_role("button", name="Send answer").click()

    expect(run).to_have_attribute("data-status", "completed")
    expect(other.locator(".elicitation")).to_have_count(0)
