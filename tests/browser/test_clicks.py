"""How many clicks away things are that a user needs in a hurry."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.server import Server

pytestmark = pytest.mark.journey

LIST = "/admin/agents/agent/"
MAX_CLICKS = 3
CREATE = """
from agents.models import Agent
Agent.objects.create(name="short-lived", model="demo")
"""


def test_a_deleted_agent_is_restored_within_three_clicks_from_the_list(
    page: Page, server: Server
):
    server.manage("shell", "-c", CREATE)
    page.goto(LIST)
    agent = page.get_by_role("link", name="short-lived", exact=True)
    page.goto(agent.get_attribute("href").replace("/change/", "/delete/"))
    page.get_by_role("button", name="Delete", exact=True).click()
    page.goto(LIST)
    expect(agent).to_have_count(0)

    clicks = [
        page.get_by_role("link", name="Recently deleted"),
        page.get_by_role("button", name="Restore short-lived"),
    ]
    for control in clicks:
        control.click()

    assert len(clicks) <= MAX_CLICKS
    expect(agent).to_be_visible()
