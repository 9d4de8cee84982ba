import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import (
    CALCULATION,
    SEVERAL,
    ask,
    ask_and_wait,
    begin,
    html,
    last_run,
    number_in,
    open_trace,
)


def row_texts(run) -> list[str]:
    """Return the rows' text in either place: a trace also counts parallel calls."""
    rows = run.locator(".step summary").all_text_contents()
    return [" ".join(re.sub(r"∥ \d+", "", row).split()) for row in rows]


def test_the_trace_has_the_rows_and_totals_of_the_chat(page: Page):
    run = ask_and_wait(page, SEVERAL)
    rows = row_texts(run)
    answer = html(run.locator(".answer .frozen"))
    turns, tokens, *_rest = run.locator(".run-facts .figure").all_text_contents()

    open_trace(run)

    expect(page.get_by_role("heading", level=1)).to_have_text(SEVERAL)
    assert row_texts(run) == rows
    figures = run.locator(".run-figures")
    done, most = turns.removeprefix("turn ").split("/")
    expect(figures.locator("[data-figure=turns] dd")).to_have_text(f"{done} of {most}")
    expect(figures.locator("[data-figure=tokens] dd")).to_have_text(tokens.split()[0])
    expect(figures.locator("[data-figure=steps] dd")).to_have_text(str(len(rows)))
    assert html(run.locator(".answer .frozen")) == answer
    page.locator(".run-menu > summary").click()
    page.get_by_role("link", name="Open chat").click()
    expect(page).to_have_url(re.compile(r"/chat/\d+/#run-\d+$"))


def test_a_link_to_a_step_opens_and_marks_it(page: Page):
    run = ask_and_wait(page, CALCULATION)

    run.locator(".step .number").nth(1).click()

    expect(page).to_have_url(re.compile(r"/traces/\d+/#step-2$"))
    step = page.locator("#step-2")
    expect(step.locator("summary")).to_have_attribute("aria-current", "true")
    expect(page.locator("#panel .payload").last).to_contain_text("435")
    expect(step).not_to_have_css("box-shadow", "none")
    expect(page.locator("#step-1")).to_have_css("box-shadow", "none")


def test_j_and_k_walk_over_the_steps(page: Page):
    trace_of(page, CALCULATION)
    rows = page.locator(".step summary")

    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("x")
    expect(page.locator("#step-2 details")).to_have_attribute("open", "")
    page.keyboard.press("k")
    expect(rows.first).to_be_focused()


def trace_of(page: Page, question: str) -> None:
    ask_and_wait(page, question)
    open_trace(last_run(page))
    expect(page.get_by_role("heading", level=1)).to_have_text(question)
    page.wait_for_load_state()  # before that, the page ignores keys


def test_step_details_open_next_to_the_rows(page: Page):
    trace_of(page, CALCULATION)
    panel = page.locator("#panel")
    answer = page.locator(".answer-card")
    expect(answer).to_be_visible()
    expect(panel).to_be_hidden()
    assert "#" not in page.url

    page.locator("#step-2 summary").click()
    expect(panel.get_by_role("link", name="#2")).to_be_visible()
    expect(answer).to_be_hidden()
    assert page.url.endswith("#step-2")
    page.get_by_role("button", name="Answer", exact=True).click()
    expect(answer).to_be_visible()
    assert "#" not in page.url
    page.get_by_role("button", name="Step 2").click()
    expect(panel).to_be_visible()
    panel.get_by_role("link", name="Request").click()
    expect(panel.locator("#tab-request")).to_have_attribute("aria-current", "page")
    expect(panel.locator(".payload")).to_contain_text("12.5")
    page.keyboard.press("j")
    expect(panel.locator(".sent li")).to_have_count(4)
    panel.get_by_role("link", name="Prompt diff").click()
    expect(panel.locator(".sent li")).to_have_count(2)
    for tab in ("Guardrails", "Cost", "Raw"):
        panel.get_by_role("link", name=tab).click()
        expect(panel.get_by_role("link", name=tab)).to_have_attribute("aria-current", "page")
    expect(panel.locator(".payload")).to_contain_text('"type": "usage"')
    assert page.url.endswith("?tab=raw#step-3")
    page.reload()
    expect(panel.get_by_role("link", name="Raw")).to_have_attribute("aria-current", "page")
    page.keyboard.press("Escape")
    expect(page.locator("#step-3 summary")).to_be_focused()


def test_keyboard_shortcuts_work_and_are_listed(page: Page):
    trace_of(page, CALCULATION)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("#panel h2")).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Next step, previous step")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()

    before = number_in(page)
    trace_of(page, "What is 5 + 5?")
    page.keyboard.press("]")
    expect(page).to_have_url(re.compile(rf"/traces/{before}/"))
    page.wait_for_load_state()
    page.keyboard.press("[")
    expect(page.get_by_role("heading", level=1)).to_have_text("What is 5 + 5?")


def test_a_link_to_a_step_keeps_the_filter_and_a_note_appears_once(page: Page):
    trace_of(page, CALCULATION)
    page.goto(f"{page.url.split('?')[0]}?within=status:completed")

    page.locator("#step-3 .number").click()
    expect(page.locator("#panel").get_by_role("link", name="#3")).to_be_visible()
    assert page.url.endswith("?within=status%3Acompleted#step-3")
    page.locator("#panel .step-feedback summary").click()
    for text in ("First.", "Second."):
        note = page.locator("#panel").get_by_label("New note")
        note.fill(text)
        note.press("Control+Enter")
        expect(page.locator("#panel .note", has_text=text)).to_be_visible()
    expect(page.locator("#panel .judge")).to_have_count(1)


