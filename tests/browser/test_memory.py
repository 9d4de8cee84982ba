"""Memory in the browser: saved in a chat, undone, edited on its page, used again."""

from playwright.sync_api import expect

from tests.browser.conversation import ask
from tests.browser.test_accessibility import faults


def test_what_a_user_states_is_saved_edited_and_used(page):
    page.goto("/")
    ask(page, "Remember that I live in Osaka")
    card = page.locator(".memory-card")
    expect(card).to_contain_text("I live in Osaka")
    card.get_by_role("button", name="Undo").click()
    expect(card).to_have_attribute("data-state", "removed")
    card.get_by_role("button", name="Undo").click()
    expect(card).to_have_attribute("data-state", "saved")

    card.get_by_role("link", name="Manage").click()
    page.get_by_role("link", name="Edit I live in Osaka").click()
    page.get_by_label("Text").fill("I live in Kobe")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".memory-row")).to_contain_text("I live in Kobe")
    page.get_by_role("link", name="History").click()
    expect(page.locator("ol.memory-rows")).to_contain_text("I live in Osaka")

    page.goto("/")
    ask(page, "Where do I live?")
    page.get_by_role("link", name="Used 1 memory.").click()
    page.get_by_role("link", name="Prompt diff").click()
    expect(page.locator(".prompt-sources")).to_contain_text("I live in Kobe")
    page.goto("/account/personalization/")
    page.get_by_role("button", name="Delete I live in Kobe").click()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".memory-row")).to_contain_text("I live in Kobe")
    page.get_by_role("button", name="Delete I live in Kobe").click()
    expect(page.locator(".memory-row")).to_have_count(0)
    page.goto("/account/recently-deleted/?kind=memory")
    assert faults(page) == []
    page.get_by_role("button", name="Restore I live in Kobe").click()
    expect(page.locator(".memory-row")).to_contain_text("I live in Kobe")
    page.get_by_role("button", name="Delete I live in Kobe").click()
