"""Feedback on answers, and reviews."""

import re
from random import randrange

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conversation import ask, ask_and_wait, html, last_run
from tests.browser.test_everyone import faint_text, fits


@pytest.fixture
def asker(visit, server, guest) -> Page:
    """A user who asks, but doesn't review."""
    return visit(server, storage_state=guest)


def request_review(page: Page, question: str) -> Locator:
    """Ask for a review of an answer."""
    run = ask_and_wait(page, question)
    run.get_by_role("button", name="Bad answer").click()
    run.get_by_role("button", name="Save and flag for review").click()
    expect(run.locator(".flagged")).to_be_visible()
    return run


def case(page: Page, question: str) -> Locator:
    return page.locator(".case").filter(has_text=question)


def open_reviews(page: Page) -> int:
    """Return the badge's number of pending reviews."""
    return int((page.locator("#open-reviews").text_content().split() or ["0"])[0])


def test_a_rating_is_saved_and_removed_live_and_reloaded(page: Page):
    run = ask_and_wait(page, "What is 2 + 2?")
    rating = run.locator(".rating")

    run.get_by_role("button", name="Good answer").press("Enter")
    expect(rating).to_have_attribute("data-rated", "good")
    expect(run.get_by_role("button", name="Good answer")).to_be_focused()
    watched = html(page.locator("#messages"))
    page.reload()
    assert html(page.locator("#messages")) == watched

    run.get_by_role("button", name="Good answer").click()
    expect(rating).to_have_attribute("data-rated", "")
    page.reload()
    expect(rating).to_have_attribute("data-rated", "")


def test_a_negative_rating_asks_for_a_reason_and_saves_it(page: Page):
    run = ask_and_wait(page, "What is 2 + 3?")
    run.get_by_role("button", name="Bad answer").click()
    run.get_by_role("button", name="Incomplete").click()
    expect(run.get_by_role("button", name="Incomplete")).to_have_attribute(
        "aria-pressed", "true"
    )
    run.get_by_label("Details (optional)").fill("How did you get there?")
    run.get_by_role("button", name="Save", exact=True).click()

    summary = run.locator(".reasons summary")
    expect(summary).to_contain_text("Incomplete")
    expect(summary).to_contain_text("How did you get there?")
    watched = html(page.locator("#messages"))
    page.reload()
    assert html(page.locator("#messages")) == watched


def test_a_rating_stays_after_the_next_answer_and_in_another_tab(page: Page):
    run = ask_and_wait(page, "What is 2 + 4?")
    other = page.context.new_page()
    other.goto(page.url)
    expect(last_run(other).locator(".rating")).to_have_attribute("data-rated", "")
    run.get_by_role("button", name="Good answer").click()
    first = page.locator(".rating").first

    ask(page, "And 2 + 5?")

    expect(page.locator(".run[data-status=completed]")).to_have_count(2)
    expect(first).to_have_attribute("data-rated", "good")
    expect(other.locator(".rating").first).to_have_attribute("data-rated", "good")


def test_a_signed_out_user_is_asked_to_sign_in(page: Page):
    run = ask_and_wait(page, "What is 2 + 6?")
    page.context.clear_cookies(name="sessionid")

    run.get_by_role("button", name="Good answer").click()

    expect(page.locator("form.credentials")).to_be_visible()
    expect(page.locator(".run")).to_have_count(0)


def test_a_correction_appears_live_in_the_askers_chat(page: Page, asker: Page):
    run = request_review(asker, "What is 3 + 3?")
    page.goto("/review/")
    mine = case(page, "What is 3 + 3?")
    mine.locator("h2").click()
    mine.focus()

    page.keyboard.press("c")
    page.keyboard.press("Control+a")
    page.keyboard.type("It is **six**.")
    page.keyboard.press("Control+Enter")

    expect(mine.locator(".correction strong")).to_contain_text(["Corrected by demo", "six"])
    expect(run.locator(".correction .signed")).to_contain_text("Corrected by demo on ")
    expect(run.locator(".correction .prose strong")).to_have_text("six")
    expect(run.get_by_role("link", name="Corrected (see below)")).to_be_visible()
    expect(run.locator(".answer")).to_contain_text("6")
    watched = html(asker.locator("#messages"))
    asker.reload()
    assert html(asker.locator("#messages")) == watched


