"""Guardrail patterns in the console: test, backtest, observe and judge."""

import re
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import ask_and_wait, begin
from tests.browser.test_accessibility import READERS, faults

PATTERNS = "/admin/agents/guardrailpattern/"


def draft(page: Page, pattern: str, action: str = "block", stage: str = "input") -> None:
    page.goto(f"{PATTERNS}add/")
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


def test_matches_are_highlighted_while_typing(page: Page):
    draft(page, "sword[a-z]+", "mask", "both")
    page.locator("#sample").press_sequentially("A ｓｗｏｒｄfish.")

    trial = page.locator("#trial")
    expect(trial.locator("mark")).to_have_text("ｓｗｏｒｄfish")
    expect(trial.locator(".guardrails-verdicts .marked").first).to_have_text("A ‹Fish›.")

    page.locator("[name=pattern]").fill("sword(")
    expect(trial.locator(".problem")).to_contain_text("missing )")


def test_a_pattern_is_tested_on_past_runs_before_it_is_saved(page: Page):
    ask_and_wait(page, "What is 4711 + 1?")
    draft(page, "4711")

    page.get_by_role("button", name="Run backtest").click()

    expect(page.locator("#backtest .calm")).to_contain_text("The pattern would have matched in")
    page.locator("#backtest .guardrails-examples a").first.click()
    expect(page).to_have_url(re.compile("/traces/"))


@pytest.mark.journey
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
        expect(page.locator("#result_list tr", has_text="Fish")).to_contain_text("1 of 1")


def test_masked_text_is_masked_live_and_reloaded(page: Page):
    draft(page, r"4\d\b", "mask", "output")
    with saved_pattern(page):
        run = begin(page, "What is 6 times 7?")
        expect(run).to_have_attribute("data-status", "completed")
        expect(run.locator(".answer").first).to_contain_text("‹Fish›")
        page.reload()
        expect(page.locator(".run .answer").last).to_contain_text("‹Fish›")


def test_a_pattern_set_is_added_with_one_click(page: Page):
    page.goto(PATTERNS)
    page.locator("#content").get_by_role("link", name="Prebuilt patterns").click()
    page.get_by_role("button", name="Add “Personal data (Japanese)”").click()

    expect(page.locator(".messagelist .success")).to_contain_text("5 patterns added.")
    expect(page.locator("#set-personal-japanese")).to_contain_text(
        "All patterns in this set are already added."
    )
    page.goto(f"{PATTERNS}?q=マイナンバー")
    page.locator("[name=form-0-enabled]").uncheck()
    save(page)


@pytest.mark.parametrize("reader", READERS)
def test_the_guardrail_pages_are_accessible(visit, server, watch, reader):
    watch.expect("Applying inline style|preload assets")  # axe reads the admin's own styles
    page = visit(server, **READERS[reader], reduced_motion="reduce")
    draft(page, "sword[a-z]{1,9}", "mask", "both")
    page.locator("#sample").fill("A swordfish, and a trout.\n6 swordfishes.")
    expect(page.locator("#trial mark")).to_have_count(2)
    page.locator(".past button").click()
    expect(page.locator("#backtest .calm")).to_be_visible()
    assert faults(page) == []
    for name in ("hits", "sets"):
        page.goto(f"{PATTERNS}{name}/")
        assert faults(page) == [], name
    page.goto(PATTERNS)
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) <= 0
