"""The seeded agents: one has structured output, one hands off to others."""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conversation import FIGURES, ask, html, last_run


def ask_agent(page: Page, agent: str, question: str) -> Locator:
    """Ask this agent a question in a new chat; return its run."""
    page.goto("/")
    page.locator("select[name=agent]").select_option(agent)
    ask(page, question)
    return last_run(page)


def assert_equals_its_reload(page: Page) -> None:
    watched = html(page.locator("#messages"))
    page.reload()
    expect(last_run(page)).to_have_attribute("data-status", "completed")
    assert html(page.locator("#messages")) == watched


@pytest.mark.parametrize(
    ("question", "note"),
    [
        (FIGURES, "The best product by revenue in "),
        pytest.param(
            "今年の売上上位5商品は？", "年の売上が最も多い", marks=pytest.mark.journey
        ),
    ],
)
def test_a_structured_answer_is_a_table_live_and_reloaded(page: Page, question, note):
    run = ask_agent(page, "reporter", question)
    expect(run).to_have_attribute("data-status", "completed")

    answer = run.locator(".answer")
    expect(answer.get_by_role("columnheader")).to_have_text(["Name", "Value"])
    expect(answer.locator("tbody tr")).to_have_count(5)
    expect(answer.locator("p").first).to_have_text(question)
    expect(answer.locator("p").last).to_contain_text(note)
    assert_equals_its_reload(page)


def test_a_handoff_is_shown_below_its_step(page: Page):
    run = ask_agent(page, "lead", "Ask helper: What is 12.5% of 3480?")
    expect(run).to_have_attribute("data-status", "completed")

    nested = run.locator(".step[data-depth='1']")
    expect(nested.locator(".speaker")).to_have_text(["helper"] * 3)
    expect(nested.locator(".intent").nth(1)).to_contain_text("calculator: 3480 * 12.5 / 100")
    expect(run.locator(".answer")).to_contain_text("helper says: The result is 435")
    assert_equals_its_reload(page)


def test_a_call_of_a_sub_agent_waits_for_the_users_approval(page: Page):
    run = ask_agent(page, "lead", "Ask careful: What is 6 times 7?")
    approval = run.locator(".step[data-depth='1'] .approval[data-verdict=waiting]")
    expect(approval).to_contain_text("careful")
    expect(approval).to_contain_text("6 * 7")

    approval.get_by_role("button", name="Approve", exact=True).click()

    expect(run).to_have_attribute("data-status", "completed")
    expect(run.locator(".answer")).to_contain_text("careful says: The result is 42")
    assert_equals_its_reload(page)