@pytest.mark.journey
def test_the_queue_is_reviewed_with_the_keyboard(page: Page, asker: Page):
    # A second try of this test must not find the questions of the first.
    questions = [f"What is {randrange(10_000, 99_999)} + {n}?" for n in (4, 5)]
    for question in questions:
        request_review(asker, question)
    page.goto("/review/")
    first, second = (case(page, question) for question in questions)
    before = open_reviews(page)

    page.keyboard.press("1")
    expect(page.locator(".case").first).to_be_focused()
    expect(page.locator(".decided")).to_have_count(0)
    page.locator("h1").click()
    page.keyboard.press("k")
    page.keyboard.press("K")  # as Caps Lock has it
    expect(first).to_be_focused()
    page.keyboard.press("a")
    page.keyboard.type("Checked by hand.")
    page.keyboard.press("Control+Enter")
    expect(first.locator(".note")).to_contain_text("Checked by hand.")
    page.keyboard.press("Escape")
    page.keyboard.press("1")

    expect(second).to_be_focused()
    expect(first.locator(".decided")).to_contain_text("Marked correct by demo")
    expect(page.locator("#announcer")).to_contain_text("Verdict: correct.")
    page.keyboard.press("3")
    expect(second.locator(".judge")).to_have_attribute("data-verdict", "wrong")
    expect(page.locator("#announcer")).to_contain_text("the last one")
    assert open_reviews(page) == before - 2
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    page.goto("/review/")
    expect(first).to_have_count(0)


def test_the_second_reviewer_is_notified_and_keeps_the_input(page: Page, asker: Page):
    request_review(asker, "What is 5 + 5?")
    other = page.context.new_page()
    for queue in (page, other):
        queue.goto("/review/")
    case(page, "What is 5 + 5?").get_by_role("button", name="Unsafe").click()
    expect(case(page, "What is 5 + 5?").locator(".decided")).to_be_visible()

    theirs = case(other, "What is 5 + 5?")
    theirs.get_by_label("New note").fill("I was about to say …")
    theirs.get_by_role("button", name="correct", exact=True).click()

    expect(theirs.get_by_role("alert")).to_contain_text("demo set the verdict to “unsafe”.")
    expect(theirs.get_by_label("New note")).to_have_value("I was about to say …")
    theirs.get_by_role("button", name="Partly correct").click()
    expect(theirs.locator(".judge")).to_have_attribute("data-verdict", "partly")


def test_a_run_is_labelled_assigned_and_saved_as_an_example(page: Page, asker: Page):
    request_review(asker, "What is 6 + 5?")
    page.goto("/review/")
    mine = case(page, "What is 6 + 5?")

    mine.get_by_label("New label").fill("Ｓｕｍｓ")
    mine.get_by_label("New label").press("Enter")
    expect(mine.locator(".label")).to_have_text(re.compile("^sums"))
    mine.get_by_text("Assign", exact=True).first.click()
    mine.get_by_role("button", name="Assign to me").click()
    expect(mine.get_by_text("Assigned to demo")).to_be_visible()
    mine.get_by_text("Save as example").click()
    mine.get_by_role("button", name="Save", exact=True).click()
    expect(mine.get_by_text("Saved as “What is 6 + 5?”")).to_be_visible()

    page.goto("/review/?show=mine")
    expect(case(page, "What is 6 + 5?")).to_be_visible()
    mine.get_by_role("button", name="Remove sums").click()
    expect(mine.locator(".label")).to_have_count(0)


def test_the_rubric_of_a_queue_is_scored_with_a_click(page: Page, asker: Page):
    request_review(asker, "What is 9 + 8?")
    name = f"Sums {randrange(10_000, 99_999)}"
    page.goto("/admin/review/reviewqueue/add/")
    page.locator("#id_name").fill(name)
    rows = page.locator(".criterion")
    rows.last.get_by_label("Name").fill("Tone")
    page.get_by_role("button", name="Add criterion").click()
    page.keyboard.type("Correctness")
    rows.first.get_by_label("Scale").select_option("yes_no")
    rows.last.get_by_role("button", name="Move up").click()
    page.locator("input[name=_save]").click()

    page.goto("/review/")
    mine = case(page, "What is 9 + 8?")
    mine.get_by_text("Assign", exact=True).first.click()
    mine.locator(".assign").get_by_label("Review queue").select_option(name)
    mine.locator(".assign").get_by_role("button", name="Assign", exact=True).click()
    expect(mine.locator(".rubric p")).to_have_text(["Correctness", "Tone"])
    mine.get_by_label("New note").fill("I was about to say …")
    mine.get_by_role("group", name="Correctness").get_by_role("button", name="4").press("Enter")

    chosen = mine.get_by_role("group", name="Correctness").get_by_role("button", name="4")
    expect(chosen).to_have_attribute("aria-pressed", "true")
    expect(chosen).to_be_focused()
    expect(mine.get_by_label("New note")).to_have_value("I was about to say …")
    chosen = mine.get_by_role("group", name="Tone").get_by_role("button", name="Yes")
    chosen.click()
    expect(chosen).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("1")
    expect(mine.locator(".judge")).to_have_attribute("data-verdict", "correct")
    page.get_by_role("link", name=name).first.click()
    expect(page.locator(".queue-results")).to_have_text(
        "Correctness 4.0 · Tone 100% yes · 1 decided"
    )

    page.goto("/admin/review/reviewqueue/")
    page.get_by_role("link", name=name).click()
    page.get_by_role("link", name="Delete").click()
    page.locator("input[type=submit].danger").click()
    expect(page.get_by_role("link", name=name)).to_have_count(0)


