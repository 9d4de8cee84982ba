from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, expect

from tests.browser.agent_editor import open_agent, publish
from tests.browser.conversation import ask, begin
from tests.browser.test_accessibility import READERS, faults
from tests.llm.capability_server import model_with
from tests.wire import Reply, Request, WireServer, models, say, serve_in_thread

MODELS, AGENTS = "/admin/agents/languagemodel/", "/admin/agents/agent/"
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


def fill(page: Page, provider: WireServer, label: str) -> None:
    page.goto(f"{MODELS}add/")
    page.locator("[name=label]").fill(label)
    page.locator("[name=provider]").select_option("compatible")
    page.locator("[name=model]").fill("gpt-4.1")
    page.locator("[name=base_url]").fill(provider.url)
    page.locator("[name=api_key]").fill(KEY)


@contextmanager
def added_model(page: Page, provider: WireServer, label: str) -> Iterator[None]:
    fill(page, provider, label)
    page.locator("[name=_save]").click()
    expect(page.locator(".messagelist .success")).to_be_visible()
    try:
        yield
    finally:
        with page.context.new_page() as other:
            other.goto(MODELS)
            other.locator("#result_list").get_by_role("link", name=label, exact=True).click()
            other.locator(".deletelink").click()
            other.locator("#content form [type=submit]").click()
            expect(other.locator(".messagelist .success")).to_be_visible()


@contextmanager
def chosen_model(page: Page, label: str) -> Iterator[None]:
    choose(page, label)
    try:
        yield
    finally:
        with page.context.new_page() as other:
            choose(other, "")


def choose(page: Page, label: str) -> None:
    open_agent(page, "helper", "Model")
    page.locator("[name=model]").fill(label)
    publish(page)


@pytest.mark.journey
def test_a_model_is_added_tested_and_used_in_a_chat(page: Page, provider: WireServer):
    fill(page, provider, "swift")
    page.get_by_role("button", name="Test").click()
    expect(page.locator(".test-panel .words")).to_have_text("Good morning to you.")
    expect(page.locator(".test-panel .lines")).to_contain_text("The model can call tools.")
    expect(page.locator(".test-panel .lines")).to_contain_text(
        "This model does not support vision."
    )
    expect(page.get_by_role("button", name="Test")).to_be_enabled()

    with added_model(page, provider, "swift"), chosen_model(page, "swift"):
        run = begin(page, "How is the weather?")
        expect(run).to_have_attribute("data-status", "completed")
        expect(run).to_contain_text("It is a fine day.")
        expect(run.locator(".model")).to_contain_text("swift")
        expect(page.locator("#ask .model, .composer .model").first).to_contain_text("swift")
    keys = {request.headers["authorization"] for request in provider.requests}
    assert keys == {f"Bearer {KEY}"}


def test_a_disabled_model_is_reported_at_the_composer(page: Page, provider: WireServer, watch):
    watch.expect("422")
    with added_model(page, provider, "swift"), chosen_model(page, "swift"):
        page.goto(MODELS)
        page.locator("#result_list [name=form-0-enabled]").uncheck()
        page.locator("[name=_save]").click()
        page.goto("/")
        ask(page, "How is the weather?")

        expect(page.locator("body")).to_contain_text("The model swift is disabled.")
        expect(page.locator("#text")).to_have_value("How is the weather?")


def test_the_models_of_the_server_are_offered_while_a_name_is_typed(
    page: Page, provider: WireServer
):
    fill(page, provider, "swift")
    page.locator("[name=model]").focus()
    status = page.locator(".listed-models [role=status]")
    expect(status).to_have_text("2 models. The key was accepted.")
    names = page.locator("#listed-models option").evaluate_all("all => all.map(o => o.value)")
    assert names == ["gpt-4.1", "small"]

    page.locator("[name=base_url]").fill("http://127.0.0.1:9/v1")
    page.get_by_role("button", name="List models").click()
    expect(status).to_contain_text("the connection was refused")
    expect(page.locator("#listed-models option")).to_have_count(0)


def test_the_gemini_url_has_an_example(page: Page):
    page.goto(f"{MODELS}add/")
    page.locator("[name=provider]").select_option("gemini")
    address = page.locator("[name=base_url]")
    expect(address).to_have_attribute(
        "placeholder", "https://generativelanguage.googleapis.com/v1beta"
    )
    expect(page.locator("#id_base_url_helptext")).to_contain_text("only for a gateway")


def test_the_form_shows_what_the_provider_needs(page: Page):
    page.goto(f"{MODELS}add/")
    row = page.locator(".form-row")
    needs = {"azure": "api_version", "bedrock": "region", "compatible": "options"}
    for provider, field in needs.items():
        page.locator("[name=provider]").select_option("openai")
        expect(row.filter(has=page.locator(f"[name={field}]"))).to_be_hidden()
        page.locator("[name=provider]").select_option(provider)
        expect(row.filter(has=page.locator(f"[name={field}]"))).to_be_visible()
    expect(page.locator("[name=model]")).to_have_attribute("placeholder", "my-model")


def test_without_javascript_all_fields_are_shown_and_the_test_is_a_page(
    visit, server, provider
):
    page = visit(server, java_script_enabled=False)
    fill(page, provider, "swift")
    expect(page.locator("[name=region]")).to_be_visible()
    page.get_by_role("button", name="Test").click()

    expect(page.locator(".test-panel .words")).to_have_text("Good morning to you.")
    expect(page.locator(".test-panel .lines")).to_contain_text(
        "The model follows a JSON Schema."
    )
    page.goto(MODELS)
    expect(page.locator("#content")).not_to_contain_text("swift")


@pytest.mark.parametrize("reader", READERS)
def test_the_model_form_and_its_test_are_accessible(visit, server, provider, reader):
    page = visit(server, reduced_motion="reduce", **READERS[reader])
    fill(page, provider, "swift")
    page.locator("[data-test]").click()
    expect(page.locator(".test-panel .lines li")).to_have_count(6)

    assert faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
