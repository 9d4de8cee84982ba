"""Plans: drawn while running, edited before the start, replanned."""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conversation import ask, html, last_run
from tests.browser.server import Server
from tests.browser.test_accessibility import faults
from tests.browser.test_approvals import reject

COMPARISON = "Compare this year's best month with last year's best month."
NO_DATA = "Compare this year's revenue with 2019"
FIRST = "shows first"
MAKE = f"""
from agents.models import Agent
planner = Agent.objects.get(name="planner")
tools = list(planner.tools.all())
planner.pk, planner.name, planner.shows_plan, planner.is_default = None, "{FIRST}", True, False
planner.save()
planner.tools.set(tools)
"""


@pytest.fixture(scope="module")
def asking_server(server: Server) -> Server:
    """One with an agent that proposes a plan before it begins."""
    server.manage("shell", "-c", MAKE)
    return server


def start_plan(page: Page, question: str = COMPARISON, agent: str = "planner") -> Locator:
    page.goto("/")
    page.locator("select[name=agent]").select_option(agent)
    ask(page, question)
    return last_run(page)


def pending_plan(page: Page) -> Locator:
    """Return a plan that waits for approval."""
    approval = start_plan(page, agent=FIRST).locator(".approval[data-verdict=waiting]")
    expect(approval).to_contain_text("Run this plan?")
    return approval


def test_a_plan_graph_is_live_and_its_nodes_link_to_their_steps(page: Page):
    run = start_plan(page)
    plan = run.locator(".plan")
    expect(plan.locator(".node").first).to_be_visible()
    expect(run).to_have_attribute("data-status", "completed")
    expect(plan.locator(".progress")).to_contain_text("4 of 4 done")
    watched = html(page.locator("#messages"))

    plan.locator(".wide .node").first.click()

    row = run.locator(".step:target")
    expect(row).to_be_visible()
    expect(row).to_have_attribute("data-kind", "task")
    expect(row.locator(".planned").first).to_be_visible()
    page.reload()
    assert html(page.locator("#messages")) == watched


@pytest.mark.parametrize("decision", ["Run plan", "Reject"])
def test_focus_stays_after_deciding_about_a_plan(page, asking_server, decision):
    approval = pending_plan(page)
    if decision == "Reject":
        approval.locator(".rejecting > summary").click()
    approval.get_by_role("button", name=decision, exact=True).focus()

    page.keyboard.press("Enter")

    expect(page.locator(".approval[data-verdict=waiting]")).to_have_count(0)
    expect(page.locator("#text")).to_be_focused()
    expect(last_run(page)).not_to_have_attribute("data-status", "running", timeout=30_000)
    expect(page.locator("#text")).to_be_focused()


def test_a_focused_node_keeps_focus_while_the_plan_runs(visit, slow_server):
    page = visit(slow_server)
    run = start_plan(page)
    node = run.locator(".plan .wide a.node").first
    node.wait_for()
    node.focus()
    href = node.get_attribute("href")

    expect(run.locator(".plan .progress")).to_contain_text("4 of 4 done")

    assert page.evaluate("document.activeElement.getAttribute('href')") == href


def test_a_plan_is_edited_before_it_is_executed(page: Page, asking_server: Server):
    approval = pending_plan(page)
    approval.get_by_text("Edit plan", exact=True).click()
    last = approval.locator(".edited > li").last
    last.get_by_label("Skip this step").check()
    approval.locator("[name$=-pick]").select_option("tool:calculator")
    approval.get_by_role("button", name="Add", exact=True).click()
    added = approval.locator("[data-new]")
    expect(added.locator("input.field")).to_be_focused()
    expect(last.locator("xpath=preceding-sibling::li[1]").locator(".out input")).to_be_checked()

    approval.get_by_role("button", name="Run edited plan").click()
    expect(added.locator(".problem")).to_contain_text("expression")
    added.get_by_label("expression").fill("6 * 7")
    page.keyboard.press("Control+Enter")

    run = last_run(page)
    expect(run).to_have_attribute("data-status", "completed")
    expect(run.locator(".decision")).to_contain_text("edited the plan: 1 added, 1 removed")
    expect(run.locator(".plan .progress")).to_contain_text("4 of 4 done")
    expect(run.locator(".step[data-kind=tool]", has_text="6 * 7")).to_have_count(1)


def test_a_plan_is_rejected_in_the_inbox_with_a_reason(page: Page, asking_server: Server):
    pending_plan(page)
    chat = page.url
    page.goto("/approvals/")
    card = page.locator("article", has_text=COMPARISON).last

    reject(card, "Not these years.")

    expect(card.locator(".approval[data-verdict=waiting]")).to_have_count(0)
    page.goto(chat)
    run = last_run(page)
    expect(run).to_have_attribute("data-status", "stopped")
    expect(run.locator(".outcome")).to_contain_text("Stopped. Not these years.")


def test_a_failed_plan_is_shown_with_its_replacement(page: Page):
    run = start_plan(page, NO_DATA)

    plan = run.locator(".plan")
    expect(run).to_have_attribute("data-status", "completed")
    expect(plan.locator("h3")).to_contain_text("Plan 2 of 2")
    expect(plan.locator(".feedback").first).to_contain_text("2019")
    plan.locator(".previous-plan > summary").click()
    expect(plan.locator(".previous-plan .plan-list [data-status=failed]").first).to_be_visible()


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_a_plan_is_accessible(look, visit, asking_server: Server):
    options = {"color_scheme": "light" if look == "light" else "dark"}
    if look == "phone":
        options |= {"viewport": {"width": 390, "height": 844}, "locale": "ja-JP"}
    reader = visit(asking_server, reduced_motion="reduce", **options)
    approval = start_plan(reader, agent=FIRST).locator(".approval[data-verdict=waiting]")
    expect(approval).to_be_visible()
    assert faults(reader) == []

    approval.locator(".plan-edit > summary").click()
    assert faults(reader) == []
    wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert reader.evaluate(wide)

    approval.locator("[data-send]").first.click()
    expect(last_run(reader)).to_have_attribute("data-status", "completed")
    reader.locator(".step[data-kind=plan] summary").first.click()
    assert faults(reader) == []
