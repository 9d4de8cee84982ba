"""Approvals: the user sees exactly what an agent wants to do, and decides."""

import json
import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import AWAY
from tests.browser.conversation import CALCULATION, ask, html, last_run
from tests.browser.server import Server


def asks(page: Page, question: str = CALCULATION) -> Locator:
    """Ask the agent that requires approval, and wait for a request."""
    page.goto("/")
    page.locator("select[name=agent]").select_option("careful")
    ask(page, question)
    approval = last_run(page).locator(".approval[data-verdict=waiting]")
    expect(approval).to_be_visible()
    return approval


def reject(card: Locator, reason: str = "") -> None:
    """Reject a request; the field for the reason opens first."""
    card.locator(".rejecting > summary").click()
    card.locator(".reject-form textarea").fill(reason)
    card.get_by_role("button", name="Reject", exact=True).click()


def without_bars(page: Page) -> str:
    """Return the HTML without bars, which change while a run waits."""
    return re.sub(r"<rect [^>]*>", "", html(page.locator("#messages")))


@pytest.mark.journey
def test_an_approved_call_is_made_and_live_equals_reloaded(page: Page):
    approval = asks(page)
    expect(approval).to_contain_text("Calculate this?")
    expect(approval.locator("pre").first).to_have_text("3480 * 12.5 / 100")
    expect(page.locator(".to-approvals .badge")).to_be_visible()
    waiting = without_bars(page)
    page.reload()
    assert without_bars(page) == waiting

    page.get_by_role("button", name="Approve", exact=True).click()

    run = last_run(page)
    expect(run).to_have_attribute("data-status", "completed")
    expect(run.locator(".answer")).to_contain_text("435")
    expect(run.locator(".approval")).to_have_count(0)
    expect(run.locator(".step[data-kind=tool] .decided")).to_have_text("approved by you")
    watched = html(page.locator("#messages"))
    page.reload()
    assert html(page.locator("#messages")) == watched


def test_an_argument_is_edited_in_its_field(page: Page):
    approval = asks(page)
    approval.get_by_text("Edit and details").click()
    approval.get_by_label("Expression").fill("2 * 21")

    approval.get_by_role("button", name="Approve edited arguments").click()

    step = last_run(page).locator(".step[data-kind=tool]")
    expect(step.locator(".decided")).to_have_text("edited and approved by you")
    expect(step.locator(".decision")).to_contain_text("3480 * 12.5 / 100")
    expect(last_run(page).locator(".answer")).to_contain_text("The result is 42 (2 * 21).")


def test_arguments_can_be_edited_as_json_and_an_error_keeps_the_input(page: Page):
    approval = asks(page)
    approval.get_by_text("Edit and details").click()
    approval.get_by_text("All arguments (JSON)").click()
    field = approval.locator(".as-json textarea")
    field.fill('{"expression": ')
    approval.get_by_role("button", name="Approve edited arguments").click()
    expect(approval.get_by_role("alert")).to_contain_text("valid JSON")
    expect(field).to_have_value('{"expression": ')

    field.fill(json.dumps({"expression": "2 * 21"}))
    approval.get_by_role("button", name="Approve edited arguments").click()

    run = last_run(page)
    expect(run).to_have_attribute("data-status", "completed")
    expect(run.locator(".step[data-kind=tool] .intent")).to_contain_text("2 * 21")


def test_a_call_is_rejected_with_a_reason_and_the_keyboard(page: Page):
    approval = asks(page)
    approval.locator(".rejecting > summary").focus()
    page.keyboard.press("Enter")
    reason = approval.locator(".reject-form textarea")
    expect(reason).to_be_focused()

    page.keyboard.type("No, never do that")
    page.keyboard.press("Enter")  # a new line, which decides nothing
    page.wait_for_timeout(500)
    expect(last_run(page)).to_have_attribute("data-status", "waiting")
    page.keyboard.press("Escape")
    expect(reason).to_be_hidden()
    expect(reason).to_have_value("No, never do that\n")
    page.keyboard.press("Enter")
    expect(reason).to_be_focused()
    page.keyboard.press("Control+Enter")

    decided = last_run(page).locator(".step[data-kind=tool] .decided")
    expect(decided).to_have_text("rejected: No, never do that")


def test_a_decision_that_was_not_delivered_says_so(page: Page, watch):
    watch.expect("Failed to load resource|net::ERR_FAILED|htmx:(sendError|afterRequest)")
    approval = asks(page)
    page.route("**/approvals/*/", lambda route: route.abort())

    reject(approval)

    expect(approval.get_by_role("alert")).to_contain_text("so this wasn’t saved")
    page.unroute("**/approvals/*/")
    approval.get_by_role("button", name="Reject", exact=True).click()
    expect(last_run(page)).to_have_attribute("data-status", "completed")


