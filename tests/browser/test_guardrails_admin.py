"""Guardrails in the console: order, test, backtest, observe and judge."""

import re
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import ask_and_wait, begin
from tests.browser.test_accessibility import READERS, faults

PATTERNS = "/admin/agents/guardrailpattern/"


def draft(page: Page, pattern: str, action: str = "block", stage: str = "input") -> None:
    page.goto(f"{PATTERNS}add/?kind=pattern")
    page.locator("[name=name]").fill("Fish")
    page.locator("[name=pattern]").fill(pattern)
    page.locator("[name=stage]").select_option(stage)
    page.locator("[name=action]").select_option(action)


def save(page: Page) -> None:
    page.locator("[name=_save]").click()
    expect(page.locator(".messagelist .success")).to_be_visible()


@contextmanager
def saved_pattern(page: Page, name: str = "Fish"):
    save(page)
    try:
        yield
    finally:
        page.goto(PATTERNS)
        page.locator("#result_list").get_by_role("link", name=name, exact=True).click()
        page.locator(".deletelink").click()
        page.locator("#content form [type=submit]").click()
        expect(page.locator(".messagelist .success")).to_be_visible()


def names(page: Page) -> list[str]:
    return [name.strip() for name in page.locator("#rules th > a").all_inner_texts()]


def test_matches_are_highlighted_while_typing(page: Page):
    draft(page, "sword[a-z]+", "mask", "both")
    page.locator("#sample").press_sequentially("A ｓｗｏｒｄfish.")

    trial = page.locator("#trial")
    expect(trial.locator("mark")).to_have_text("ｓｗｏｒｄfish")
    expect(trial.locator(".guardrails-verdicts .marked").first).to_have_text("A ‹Fish›.")

    page.locator("[name=pattern]").fill("sword(")
    expect(trial.locator(".problem")).to_contain_text("missing )")


def test_a_phrase_is_blocked_in_three_clicks(page: Page):
    page.goto("/admin/")
    page.get_by_role("link", name="Guardrails", exact=True).first.click()
    page.get_by_role("link", name="Add rule").click()
    expect(page.locator("[name=pattern]")).to_be_focused()
    page.keyboard.type("red herring\nswordfish")
    with saved_pattern(page, "Words"):
        page.locator("#test-text").fill("A Red  Herring, not swordfishes")
        expect(page.locator("#rule-test-results mark").first).to_have_text("Red  Herring")
        expect(page.locator("#rule-test-results .badge").first).to_have_text("Blocked")


def test_a_pattern_is_tested_on_past_runs_before_it_is_saved(page: Page):
    ask_and_wait(page, "What is 4711 + 1?")
    draft(page, "4711")

    page.get_by_role("button", name="Run backtest").click()

    expect(page.locator("#backtest .calm")).to_contain_text("The pattern would have matched in")
    with page.expect_popup() as opened:  # so that the draft isn't lost
        page.locator("#backtest .guardrails-examples a").first.click()
    expect(opened.value).to_have_url(re.compile("/traces/"))


def test_rules_are_ordered_from_the_keyboard_and_by_dragging(page: Page):
    page.goto(PATTERNS)
    before = names(page)
    down = page.locator("#rules tr").first.locator(".down")
    down.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#rules th > a").first).to_have_text(before[1])
    expect(page.locator("#order-said")).to_contain_text("is now number 2")
    focused = page.evaluate(
        "document.activeElement.closest('tr').querySelector('th > a').textContent"
    )
    assert focused == before[0]

    page.locator("#rules tr").nth(1).locator(".handle").drag_to(
        page.locator("#rules tr").first, target_position={"x": 200, "y": 4}
    )
    expect(page.locator("#rules th > a").first).to_have_text(before[0])
    page.reload()
    assert names(page) == before


def test_a_text_is_tested_with_all_rules_on_the_page(page: Page):
    page.goto(PATTERNS)
    page.get_by_label("Text", exact=True).fill("-----BEGIN PRIVATE KEY-----")

    results = page.locator("#rule-test-results")
    expect(results.locator(".stage-result").first).to_contain_text("Blocked")
    expect(results.locator("mark").first).to_have_text("-----BEGIN PRIVATE KEY-----")


