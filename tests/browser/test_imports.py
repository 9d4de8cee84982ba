"""Tools of an OpenAPI document and MCP servers of other programs are imported."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.server import Server
from tests.browser.test_accessibility import faults
from tests.tools.shop_server import KEY, ShopServer, shop_server

OPENAPI = "/admin/agents/toolregistration/openapi/"
SERVERS = "/admin/agents/mcpserver/import/"
PHONE = {"viewport": {"width": 390, "height": 844}}
PASTED = """```json
{
  // from a README
  "mcpServers": {
    "Docs": {"url": "https://docs.example/mcp", "headers": {"X-Key": "<YOUR_KEY>"}},
    "shell": {"command": "bash", "args": ["-c", "id"]},
  },
}
```"""


@pytest.fixture(scope="module")
def api() -> Iterator[ShopServer]:
    with shop_server() as server:
        yield server


@pytest.fixture(scope="module")
def site(start_server, api) -> Iterator[Server]:
    """A separate server that can reach the API."""
    yield from start_server("imports", 0.003, ASHIATO_EGRESS_ALLOW=api.place)


@pytest.fixture
def page(visit, site) -> Page:
    return visit(site)


def list_operations(page: Page, api: ShopServer) -> None:
    page.goto(OPENAPI)
    page.locator("[name=url]").fill(api.url)
    page.get_by_role("button", name="List operations").click()
    expect(page.locator("#operation-list")).to_be_visible()


def test_openapi_operations_are_selected_imported_and_called(page: Page, api):
    page.goto("/admin/agents/toolregistration/")
    page.get_by_role("link", name="Import from OpenAPI").click()
    list_operations(page, api)
    expect(page.locator(".import-count")).to_have_text("2 selected")
    page.get_by_label("Filter by name, path or summary").fill("one order")
    expect(page.locator("#operation-list > li:visible")).to_have_count(1)
    page.get_by_label("Filter by name, path or summary").fill("nothing like it")
    expect(page.get_by_text("No operation matches.")).to_be_visible()
    page.get_by_label("Filter by name, path or summary").fill("")
    page.locator('[value="GET /orders/{order-id}"]').uncheck()
    expect(page.locator(".import-count")).to_have_text("1 selected")
    page.get_by_label("API key (header X-Api-Key)").fill(KEY)
    assert not faults(page)

    page.get_by_role("button", name="Import selected").click()
    expect(page.locator(".messagelist .success")).to_have_text("1 tool created: listOrders")
    page.get_by_role("link", name="listOrders").click()
    page.get_by_role("link", name="Run tool").click()
    page.locator("#run").click()
    expect(page.locator("#outcome")).to_contain_text("The call succeeded.")
    assert api.requests[-1]["path"] == "/v1/orders"

    list_operations(page, api)
    expect(page.locator("#operation-list > li").first).to_contain_text("unchanged")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_list_fits_a_phone(visit, site, api, scheme):
    page = visit(site, **PHONE, color_scheme=scheme)
    list_operations(page, api)

    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert not faults(page)


def test_servers_are_pasted_reviewed_and_imported(page: Page):
    page.goto(SERVERS)
    page.locator("[name=text]").fill(PASTED)
    page.get_by_role("button", name="Preview").click()
    expect(page.locator(".import-item")).to_have_count(2)
    expect(page.locator("#server-1")).to_contain_text("'bash' can run any program")
    expect(page.locator("[name=pick-1]")).not_to_be_checked()
    assert not faults(page)

    page.get_by_label("X-Key").fill("s3cret")
    page.get_by_role("button", name="Import selected").click()
    expect(page.locator(".messagelist .success")).to_have_text("Imported: docs")


def test_the_preview_fits_a_phone(visit, site):
    page = visit(site, **PHONE)
    page.goto(SERVERS)
    page.locator("[name=text]").fill(PASTED.replace("Docs", "other"))
    page.get_by_role("button", name="Preview").click()
    expect(page.locator(".import-item").first).to_be_visible()

    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert not faults(page)
