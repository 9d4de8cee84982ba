"""The audit log, data export and erasure in a browser."""

import zipfile

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import account
from tests.browser.conversation import ask_and_wait
from tests.browser.server import PASSWORD
from tests.browser.test_accessibility import READERS, faults

LOG = "/admin/agents/auditentry/"


@pytest.fixture(params=READERS)
def reader(request, visit, server) -> Page:
    return visit(server, **READERS[request.param], reduced_motion="reduce")


def test_the_log_is_searched_verified_and_exported(page: Page, guest, tmp_path):
    page.goto(LOG)
    page.locator("#searchbar").fill("guest person.added")
    page.locator("#searchbar").press("Enter")
    expect(page.locator("#result_list")).to_contain_text("demo created an account for guest.")

    page.get_by_role("button", name="Verify now").click()
    expect(page.locator(".messagelist .success")).to_contain_text("The audit log is intact")
    expect(page.locator(".seal")).to_contain_text("Verified")

    with page.expect_download() as taken:
        page.get_by_role("button", name="Export as CSV").click()
    taken.value.save_as(tmp_path / "log.csv")
    assert "demo created an account for guest." in (tmp_path / "log.csv").read_text()


def test_an_entry_shows_address_and_details(page: Page):
    page.goto(f"{LOG}?about=signin")
    page.locator("#result_list tbody a", has_text="signed in.").first.click()

    expect(page.get_by_role("heading", name="signed in.")).to_be_visible()
    expect(page.locator(".field-address")).to_contain_text("127.0.0.1")


def test_a_user_exports_their_data(page: Page, tmp_path):
    ask_and_wait(page, "What is 12.5% of 3480?")
    page.goto("/account/")
    page.get_by_role("link", name="View my data").click()
    expect(page.get_by_role("heading", name="Your data")).to_be_visible()

    with page.expect_download() as taken:
        page.get_by_role("button", name="Download my data").click()
    taken.value.save_as(tmp_path / "data.zip")

    with zipfile.ZipFile(tmp_path / "data.zip") as archive:
        sessions = [name for name in archive.namelist() if name.startswith("sessions/")]
        assert any("3480" in archive.read(name).decode() for name in sessions)


def test_erasing_a_user_needs_their_name(page: Page, browser, server, signed_in, watch):
    watch.expect("status of 422")
    account(browser, server, signed_in, "leaver")
    # The sign-in of the whole suite may be too old by now to erase anybody.
    page.goto("/account/confirm/")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url("**/account/")
    page.goto("/admin/auth/user/?q=leaver")
    page.get_by_role("link", name="leaver", exact=True).click()
    page.get_by_role("button", name="Erase user…").click()
    expect(page.get_by_role("heading", name="Will be deleted")).to_be_visible()

    page.locator("#erase-name").fill("somebody")
    page.get_by_role("button", name="Erase permanently").click()
    expect(page.get_by_role("alert")).to_contain_text("exactly as it appears")
    page.locator("#erase-name").fill("leaver")
    page.get_by_role("button", name="Erase permanently").click()

    expect(page.locator(".messagelist .success")).to_contain_text("erased person")
    page.goto("/admin/auth/user/?q=leaver")
    expect(page.get_by_role("link", name="leaver", exact=True)).to_have_count(0)


def test_the_audit_pages_are_accessible(reader: Page, guest):
    reader.goto("/account/data/")
    assert faults(reader) == []
    reader.goto(LOG)
    assert faults(reader) == []
    reader.locator("#result_list tbody a").first.click()
    assert faults(reader) == []
    reader.goto("/admin/auth/user/?q=guest")
    person = reader.locator("#result_list tbody th a").first.get_attribute("href")
    reader.goto(f"/admin/chat/chatsession/person/{person.split('/')[-3]}/erase/")
    assert faults(reader) == []