def test_reviewing_works_without_javascript(visit, server, guest):
    asker = visit(server, storage_state=guest, java_script_enabled=False)
    reviewer = visit(server, java_script_enabled=False)
    asker.goto("/")
    asker.locator("#text").fill("What is 7 + 5?")
    asker.get_by_role("button", name="Send").click()
    run = last_run(asker)
    expect(run).to_have_attribute("data-status", "completed")
    run.get_by_role("button", name="Bad answer").click()
    run.get_by_role("button", name="Incorrect").click()
    expect(asker).to_have_url(re.compile(r"/chat/\d+/#rating-\d+$"))
    run.locator(".reasons summary").click()
    run.get_by_role("button", name="Save and flag for review").click()
    expect(run.locator(".flagged")).to_be_visible()

    reviewer.goto("/review/?show=unassigned")
    mine = case(reviewer, "What is 7 + 5?")
    mine.get_by_label("New note").fill("Seen on paper.")
    mine.get_by_role("button", name="Add note").click()
    expect(mine.locator(".note")).to_contain_text("Seen on paper.")
    mine.get_by_text("Correct the answer").click()
    mine.get_by_label("Enter the correct answer").fill("**Twelve**.")
    mine.get_by_role("button", name="Send correction").click()

    asker.reload()
    expect(run.locator(".correction .prose strong")).to_have_text("Twelve")
    number = run.get_attribute("id").removeprefix("run-")
    reviewer.goto(f"/traces/{number}/steps/1/review/")
    reviewer.get_by_label("New note").fill("A good beginning.")
    reviewer.get_by_role("button", name="Add note").click()
    expect(reviewer.locator(".note")).to_contain_text("A good beginning.")


def test_the_review_pages_are_accessible_in_both_themes(page: Page, asker: Page):
    run = request_review(asker, "What is 8 + 5?")
    run.locator(".reasons summary").click()
    assert faint_text(asker) == []
    page.goto("/review/")
    mine = case(page, "What is 8 + 5?")
    mine.get_by_text("Correct the answer").click()
    mine.get_by_text("Save as example").click()

    assert faint_text(page) == []
    for control in page.locator("button, a, input:not([type=hidden]), textarea, select").all():
        if control.is_visible():
            expect(control).to_have_accessible_name(re.compile(r"\S"))
    expect(page.get_by_role("heading", level=1)).to_have_count(1)


def test_nothing_is_wider_than_a_phone_in_either_language(phone: Page, asker: Page):
    request_review(asker, "What is 9 + 5?")
    for language in ("日本語", "English"):
        phone.goto("/review/")
        phone.locator(".phone-bar [popovertarget]").click()
        phone.locator(".account-button").click()
        phone.get_by_role("button", name=language).click()
        mine = case(phone, "What is 9 + 5?")
        for summary in mine.locator(".more-to-say > details > summary").all():
            summary.click()
        assert fits(phone)
    phone.goto("/")
    phone.locator("#text").fill("What is 9 + 6?")
    phone.get_by_role("button", name="Send").tap()
    expect(last_run(phone)).to_have_attribute("data-status", "completed")
    last_run(phone).get_by_role("button", name="Bad answer").tap()
    expect(phone.get_by_label("Details (optional)")).to_be_in_viewport()
    assert fits(phone)


def test_a_run_and_its_step_are_reviewed_on_its_page(page: Page, asker: Page):
    run = ask_and_wait(asker, "What is 9 + 7?")
    number = run.get_attribute("id").removeprefix("run-")
    page.goto(f"/traces/{number}/")

    page.keyboard.press("2")
    expect(page.locator(f"#judge-{number}")).to_have_attribute("data-verdict", "partly")
    page.keyboard.press("a")
    page.keyboard.type("It took a detour.")
    page.keyboard.press("Control+Enter")
    expect(page.locator(f"#judge-{number} .note")).to_contain_text("It took a detour.")

    page.goto(f"/traces/{number}/#step-2")
    expect(page.locator("#panel").get_by_role("link", name="#2", exact=True)).to_be_visible()
    page.locator("#panel .step-feedback summary").click()
    note = page.locator("#panel").get_by_label("New note")
    note.fill("Here.")
    note.press("Control+Enter")
    expect(page.locator("#panel .note")).to_contain_text("Here.")
    page.reload()
    notes = page.locator(f"#judge-{number} .note")
    expect(notes).to_contain_text(["It took a detour.", "Here."])
    expect(notes.last.get_by_role("link", name="step 2")).to_be_visible()
