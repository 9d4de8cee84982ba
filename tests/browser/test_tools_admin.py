"""Tools and MCP servers in the console: tested, run, switched, watched."""

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Page, expect

from tests.browser.server import PROJECT, Server
from tests.browser.test_accessibility import READERS, faults

TOOLS, SERVERS = "/admin/agents/toolregistration/", "/admin/agents/mcpserver/"
PLAIN = str(PROJECT / "tests" / "tools" / "mcp_servers" / "plain.py")
TIME = str(Path(sys.executable).with_name("mcp-server-time"))
HEALTH = "/admin/health/"
# What axe itself does where a stylesheet of Django's imports another one.
AXE = "Applying inline style|Couldn't load preload assets"
# Django's own list of two columns names an icon that has no role.
DJANGOS = 'class="help-tooltip search-label-icon"'
TOKEN = "a long walk on the beach"
NARROW = {"viewport": {"width": 390, "height": 844}, "locale": "ja-JP"}


@pytest.fixture(scope="module")
def shop(start_server) -> Iterator[Server]:
    """A separate server, so that its configuration doesn't affect others."""
    yield from start_server("tools", 0.003, ASHIATO_METRICS_TOKEN=TOKEN)


@pytest.fixture
def page(visit, shop) -> Page:
    return visit(shop)


@pytest.fixture(scope="module")
def plain(browser, shop, signed_in, tmp_path_factory) -> str:
    """The page of a tested server."""
    context = browser.new_context(base_url=shop.url, storage_state=signed_in(shop))
    page = context.new_page()
    fill_in(page, "plain", sys.executable, [PLAIN, str(tmp_path_factory.mktemp("n") / "notes")])
    page.locator("[name=_continue]").click()
    page.get_by_role("button", name="Test connection").click()
    expect(page.locator(".messagelist .success")).to_contain_text("Connected.")
    address = page.url
    context.close()
    return address


def fill_in(page: Page, name: str, command: str, args: list[str]) -> None:
    page.goto(f"{SERVERS}add/")
    page.locator("[name=name]").fill(name)
    page.locator("[name=transport]").select_option("stdio")
    page.locator("[name=command_line]").fill(shlex.join([command, *args]))


def open_tool(page: Page, name: str) -> None:
    page.goto(f"{TOOLS}?q={name}")
    page.locator("#result_list").get_by_role("link", name=name, exact=True).click()


def run_tool(page: Page, name: str) -> None:
    open_tool(page, name)
    page.get_by_role("link", name="Run tool").click()
    expect(page.locator("#trial")).to_be_visible()


def test_a_real_server_is_tested_before_saving(page: Page):
    fill_in(page, "clock", TIME, ["--local-timezone=Asia/Tokyo"])
    page.get_by_role("button", name="Test without saving").click()

    expect(page.locator("#tried")).to_contain_text("Connected. 2 tools found.")
    expect(page.locator("#tried")).to_contain_text("get_current_time")
    expect(page.locator("[name=command_line]")).to_have_value(
        f"{TIME} --local-timezone=Asia/Tokyo"
    )
    # In another tab: this one would ask about the changes that aren't saved.
    other = page.context.new_page()
    other.goto(page.url.replace("add/", ""))
    expect(other.locator("#content")).not_to_contain_text("clock")


def test_a_saved_server_connects_and_is_given_to_an_agent(page: Page):
    fill_in(page, "watch", TIME, ["--local-timezone=Asia/Tokyo"])
    rows = page.locator(".field-env .secret-pair")
    rows.nth(0).get_by_label("Name").fill("LOG_LEVEL")
    rows.nth(0).get_by_label("Value").fill("debug")
    page.get_by_role("button", name="Add variable").click()
    expect(rows).to_have_count(2)
    rows.nth(1).get_by_role("button", name="Remove").click()
    expect(rows).to_have_count(1)
    page.locator("[name=_save]").click()

    expect(page.locator(".setup-done")).to_contain_text("2 tools found", timeout=30_000)
    page.get_by_role("checkbox", name="helper Calculates").check()
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".messagelist .success")).to_contain_text("can use watch now.")


