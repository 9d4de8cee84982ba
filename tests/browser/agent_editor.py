"""The agent editor as a user works with it."""

from playwright.sync_api import Page, expect

AGENTS = "/admin/agents/agent/"


def open_agent(page: Page, name: str, tab: str = "Prompt") -> None:
    page.goto(AGENTS)
    page.locator("#result_list").get_by_role("link", name=name, exact=True).click()
    open_tab(page, tab)


def open_tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name).click()


def publish(page: Page, note: str = "") -> None:
    """Publish the draft from its dialog."""
    page.locator("[data-publish]").click()
    page.get_by_label("Change note").fill(note)
    page.locator("[data-publish-now]").click()
    expect(page.locator(".messagelist .success")).to_contain_text("is live")
