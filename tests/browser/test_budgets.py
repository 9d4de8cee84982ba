"""A run at its limit asks, and people see what is left of their limits."""

import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from agents.db.row_cache import MAX_AGE_SECONDS
from tests.browser.conversation import CALCULATION, ask, html, last_run
from tests.browser.server import NAME, Server
from tests.browser.test_accessibility import faults

PHONE = {"viewport": {"width": 390, "height": 844}, "locale": "ja-JP"}
THRIFTY = """
from agents.models import Agent
agent = Agent.objects.get(name="helper")
tools = list(agent.tools.all())
agent.pk, agent.name, agent.max_run_tokens, agent.max_raise = None, "thrifty", 200, 50
agent.is_default, agent._state.adding = False, True
agent.save()
agent.tools.set(tools)
"""
SPENT = f"""
from django.contrib.auth.models import User
from agents.metering.budgets.windows import window_start
from agents.models import BudgetCounter, Quota
user = User.objects.get(username="{NAME}")
Quota.objects.create(user=user, measure="cost", window="day", limit=5_000_000)
start = window_start("day")
BudgetCounter.objects.create(
    scope=f"user:{{user.pk}}", window="day", start=start, cost=4_100_000
)
"""
FORGET = "from agents.models import Quota; Quota.objects.all().delete()"


@pytest.fixture(scope="module")
def thrifty(server: Server) -> str:
    """An agent whose first turn passes its token limit."""
    server.manage("shell", "-c", THRIFTY)
    return "thrifty"


@pytest.fixture(scope="module")
def spent(server: Server) -> Iterator[None]:
    """Let the user have spent most of a limit; the server reads it within seconds."""
    server.manage("shell", "-c", SPENT)
    time.sleep(MAX_AGE_SECONDS)
    yield
    server.manage("shell", "-c", FORGET)
    time.sleep(MAX_AGE_SECONDS)


def request_of(page: Page, agent: str) -> Locator:
    page.goto("/")
    page.locator("select[name=agent]").select_option(agent)
    ask(page, CALCULATION)
    request = last_run(page).locator(".limit-request[data-verdict=waiting]")
    expect(request).to_be_visible()
    return request


@pytest.mark.journey
def test_a_raised_limit_lets_the_run_answer_and_live_equals_reloaded(page: Page, thrifty: str):
    request = request_of(page, thrifty)
    expect(request).to_contain_text("thrifty has reached its token limit")
    assert faults(page) == []

    request.get_by_role("button", name="Raise to").click()

    run = last_run(page)
    expect(run).to_have_attribute("data-status", "completed")
    expect(run.locator(".answer")).to_contain_text("435")
    expect(run.locator(".step .decided")).to_contain_text("raised the limit to")
    watched = html(page.locator("#messages"))
    page.reload()
    assert html(page.locator("#messages")) == watched


@pytest.mark.parametrize(
    ("button", "status"), [("Finish now", "completed"), ("Stop", "stopped")]
)
def test_a_run_at_its_limit_finishes_or_stops(
    page: Page, thrifty: str, button: str, status: str
):
    request = request_of(page, thrifty)

    request.get_by_role("button", name=button).click()

    run = last_run(page)
    expect(run).to_have_attribute("data-status", status)
    expect(run).to_contain_text("token limit (200 tokens)")


def test_the_composer_says_what_is_used_once_as_a_message_and_then_quietly(page: Page, spent):
    page.goto("/")
    expect(page.locator("#limit-note")).to_contain_text("82% of today's $5.00 used")
    expect(page.locator("#toast")).to_contain_text("82% of today's $5.00 used")

    page.locator("#toast [data-dismiss]").click()
    page.reload()
    expect(page.locator("#limit-note")).to_be_visible()
    expect(page.locator("#toast")).to_be_hidden()


@pytest.mark.parametrize("options", [{}, PHONE], ids=["desktop", "a phone in Japanese"])
def test_pages_about_limits_are_accessible_and_fit(visit, server, spent, options):
    page = visit(server, **options)
    for address in ("/", "/account/", "/admin/agents/quota/", "/admin/agents/quota/add/"):
        page.goto(address)
        assert faults(page) == [], address
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address


def test_a_limit_of_an_agent_is_added_in_the_console(page: Page, spent):
    page.goto("/admin/agents/quota/add/")
    expect(page.get_by_label("Agent", exact=True)).to_be_hidden()
    page.get_by_label("For").select_option("agent")
    page.get_by_label("Agent", exact=True).select_option(label="helper")
    page.get_by_label("Limit", exact=True).fill("2.50")
    page.get_by_role("button", name="Save", exact=True).click()

    row = page.get_by_role("row", name="helper")
    expect(row).to_contain_text("$2.50 per day")
