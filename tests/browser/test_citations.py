"""From an answer to the document: citations, and the list of sources."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import LOOKUP, ask_and_wait, begin, last_run


@pytest.mark.journey
def test_a_citation_shows_its_passage_and_opens_the_document_there(page: Page):
    run = ask_and_wait(page, LOOKUP)

    summary = run.locator(".step[data-kind=tool] summary").first
    expect(summary).to_contain_text(re.compile(r"search \(\d passages\)"))
    citation = run.locator(".answer a.cite").first
    expect(citation).to_have_accessible_name(re.compile(r"^Source \d+: \w"))
    citation.hover()
    tip = page.locator(".evidence-tip")
    expect(tip).to_be_visible()
    expect(tip.locator("b")).not_to_be_empty()
    sources = run.locator(".evidence-sources")
    expect(sources.get_by_role("heading")).to_have_text("Sources")
    expect(sources.locator("summary")).to_contain_text("Also read")

    citation.click()
    expect(page.locator("#side-panel #place")).to_be_in_viewport()
    page.goto(citation.get_attribute("href"), referer=page.url)
    expect(page).to_have_url(
        re.compile(r"/library/documents/\d+/\?part=1&chunk=\d+(&row=\d+)*#place$")
    )
    expect(page.locator("#place")).to_be_in_viewport()
    page.get_by_role("link", name="Back to the chat").click()
    expect(last_run(page).locator(".evidence-sources")).to_be_visible()


def test_the_sources_of_an_answer_open_their_documents(page: Page):
    run = ask_and_wait(page, LOOKUP)
    title = run.locator(".evidence-sources ol a").first
    name = title.locator("b").inner_text()

    title.press("Enter")

    expect(page.locator("#side-panel h2").first).to_have_text(name)


def test_on_a_phone_the_first_tap_explains_and_the_second_opens(page: Page):
    page.set_viewport_size({"width": 390, "height": 844})
    run = begin(page, LOOKUP)
    expect(run).to_have_attribute("data-status", "completed")
    citation = run.locator(".answer a.cite").first

    citation.dispatch_event("pointerdown", {"pointerType": "touch", "bubbles": True})
    citation.dispatch_event("click", {"bubbles": True, "cancelable": True})
    expect(page.locator(".evidence-tip")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
