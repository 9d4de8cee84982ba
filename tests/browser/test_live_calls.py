"""A running call of an MCP server: its progress, the form with which it asks, its sampling."""

import re
import sys
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests import wire
from tests.browser.conftest import use_model
from tests.browser.conversation import begin, html, last_run, tool_step
from tests.browser.server import PROJECT, Server

REGISTRY = str(PROJECT / "tests" / "tools" / "mcp_servers" / "registry.py")
SETUP = f"""
import asyncio
from django.contrib.auth import get_user_model
from agents.catalog import mcp_servers
from agents.models import Agent, McpServer, ToolRegistration
server = McpServer.objects.create(name="registry", transport="stdio", trusts_annotations=True,
    command={sys.executable!r}, args=["-W", "ignore", {REGISTRY!r}])
user = get_user_model().objects.get(username="demo")
found = asyncio.run(mcp_servers.sync(server, user))
Agent.objects.filter(name="helper").update(allows_sampling=True)
Agent.objects.get(name="helper").tools.set(ToolRegistration.objects.filter(server=server))
print(sorted(found.added))
"""


@pytest.fixture(scope="module")
def model() -> Iterator[wire.WireServer]:
    """A model that calls the tool named in the question, and describes what it is asked to."""

    def answer(request: wire.Request) -> wire.Reply:
        last = request.body["messages"][-1]
        if last["role"] == "tool":
            return wire.say("Done.")
        if "Describe" in last["content"]:
            return wire.say("A list of accounts.")
        return wire.call((f"registry__{last['content']}", "{}"))

    with wire.serve_in_thread(answer) as model:
        yield model


@pytest.fixture(scope="module")
def registry(start_server, model) -> Iterator[Server]:
    """A server with a real MCP server that is a program."""
    for server in start_server("registry", 0, **use_model(model.url)):
        assert "register" in server.manage("shell", "-v0", "-c", SETUP)
        yield server


@pytest.fixture
def page(visit, registry) -> Page:
    return visit(registry)


def test_a_tool_shows_its_progress_while_it_runs(page: Page):
    run = begin(page, "index")

    bar = run.get_by_role("progressbar", name="Counting, 40 of 100")
    expect(bar).to_have_attribute("value", "40")
    expect(run.locator(".call-progress")).to_contain_text("40%")

    expect(run).to_have_attribute("data-status", "completed")
    expect(run.locator("progress")).to_have_count(0)
    tool_step(run).locator("summary").click()
    expect(tool_step(run).locator(".notes")).to_have_text("Last progress: 100%, Counted")


def test_a_tool_asks_the_user_with_a_form(page: Page):
    run = begin(page, "register")
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
    tool_step(run).locator("summary").click()
    expect(tool_step(run).locator(".seen")).to_contain_text(
        "Team account of ana@example.org, 2 seats, Support"
    )
    watched = html(page.locator("#messages"))
    page.reload()
    expect(last_run(page).locator(".elicitation")).to_contain_text("Answered by demo")
    assert without_open(html(page.locator("#messages"))) == without_open(watched)


def without_open(text: str) -> str:
    """Return the HTML without what only this page knows."""
    return re.sub(r' (open|tabindex)="[^"]*"', "", text)


def test_typed_text_survives_a_reconnect_and_a_question_can_be_declined(page: Page):
    run = begin(page, "register")
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


def test_a_url_to_open_is_spelled_out_and_stop_closes_the_question(page: Page):
    run = begin(page, "confirm")
    form = run.locator(".elicitation[data-verdict=waiting]")
    link = form.get_by_role("link", name="Open example.org")
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    expect(form).to_contain_text("https://example.org/ok")

    page.get_by_role("button", name="Stop").click()

    expect(run).to_have_attribute("data-status", "stopped")
    expect(run.locator(".elicitation")).to_contain_text("Closed without an answer")


def test_a_question_can_be_answered_in_the_list_of_approvals(page: Page, visit, registry):
    run = begin(page, "register")
    expect(run.locator(".elicitation")).to_be_visible()
    other = visit(registry)
    other.goto("/approvals/")
    form = other.locator(".elicitation")
    form.get_by_label("Email").fill("ana@example.org")
    form.get_by_label("Free").check()

    form.get_by_role("button", name="Send answer").click()

    expect(run).to_have_attribute("data-status", "completed")
    expect(other.locator(".elicitation")).to_have_count(0)


def test_the_step_shows_what_a_server_asked_the_model(page: Page):
    run = begin(page, "describe")
    expect(run).to_have_attribute("data-status", "completed")

    tool_step(run).locator("summary").first.click()

    expect(tool_step(run).locator(".seen")).to_contain_text("Described as: A list of accounts.")
    expect(tool_step(run)).to_contain_text("Describe the registry in one sentence.")