def test_a_rating_by_key_is_shown_where_it_was_given(page: Page):
    trace_of(page, CALCULATION)

    page.keyboard.press("1")

    expect(page.locator("#review .verdict").first).to_be_focused()
    expect(page.locator("#review .decided")).to_contain_text("correct")
    expect(page.locator("#announcer")).to_have_text("Verdict: correct.")


def test_a_trace_shows_time_spent_and_side_effects(page: Page):
    trace_of(page, CALCULATION)

    for figure in ("active", "model", "tools"):
        expect(page.locator(f"[data-figure={figure}] dd")).to_have_text(re.compile(r"\d s\s*$"))
    expect(page.locator(".effects-ledger")).to_contain_text("1 tool call, read-only")
    expect(page.locator(".step .bar .work")).to_have_count(3)
    expect(page.locator(".step .bar .first").first).to_be_attached()


def test_on_a_phone_the_details_are_a_sheet_that_closes(page: Page, phone: Page):
    trace_of(page, CALCULATION)
    phone.goto(page.url)
    panel = phone.locator("#panel")
    expect(panel).to_be_hidden()
    answer = phone.locator(".answer-card").bounding_box()
    assert answer["y"] > phone.locator(".steps").bounding_box()["y"]

    phone.locator("#step-2 summary").click()
    expect(panel.locator(".payload").last).to_contain_text("435")
    panel.get_by_role("link", name="Request", exact=True).click()
    expect(panel.locator("#tab-request")).to_have_attribute("aria-current", "page")
    expect(panel.locator(".payload")).to_contain_text("12.5")
    panel.get_by_role("button", name="Close").click()
    expect(panel).to_be_hidden()
    expect(phone.locator("#step-2 summary")).to_be_focused()
    width = phone.evaluate("document.documentElement.scrollWidth")
    assert width <= 390

    phone.locator("#step-1 summary").click()
    expect(panel).to_be_visible()
    phone.go_back()
    expect(panel).to_be_hidden()
    expect(phone).to_have_url(re.compile(r"/traces/\d+/"))


def test_the_answer_is_beside_the_waterfall_and_links_to_its_sources(page: Page):
    trace_of(page, CALCULATION)
    card = page.locator(".answer-card")

    expect(card.locator(".answer strong")).to_have_text("435")
    steps = page.locator(".steps").bounding_box()
    assert steps["y"] < 200
    assert card.bounding_box()["x"] > steps["x"] + steps["width"]
    card.locator(".evidence-step").click()
    expect(page.locator("#step-2 summary")).to_have_attribute("aria-current", "true")
    page.get_by_role("button", name="Answer", exact=True).click()
    card.get_by_role("button", name="Good answer").click()
    expect(card.get_by_role("button", name="Good answer")).to_have_attribute(
        "aria-pressed", "true"
    )
    card.get_by_role("link", name="Flag for review").click()
    expect(page.get_by_label("What should the reviewer look at?")).to_be_focused()


def test_without_javascript_a_run_and_its_steps_can_be_read(visit, server, page: Page):
    trace_of(page, CALCULATION)
    plain = visit(server, java_script_enabled=False)
    plain.goto(page.url)

    expect(plain.locator("#step-2 .seen pre")).to_contain_text("435")
    plain.locator("#step-2 summary").click()
    plain.locator("#step-2 [data-detail]").click()
    expect(plain.locator(".payload").last).to_contain_text("435")
    plain.get_by_role("link", name="#3").click()
    expect(plain.locator(".tabs")).to_be_visible()


@pytest.mark.journey
def test_the_run_page_is_equal_live_and_reloaded(slow_page: Page):
    run = begin(slow_page, CALCULATION)
    open_trace(run)

    expect(run).to_have_attribute("data-live", "")
    expect(run).to_have_attribute("data-status", "completed", timeout=30_000)
    expect(run.locator(".answer strong")).to_have_text("435")
    expect(slow_page.locator("#review summary").first).to_be_visible()

    watched = html(run)
    slow_page.reload()
    assert html(run) == watched


def test_steps_of_a_long_run_are_found(page: Page):
    page.goto("/")
    page.locator("select[name=agent]").select_option("planner")
    ask(page, "Compare this year's best month with last year's and explain.")
    expect(last_run(page)).to_have_attribute("data-status", "completed", timeout=30_000)
    open_trace(last_run(page))
    page.wait_for_load_state()
    steps = page.locator(".step:visible")
    count = steps.count()

    page.keyboard.press("/")
    page.keyboard.type("ＣＡＬＣＵＬＡＴＯＲ 2025")
    expect(page.locator(".find-count")).to_contain_text(f"of {count} steps")
    assert 0 < steps.count() < count
    page.keyboard.press("Enter")
    expect(steps.first.locator("summary")).to_be_focused()
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    expect(steps).to_have_count(count)


def test_details_that_cannot_be_loaded_can_be_loaded_again(page: Page, watch):
    trace_of(page, CALCULATION)
    watch.expect("ERR_FAILED|sendError|afterRequest")
    page.route("**/steps/2/**", lambda route: route.abort())
    page.locator("#step-2 summary").click()
    expect(page.get_by_text("The details couldn’t be loaded.")).to_be_visible()
    page.unroute("**/steps/2/**")
    page.get_by_role("button", name="Try again").click()

    expect(page.locator("#panel h2")).to_contain_text("calculator")