def test_a_message_during_an_approval_is_queued_with_the_reason(page: Page):
    asks(page)

    ask(page, "And what is 1 + 1?")

    expect(page.locator("#queue")).to_contain_text("And what is 1 + 1?")
    expect(page.locator("#queue")).to_contain_text("waiting for your decision")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".run").first).to_have_attribute("data-status", "stopped")
    expect(page.locator(".run")).to_have_count(2)


def test_a_call_is_rejected_in_the_inbox_with_the_keyboard(page: Page):
    asks(page, "What is 61 * 7?")
    chat = page.url
    page.get_by_role("link", name="Approvals").click()
    card = page.get_by_role("article", name="What is 61 * 7?")
    card.locator(".rejecting > summary").focus()
    page.keyboard.press("Enter")
    expect(card.locator(".reject-form textarea")).to_be_focused()

    page.keyboard.type("Not today.")
    page.keyboard.press("Tab")
    expect(card.get_by_role("button", name="Reject")).to_be_focused()
    page.keyboard.press("Enter")

    expect(card).to_have_count(0)
    page.goto(chat)
    step = last_run(page).locator(".step[data-kind=tool]")
    expect(step).to_have_attribute("data-status", "rejected")
    expect(step.locator(".decided")).to_have_text("rejected: Not today.")


def test_a_second_enter_in_the_inbox_does_not_decide_the_next_request(page: Page):
    asks(page, "What is 62 * 7?")
    asks(page, "What is 63 * 7?")
    page.get_by_role("link", name="Approvals").click()
    card = page.get_by_role("article", name="What is 62 * 7?")
    last = page.get_by_role("article", name="What is 63 * 7?")
    card.get_by_role("button", name="Approve", exact=True).focus()

    page.keyboard.press("Enter")
    expect(card).to_have_count(0)
    expect(last).to_be_focused()
    page.keyboard.press("Enter")

    page.wait_for_timeout(500)
    expect(last).to_be_visible()
    expect(last.locator(".approval")).to_have_attribute("data-verdict", "waiting")


def test_after_the_last_request_the_inbox_heading_has_focus(page: Page):
    asks(page, "What is 64 * 7?")
    asks(page, "What is 65 * 7?")
    page.get_by_role("link", name="Approvals").click()
    last = page.get_by_role("article", name="What is 65 * 7?")
    last.locator(".rejecting > summary").click()
    last.get_by_role("button", name="Reject", exact=True).focus()

    page.keyboard.press("Enter")

    expect(last).to_have_count(0)
    expect(page.get_by_role("article", name="What is 64 * 7?")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_be_focused()


def test_pending_approvals_survive_a_server_restart(visit, slow_server: Server, watch):
    watch.expect(AWAY)
    page = visit(slow_server)
    approval = asks(page)
    slow_server.kill()
    slow_server.start()

    page.reload()
    expect(approval).to_be_visible()
    approval.get_by_role("button", name="Approve", exact=True).click()

    expect(last_run(page)).to_have_attribute("data-status", "completed", timeout=60_000)


def test_a_run_awaiting_approval_can_be_stopped_and_the_chat_continues(page: Page):
    approval = asks(page)
    page.get_by_role("button", name="Stop").click()

    expect(last_run(page)).to_have_attribute("data-status", "stopped")
    expect(approval).to_have_count(0)
    page.locator("select[name=agent]").select_option("helper")
    ask(page, CALCULATION)
    expect(page.locator(".run[data-status=completed]")).to_have_count(1)


def test_the_last_used_agent_answers_next(page: Page):
    asks(page)
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(last_run(page)).to_have_attribute("data-status", "completed")

    page.reload()

    expect(page.locator("select[name=agent]")).to_have_value("careful")


def test_a_hidden_page_does_not_poll_the_approval_count(page: Page):
    page.clock.install()
    page.add_init_script(
        "Object.defineProperty(document, 'hidden', { get: () => globalThis.isAway ?? false })"
    )
    page.goto("/")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    page.evaluate("globalThis.isAway = true")
    page.clock.run_for(61_000)
    while_away = [url for url in asked if url.endswith("/approvals/link/")]
    with page.expect_request("**/approvals/link/"):
        page.evaluate(
            "globalThis.isAway = false; document.dispatchEvent(new Event('visibilitychange'))"
        )

    assert while_away == []
    with page.expect_request("**/approvals/link/"):
        page.clock.run_for(21_000)


def test_on_a_phone_in_japanese_no_page_scrolls_horizontally(page: Page, visit, server):
    asks(page)
    size = {"width": 390, "height": 844}
    phone = visit(server, viewport=size, is_mobile=True, locale="ja-JP")

    for address in ("/approvals/", "/workflows/", "/traces/"):
        phone.goto(address)
        expect(phone.locator(".to-approvals .badge")).to_have_count(1)
        assert phone.evaluate("document.documentElement.scrollWidth") <= 390, address
