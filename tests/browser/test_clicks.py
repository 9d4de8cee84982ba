"""How many clicks away things are that an administrator needs in a hurry."""

import re
import sys

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.server import PROJECT, Server

LIST = "/admin/agents/agent/"
CREATE = """
from agents.models import Agent
Agent.objects.create(name="short-lived", model="demo")
"""
GALLERY = PROJECT / "tests" / "tools" / "mcp_servers" / "gallery.py"
REMOVE = """
from agents.models import McpServer
McpServer.objects.get(name="pictures").delete()
"""


class Clicks:
    """Clicks, and counts them; typing isn't counted."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, control: Locator) -> None:
        self.count += 1
        control.click()

    def choose(self, select: Locator, value: str) -> None:
        self.count += 1
        select.select_option(value)


@pytest.mark.journey
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

    click = Clicks()
    click(page.get_by_role("link", name="Recently deleted"))
    click(page.get_by_role("button", name="Restore short-lived"))

    assert click.count <= 3
    expect(agent).to_be_visible()


def test_a_user_is_invited_within_four_clicks_from_the_home(page: Page):
    click = Clicks()
    page.goto("/admin/")
    click(page.get_by_role("link", name="Users", exact=True))
    click(page.get_by_role("link", name="Invite users"))
    page.get_by_label("Email addresses").fill("yuki@example.com")
    click(page.get_by_role("button", name="Create invitation"))

    assert click.count <= 4
    expect(page.locator(".link-row input")).to_have_value(re.compile("/invite/"))


def test_an_agent_gets_an_mcp_server_within_eight_clicks_from_the_home(
    page: Page, server: Server
):
    click = Clicks()
    page.goto("/admin/")
    click(page.get_by_role("link", name="Tools", exact=True))
    click(page.get_by_role("link", name="MCP servers", exact=True))
    click(page.get_by_role("link", name="Add MCP server"))
    click(page.get_by_role("link", name="Add manually"))
    page.locator("[name=name]").fill("pictures")
    click.choose(page.locator("[name=transport]"), "stdio")
    page.locator("[name=command_line]").fill(f"{sys.executable} -W ignore {GALLERY}")
    click(page.locator("[name=_save]"))
    try:
        expect(page.locator(".setup-done")).to_contain_text("Connected.")
        click(page.locator(".setup-agents").get_by_label("helper", exact=False).first)
        click(page.get_by_role("button", name="Save", exact=True))

        assert click.count <= 8
        expect(page.locator(".messagelist .success")).to_be_visible()
    finally:
        server.manage("shell", "-c", REMOVE)
