import re
import time

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import (
    CALCULATION,
    FIGURES,
    LOOKUP,
    SEVERAL,
    ask,
    ask_and_wait,
    begin,
    html,
    last_run,
    tool_step,
)
from tests.browser.server import NAME, PASSWORD


@pytest.mark.journey
def test_signing_in_opens_the_chat_and_signing_out_works(visit, server):
    page = visit(server, storage_state=None)
    page.goto("/traces/")
    expect(page).to_have_url(re.compile(r"/login/\?next=/traces/$"))
    page.goto("/")

    page.get_by_label("Username").fill(NAME)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Password").press("Enter")

    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    page.locator(".account-button").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Username")).to_be_visible()


def test_an_example_fills_the_composer_and_enter_sends_it(page: Page):
    page.goto("/")
    examples = page.locator("[data-example]:visible")
    expect(examples).to_have_count(3)
    question = examples.first.get_attribute("data-example")

    examples.first.click()
    expect(page.locator("#text")).to_have_value(question)
    expect(page.locator("#text")).to_be_focused()
    page.keyboard.press("Enter")

    expect(page.locator(".question p")).to_have_text(question)
    expect(last_run(page)).to_have_attribute("data-status", "completed")
    expect(page.locator("#text")).to_have_value("")


def test_shift_enter_adds_a_line_and_empty_messages_are_not_sent(page: Page):
    page.goto("/")
    text = page.locator("#text")

    text.press("Enter")
    text.press_sequentially("one")
    text.press("Shift+Enter")
    text.press_sequentially("two")

    expect(text).to_have_value("one\ntwo")
    expect(page).to_have_url(re.compile(r"/$"))


@pytest.mark.journey
def test_a_question_streams_thoughts_steps_and_the_answer(slow_page: Page):
    run = begin(slow_page, CALCULATION)
    clock, counter = run.locator(".run-head .duration"), run.locator(".run-facts .figure").first

    expect(run.locator(".live-thought").first).to_contain_text("This is arithmetic")
    expect(counter).to_have_text("turn 1/10")
    then = clock.inner_text()
    expect(clock).not_to_have_text(then)
    expect(counter).to_have_text("turn 2/10")
    expect(run.locator(".run-head")).to_contain_text("Writing the answer…")
    expect(slow_page.locator("#announcer")).to_have_text("Writing the answer…")
    expect(run.locator(".answer")).to_contain_text("The result is")
    expect(run).to_have_attribute("data-live", "")
    expect(run).to_have_attribute("data-status", "completed")
    expect(run.locator(".answer strong")).to_have_text("435")
    expect(run.locator(".answer code")).to_be_visible()


def test_a_step_row_shows_its_summary_and_expands_to_details(page: Page):
    run = ask_and_wait(page, CALCULATION)
    row = tool_step(run)

    expect(run.locator(".step .number")).to_have_text(["#1", "#2", "#3"])
    expect(row.locator(".kind")).to_have_text("Tool")
    expect(row.locator(".intent")).to_contain_text("calculator: ")
    expect(row.locator(".status")).to_have_text(re.compile("done", re.IGNORECASE))
    expect(row.locator(".duration")).to_have_text(re.compile(r"^[\d.,]+ (ms|s)$"))
    expect(row.locator(".detail")).to_be_hidden()
    row.locator("summary").click()
    expect(row.locator(".said pre")).to_contain_text("3480")
    expect(row.locator(".seen pre")).to_contain_text("435")


def test_an_open_row_stays_open_during_the_run(slow_page: Page):
    run = begin(slow_page, SEVERAL)
    first = run.locator(".step").first

    first.locator("summary").click()
    expect(tool_step(run)).to_have_attribute("data-status", "done")
    tool_step(run).locator("summary").click()

    expect(run).to_have_attribute("data-status", "completed", timeout=30_000)
    expect(first.locator("details")).to_have_attribute("open", "")
    expect(tool_step(run).locator(".seen pre")).to_contain_text("36")