def test_a_model_check_is_tried_after_its_cost_and_its_verdict_is_in_the_trace(page: Page):
    page.goto(f"{PATTERNS}add/?kind=model")
    page.locator("[name=name]").fill("Fish")
    page.locator("[name=model]").fill("demo")
    page.get_by_role("button", name="Off topic").click()
    expect(page.locator("[name=rubric]")).to_have_value(re.compile("our shop"))
    page.locator("[name=rubric]").fill("The text mentions “pikeperch”.")
    page.locator("[name=stage]").select_option("input")
    page.locator("#sample").fill("A pikeperch")
    page.get_by_role("button", name="Test with the model").click()
    expect(page.locator("#judged")).to_contain_text("This makes 1 call")
    page.get_by_role("button", name="Ask the model").click()
    expect(page.locator("#judged .judge-verdict")).to_contain_text("Violation")

    with saved_pattern(page):
        run = begin(page, "What is a pikeperch?")
        expect(run).to_have_attribute("data-status", "blocked")
        step = run.locator(".step[data-kind=guardrail]")
        step.locator("summary").click()
        expect(step.locator(".notes")).to_contain_text("demo found a violation")
        page.reload()
        expect(page.locator(".run .step[data-kind=guardrail]")).to_have_count(1)


def test_an_observe_only_pattern_changes_nothing_and_its_hit_can_be_rated(page: Page):
    draft(page, "(?i)pikeperch")
    page.locator("[name=is_observed]").check()
    with saved_pattern(page):
        run = begin(page, "What is a pikeperch?")
        expect(run).to_have_attribute("data-status", "completed")

        page.goto(f"{PATTERNS}hits/")
        row = page.locator(".hits tbody tr").first
        expect(row).to_contain_text("observed only")
        row.get_by_role("button", name="correct", exact=True).click()
        expect(row.locator("[value=right]")).to_have_attribute("aria-pressed", "true")

        row.get_by_role("link").click()
        judged = page.locator("#panel .hit")
        expect(judged.locator("[value=right]")).to_have_attribute("aria-pressed", "true")
        judged.get_by_role("button", name="wrong").click()
        expect(judged.locator("[value=wrong]")).to_have_attribute("aria-pressed", "true")
        assert not faults(page)
        judged.get_by_role("button", name="correct").click()
        expect(judged.locator("[value=right]")).to_have_attribute("aria-pressed", "true")

        page.goto(PATTERNS)
        expect(page.locator("#result_list tr", has_text="Fish")).to_contain_text("0 of 1")


def test_masked_text_is_masked_live_and_reloaded(page: Page):
    draft(page, r"4\d\b", "mask", "output")
    with saved_pattern(page):
        run = begin(page, "What is 6 times 7?")
        expect(run).to_have_attribute("data-status", "completed")
        expect(run.locator(".answer").first).to_contain_text("‹Fish›")
        page.reload()
        expect(page.locator(".run .answer").last).to_contain_text("‹Fish›")


def test_a_set_is_turned_on_and_off_on_the_page(page: Page):
    page.goto(PATTERNS)
    page.get_by_role("button", name="Turn on “Personal data (Japanese)”").click()
    expect(page.locator(".messagelist .success")).to_contain_text("5 rules added.")
    expect(page.locator("#set-personal-japanese")).to_contain_text("On")

    page.get_by_role("button", name="Turn off “Personal data (Japanese)”").click()
    expect(page.locator(".messagelist .success")).to_contain_text("5 rules disabled.")


@pytest.mark.parametrize("reader", READERS)
def test_the_guardrail_pages_are_accessible(visit, server, watch, reader):
    watch.expect("Applying inline style|preload assets")  # axe reads the admin's own styles
    page = visit(server, **READERS[reader], reduced_motion="reduce")
    page.goto(f"{PATTERNS}hits/")
    assert faults(page) == []
    page.goto(PATTERNS)
    page.locator("#test-text").fill("-----BEGIN PRIVATE KEY-----")
    expect(page.locator("#rule-test-results mark").first).to_be_visible()
    assert faults(page) == []
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) <= 0
    draft(page, "sword[a-z]{1,9}", "mask", "both")
    page.locator("#sample").fill("A swordfish, and a trout.\n6 swordfishes.")
    expect(page.locator("#trial mark")).to_have_count(2)
    page.locator(".past button").click()
    expect(page.locator("#backtest .calm")).to_be_visible()
    # All of it is in view: axe counts what lies under a sticky header as its neighbor.
    page.set_viewport_size({**page.viewport_size, "height": 4_000})
    assert faults(page) == []
