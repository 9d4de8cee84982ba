"""Comparison of two runs, and reruns."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import CALCULATION, FIGURES, SEVERAL, ask_and_wait, last_run
from tests.browser.test_approvals import asks

SALES = "今年いちばん売れた商品を{}つ教えてください。"


def run_number(page: Page, question: str) -> str:
    """Return the number of the run that answered this."""
    return ask_and_wait(page, question).get_attribute("id").removeprefix("run-")


def rerun(page: Page, run: str, step: int) -> None:
    """Submit the unchanged form, and wait for the comparison."""
    page.goto(f"/traces/{run}/again/{step}/")
    send(page)


def send(page: Page) -> None:
    page.get_by_role("button", name="Run again").click()
    expect(page).to_have_url(re.compile(r"/traces/\d+/compare/\d+/$"))


def has_ended(page: Page) -> None:
    expect(page.locator("#comparison")).not_to_have_attribute("data-live", "", timeout=30_000)


def test_a_rerun_streams_next_to_its_origin(slow_page: Page):
    page, run = slow_page, run_number(slow_page, CALCULATION)

    rerun(page, run, 3)

    expect(page.locator(".live-note")).to_contain_text("updates every 2 seconds")
    expect(page.locator(".totals")).to_contain_text(f"rerun of run {run} from step 3")
    expect(page.locator("#comparison [role=status]")).to_have_count(0)
    expect(page.locator("#announcer")).to_be_empty()
    has_ended(page)
    expect(page.locator("#announcer")).to_have_text("Both runs have finished.")
    expect(page.locator("main")).to_contain_text("took the same steps and gave the same answer")
    page.locator(".same-steps summary").click()
    expect(page.locator(".pair-row .tag")).to_have_text(["replayed", "replayed"])


def test_a_run_is_rerun_from_its_page_and_compared(page: Page):
    run = run_number(page, CALCULATION)
    page.set_viewport_size({"width": 1500, "height": 900})
    page.goto(f"/traces/{run}/")

    page.locator("#step-3 summary").click()
    page.get_by_role("link", name="Run again from step 3").click()
    expect(page.locator("#panel h2")).to_have_text(f"Rerun run {run} from step 3")
    send(page)
    has_ended(page)

    page.locator(".totals thead a").nth(1).click()
    expect(page.locator("#step-1 .tag")).to_have_text("replayed")
    page.locator(".run-menu > summary").click()
    page.get_by_role("link", name=f"Compare with original run {run}").click()
    expect(page).to_have_url(re.compile(rf"/traces/{run}/compare/\d+/$"))


def test_a_rerun_without_a_tool_diverges_and_the_page_says_where(page: Page):
    run = run_number(page, SEVERAL)
    page.goto(f"/traces/{run}/again/4/")
    page.get_by_label("calculator").uncheck()
    page.get_by_label("Instructions").fill("Be brief.")

    send(page)
    has_ended(page)

    setup = page.locator(".setup")
    expect(setup).to_contain_text("Tool calculator")
    expect(setup.locator("ins").first).to_be_visible()
    expect(page.locator(".difference-note")).to_contain_text("First difference at step 4")
    page.get_by_role("link", name="Go to difference").click()
    expect(page.locator(".pair-row[data-first]")).to_be_focused()
    expect(page.locator(".pair-row[data-first] del")).to_have_text("42")


def test_n_goes_to_the_next_difference_and_j_to_the_next_row(page: Page):
    one, other = run_number(page, CALCULATION), run_number(page, "What is 12.5% of 3500?")
    page.goto(f"/traces/{one}/compare/{other}/")
    rows, differing = page.locator(".pair-row"), page.locator("[data-differs]")
    expect(page.locator(".difference-note")).to_be_visible()

    page.keyboard.press("n")
    expect(differing.first).to_be_focused()
    page.keyboard.press("n")
    expect(differing.nth(1)).to_be_focused()
    page.keyboard.press("P")  # as Caps Lock has it
    expect(differing.first).to_be_focused()
    page.locator(".same-steps summary").first.click()
    page.keyboard.press("j")
    expect(rows.first).to_be_focused()
    page.keyboard.press("j")
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("k")
    expect(rows.first).to_be_focused()


def test_a_call_of_a_rerun_is_approved_on_the_comparison_page(page: Page):
    asks(page).get_by_role("button", name="Approve", exact=True).click()
    expect(last_run(page)).to_have_attribute("data-status", "completed")
    run = last_run(page).get_attribute("id").removeprefix("run-")
    rerun(page, run, 2)
    waiting = page.locator(".approval[data-verdict=waiting]")
    expect(waiting).to_be_visible()

    waiting.locator(".rejecting > summary").click()
    waiting.get_by_label("Reason").fill("Let me think")
    page.wait_for_timeout(2500)
    expect(waiting.get_by_label("Reason")).to_have_value("Let me think")
    waiting.get_by_role("button", name="Approve", exact=True).click()

    has_ended(page)
    expect(page.locator("main")).to_contain_text("took the same steps and gave the same answer")


def test_the_second_run_is_chosen_from_a_list_or_by_number(page: Page, watch):
    watch.expect("422")
    one, other = run_number(page, CALCULATION), run_number(page, CALCULATION)
    page.goto(f"/traces/{one}/compare/")

    field = page.get_by_label("Run number")
    field.fill("987654")
    field.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("No run has this number.")
    field.fill(f"#{other}")
    field.press("Enter")

    expect(page).to_have_url(re.compile(rf"/traces/{one}/compare/{other}/$"))
    page.get_by_role("link", name="Compare with another run").click()
    expect(page.get_by_role("heading", name="Same question")).to_be_visible()
    page.get_by_role("link", name=f"#{other} ").click()
    expect(page).to_have_url(re.compile(rf"/traces/{one}/compare/{other}/$"))


def test_comparing_and_rerunning_work_without_javascript(page: Page, visit, server):
    run = run_number(page, FIGURES)
    plain = visit(server, java_script_enabled=False)
    rerun(plain, run, 3)

    for _ in range(10):
        plain.reload()
        if plain.locator("#comparison[data-live]").count() == 0:
            break

    expect(plain.locator(".same-steps summary")).to_have_text(re.compile("3 identical steps"))
    plain.locator(".same-steps summary").click()
    expect(plain.locator(".pair-row")).to_have_count(3)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_comparison_fits_a_phone_in_japanese(page: Page, visit, server, scheme):
    one, other = run_number(page, SALES.format(5)), run_number(page, SALES.format(3))
    size = {"width": 390, "height": 844}
    phone = visit(server, viewport=size, is_mobile=True, color_scheme=scheme, locale="ja-JP")

    for address in ("compare/", f"compare/{other}/", "again/2/"):
        phone.goto(f"/traces/{one}/{address}")
        assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
    phone.goto(f"/traces/{one}/compare/{other}/")

    expect(phone.locator(".setup del")).to_have_text("5")
    expect(phone.locator(".setup ins")).to_have_text("3")
    sides = phone.locator(".setup .side").all()
    assert sides[0].bounding_box()["y"] < sides[1].bounding_box()["y"]