@pytest.mark.parametrize(
    "question",
    [CALCULATION, FIGURES, LOOKUP, SEVERAL],
)
def test_live_and_reloaded_page_are_equal(page: Page, question):
    ask_and_wait(page, question)
    expect(page.locator(".running-dot")).to_have_count(0)
    messages, sessions = page.locator("#messages"), page.locator("#sessions")
    watched = html(messages), html(sessions)

    page.reload()

    expect(last_run(page)).to_have_attribute("data-status", "completed")
    assert (html(messages), html(sessions)) == watched


@pytest.mark.journey
def test_a_second_answer_is_below_the_first_live_and_reloaded(page: Page):
    ask_and_wait(page, "What was the revenue in 2025?")
    ask(page, "And last month?")

    expect(page.locator(".run[data-status=completed]")).to_have_count(2)
    expect(last_run(page).locator(".answer")).not_to_be_empty()
    watched = html(page.locator("#messages"))
    page.reload()
    assert html(page.locator("#messages")) == watched


@pytest.mark.journey
def test_a_page_reloaded_during_a_run_continues(slow_page: Page):
    run = begin(slow_page, SEVERAL)
    expect(tool_step(run)).to_have_attribute("data-status", "done")
    ended = run.locator(".step:not([data-live])")
    watched = [html(step) for step in ended.all()]

    slow_page.reload()

    expect(slow_page.get_by_role("button", name="Stop")).to_be_visible()
    assert [without_bar(html(s)) for s in ended.all()][: len(watched)] == [
        without_bar(step) for step in watched
    ]
    expect(run).to_have_attribute("data-status", "completed", timeout=30_000)
    expect(run.locator(".answer strong")).to_have_text(["36", "42"])


def test_a_second_tab_shows_the_same_run(page: Page):
    begin(page, CALCULATION)
    other = page.context.new_page()
    other.goto(page.url)

    for tab in (page, other):
        expect(last_run(tab)).to_have_attribute("data-status", "completed")
    assert html(other.locator("#messages")) == html(page.locator("#messages"))

    ask(other, "What is 2 + 3?")
    expect(page.locator(".question p").last).to_have_text("What is 2 + 3?")
    for tab in (page, other):
        expect(tab.locator(".run[data-status=completed]")).to_have_count(2)
    assert html(other.locator("#messages")) == html(page.locator("#messages"))


def test_a_run_continues_when_every_tab_is_closed(slow_page: Page):
    run = begin(slow_page, CALCULATION)
    expect(run.locator(".live-thought").first).not_to_be_empty()
    context, url = slow_page.context, slow_page.url
    slow_page.close()

    running = 'data-status="running"'
    assert running in context.request.get(url).text()
    until(lambda: running not in context.request.get(url).text())
    back = context.new_page()
    back.goto(url)

    expect(last_run(back)).to_have_attribute("data-status", "completed")
    expect(last_run(back).locator(".answer strong")).to_have_text("435")


def test_a_run_that_ended_while_the_page_was_loading_is_shown_as_ended(slow_page: Page):
    begin(slow_page, CALCULATION)
    late, held = slow_page.context.new_page(), []
    late.route(re.compile(r"/static/.*ws.*\.js"), lambda route: held.append(route))
    late.goto(slow_page.url, wait_until="commit")
    expect(late.locator(".running-dot")).to_have_count(1)

    expect(last_run(slow_page)).to_have_attribute("data-status", "completed")
    for request in held:
        request.continue_()

    expect(last_run(late)).to_have_attribute("data-status", "completed")
    expect(late.locator(".running-dot")).to_have_count(0, timeout=5_000)


