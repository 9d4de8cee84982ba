"""What a tool returns besides text, as users see it."""

import json
import sys
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests import wire
from tests.browser.conftest import use_model
from tests.browser.conversation import (
    ask_and_wait,
    number_in,
    open_trace,
    tool_step,
)
from tests.browser.server import PROJECT, Server
from tests.browser.test_accessibility import faults

GALLERY = str(PROJECT / "tests" / "tools" / "mcp_servers" / "gallery.py")
SETUP = f"""
import asyncio
from django.contrib.auth import get_user_model
from agents.catalog import mcp_servers
from agents.models import Agent, McpServer, ToolRegistration
server = McpServer.objects.create(name="gallery", transport="stdio", trusts_annotations=True,
    command={sys.executable!r}, args=["-W", "ignore", {GALLERY!r}])
user = get_user_model().objects.get(username="demo")
found = asyncio.run(mcp_servers.sync(server, user))
Agent.objects.get(name="helper").tools.set(ToolRegistration.objects.filter(server=server))
print(sorted(found.added))
"""
NATURAL_WIDTH = "image => image.complete && image.naturalWidth"
FITS = "() => document.documentElement.scrollWidth <= window.innerWidth"


@pytest.fixture(scope="module")
def model() -> Iterator[wire.WireServer]:
    """A model that calls the tool named in the question, and says what it was sent."""

    def answer(request: wire.Request) -> wire.Reply:
        last = request.body["messages"][-1]
        if isinstance(last["content"], list):
            kinds = ", ".join(part["type"] for part in last["content"])
            return wire.say(f"I was sent {kinds}.")
        if last["role"] == "tool":
            return wire.say("I was sent text.")
        return wire.call((f"gallery__{last['content']}", "{}"))

    with wire.serve_in_thread(answer) as model:
        yield model


@pytest.fixture(scope="module")
def gallery(start_server, model) -> Iterator[Server]:
    """A server with a model that sees images, and an agent with a real MCP server's tools."""
    for server in start_server("gallery", 0, **use_model(model.url)):
        assert "chart" in server.manage("shell", "-v0", "-c", SETUP)
        yield server


def loaded(page: Page, images) -> None:
    expect(images).to_have_js_property("complete", True)
    assert images.evaluate(NATURAL_WIDTH) == 640


def test_an_image_of_an_mcp_tool_is_in_the_step_and_sent_to_the_model(visit, gallery):
    page = visit(gallery)
    run = ask_and_wait(page, "chart")
    image = tool_step(run).locator(".attachments img")

    expect(run).to_contain_text("I was sent text, image_url.")
    loaded(page, image)
    assert image.bounding_box()["height"] <= 242
    page.reload()
    loaded(page, tool_step(page.locator(".run").last).locator(".attachments img"))
    tool_step(page.locator(".run").last).locator(".attached-image").click()
    loaded(page, page.locator("#side-panel img"))
    assert faults(page) == []


def test_everything_else_has_a_player_a_download_or_a_reason(visit, gallery):
    page = visit(gallery)
    run = ask_and_wait(page, "everything")
    files = tool_step(run).locator(".attachments")

    loaded(page, files.locator("img"))
    expect(files.locator("audio")).to_have_count(1)
    files.locator("audio").evaluate("sound => sound.play()")
    with page.expect_download() as report:
        files.get_by_role("link", name="report.pdf").click()
    assert report.value.suggested_filename == "report.pdf"
    expect(files.get_by_role("link", name="image/svg+xml")).to_be_visible()
    tool_step(run).locator("summary").click()
    expect(tool_step(run)).to_contain_text("October,310")
    expect(tool_step(run)).to_contain_text("the server's base64 is invalid")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_attachments_fit_on_a_phone_in_japanese(visit, gallery, theme):
    page = visit(
        gallery,
        viewport={"width": 390, "height": 844},
        locale="ja-JP",
        color_scheme=theme,
    )
    run = ask_and_wait(page, "everything")

    loaded(page, tool_step(run).locator(".attachments img"))
    assert page.evaluate(FITS)
    assert faults(page) == []


def test_the_trace_and_its_exports_have_the_image(visit, gallery):
    page = visit(gallery)
    run = ask_and_wait(page, "chart")
    open_trace(run)
    step = page.locator(".step[data-kind=tool]")
    step.locator("summary").click()

    loaded(page, page.locator(".attachments img").first)
    exported = json.loads(page.request.get(f"/traces/{number_in(page)}/export.json").text())
    refs = [ref for step in exported["steps"] for ref in step["attachments"]]
    assert [ref["kind"] for ref in refs] == ["image"]
