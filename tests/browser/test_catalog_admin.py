import json

from playwright.sync_api import Page, expect

TOOLS = "/admin/agents/toolregistration/"


def test_an_http_tool_is_saved_once_it_is_valid(page: Page):
    page.goto(f"{TOOLS}add/")
    page.locator(".example summary").click()
    page.locator("[name=definition]").fill(page.locator(".example pre").inner_text())
    page.locator("[name=name]").fill("weather")
    page.locator("[name=endpoint]").fill("weather.example/{city}")
    page.locator("[name=_save]").click()
    expect(page.locator(".field-endpoint .errorlist")).to_contain_text("https://")

    page.locator("[name=endpoint]").fill("https://weather.example/{city}")
    page.locator("[name=method]").select_option("GET")
    page.locator("[name=_save]").click()
    row = page.locator("#result_list tr", has_text="weather")
    expect(row.locator(".field-what_it_does")).to_have_text("read-only")
    expect(row.locator(".field-condition")).to_have_text("healthy")

    row.get_by_role("link", name="weather").click()
    assert json.loads(page.locator("[name=definition]").input_value())["type"] == "function"
    page.locator(".deletelink").click()
    page.locator("#content form [type=submit]").click()
    expect(page.locator(".messagelist .success")).to_be_visible()


def test_the_circuit_page_works_on_a_phone(phone: Page):
    phone.goto("/admin/")
    phone.get_by_role("button", name="Menu").click()
    phone.locator("#sidebar").get_by_role("link", name="Health").click()
    phone.locator(".page-tabs").get_by_role("link", name="Circuit breakers").click()

    expect(phone.get_by_role("heading", level=1)).to_have_text("Circuit breakers")
    expect(phone.locator(".circuits")).to_contain_text("the process that served this page")
    assert phone.evaluate("() => document.documentElement.scrollWidth") <= 390