def test_steps_fold_to_a_line_when_the_answer_is_there(visit, slow_server):
    page = visit(slow_server, folds_steps=True)
    run = begin(page, CALCULATION)
    expect(run.locator(".step[data-kind=tool]")).to_be_visible()
    expect(run).to_have_attribute("data-status", "completed")

    expect(run.locator(".steps")).to_be_hidden()
    expect(run.locator(".run-line")).to_contain_text(re.compile(r"^\s*Calculated · [\d.]+ s"))
    expect(run.locator(".run-facts")).to_have_css("opacity", "0")
    run.locator(".run-line").hover()
    expect(run.locator(".run-facts")).to_have_css("opacity", "1")
    run.locator(".run-line").click()
    expect(run.locator(".step[data-kind=tool]")).to_be_visible()
    page.reload()
    expect(run.locator(".steps")).to_be_hidden()

    page.locator(".chat-menu > summary").click()
    page.get_by_label("Keep steps open").check()
    expect(run.locator(".step[data-kind=tool]")).to_be_visible()
    page.reload()
    expect(run.locator(".step[data-kind=tool]")).to_be_visible()


def test_steps_that_were_opened_stay_open_after_the_run(visit, slow_server):
    page = visit(slow_server, folds_steps=True)
    run = begin(page, CALCULATION)
    expect(run.locator(".step[data-kind=tool]")).to_be_visible()
    line = run.locator(".run-line")
    line.click()
    expect(run.locator(".steps")).to_be_hidden()
    line.click()

    expect(run).to_have_attribute("data-status", "completed")
    expect(run.locator(".step[data-kind=tool]")).to_be_visible()


def test_an_answer_without_tools_has_no_steps(visit, slow_server):
    page = visit(slow_server, folds_steps=True)
    run = begin(page, "hello")
    expect(run.locator(".answer")).to_contain_text("demo model")
    expect(run.locator(".steps")).to_be_hidden()
    expect(run).to_have_attribute("data-status", "completed")
    expect(run.locator(".steps")).to_have_count(0)
    expect(run.locator(".run-line")).to_contain_text("helper")


def test_the_page_does_not_scroll_a_reader_who_scrolled_up(slow_page: Page):
    slow_page.set_viewport_size({"width": 900, "height": 300})
    run = begin(slow_page, SEVERAL)
    expect(run.locator(".step").nth(3)).to_be_attached()
    slow_page.mouse.move(450, 100)
    slow_page.mouse.wheel(0, -4_000)
    expect(slow_page.locator("#jump")).to_be_visible()
    # A step that appears while the wheel turns moves where it ends; only the top stays.
    slow_page.keyboard.press("Control+Home")
    slow_page.wait_for_function("() => scrollY === 0")

    expect(run).to_have_attribute("data-status", "completed", timeout=30_000)
    assert slow_page.evaluate("scrollY") == 0
    slow_page.locator("#jump").click()
    expect(run.locator(".answer")).to_be_in_viewport()


def test_an_answer_is_copied_as_markdown(page: Page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    run = ask_and_wait(page, CALCULATION)

    run.get_by_role("button", name="Copy", exact=True).last.click()

    expect(run.locator(".actions [data-copied]")).to_be_visible()
    assert "**435**" in page.evaluate("navigator.clipboard.readText()")


def test_a_draft_survives_a_reload(page: Page):
    ask_and_wait(page, CALCULATION)
    page.locator("#text").fill("half a thou")

    page.reload()
    expect(page.locator("#text")).to_have_value("half a thou")

    page.goto("/")
    expect(page.locator("#text")).to_have_value("")


def until(is_so, within: float = 30) -> None:
    deadline = time.monotonic() + within
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def without_bar(text: str) -> str:
    """Remove the bars of a live run, which change with the clock."""
    return re.sub(r'<rect class="span"[^>]*>', "", text)


def test_a_new_chat_on_a_low_screen_begins_with_its_heading(visit, server):
    page = visit(server, viewport={"width": 1024, "height": 600})
    page.goto("/")

    expect(page.get_by_role("heading", name="What would you like to know?")).to_be_in_viewport()
    expect(page.locator("#jump")).to_be_hidden()
