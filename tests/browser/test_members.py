"""Several users and one agent: a chat in two browsers, and an expert."""

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests import wire
from tests.browser.conftest import AWAY, account, serve, use_model
from tests.browser.conversation import CALCULATION, ask, ask_and_wait, html, last_run
from tests.browser.server import Server
from tests.browser.test_accessibility import faults

QUESTION = "May we keep addresses for ten years?"
GROUP = """
from django.contrib.auth.models import Group, User
from agents.models import Agent, ToolRegistration
legal = Group.objects.create(name="legal")
legal.user_set.add(User.objects.get(username="lawyer"))
helper = Agent.objects.get(name="helper")
helper.tools.add(ToolRegistration.objects.get(name="ask_person"))
helper.experts.add(legal)
"""


def add_member(page: Page, name: str, right: str) -> None:
    page.get_by_role("link", name="Share", exact=True).click()
    page.get_by_label("Add by username").fill(name)
    page.locator("#person-right").select_option(right)
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("#people .members li")).to_have_count(2)
    page.get_by_role("button", name="Close", exact=True).click()
    expect(page.locator("#share-session")).to_be_hidden()


@pytest.mark.journey
def test_one_members_run_streams_to_the_other_member(visit, server, page, guest):
    ask_and_wait(page, CALCULATION)
    add_member(page, "guest", "read")
    other = visit(server, storage_state=guest)
    other.goto(page.url)
    expect(other.locator(".reads-only")).to_be_visible()
    expect(other.locator("#ask")).to_have_count(0)
    expect(page.locator("#present li")).to_have_attribute("title", "guest")
    expect(other.locator("#present li")).to_have_attribute("title", "demo")

    ask(page, "What is 6 times 7?")

    expect(other.locator(".run[data-status=completed]")).to_have_count(2)
    expect(last_run(other).locator(".answer")).to_contain_text("42")
    expect(other.locator(".author").last).to_contain_text("demo")
    watched = html(other.locator("#messages"))
    other.reload()
    assert html(other.locator("#messages")) == watched
    other.close()
    expect(page.locator("#present")).to_be_hidden()


def test_writers_send_messages_and_comments_under_their_name(visit, server, page, guest):
    ask_and_wait(page, CALCULATION)
    add_member(page, "guest", "write")
    other = visit(server, storage_state=guest)
    other.goto(page.url)
    ask(other, "What is 6 times 7?")
    expect(page.locator(".run[data-status=completed]")).to_have_count(2)
    expect(page.locator(".author .visually-hidden")).to_have_text("Message from guest")

    step = last_run(other).locator(".step").nth(1)
    step.locator("summary").click()
    step.get_by_label("Comment on step 2").fill("Is this right?")
    step.get_by_label("Comment on step 2").press("Control+Enter")

    seen = last_run(page).locator(".step").nth(1)
    expect(seen.locator(".comment-count .visually-hidden")).to_have_text("1 comment")
    seen.locator("summary").click()
    expect(seen.locator(".comment-list")).to_contain_text("Is this right?")
    expect(seen.get_by_role("button", name="Delete")).to_have_count(0)
    step.get_by_role("button", name="Delete").click()
    expect(seen.locator(".comment-count")).to_be_hidden()


def test_a_link_gives_access_and_a_removed_member_loses_it(visit, server, page, guest, watch):
    watch.expect("404")
    ask_and_wait(page, CALCULATION)
    page.get_by_role("link", name="Share", exact=True).click()
    page.get_by_role("button", name="Create link").click()
    link = page.locator("#invitation").inner_text()
    other = visit(server, storage_state=guest)
    other.goto(link)
    expect(other.get_by_role("heading")).to_have_text("demo shared a chat with you")
    other.get_by_role("button", name="Join").click()
    expect(other).to_have_url(page.url)
    expect(other.locator(".session:has([aria-current=page]) .whose")).to_contain_text("demo")

    page.get_by_role("button", name="Close", exact=True).click()
    expect(page.locator("#present li[title=guest]")).to_be_visible()  # it is connected
    page.get_by_role("link", name="Share", exact=True).click()
    page.get_by_role("button", name="Remove guest").click()

    expect(other.get_by_text("You're no longer in this chat.")).to_be_visible()
    assert other.goto(link).status == 404
    expect(other.get_by_text("This link was revoked.")).to_be_visible()


def test_a_removed_members_draft_can_be_copied(visit, server, page, guest):
    ask_and_wait(page, CALCULATION)
    add_member(page, "guest", "write")
    other = visit(server, storage_state=guest)
    other.goto(page.url)
    other.locator("#text").fill("half a thought")
    page.get_by_role("link", name="Share", exact=True).click()
    page.get_by_role("button", name="Remove guest").click()

    expect(other.get_by_text("You're no longer in this chat.")).to_be_visible()
    expect(other.get_by_role("button", name="Send")).to_be_disabled()
    other.locator("#text").press("Enter")

    expect(other.locator("#text")).to_have_value("half a thought")
    expect(other.locator("#text")).not_to_be_editable()
    expect(other.locator("#ask")).not_to_have_attribute("data-sending", "")
    assert faults(other) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("locale", ["en-GB", "ja"])
