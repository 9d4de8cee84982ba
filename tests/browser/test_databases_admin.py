"""Databases in the console: connected, limited to tables and columns, and queried."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import serve
from tests.browser.server import Server
from tests.browser.test_accessibility import faults

DATABASES = "/admin/agents/databaseconnection/"


@pytest.fixture(scope="module")
def shop(tmp_path_factory, prepared_data) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("databases")
    shutil.copytree(prepared_data, folder / "data")
    place = folder / "data" / "databases"
    place.mkdir()
    with closing(sqlite3.connect(place / "sales.sqlite3")) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER, total REAL, note TEXT)")
        connection.execute("CREATE TABLE tokens (token TEXT)")
        connection.execute("INSERT INTO orders VALUES (1, 9.5, 'hush')")
        connection.commit()
    yield from serve(folder, 0.003)


@pytest.fixture
def page(visit, shop) -> Page:
    return visit(shop)


def ask(page: Page, sql: str) -> None:
    page.locator("#query-sql").fill(sql)
    page.locator("#query-sql").press("Control+Enter")


def test_a_database_is_connected_limited_and_queried(page):
    page.goto(DATABASES)
    page.get_by_role("link", name="Add database").click()
    page.locator("#id_name").fill("sales")
    page.locator("#id_kind").select_option("sqlite")
    expect(page.locator("#id_host")).to_be_hidden()
    page.locator("#id_file").select_option("sales.sqlite3")
    page.get_by_role("button", name="Test connection").click()
    expect(page.locator("#tried")).to_contain_text("2 tables")

    page.get_by_text("Selected tables").click()
    page.get_by_role("checkbox", name="Allow tokens").uncheck()
    page.locator("summary", has_text="orders").click()
    page.get_by_role("checkbox", name="note").uncheck()
    expect(page.locator(".tables-bar [data-count]")).to_have_text("1 of 2 tables")
    ask(page, "SELECT * FROM orders")
    expect(page.locator("#asked td")).to_have_text(["1", "9.5"])
    ask(page, "SELECT * FROM tokens")
    expect(page.locator("#asked")).to_contain_text("There is no table 'tokens'")

    page.locator("[name=_continue]").click()
    expect(page.locator(".subtitle")).to_contain_text("Ready")
    page.get_by_text("What the model is told").click()
    expect(page.locator(".model-sees pre")).to_contain_text("orders(id INTEGER, total REAL)")
    assert faults(page) == []


def test_the_sample_fits_on_a_phone(visit, shop):
    page = visit(shop, viewport={"width": 390, "height": 844}, locale="ja-JP")
    page.goto(DATABASES)
    page.get_by_role("link", name="sample", exact=True).click()

    expect(page.locator("h1")).to_have_text("sample")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
