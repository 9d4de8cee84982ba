"""Writing and starting a workflow."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import ask, last_run
from tests.browser.test_accessibility import faults

SUM = """\
name: {name}
parameters:
  count: 3
  to: null
steps:
  - name: work out
    tool: calculator
    arguments:
      expression: "6 * ${{parameters.count}}"
"""

GATE = """\
name: Gate
steps:
  - {name: agree, ask: "May it be sent?", approves: true, role: counsel}
  - {name: send, tool: calculator, arguments: {expression: "6 * 7"}, depends_on: [agree]}
"""
COUNSEL = """
from django.contrib.auth.models import Group, User
Group.objects.create(name="counsel").user_set.add(User.objects.get(username="guest"))
"""


@pytest.fixture(params=["light", "dark"])
def reader(request, visit, server) -> Page:
    return visit(server, color_scheme=request.param, reduced_motion="reduce")


def save_workflow(page: Page, name: str) -> str:
    """Save a workflow; return its URL."""
    page.goto("/workflows/new/")
    page.get_by_label("Definition").fill(SUM.format(name=name))
    expect(page.locator(".checked .node:visible")).to_have_count(1)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    return page.url


def test_problems_appear_while_typing_and_link_to_their_line(page: Page):
    page.goto("/workflows/new/?example=pipeline")
    text = page.get_by_label("Definition")
    expect(page.locator("#problems")).to_contain_text("No errors. Ready to save.")
    expect(page.get_by_text("'answer_counter'").first).to_be_visible()

    right, wrong = 'depends_on: ["Remove duplicates"]', 'depends_on: ["Remove duplicate"]'
    text.fill(text.input_value().replace(right, wrong))
    expect(page.locator("#problems")).to_contain_text("1 error")
    page.get_by_role("link", name="Line 12").click()

    expect(page.locator(".problems").first).to_contain_text("'Remove duplicates'")
    expect(text).to_be_focused()
    chosen = text.evaluate("t => t.value.slice(t.selectionStart, t.selectionEnd)")
    assert chosen == '"Remove duplicate"]'


def test_a_step_in_the_graph_links_to_its_lines(page: Page):
    page.goto("/workflows/new/?example=pipeline")
    text = page.get_by_label("Definition")

    page.get_by_role("link", name=re.compile("^Count answers")).click()

    expect(text).to_be_focused()
    before = text.evaluate("t => t.value.slice(0, t.selectionStart)")
    assert before.count("\n") == 9


def test_a_workflow_is_started_from_its_page_and_seen_in_the_chat(page: Page):
    save_workflow(page, "Sums of a page")
    page.get_by_label("count", exact=True).fill("7")
    page.get_by_role("textbox", name="to required").fill("Ada")

    page.get_by_role("button", name="Start").click()

    expect(page).to_have_url(re.compile(r"/chat/\d+/$"))
    expect(last_run(page)).to_have_attribute("data-status", "completed")
    expect(last_run(page)).to_contain_text("42")


def test_a_workflow_is_offered_in_the_chat_and_started_by_its_name(page: Page):
    save_workflow(page, "Sums of a chat")
    page.goto("/")
    text = page.locator("#text")

    text.press_sequentially("/work")
    expect(page.get_by_role("option", name="Sums of a chat")).to_be_visible()
    text.press_sequentially("flow of a ch")
    text.press("ArrowDown")
    text.press("Enter")
    expect(text).to_have_value('/workflow "Sums of a chat" ')
    ask(page, '/workflow "Sums of a chat" count=2 to=Ada')

    expect(last_run(page)).to_have_attribute("data-status", "completed")
    expect(last_run(page)).to_contain_text("12")


def test_an_unknown_workflow_is_an_error_and_keeps_the_text(page: Page, watch):
    watch.expect("status of 422")
    save_workflow(page, "Sums to be found")
    page.goto("/")

    ask(page, "/workflow Sums to be fond")

    expect(page.locator("#notice")).to_contain_text("Sums to be found")
    expect(page.locator("#text")).to_have_value("/workflow Sums to be fond")


def test_a_conflicting_save_shows_both_texts(page: Page, visit, server, watch):
    watch.expect("status of 409")
    address = save_workflow(page, "Sums of two")
    other = visit(server)
    other.goto(f"{address}edit/")
    page.goto(f"{address}edit/")
    page.get_by_label("Definition").fill(SUM.format(name="Sums of two").replace("6 *", "7 *"))
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("link", name="Version 2")).to_be_visible()

    other.get_by_label("Definition").fill(SUM.format(name="Sums of two").replace("6 *", "8 *"))
    other.get_by_role("button", name="Save").click()

    expect(other.get_by_role("alert")).to_contain_text(
        "Version 2 was saved by demo while you were editing"
    )
    expect(other.locator("tr[data-sign='-']")).to_contain_text("7 *")
    expect(other.locator("tr[data-sign='+']")).to_contain_text("8 *")
    other.get_by_role("button", name="Save").click()
    expect(other.get_by_role("link", name="Version 3")).to_be_visible()


def test_leaving_with_unsaved_changes_needs_confirmation(page: Page, watch):
    watch.expect("^dialog: ")
    page.goto("/workflows/new/?example=pipeline")
    text = page.get_by_label("Definition")
    text.press_sequentially("# mine")

    with page.expect_event("dialog") as asked:
        page.locator(".back").click(no_wait_after=True)

    assert asked.value.type == "beforeunload"
    expect(text).to_have_value(re.compile("# mine"))


def test_the_workflow_pages_are_accessible(reader: Page):
    address = save_workflow(reader, f"Sums {reader.evaluate('Date.now()')}")
    for page in ("/workflows/", address, f"{address}edit/", f"{address}versions/1/"):
        reader.goto(page)
        assert faults(reader) == [], page
    reader.goto("/workflows/new/?example=sales")
    reader.get_by_label("Definition").fill("name: w\nsteps: [{tol: x}]")
    expect(reader.locator("#problems")).to_contain_text("errors")
    assert faults(reader) == []


def test_the_workflow_pages_fit_a_phone(phone: Page):
    address = save_workflow(phone, "Sums of a phone")
    for page in ("/workflows/", address, f"{address}edit/", "/workflows/new/?example=pipeline"):
        phone.goto(page)
        assert phone.evaluate("document.documentElement.scrollWidth") <= 390, page
    expect(phone.locator(".graph .narrow").first).to_be_visible()
    expect(phone.locator(".graph .wide").first).to_be_hidden()


def test_a_roles_rejection_is_shown_to_the_starter_as_no_failure(visit, server, page, guest):
    server.manage("shell", "-c", COUNSEL)
    page.goto("/workflows/new/")
    page.get_by_label("Definition").fill(GATE)
    page.get_by_role("button", name="Save").click()
    page.goto("/")
    ask(page, "/workflow Gate")
    run = last_run(page)
    expect(run.locator(".question-to")).to_contain_text(
        "Waiting for a member of the group “counsel”"
    )
    expect(run.get_by_role("button", name="Approve")).to_have_count(0)
    other = visit(server, storage_state=guest)
    other.goto("/approvals/")
    card = other.get_by_role("article", name="demo needs a member of “counsel”")

    card.get_by_role("button", name="Reject").click()

    expect(run).to_have_attribute("data-status", "stopped")
    expect(run).to_contain_text("guest rejected “agree”, so the workflow ended here.")
    expect(run.locator(".plan .progress")).to_contain_text("1 rejected")
    expect(run.locator("[data-status=failed]")).to_have_count(0)
