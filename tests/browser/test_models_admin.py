from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import ask
from tests.browser.test_accessibility import READERS, faults
from tests.llm.capability_server import model_with
from tests.wire import Reply, Request, WireServer, models, say, serve_in_thread

MODELS = "/admin/agents/languagemodel/"
CONNECTIONS = "/admin/agents/modelconnection/"
KEY = "sk-typed-into-the-form-0123456789"
TRIAL = model_with("tools", "schema")


def talks(request: Request) -> Reply:
    """Answer as the test asks; in a chat, only with text."""
    names = {tool["function"]["name"] for tool in request.body.get("tools", ())}
    return TRIAL(request) if names <= {"multiply"} else say("It is a fine day.", chunks=3)


@pytest.fixture
def provider() -> Iterator[WireServer]:
    with serve_in_thread(talks, pages=models("gpt-4.1", "small")) as server:
        yield server


def connect(page: Page, provider: WireServer) -> None:
    page.goto(f"{CONNECTIONS}add/?provider=compatible")
    page.locator("[name=name]").fill("Gateway")
    page.locator("[name=base_url]").fill(provider.url)
    page.locator("[name=api_key]").fill(KEY)
    page.locator("[name=_save]").click()
    expect(page.locator(".messagelist .success")).to_contain_text("Gateway")


def fill(page: Page, label: str) -> None:
    """Add a model by its name to the connection that is open."""
    page.locator(".connection-models a[href*='languagemodel/add']").click()
    page.locator("[name=model]").fill("gpt-4.1")
    page.locator("[name=label]").fill(label)


@contextmanager
def connected(page: Page, provider: WireServer) -> Iterator[None]:
    connect(page, provider)
    try:
        yield
    finally:
        delete_connections(page)


@contextmanager
def added_model(page: Page, provider: WireServer, label: str) -> Iterator[None]:
    with connected(page, provider):
        fill(page, label)
        page.locator("[name=_save]").click()
        expect(page.locator(".messagelist")).to_contain_text(f"Added {label}.")
        yield


def delete_connections(page: Page) -> None:
    with page.context.new_page() as other:
        other.goto(CONNECTIONS)
        while other.locator(".connection-models").count():
            other.locator(".deletelink").click()
            other.locator("#content form [type=submit]").first.click()
            expect(other.locator(".messagelist .success")).to_be_visible()
            other.goto(CONNECTIONS)


@contextmanager
def chosen_model(page: Page, label: str) -> Iterator[None]:
    choose(page, label)
    try:
        yield
    finally:
        restore_default_model(page, label)


def restore_default_model(page: Page, label: str) -> None:
    with page.context.new_page() as other:
        open_model(other, label)
        other.get_by_role("button", name="Switch helper back to the default model").click()
        # Closing a page in the middle of a navigation can wait forever.
        expect(other.locator(".messagelist .success")).to_be_visible()


def choose(page: Page, label: str) -> None:
    open_model(page, label)
    page.get_by_role("button", name="helper", exact=True).click()
    expect(page.locator(".messagelist .success")).to_contain_text(f"Switched helper to {label}")


def open_model(page: Page, label: str) -> None:
    page.goto(MODELS)
    page.locator("#result_list").get_by_role("link", name=label, exact=True).click()


def test_a_disabled_model_is_reported_at_the_composer(page: Page, provider: WireServer, watch):
    watch.expect("422")
    with added_model(page, provider, "swift"), chosen_model(page, "swift"):
        page.goto(MODELS)
        page.locator("#result_list .action-select").check()
        page.locator("[name=action]").select_option("disable")
        page.get_by_role("button", name="Go").click()
        expect(page.locator(".messagelist .success")).to_contain_text("1 model disabled.")
        page.goto("/")
        ask(page, "How is the weather?")

        expect(page.locator("body")).to_contain_text("The model swift is disabled.")
        expect(page.locator("#text")).to_have_value("How is the weather?")


