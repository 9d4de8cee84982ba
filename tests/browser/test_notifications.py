"""Browser notifications: on request, and only about what isn't visible."""

import re

from playwright.sync_api import Page, expect

from tests.browser.conversation import CALCULATION, ask_and_wait

# The browser's own notifications can't be seen by a test.
STUB = """
    window.Notification = class {
        static permission = "granted";
        static requestPermission() { return Promise.resolve("granted"); }
        constructor(title, { tag }) {
            document.documentElement.dataset.told = `${title} ${tag}`;
        }
        close() {}
    };
"""


def turn_on(page: Page) -> None:
    page.goto("/account/profile/")
    page.get_by_role("button", name="Turn on notifications").click()
    expect(page.get_by_label("A run fails")).to_be_checked()


def test_a_run_that_ends_in_another_chat_is_notified(visit, slow_server):
    page = visit(slow_server)
    page.add_init_script(STUB)
    turn_on(page)
    ask_and_wait(page, CALCULATION)
    expect(page.locator("html")).not_to_have_attribute("data-told", re.compile("."))  # visible
    first = page.url
    page.goto("/")
    page.locator("#text").fill("What is 6 * 7?")
    page.keyboard.press("Enter")
    page.wait_for_url("**/chat/*/")
    other = page.url.rstrip("/").rsplit("/", 1)[1]
    page.goto(first)

    told = f"The agent has finished. chat-{other}"
    expect(page.locator("html")).to_have_attribute("data-told", told)


def test_a_page_without_a_socket_is_notified(visit, slow_server):
    page = visit(slow_server)
    page.add_init_script(STUB)
    turn_on(page)
    page.goto("/")
    page.locator("#text").fill("What is 6 * 7?")
    page.keyboard.press("Enter")
    page.wait_for_url("**/chat/*/")
    page.goto("/workflows/")

    expect(page.locator("html")).to_have_attribute("data-told", re.compile("has finished"))


def test_notifications_can_be_turned_off(visit, server):
    page = visit(server)
    page.add_init_script(STUB)
    turn_on(page)
    page.get_by_role("button", name="Turn off notifications").click()
    expect(page.get_by_role("button", name="Turn on notifications")).to_be_visible()
    page.reload()

    expect(page.get_by_role("button", name="Turn on notifications")).to_be_visible()
