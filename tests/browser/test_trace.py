import re

from playwright.sync_api import Page, expect

from tests.browser.conversation import (
    CALCULATION,
    SEVERAL,
    answered,
    begin,
    html,
    last_run,
    number_in,
)


def test_the_trace_has_the_rows_and_totals_of_the_chat(page: Page):
    run = answered(page, SEVERAL)
    rows = run.locator(".step summary").all_text_contents()
    answer, head = html(run.locator(".answer .frozen")), run.locator(".figure")
    totals = head.all_inner_texts()

    run.get_by_role("link", name="Trace").click()

    expect(page.get_by_role("heading", level=1)).to_have_text(SEVERAL)
    assert run.locator(".step summary").all_text_contents() == rows
    assert head.all_inner_texts() == totals
    assert html(run.locator(".answer .frozen")) == answer
    page.get_by_role("link", name="Open the conversation").click()
    expect(page).to_have_url(re.compile(r"/chat/\d+/#run-\d+$"))


def test_a_link_to_a_step_opens_and_marks_it(page: Page):
    run = answered(page, CALCULATION)

    run.locator(".step .number").nth(1).click()

    expect(page).to_have_url(re.compile(r"/traces/\d+/#step-2$"))
    step = page.locator("#step-2")
    expect(step.locator("details")).to_have_attribute("open", "")
    expect(step.locator(".said pre")).to_be_visible()
    expect(step).not_to_have_css("box-shadow", "none")
    expect(page.locator("#step-1")).to_have_css("box-shadow", "none")


def test_j_and_k_walk_over_the_steps(page: Page):
    answered(page, CALCULATION)
    last_run(page).get_by_role("link", name="Trace").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(CALCULATION)
    rows = page.locator(".step summary")

    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#step-2 details")).to_have_attribute("open", "")
    page.keyboard.press("k")
    expect(rows.first).to_be_focused()


def test_the_page_of_a_run_is_live_and_equals_its_reload(slow_page: Page):
    run = begin(slow_page, CALCULATION)
    run.get_by_role("link", name="Trace").click()

    expect(run).to_have_attribute("data-live", "")
    expect(run).to_have_attribute("data-status", "completed", timeout=30_000)
    expect(run.locator(".answer strong")).to_have_text("435")

    watched = html(run)
    slow_page.reload()
    assert html(run) == watched


def test_a_run_that_is_not_there_or_not_ones_own_is_answered_kindly(
    visit, page, server, guest, watch
):
    watch.expect("404")
    answered(page, CALCULATION)
    last_run(page).get_by_role("link", name="Trace").click()
    expect(page).to_have_url(re.compile(r"/traces/"))
    stranger = visit(server, storage_state=guest)

    for address in (f"/traces/{number_in(page)}/", "/traces/999999/"):
        assert stranger.goto(address).status == 404
        expect(stranger.get_by_role("heading", level=1)).to_have_text("The footprints end here")
        expect(stranger.get_by_role("link", name="Back to the chat")).to_be_visible()