def test_the_models_of_the_connection_are_offered_while_a_name_is_typed(
    page: Page, provider: WireServer
):
    with connected(page, provider):
        page.get_by_role("link", name="Add by name").click()
        options = page.locator("#listed-models [role=option]")
        expect(options).to_have_count(2)
        page.keyboard.type("gpt")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(page.locator("[name=model]")).to_have_value("gpt-4.1")
        expect(page.locator("[name=label]")).to_have_value("gpt-4.1")
        expect(page.locator("[name=input_price]")).to_have_attribute("placeholder", "2")
        expect(page.locator("[name=can_tools] option:checked")).to_have_text("Automatic (Yes)")

        page.get_by_role("button", name="Refresh list").click()
        status = page.locator(".listed-models [role=status]")
        expect(status).to_have_text("Connected. 2 models found.")


def test_a_provider_is_found_by_typing(page: Page):
    page.goto(f"{CONNECTIONS}add/")
    expect(page.locator("#provider-search")).to_be_focused()
    page.keyboard.type("azure open")
    expect(page.locator(".provider-card:visible")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Connect Azure OpenAI")).to_be_visible()
    expect(page.locator("[name=api_version]")).to_be_visible()
    expect(page.locator("[name=region]")).to_be_hidden()


def test_a_model_of_a_new_connection_is_asked_within_six_clicks(
    page: Page, provider: WireServer
):
    """From the console's home; the rest is typing."""
    clicks = 0

    def click(what) -> None:
        nonlocal clicks
        clicks += 1
        what.click()

    page.goto("/admin/")
    click(page.get_by_role("link", name="Models", exact=True).first)
    click(page.get_by_role("link", name="Add connection").first)
    expect(page.locator("#provider-search")).to_be_focused()
    page.keyboard.type("compatible openai")
    page.keyboard.press("Enter")
    page.wait_for_url("**/add/?provider=compatible")  # loaded: its script moves the focus
    expect(page.locator("[name=base_url]")).to_be_focused()
    page.keyboard.type(provider.url)
    page.keyboard.press("Tab")
    page.keyboard.type(KEY)
    click(page.locator("[name=_save]"))
    try:
        click(page.get_by_role("checkbox", name="gpt-4.1"))
        expect(page.locator(".connection-models h2")).to_contain_text("1 of 2 on")
        click(page.get_by_role("button", name="Chat with gpt-4.1"))
        expect(page.locator("#agent-button")).to_contain_text("gpt-4.1")
        assert clicks <= 6
        ask(page, "How is the weather?")
        run = page.locator(".run").last
        expect(run).to_have_attribute("data-status", "completed")
        expect(run).to_contain_text("It is a fine day.")
        keys = {request.headers["authorization"] for request in provider.requests}
        assert keys == {f"Bearer {KEY}"}
    finally:
        delete_connections(page)


def test_ticked_models_are_tested_together_without_leaving_the_page(
    page: Page, provider: WireServer
):
    with connected(page, provider):
        for name in ("gpt-4.1", "small"):
            page.get_by_role("checkbox", name=name).check()
        page.get_by_role("button", name="Test all").click()

        expect(page.locator("[data-cell=state] .badge", has_text="Working")).to_have_count(2)
        expect(page.locator(".connection-models .progress")).to_be_hidden()
        page.get_by_role("checkbox", name="small").uncheck()
        page.locator("[name=_save]").click()
        expect(page.locator(".connection-models h2")).to_contain_text("1 of 2 on")


def test_without_javascript_the_test_is_a_page(visit, server, provider):
    page = visit(server, java_script_enabled=False)
    with connected(page, provider):
        fill(page, "swift")
        page.get_by_role("button", name="Test").click()

        expect(page.locator(".test-panel .words")).to_have_text("Good morning to you.")
        expect(page.locator(".test-panel .lines")).to_contain_text(
            "The model follows a JSON Schema."
        )
        page.goto(MODELS)
        expect(page.locator("#content")).not_to_contain_text("swift")


@pytest.mark.parametrize("reader", READERS)
def test_connections_and_the_form_of_a_model_are_accessible(visit, server, provider, reader):
    page = visit(server, reduced_motion="reduce", **READERS[reader])
    with connected(page, provider):
        assert faults(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        fill(page, "swift")
        page.locator("[data-test]").click()
        expect(page.locator(".test-panel .lines li")).to_have_count(6)

        # All of it is in view: axe counts what lies under a sticky header as its neighbor.
        page.set_viewport_size({**page.viewport_size, "height": 4_000})
        assert faults(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
