"""A voice message: recorded, transcribed, checked and sent."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests import wire
from tests.browser.conftest import use_model
from tests.browser.conversation import last_run, log_in
from tests.browser.server import NAME, PASSWORD
from tests.browser.test_accessibility import faults
from tests.knowledge.media.sounds import segment, wav

SPOKEN = [segment(0, "What is six times seven?")]
CALL = [segment(0, "Hello."), segment(40, "Delivery is on Friday.")]
NOTES = {"name": "call.wav", "mimeType": "audio/wav", "buffer": wav(60, rate=4_000)}
POSITION = "media => media.currentTime"


def hear(request: wire.Request) -> dict:
    is_file = b"RIFF" in request.body
    return {"language": "english", "segments": CALL if is_file else SPOKEN}


@pytest.fixture(scope="module")
def listening_server(start_server):
    pages = {"/v1/audio/transcriptions": hear}
    with wire.serve_in_thread(lambda _: wire.say("On Friday [00:40]."), pages=pages) as model:
        settings = {
            "ASHIATO_TRANSCRIPTION_MODEL": "openai/whisper-1",
            "ASHIATO_TRANSCRIPTION_URL": model.url,
        }
        yield from start_server("listening", 0.003, **use_model(model.url), **settings)


def test_a_recording_is_transcribed_into_the_composer_and_sent(
    listening_server, new_context, watch
):
    context = new_context(base_url=listening_server.url)
    watch.over(context, listening_server.url)
    page = context.new_page()
    log_in(page, NAME, PASSWORD)
    page.get_by_role("button", name="Record", exact=True).click()
    expect(page.locator(".recording time")).to_have_text("0:02")
    page.get_by_role("button", name="Finish recording").press("Enter")
    expect(page.locator("#text")).to_have_value("What is six times seven?")
    expect(page.locator(".upload")).to_contain_text("Recording")
    page.locator("#text").press("Enter")
    expect(last_run(page)).to_have_attribute("data-status", "completed")
    expect(page.locator(".sent-files")).to_contain_text("Recording")
    assert watch.unexpected == []


def test_a_discarded_recording_leaves_nothing(listening_server, new_context):
    page = new_context(base_url=listening_server.url).new_page()
    log_in(page, NAME, PASSWORD)
    page.get_by_role("button", name="Record", exact=True).click()
    expect(page.locator(".recording")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".recording")).to_be_hidden()
    expect(page.locator("#text")).to_be_focused()
    expect(page.locator(".upload")).to_have_count(0)


def ask_about_the_call(page: Page) -> None:
    page.goto("/")
    page.locator("input[data-picked]").first.set_input_files([NOTES])
    expect(page.locator(".upload")).to_have_attribute("data-state", "ready")
    page.locator("#text").fill("When is the delivery?")
    page.locator("button.send").click()
    expect(last_run(page)).to_have_attribute("data-status", "completed")


def test_a_time_in_an_answer_and_in_a_transcript_plays_the_recording_there(
    visit, listening_server, watch
):
    page = visit(listening_server)
    ask_about_the_call(page)
    moment = last_run(page).locator(".answer a.moment")
    page.wait_for_load_state()  # before, no script notices the key
    moment.press("Enter")
    player = page.locator(".recording-player audio")
    expect(player).to_be_visible()
    page.wait_for_function(
        "() => document.querySelector('.recording-player audio').currentTime >= 40"
    )
    assert 40 <= player.evaluate(POSITION) < 50
    assert faults(page) == []

    page.locator(".transcript summary").click()
    page.locator(".transcript-text a.moment").first.click()
    page.wait_for_function(
        "() => document.querySelector('.recording-player audio').currentTime < 20"
    )
    page.get_by_role("button", name="Close player").press("Escape")
    expect(player).to_have_count(0)

    page.goto(moment.get_attribute("href"))  # as a new tab does
    expect(page.locator("#place")).to_have_text(re.compile("Delivery is on Friday"))
    assert 39.9 <= page.locator("#player").evaluate(POSITION) < 50
    page.locator(".document-text a.moment").first.click()
    page.wait_for_function("() => document.querySelector('#player').currentTime < 20")


def test_the_player_fits_on_a_phone(visit, listening_server):
    page = visit(listening_server, viewport={"width": 390, "height": 844}, has_touch=True)
    ask_about_the_call(page)
    last_run(page).locator(".answer a.moment").tap()
    expect(page.locator(".recording-player audio")).to_be_in_viewport()
    page.locator(".transcript summary").tap()
    expect(page.locator(".transcript-text")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