def test_a_tool_of_a_real_server_is_run_manually(page: Page):
    fill_in(page, "clock", TIME, ["--local-timezone=Asia/Tokyo"])
    page.locator("[name=_continue]").click()
    page.get_by_role("button", name="Test connection").click()
    expect(page.locator(".messagelist .success")).to_contain_text("get_current_time")

    run_tool(page, "clock__get_current_time")
    page.get_by_label("timezone").fill("Europe/Oslo")
    confirm = page.get_by_label("Run this tool for real.")
    if confirm.count():
        confirm.check()
    page.get_by_role("button", name="Run tool").click()

    expect(page.locator("#outcome")).to_contain_text("The call succeeded.")
    expect(page.locator("#outcome")).to_contain_text('"timezone": "Europe/Oslo"')
    page.goto("/admin/agents/auditentry/")
    expect(page.locator("#result_list")).to_contain_text("clock__get_current_time")
    expect(page.locator("#result_list")).not_to_contain_text("Oslo")


def test_missing_arguments_are_errors_and_writes_need_confirmation(page: Page, plain):
    run_tool(page, "plain__count")
    page.get_by_label("word").fill("one")
    page.get_by_role("button", name="Run tool").click()
    expect(page.locator(".call-field.errors")).to_contain_text("This field is required.")
    expect(page.locator("#outcome figure")).to_have_count(0)

    expect(page.get_by_label("word")).to_have_value("one")
    page.get_by_label("Run this tool for real.").check()
    page.get_by_role("button", name="Run tool").click()
    expect(page.locator("#outcome")).to_contain_text("noted")

    run_tool(page, "calculator")
    page.get_by_role("button", name="Run tool").click()
    expect(page.locator(".call-field.errors").get_by_role("list")).to_have_text(
        "This field is required."
    )


def test_a_tool_is_run_by_keyboard_and_without_javascript(visit, shop, plain):
    page = visit(shop, java_script_enabled=False)
    run_tool(page, "calculator")
    page.get_by_label("expression").fill("6 * 7")
    page.get_by_role("button", name="Run tool").focus()
    page.keyboard.press("Enter")

    expect(page.locator("#outcome figure").last).to_contain_text("42")


@pytest.fixture(params=READERS)
def reader(request, visit, shop) -> Page:
    return visit(shop, **READERS[request.param], reduced_motion="reduce")


def test_the_tool_pages_are_accessible(reader: Page, plain, watch):
    watch.expect(AXE)
    for address in (TOOLS, plain, f"{SERVERS}add/", HEALTH):
        reader.goto(address)
        assert faults(reader) == [], address
    reader.goto(f"{TOOLS}?q=plain__count")
    reader.locator("#result_list tbody th a").click()
    assert [fault for fault in faults(reader) if DJANGOS not in fault] == []
    reader.goto(reader.url.replace("/change/", "/run/"))
    reader.locator("#trial input[type=submit]").click()
    expect(reader.locator(".errorlist")).to_be_visible()
    assert faults(reader) == []


def test_the_tool_pages_fit_a_phone(visit, shop, plain):
    phone = visit(shop, **NARROW)
    phone.goto(f"{TOOLS}?q=plain__count")
    tool = phone.locator("#result_list tbody th a").get_attribute("href").partition("?")[0]
    for address in (
        tool,
        tool.replace("/change/", "/run/"),
        plain,
        "/admin/agents/agent/health/",
    ):
        phone.goto(address)
        wide = phone.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390, (address, wide)


def test_responses_follow_the_accept_header(shop):
    def asked(path: str, **headers: str) -> str:
        with urlopen(Request(f"{shop.url}{path}", headers=headers), timeout=10) as answer:
            return answer.read().decode()

    assert json.loads(asked("/healthz")) == {"status": "alive"}
    assert json.loads(asked("/readyz")) == {"status": "ready"}
    with pytest.raises(HTTPError, match="401") as refusal:
        asked("/metrics")
    refusal.value.close()
    assert "ashiato_loop_lag_seconds" in asked("/metrics", Authorization=f"Bearer {TOKEN}")
