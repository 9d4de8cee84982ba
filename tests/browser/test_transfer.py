"""Chats are published, exported, imported and shared with people found by name."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import ask_and_wait
from tests.browser.server import Server
from tests.browser.test_accessibility import faults

EXPORTS = Path(__file__).parents[1] / "chat" / "transfer" / "exports"
QUESTION = "What is 12.5% of 3480? My address is ada@example.com."
NOBODY = {"cookies": [], "origins": []}


@pytest.fixture(scope="module")
def server(start_server):
    yield from start_server("transfer", 0.003, ASHIATO_SUGGEST_USERS="true")


def publish(page: Page) -> str:
    page.locator("header.top").get_by_title("Share", exact=True).click()
    page.get_by_role("button", name="Create public link").click()
    return page.locator("#public-url").inner_text()


def test_a_chat_is_published_and_revoked(visit, server: Server, page: Page, watch):
    watch.expect("404")  # the revoked link
    ask_and_wait(page, QUESTION)
    url = publish(page)
    expect(page.locator("#public-mark")).to_be_attached()
    reader = visit(server, storage_state=NOBODY)
    assert reader.goto(url).status == 200
    expect(reader.get_by_text("435").first).to_be_visible()
    expect(reader.get_by_text("‹email›").first).to_be_visible()
    assert "ada@example.com" not in reader.content()

    page.get_by_role("button", name="Revoke").click()
    expect(page.locator(".public-links .members")).to_have_count(0)
    expect(page.locator("#public-mark")).to_be_hidden()
    assert reader.goto(url).status == 404


def test_an_export_of_another_product_is_counted_and_imported(page: Page):
    page.goto("/chats/import/")
    page.locator("#import-files").set_input_files(EXPORTS / "chatgpt.json")
    page.get_by_role("button", name="Upload").click()
    page.get_by_role("button", name="Import 2 chats").click()
    expect(page.get_by_text("2 chats imported.")).to_be_visible()
    page.get_by_role("link", name="Mount Fuji").click()
    expect(page.get_by_text("12,388 ft.")).to_be_visible()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_link_and_import_pages_are_accessible(visit, server, page, width, language):
    ask_and_wait(page, QUESTION)
    chat, url = page.url, publish(page)
    about = {"viewport": {"width": width, "height": 844}, "locale": language}
    reader = visit(server, **about)
    for address in (url, f"{chat}print/?steps=1", "/chats/import/", "/account/data/"):
        reader.goto(address)
        assert faults(reader) == [], address
        overflow = "document.documentElement.scrollWidth > innerWidth"
        assert not reader.evaluate(overflow), address


def test_people_are_suggested_while_typing(server: Server, page: Page):
    server.manage("shell", "-c", CREATE)
    ask_and_wait(page, QUESTION)
    page.locator("header.top").get_by_title("Share", exact=True).click()
    field = page.get_by_role("combobox", name="Add by name")
    field.press_sequentially("hop")
    option = page.get_by_role("option", name="grace Grace Hopper")
    expect(option).to_be_visible()
    field.press("ArrowDown")
    expect(option).to_have_attribute("aria-selected", "true")
    field.press("Enter")
    expect(field).to_have_value("grace")
    field.press("Enter")
    expect(page.locator("#people .members")).to_contain_text(re.compile("grace", re.IGNORECASE))


CREATE = (
    "from django.contrib.auth.models import User;"
    "User.objects.create_user('grace', first_name='Grace', last_name='Hopper')"
)


def test_several_chats_are_exported_as_a_zip(page: Page):
    ask_and_wait(page, QUESTION)
    page.locator(".session").first.hover()
    page.locator(".session [data-menu]").first.click()
    page.get_by_role("menuitem", name="Export").click()
    with page.expect_download() as download:
        page.locator("#export-chats").get_by_role("button", name="Export").click()
    assert download.value.suggested_filename.endswith(".zip")
    expect(page.locator("#export-chats")).to_be_hidden()
