from contextlib import contextmanager

from playwright.sync_api import Page, expect

from tests.browser.agent_editor import open_agent, publish
from tests.browser.conversation import begin


def test_a_run_at_its_step_limit_offers_to_continue(page: Page):
    with most_steps(page, 1):
        run = begin(page, "What is 6 times 7?")
        expect(run.locator(".outcome")).to_contain_text("No answer after 1 step.")
    run.get_by_role("button", name="Continue").click()

    expect(page.locator(".message")).to_have_count(2)
    expect(page.locator(".run").last).to_have_attribute("data-status", "completed")


@contextmanager
def most_steps(page: Page, number: int):
    limit_steps(page, number)
    try:
        yield
    finally:
        with page.context.new_page() as other:
            limit_steps(other, 10)


def limit_steps(page: Page, number: int) -> None:
    open_agent(page, "helper", "Limits")
    page.locator("[name=max_steps]").fill(str(number))
    publish(page)


def test_a_server_of_the_gallery_is_added_with_its_fields(page: Page):
    page.goto("/admin/agents/mcpserver/")
    page.get_by_role("link", name="Add MCP server").click()
    page.get_by_role("link", name="GitHub").click()
    page.get_by_label("Personal access token").fill("github_pat_1")
    page.get_by_role("button", name="Add server").click()
    # This machine can't reach it.
    expect(page.locator(".setup-failed")).to_be_visible(timeout=30_000)
    expect(page.get_by_role("button", name="Try again")).to_be_visible()

    page.goto("/admin/agents/mcpserver/")
    card = page.locator(".server-card", has_text="github")
    card.get_by_role("button", name="Pause github").click()
    expect(page.locator(".messagelist .success")).to_contain_text("Github is paused.")
    page.locator(".server-card", has_text="github").get_by_role("link", name="Edit").click()
    page.locator(".deletelink").click()
    page.locator("#content form [type=submit]").click()
    expect(page.locator(".messagelist .success")).to_be_visible()
