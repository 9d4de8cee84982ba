"""Tools that are always allowed, and calls that are approved together."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import CALCULATION, ask, last_run
from tests.browser.test_accessibility import faults
from tests.browser.test_approvals import asks, reject

TOOLS = "/admin/agents/toolregistration/"
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


def set_always_allow(page: Page, scope: str) -> None:
    page.goto(TOOLS)
    page.get_by_role("link", name="calculator", exact=True).click()
    page.locator("[name=always_allow]").select_option(scope)
    page.locator("[name=_save]").click()
    expect(page.locator(".messagelist, .flash-message").first).to_be_visible()


@pytest.fixture
def allowing(page: Page) -> Iterator[Page]:
    """An administrator's page, while the calculator can be always allowed."""
    set_always_allow(page, "user")
    yield page
    set_always_allow(page, "never")


def test_a_tool_is_always_allowed_in_a_chat_until_it_is_revoked(allowing: Page):
    approval = asks(allowing)
    approval.get_by_role("button", name="Always allow in this chat").click()
    expect(last_run(allowing)).to_have_attribute("data-status", "completed")
    chat = allowing.url

    ask(allowing, CALCULATION)
    expect(last_run(allowing)).to_have_attribute("data-status", "completed")

    allowing.goto("/approvals/")
    allowed = allowing.locator("#tool-grants li")
    expect(allowed).to_contain_text("calculator")
    assert faults(allowing) == []
    allowed.get_by_role("button", name="Revoke").click()
    expect(allowing.locator("#tool-grants li")).to_have_count(0)

    allowing.goto(chat)
    ask(allowing, CALCULATION)
    expect(last_run(allowing).locator(".approval[data-verdict=waiting]")).to_be_visible()
    reject(last_run(allowing).locator(".approval"))


def test_several_calls_are_approved_together_on_a_phone_in_japanese(page: Page, visit, server):
    asks(page)
    asks(page)
    phone = visit(server, **PHONE, locale="ja-JP")
    phone.goto("/approvals/")

    assert faults(phone) == []
    calls = phone.locator(".batch-pick").count()  # other tests leave some
    assert calls >= 2
    phone.locator("#batch button").click()
    expect(phone.locator(".batch-list li")).to_have_count(calls)
    assert faults(phone) == []
    assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
    phone.locator("button[name=confirm]").click()

    expect(phone.locator(".batch-list li[data-outcome=done]")).to_have_count(calls)
    page.reload()
    expect(last_run(page)).to_have_attribute("data-status", "completed")
