import re

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from tests.browser.conftest import AWAY
from tests.browser.conversation import (
    LOOKUP,
    ask,
    ask_and_wait,
    begin,
    choose_action,
    html,
    last_run,
)

TRY_AGAIN = 4503


@pytest.fixture
def lost(watch):
    watch.expect(AWAY)


def test_no_input_is_lost_while_the_server_is_down(slow_page: Page, slow_server, lost):
    ask_and_wait(slow_page, "What is 2 + 3?")
    typing = slow_page.context.new_page()
    typing.goto(slow_page.url)

    slow_server.stop()
    for tab in (slow_page, typing):
        expect(tab.locator("#connection")).to_be_visible()
    typing.locator("#text").press_sequentially("typed in the dark")
    ask(slow_page, "What is 4 + 5?")
    expect(slow_page.locator("#connection")).to_contain_text(
        "will be sent once the connection is back"
    )
    slow_server.start()

    for tab in (slow_page, typing):
        expect(tab.locator("#connection")).to_be_hidden()
        expect(last_run(tab).locator(".answer strong")).to_have_text("9")
        expect(tab.locator(".question p")).to_have_text(["What is 2 + 3?", "What is 4 + 5?"])
    expect(slow_page.locator("#text")).to_have_value("")
    expect(typing.locator("#text")).to_have_value("typed in the dark")


def test_a_run_resumes_after_its_server_crashed(slow_page: Page, slow_server, lost):
    run = begin(slow_page, LOOKUP)
    expect(run.locator(".live-thought").first).not_to_be_empty()

    slow_server.kill()
    expect(slow_page.locator("#connection")).to_be_visible()
    slow_server.start()

    expect(run).to_have_attribute("data-status", "completed", timeout=60_000)
    expect(run.locator(".run-facts")).to_contain_text("resumed after restart")
    expect(run.locator(".step[data-live]")).to_have_count(0)
    expect(run.locator(".step[data-status=cut]")).to_have_count(1)
    expect(slow_page.get_by_role("button", name="Send")).to_be_visible()
    watched = html(slow_page.locator("#messages"))
    slow_page.reload()
    assert html(slow_page.locator("#messages")) == watched
    number = run.get_attribute("id").removeprefix("run-")
    slow_page.goto(f"/traces/{number}/replay/")
    moments = slow_page.locator("#moments")
    expect(moments).to_contain_text("The page lost its connection")
    expect(moments).to_contain_text("The page reconnected")


def test_a_tab_whose_chat_was_deleted_elsewhere_says_so(page: Page):
    ask_and_wait(page, "What is 2 + 3?")
    page.locator("#text").fill("Are you still there?")
    other = page.context.new_page()
    other.goto(page.url)
    row = other.locator(".session", has=other.locator("[aria-current=page]"))
    choose_action(row, "Delete")
    other.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(other.locator(".message")).to_have_count(0)

    expect(page.locator("#connection")).to_contain_text("no longer in this chat")
    expect(page.locator("#text")).to_have_value("Are you still there?")
    expect(page.locator("#text")).not_to_be_editable()


class Line:
    """A connection between a page and its server that can be cut and restored."""

    def __init__(self, page: Page) -> None:
        self.is_cut = False
        self.tries = 0
        self.ends: list[WebSocketRoute] = []
        page.route_web_socket(re.compile("/ws/"), self._opened)

    def cut(self) -> None:
        self.is_cut = True
        for end in self.ends:
            end.close(code=TRY_AGAIN)
        self.ends.clear()

    def mend(self) -> None:
        self.is_cut = False

    def _opened(self, socket: WebSocketRoute) -> None:
        if self.is_cut:
            self.tries += 1
            socket.close(code=TRY_AGAIN)
        else:
            self.ends += [socket, socket.connect_to_server()]


def test_a_reconnected_page_equals_another_device(slow_page: Page, visit, slow_server):
    line = Line(slow_page)
    begin(slow_page, "What is 2 + 3?")
    other = visit(slow_server)
    other.goto(slow_page.url)
    line.cut()
    expect(slow_page.locator("#connection")).to_contain_text("Reconnecting")

    ask(other, "What is 4 + 5?")
    ask(other, "What is 6 + 7?")
    expect(other.locator(".run[data-status=completed]")).to_have_count(2, timeout=60_000)
    ask(slow_page, "What is 8 + 9?")
    line.mend()

    for page in (slow_page, other):
        expect(page.locator("#queue")).to_be_hidden(timeout=60_000)
        expect(page.locator(".run[data-status=completed]")).to_have_count(4, timeout=60_000)
        expect(page.locator("#connection")).to_be_hidden()
    assert html(slow_page.locator("#messages")) == html(other.locator("#messages"))
    asked = [f"What is {n} + {n + 1}?" for n in (2, 4, 6, 8)]
    expect(slow_page.locator(".question p")).to_have_text(asked)


def test_a_browser_without_a_network_says_so_and_sends_afterwards(page: Page, lost):
    ask_and_wait(page, "What is 2 + 3?")
    page.context.set_offline(True)
    expect(page.locator("#connection [data-when=lost]")).to_be_visible()
    ask(page, "What is 4 + 5?")
    expect(page.locator("#text")).to_have_value("What is 4 + 5?")

    page.context.set_offline(False)

    expect(page.locator("#connection")).to_be_hidden()
    expect(last_run(page).locator(".answer strong")).to_have_text("9")
    expect(page.locator("#text")).to_have_value("")
    expect(page.locator(".question p")).to_have_text(["What is 2 + 3?", "What is 4 + 5?"])


def test_a_page_keeps_reconnecting_with_short_waits(page: Page):
    line = Line(page)
    ask_and_wait(page, "What is 2 + 3?")
    waits = page.evaluate("[0, 3, 6, 50].map(htmx.config.wsReconnectDelay)")

    line.cut()
    page.wait_for_timeout(9_000)
    assert line.tries >= 3
    assert all(250 <= wait <= 10_250 for wait in waits)
    again = page.evaluate("[0, 0, 0, 0, 0, 0, 0, 0, 0].map(htmx.config.wsReconnectDelay)")
    assert max(again) > 1_250  # it waits longer the more often it was in vain
    line.mend()

    expect(page.locator("#connection")).to_be_hidden(timeout=15_000)
