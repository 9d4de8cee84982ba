"""Sign-in with a passkey, with an app, and after a removal."""

import time
from collections.abc import Callable

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from agents.accounts import totp
from tests.browser.conftest import choose_password
from tests.browser.conversation import CALCULATION, ask_and_wait, log_in
from tests.browser.test_accessibility import READERS, faults

PASSWORD = "only passing through here"
KEY = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
}


@pytest.fixture
def newcomer(page, browser) -> Callable[[str], str]:
    """Create an account in the console; return its page."""

    def make(name: str) -> str:
        page.goto("/admin/auth/user/add/")
        page.locator("[name=username]").fill(name)
        page.locator("[name=_save]").click()
        choose_password(browser, page.locator("input.one-time").input_value(), PASSWORD)
        return page.get_by_role("link", name="Done").get_attribute("href")

    return make


@pytest.fixture
def outside(new_context, watch, server) -> Callable[..., BrowserContext]:
    """Open a browser without a session, at an address that passkeys accept."""

    def context(**options) -> BrowserContext:
        url = server.url.replace("127.0.0.1", "localhost")
        made = new_context(base_url=url, **options)
        watch.over(made, url)
        return made

    return context


def with_key(context: BrowserContext) -> Page:
    page = context.new_page()
    wire = context.new_cdp_session(page)
    wire.send("WebAuthn.enable")
    wire.send("WebAuthn.addVirtualAuthenticator", {"options": KEY})
    return page


def log_out(page: Page) -> None:
    page.goto("/account/")
    page.get_by_role("button", name="Sign out").click()
    expect(page.locator("form.credentials")).to_be_visible()


def enter(page: Page, name: str) -> None:
    page.goto("/login/")
    page.locator("[name=username]").fill(name)
    page.locator("[name=password]").fill(PASSWORD)
    page.locator("form.credentials button").click()


@pytest.mark.journey
def test_a_passkey_signs_in_alone_and_as_second_factor(newcomer, outside):
    newcomer("keyed")
    page = with_key(outside())
    log_in(page, "keyed", PASSWORD)
    page.goto("/account/")
    page.get_by_label("Name").fill("My phone")
    page.get_by_role("button", name="Add passkey").click()
    expect(page.locator(".flash-message")).to_contain_text("Passkey added.")
    expect(page.locator(".rows").first).to_contain_text("My phone")

    log_out(page)
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.locator("#ask")).to_be_visible()

    log_out(page)
    enter(page, "keyed")
    expect(page.get_by_role("heading", name="Two-factor authentication")).to_be_visible()
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.locator("#ask")).to_be_visible()
    page.goto("/account/")
    expect(page.locator(".rows").first).to_contain_text("last used")


def test_an_unknown_passkey_has_an_error_message(newcomer, outside):
    newcomer("unkeyed")
    page = with_key(outside())
    log_in(page, "unkeyed", PASSWORD)
    page.goto("/account/")
    page.get_by_label("Name").fill("Lost")
    page.get_by_role("button", name="Add passkey").click()
    page.get_by_role("button", name="Remove Lost").click()
    expect(page.locator(".flash-message")).to_contain_text("Passkey removed.")

    log_out(page)
    page.get_by_role("button", name="Use a passkey").click()

    expect(page.locator(".passkey .wrong")).to_have_text("This passkey isn't registered here.")


def test_an_authenticator_app_is_set_up_used_and_replaced_by_a_recovery_code(newcomer, outside):
    newcomer("careful")
    page = outside().new_page()
    log_in(page, "careful", PASSWORD)
    page.goto("/account/")
    page.get_by_role("link", name="Set up authenticator app").click()
    expect(page.locator("svg.qr")).to_be_visible()
    secret = page.locator(".secret code").inner_text().replace(" ", "")
    page.locator("[name=code]").fill(totp.generate_code(secret, int(time.time()) // 30))
    page.get_by_role("button", name="Set up").click()
    codes = page.locator(".codes li").all_inner_texts()
    assert len(codes) == 10

    page.get_by_role("link", name="I've saved my codes").click()
    log_out(page)
    enter(page, "careful")
    page.locator("[name=code]").fill("no code")
    page.get_by_role("button", name="Continue").click()
    expect(page.locator(".wrong")).to_contain_text("Wrong code")
    page.locator("[name=code]").fill(codes[0])
    page.get_by_role("button", name="Continue").click()

    expect(page.locator("#ask")).to_be_visible()


def test_disabling_an_account_closes_its_open_chat(newcomer, outside, page):
    name = f"leaver-{time.monotonic_ns()}"
    place = newcomer(name)
    theirs = outside().new_page()
    log_in(theirs, name, PASSWORD)
    ask_and_wait(theirs, CALCULATION)

    page.goto(place)
    page.get_by_label("Active").uncheck()
    page.locator("[name=_save]").click()

    expect(theirs.locator("#connection [data-when=ended]")).to_be_visible()
    theirs.reload()
    expect(theirs.locator("form.credentials")).to_be_visible()


@pytest.mark.parametrize("options", READERS.values(), ids=READERS)
def test_the_sign_in_pages_are_accessible(visit, server, watch, options):
    reader = visit(server, **options, reduced_motion="reduce")
    pages = ["/account/", "/account/app/", "/account/confirm/", "/admin/auth/user/1/change/"]
    for address in [*pages, "/admin/auth/user/add/", "/admin/auth/group/"]:
        reader.goto(address)
        assert faults(reader) == [], address

    watch.expect("inline style|preload assets")  # of axe itself, where a sheet imports one
    watch.expect("404")  # of a link that was used already
    reader.context.clear_cookies()
    for address in ("/login/", "/welcome/MQ/a-b/"):
        reader.goto(address)
        assert faults(reader) == [], address
