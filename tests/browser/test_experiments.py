"""Example sets and backtests in the console."""

from playwright.sync_api import Page, expect

from tests.browser.conversation import ask_and_wait
from tests.browser.test_accessibility import faults


def add_example(page: Page, question: str) -> None:
    page.get_by_role("link", name="Add example").first.click()
    page.locator("[name=question]").fill(question)
    page.locator("[name=checks-kind]").select_option("number")
    page.locator("[name=checks-value]").fill("435")
    page.get_by_role("button", name="Add check").click()
    page.locator("[name=checks-kind]").nth(1).select_option("tool_called")
    page.locator("[name=checks-value]").nth(1).fill("calculator")
    page.locator("[name=_save]").click()
    expect(page.locator(".messagelist .success")).to_be_visible()


def test_a_set_is_filled_run_and_scored_and_past_runs_are_back_tested(server, visit):
    page = visit(server)
    ask_and_wait(page, "What is 12.5% of 3480?")
    page.goto("/admin/review/exampleset/add/")
    page.locator("[name=name]").fill("Sums")
    page.locator("[name=_save]").click()
    add_example(page, "What is 12.5% of 3480?")
    page.get_by_role("link", name="Run set").click()
    page.get_by_role("button", name="Run set").click()
    page.get_by_role("button", name="Run anyway").click()  # the agent can remember things
    expect(page.locator(".experiment-figures")).to_contain_text("100%")
    expect(page.locator(".check-results li")).to_have_count(2)
    assert faults(page) == []

    page.goto("/admin/agents/agent/")
    page.locator("#result_list").get_by_role("link", name="helper", exact=True).click()
    pk = page.url.split("/agent/")[1].split("/")[0]
    page.goto(f"/admin/experiments/experiment/backtest/{pk}/")
    expect(page.locator(".estimate")).to_contain_text("model calls")
    page.get_by_role("button", name="Start backtest").click()
    expect(page.locator(".experiment-figures")).to_contain_text("same")
    page.get_by_role("link", name="Side by side").first.click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
