import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests import first_start
from tests.browser.conversation import log_in
from tests.browser.server import NAME, PASSWORD, Server, launch_options

# Longer than anything takes on a busy machine; only failures wait this long.
expect.set_options(timeout=30_000)

# Leaving a page while it loads isn't an error.
HARMLESS = ["ERR_ABORTED", r"htmx:(sendError|afterRequest), \[object HTMLAnchorElement\]"]
# Most tests look at the steps of an answer, which fold when it is there.
KEEP_STEPS_OPEN = """
if (self.origin !== "null" && !localStorage.getItem("ashiato-steps"))
  localStorage.setItem("ashiato-steps", "open");
"""
# A browser's messages about a killed server, also during a request.
AWAY = r"WebSocket connection to|net::ERR_|Failed to load resource|\[object |htmx:"


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args):
    return browser_type_launch_args | launch_options()


@pytest.fixture(scope="session")
def prepared_data(tmp_path_factory, testrun_uid) -> Path:
    place = tmp_path_factory.getbasetemp().parent / f"furnished-{testrun_uid}"
    return first_start.create_once(place, lambda place: Server(place, 0).manage("setup"))


@pytest.fixture(scope="session")
def start_server(tmp_path_factory, prepared_data) -> Callable[..., Iterator[Server]]:
    """Serve from a copy of the prepared data."""

    def start(name: str, delay: float, **environment: str) -> Iterator[Server]:
        folder = tmp_path_factory.mktemp(name)
        shutil.copytree(prepared_data, folder / "data")
        yield from serve(folder, delay, **environment)

    return start


@pytest.fixture(scope="session")
def server(start_server) -> Iterator[Server]:
    yield from start_server("server", 0.003)


@pytest.fixture(scope="session")
def slow_server(start_server) -> Iterator[Server]:
    """A server with a model slow enough to watch, stop and interrupt."""
    yield from start_server("slow", 0.12)


def serve(folder, delay: float, **environment: str) -> Iterator[Server]:
    server = Server(folder, delay)
    server.environment |= environment
    server.start()
    try:
        yield server
    finally:
        server.stop()
    if re.search(r"Traceback| ERROR ", server.output):
        raise Complained(server.output)


def use_model(address: str, model: str = "openai/gpt-4.1") -> dict[str, str]:
    """Return the environment of a server whose only model is at this address."""
    return {
        "ASHIATO_MODEL": model,
        "ASHIATO_MODEL_URL": address,
        "ASHIATO_MODEL_KEY": "none",
        "ASHIATO_MODEL_DISCOVERY": "false",
    }


class Complained(Exception):
    """Raised when a server logged an error or a traceback."""


class Watch:
    """Records silent errors in a browser."""

    def __init__(self) -> None:
        self.troubles: list[str] = []
        self.expected = list(HARMLESS)

    def over(self, context: BrowserContext, url: str) -> None:
        context.on("console", lambda message: self._heard(message.type, message.text))
        context.on("weberror", lambda error: self.troubles.append(f"thrown: {error.error}"))
        context.on("dialog", self._asked)
        context.on("request", lambda request: self._sent(request.url, url))
        context.on("requestfailed", lambda r: self.troubles.append(f"{r.failure}: {r.url}"))

    def expect(self, pattern: str) -> None:
        self.expected.append(pattern)

    @property
    def unexpected(self) -> list[str]:
        known = re.compile("|".join(self.expected))
        return [trouble for trouble in self.troubles if not known.search(trouble)]

    def _heard(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"}:
            self.troubles.append(f"{kind}: {text}")

    def _asked(self, dialog) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _sent(self, to: str, url: str) -> None:
        if not to.startswith((f"{url}/", "data:", "blob:")):
            self.troubles.append(f"foreign request: {to}")


@pytest.fixture
def watch() -> Iterator[Watch]:
    watch = Watch()
    yield watch
    assert not watch.unexpected, "\n".join(watch.unexpected)


@pytest.fixture(scope="session")
def signed_in(browser) -> Callable:
    """Return a signed-in user's cookies, cached per server and user."""
    kept: dict[tuple[str, str], dict] = {}

    def state(server: Server, name: str = NAME, password: str = PASSWORD) -> dict:
        if (server.url, name) not in kept:
            context = browser.new_context(base_url=server.url)
            log_in(context.new_page(), name, password)
            kept[server.url, name] = context.storage_state()
            context.close()
        return kept[server.url, name]

    return state


@pytest.fixture
def visit(new_context, watch, signed_in) -> Callable[..., Page]:
    """Open a browser context at a server, signed in by default."""

    def page(server: Server, **options) -> Page:
        # What moves is drawn sixty times a second, which slows every test down.
        still = {"reduced_motion": "reduce"}
        if "locale" in options:
            server.forget_languages()
        options = still | {"storage_state": signed_in(server)} | options
        folds_steps = options.pop("folds_steps", False)
        context = new_context(base_url=server.url, **options)
        if not folds_steps:
            context.add_init_script(KEEP_STEPS_OPEN)
        watch.over(context, server.url)
        return context.new_page()

    return page


@pytest.fixture
def page(visit, server) -> Page:
    return visit(server)


@pytest.fixture
def slow_page(visit, slow_server) -> Page:
    return visit(slow_server)


@pytest.fixture
def phone(visit, server) -> Page:
    return visit(server, viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)


@pytest.fixture(scope="session")
def guest(browser, server, signed_in) -> dict:
    """The cookies of a second user, not an administrator."""
    return account(browser, server, signed_in, "guest")


@pytest.fixture(scope="session")
def newcomer(browser, server, signed_in) -> dict:
    """The cookies of a third user, who has asked nothing."""
    return account(browser, server, signed_in, "newcomer")


def account(browser, server, signed_in, name: str) -> dict:
    password = "only passing through here"
    context = browser.new_context(base_url=server.url, storage_state=signed_in(server))
    page = context.new_page()
    page.goto("/admin/auth/user/add/")
    page.locator("[name=username]").fill(name)
    page.locator("[name=_save]").click()
    link = page.locator("input.one-time").input_value()
    context.close()
    choose_password(browser, link, password)
    return signed_in(server, name, password)


def choose_password(browser, link: str, password: str) -> None:
    """Choose a password by an administrator's link, as a new user does."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(link)
    page.locator("[name=new_password1]").fill(password)
    page.locator("[name=new_password2]").fill(password)
    page.locator("form.credentials button").click()
    expect(page.locator(".flash-message")).to_be_visible()
    context.close()
