"""Sign-in and sign-out with a real identity provider: npm `oidc-provider`, default settings."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import CalledProcessError

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import CALCULATION, ask_and_wait
from tests.browser.identity_provider import IdentityProvider
from tests.browser.server import Server

DENIED = "Not signed in: you canceled at Acme, or your account there has no access to this app."


@pytest.fixture(scope="module")
def chat_server(tmp_path_factory, prepared_data) -> Server:
    """A server that isn't started yet, because the provider needs to know its address."""
    folder = tmp_path_factory.mktemp("single-sign-on")
    shutil.copytree(prepared_data, folder / "data")
    return Server(folder, 0.003)


@pytest.fixture(scope="module")
def acme(chat_server) -> Iterator[IdentityProvider]:
    provider = IdentityProvider(chat_server.url)
    chat_server.environment |= provider.environment
    with provider.running():
        chat_server.start()
        try:
            yield provider
        finally:
            chat_server.stop()
    assert not re.search(r"Traceback| ERROR ", chat_server.output), chat_server.output


@pytest.fixture
def browse(new_context, watch, chat_server, acme):
    """Open a browser that reaches this machine only; the provider's pages ask for a font."""

    def page(**options) -> Page:
        context = new_context(base_url=chat_server.url, **options)
        context.route(re.compile(r"^https://"), lambda route: route.abort())
        watch.over(context, chat_server.url)
        watch.expect(f"foreign request: {acme.url}/")
        watch.expect(r"https://fonts\.googleapis\.com|ERR_FAILED")
        watch.expect(f"{acme.url}/favicon.ico|status of 404")
        return context.new_page()

    return page


@contextmanager
def changed(server: Server, **environment: str) -> Iterator[None]:
    """Run the server with other settings."""
    before = server.environment
    try:
        _restart(server, before | environment)
        yield
    finally:
        _restart(server, before)


def _restart(server: Server, environment: dict[str, str]) -> None:
    server.stop()
    server.environment = environment
    server.start()


def begin(page: Page) -> None:
    page.goto("/login/")
    page.get_by_role("link", name="Sign in with Acme").click()
    expect(page.get_by_placeholder("Enter any login")).to_be_visible()


def enter(page: Page, name: str) -> None:
    """Sign in at the provider and give consent, on its own pages."""
    page.get_by_placeholder("Enter any login").fill(name)
    page.get_by_placeholder("and password").fill("any")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()


def arrive(page: Page) -> None:
    """Wait for the whole page: Django logs an error about one that is left while it loads."""
    expect(page.locator("#ask")).to_be_visible()
    page.wait_for_load_state("networkidle")


def sign_out(page: Page) -> None:
    page.goto("/account/")
    page.locator(".account-button").click()
    page.get_by_role("button", name="Sign out").click()


def test_a_provider_signs_in_with_name_address_and_role_and_signs_out(browse):
    page = browse()
    begin(page)
    enter(page, "grace")
    arrive(page)

    page.goto("/admin/auth/user/?q=grace")
    page.locator("#result_list").get_by_role("link", name="grace").first.click()
    expect(page.locator("[name=first_name]")).to_have_value("Grace")
    expect(page.locator("[name=last_name]")).to_have_value("Hopper")
    expect(page.locator("[name=email]")).to_have_value("grace@example.org")
    page.goto("/admin/health/")
    expect(page.get_by_role("row", name="Single sign-on")).to_contain_text(
        "Acme accepts this server."
    )

    sign_out(page)
    page.get_by_role("button", name="Yes, sign me out").click()
    expect(page.locator(".flash-message")).to_have_text("You're signed out here and at Acme.")
    page.goto("/traces/")
    expect(page).to_have_url(re.compile("/login/"))
    begin(page)  # which asks for the password again


def test_an_active_provider_session_needs_no_password(browse):
    page = browse()
    begin(page)
    enter(page, "linus")
    arrive(page)
    # An open chat notices at once that its session has ended; the way out must go on.
    ask_and_wait(page, CALCULATION)
    page.locator(".account-button").click()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="No, stay signed in").click()
    expect(page.locator(".flash-message")).to_be_visible()

    page.get_by_role("link", name="Sign in with Acme").click()
    page.get_by_role("button", name="Continue").click()

    arrive(page)


def test_a_declined_consent_is_explained_and_can_be_given_later(browse, chat_server):
    page = browse()
    begin(page)
    page.get_by_placeholder("Enter any login").fill("ada")
    page.get_by_placeholder("and password").fill("any")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("link", name="Cancel").click()
    expect(page.get_by_role("alert")).to_have_text(DENIED)
    assert "AccessDenied" in chat_server.output

    page.get_by_role("link", name="Sign in with Acme").click()
    page.get_by_role("button", name="Continue").click()

    arrive(page)


def test_a_wrong_secret_is_explained(browse, chat_server):
    with changed(chat_server, ASHIATO_OIDC_CLIENT_SECRET="quokka-umbrella"):
        page = browse()
        begin(page)
        enter(page, "ada")

        expect(page.get_by_role("alert")).to_contain_text(
            "Acme rejected this server's client ID or secret."
        )
        assert "ClientRejected" in chat_server.output
        assert "quokka" not in chat_server.output


def test_a_wrong_issuer_is_explained(browse, chat_server, acme):
    with changed(chat_server, ASHIATO_OIDC_ISSUER=f"{acme.url}/realms/none"):
        page = browse()
        page.goto("/login/oidc/")

        expect(page.get_by_role("alert")).to_contain_text("check ASHIATO_OIDC_ISSUER")
        assert "/realms/none/.well-known/openid-configuration" in chat_server.output


def test_the_provider_check_finds_misconfiguration(chat_server, acme):
    def check(*arguments: str, **environment: str) -> str:
        before = chat_server.environment
        chat_server.environment = before | environment
        try:
            return chat_server.manage("check_oidc", *arguments)
        except CalledProcessError as error:
            return error.stderr
        finally:
            chat_server.environment = before

    assert f"{acme.url} accepts this server as 'ashiato'." in check()
    assert "CLIENT_SECRET" in check(ASHIATO_OIDC_CLIENT_SECRET="wrong")
    assert "register the redirect URI https://x.example" in check("--origin=https://x.example")
    assert "teams" in check(ASHIATO_OIDC_SCOPES="openid teams")
    assert "ASHIATO_OIDC_ISSUER" in check(ASHIATO_OIDC_ISSUER=f"{acme.url}/realms/none")