def test_sharing_fits_a_phone(visit, server, theme, locale):
    narrow = {"width": 390, "height": 844}
    page = visit(server, locale=locale, color_scheme=theme, viewport=narrow)
    ask_and_wait(page, CALCULATION)

    page.locator(".top a[hx-target='#people']").click()

    expect(page.locator("#share-session")).to_be_visible()
    page.locator("#people .invite-form button").last.click()
    expect(page.locator("#invitation")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("#share-session").evaluate("d => d.scrollWidth <= d.clientWidth")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_sharing_pages_are_accessible(visit, server, page, guest, theme):
    ask_and_wait(page, CALCULATION)
    add_member(page, "guest", "write")
    other = visit(server, storage_state=guest, color_scheme=theme, reduced_motion="reduce")
    other.goto(page.url)
    step = last_run(other).locator(".step").nth(1)
    step.locator("summary").click()
    step.get_by_label("Comment on step 2").fill("Is this right?")
    step.get_by_role("button", name="Comment").click()
    expect(step.locator(".comment-list li")).to_have_count(1)
    expect(other.locator("#present li")).to_have_count(1)
    assert faults(other) == []

    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    page.get_by_role("link", name="Share", exact=True).click()
    page.get_by_role("button", name="Create link").click()
    expect(page.locator("#invitation")).to_be_visible()
    assert faults(page) == []
    page.goto(f"{page.url}people/")
    assert faults(page) == []


# Questions to an expert


def lawyer(request: wire.Request) -> wire.Reply:
    """Ask a person first, and repeat their answer."""
    last = request.body["messages"][-1]
    if last["role"] == "tool":
        return wire.say(f"They say: {last['content']}")
    return wire.call(("ask_person", json.dumps({"question": QUESTION, "role": "legal"})))


@pytest.fixture(scope="module")
def asking_server(tmp_path_factory) -> Iterator[Server]:
    """A server whose model always asks a person."""
    with wire.serve_in_thread(lawyer) as model:
        yield from serve(
            tmp_path_factory.mktemp("asking"), 0.003, **use_model(model.url, "openai/scripted")
        )


@pytest.fixture(scope="module")
def expert(browser, asking_server, signed_in) -> dict:
    cookies = account(browser, asking_server, signed_in, "lawyer")
    asking_server.manage("shell", "-c", GROUP)
    return cookies


def send_on(asker: Page) -> None:
    """Approve the question as the run's user, so that it is sent."""
    card = asker.locator(".approval[data-verdict=waiting]").last
    expect(card).to_contain_text("Send this question to the group “legal”?")
    card.get_by_role("button", name="Send question").click()
    expect(asker.locator(".question-to").last).to_be_visible()


def test_an_expert_answers_in_the_inbox_and_the_run_continues(visit, asking_server, expert):
    asker, inbox = visit(asking_server), visit(asking_server, storage_state=expert)
    inbox.goto("/approvals/")
    expect(inbox.locator("main .empty")).to_be_visible()

    asker.goto("/")
    ask(asker, "What about our addresses?")
    expect(asker.locator(".approval")).to_contain_text("They see only the question")
    assert faults(asker) == []
    expect(inbox.locator("main .empty")).to_be_visible()
    send_on(asker)
    expect(asker.locator(".question-to")).to_contain_text("Waiting for a member of the group")

    card = inbox.locator(".waiting")
    expect(card).to_contain_text(QUESTION)
    expect(inbox.locator(".to-approvals .badge")).to_contain_text("1")
    assert "our addresses" not in inbox.content()
    assert faults(inbox) == []
    assert faults(asker) == []
    card.locator("textarea").fill("Five years, not ten.")
    card.locator("textarea").press("Control+Enter")

    run = last_run(asker)
    expect(run).to_have_attribute("data-status", "completed")
    expect(run.locator(".answer")).to_contain_text("They say: Five years, not ten.")
    expect(run.locator(".question-to")).to_contain_text("Answered by lawyer")
    expect(inbox.locator("main .empty")).to_be_visible()


def test_a_question_survives_a_restart(visit, asking_server, expert, watch):
    watch.expect(AWAY)
    asker, inbox = visit(asking_server), visit(asking_server, storage_state=expert)
    asker.goto("/")
    ask(asker, "And our invoices?")
    send_on(asker)

    asking_server.kill()
    asking_server.start()

    inbox.goto("/approvals/")
    inbox.locator(".waiting textarea").fill("Ten years.")
    inbox.get_by_role("button", name="Send answer").click()
    expect(last_run(asker)).to_have_attribute("data-status", "completed")
    expect(last_run(asker).locator(".answer")).to_contain_text("Ten years.")


def test_an_expert_declines_and_an_empty_answer_is_rejected(visit, asking_server, expert):
    asker, inbox = visit(asking_server), visit(asking_server, storage_state=expert)
    asker.goto("/")
    ask(asker, "And our contracts?")
    send_on(asker)
    inbox.goto("/approvals/")

    inbox.get_by_role("button", name="Send answer").click()
    expect(inbox.get_by_role("alert")).to_have_text("Enter an answer.")
    inbox.locator(".waiting textarea").fill("Not my field.")
    inbox.get_by_role("button", name="Reject").click()

    expect(last_run(asker).locator(".question-to")).to_contain_text("Rejected by lawyer")
    expect(last_run(asker).locator(".question-to")).to_contain_text("Not my field.")
    expect(last_run(asker)).to_have_attribute("data-status", re.compile("completed"))
