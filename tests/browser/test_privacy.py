"""Pseudonymized and unsaved personal data, as users see it."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests import wire
from tests.browser.agent_editor import open_agent, publish
from tests.browser.conftest import use_model
from tests.browser.conversation import ask_and_wait, html, last_run
from tests.browser.server import Server
from tests.browser.test_accessibility import faults

MAIL, PHONE = "ann@example.com", "090-1234-5678"
QUESTION = f"Who is {MAIL}? Her phone is {PHONE}."
PROMISE = "Personal data is masked before it reaches the model."


@pytest.fixture(scope="module")
def model() -> Iterator[wire.WireServer]:
    """A model that repeats the question."""

    def echo(request: wire.Request) -> wire.Reply:
        said = [m["content"] for m in request.body["messages"] if m["role"] == "user"]
        return wire.say(f"You asked: {said[-1]}", chunks=30)

    with wire.serve_in_thread(echo) as model:
        yield model


@pytest.fixture(scope="module")
def masking_agent(start_server, model) -> Iterator[Server]:
    """A server with that model."""
    yield from start_server("discreet", 0, **use_model(model.url, "openai/scripted"))


def sent(model: wire.WireServer, before: int) -> str:
    """Return what the model got after so many requests: the title's may be the last."""
    bodies = [request.body for request in model.requests[before:]]
    return json.dumps(bodies, ensure_ascii=False)


def choose(page: Page, rule: str) -> None:
    open_agent(page, "helper", "Safety & privacy")
    choice = page.locator(f"[name=personal_data][value={rule}]")
    if not choice.is_checked():
        choice.check()
        publish(page)


def test_the_model_gets_no_personal_data_and_the_user_reads_it(visit, masking_agent, model):
    page = visit(masking_agent)
    choose(page, "hidden")
    page.goto("/")
    expect(page.locator(".promise:visible")).to_have_text(PROMISE)

    before = len(model.requests)
    run = ask_and_wait(page, QUESTION)

    expect(run.locator(".answer")).to_contain_text(f"You asked: {QUESTION}")
    assert "‹email 1›" in sent(model, before)
    assert MAIL not in sent(model, before)
    watched = html(page.locator("#messages"))
    page.reload()
    expect(last_run(page)).to_have_attribute("data-status", "completed")
    assert html(page.locator("#messages")) == watched


def test_the_trace_shows_replaced_values(visit, masking_agent):
    page = visit(masking_agent)
    choose(page, "hidden")
    number = ask_and_wait(page, QUESTION).get_attribute("id").removeprefix("run-")

    page.goto(f"/traces/{number}/")

    expect(page.locator(".run-notes")).to_contain_text(
        "2 personal data values replaced before they reached the model"
    )
    page.goto(f"/traces/{number}/steps/1/?tab=request")
    page.locator(".replaced summary").click()
    expect(page.locator(".replaced dl")).to_contain_text(MAIL)
    expect(page.locator(".sent")).not_to_contain_text(MAIL)
    assert not faults(page)
