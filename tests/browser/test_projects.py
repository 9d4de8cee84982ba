"""A project with two members in the browser."""

import pytest
from playwright.sync_api import expect

from tests.browser.conversation import ask
from tests.browser.test_library import upload, write


def test_two_members_share_instructions_and_memory_but_not_their_chats(
    page, guest, visit, server
):
    page.goto("/projects/")
    page.get_by_role("link", name="New project").click()
    page.get_by_label("Name").fill("Tea launch")
    page.get_by_label("Instructions").fill("Prices are in yen.")
    page.get_by_role("button", name="Create project").click()
    page.get_by_label("Add by").fill("guest")
    page.get_by_label("Permissions", exact=True).select_option("write")
    page.locator(".invite-form").get_by_role("button", name="Add").click()
    expect(page.locator(".members")).to_contain_text("guest")
    page.locator("#main").get_by_role("link", name="New chat").click()
    page.wait_for_load_state("networkidle")
    ask(page, "What is 6 * 7?")
    expect(page.locator(".project-chip")).to_have_text("Tea launch")

    other = visit(server, storage_state=guest)
    other.goto("/projects/")
    other.get_by_role("link", name="Tea launch").click()
    expect(other.locator("main")).to_contain_text("Prices are in yen.")
    expect(other.locator(".project-chats")).not_to_contain_text("6 * 7")
    other.locator("#main").get_by_role("link", name="New chat").click()
    other.wait_for_load_state("networkidle")
    ask(other, "Remember that the launch is in May")
    expect(other.locator(".memory-card")).to_contain_text("memory of Tea launch")

    page.goto("/projects/")
    page.get_by_role("link", name="Tea launch", exact=True).click()
    expect(page.locator("#memory")).to_contain_text("the launch is in May")
    expect(page.locator(".project-chats")).to_contain_text("What is 6 * 7?")
    expect(page.locator(".project-chats")).not_to_contain_text("Remember")


@pytest.mark.journey
def test_a_document_is_added_to_a_project_from_its_page(page, tmp_path):
    page.goto("/projects/new/")
    page.get_by_label("Name").fill("Kettles")
    page.get_by_role("button", name="Create project").click()
    page.get_by_role("link", name="Add and manage documents").click()
    upload(page, write(tmp_path, "manual.txt", "The kettle holds two litres."))

    page.locator("main .back").click()

    expect(page.locator(".project-side").get_by_role("link", name="manual")).to_be_visible()
