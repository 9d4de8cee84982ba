"""A voice message: recorded, transcribed, checked and sent."""

import shutil

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import serve
from tests.browser.conversation import last_run, log_in
from tests.browser.server import NAME, PASSWORD
from tests.wire import serve_in_thread

HEARD = {
    "language": "english",
    "segments": [
        {"start": 0, "end": 2, "text": "What is six times seven?", "no_speech_prob": 0.01}
    ],
}


@pytest.fixture
def listening_server(tmp_path, prepared_data):
    shutil.copytree(prepared_data, tmp_path / "data")
    with serve_in_thread(pages={"/v1/audio/transcriptions": HEARD}) as wire:
        settings = {
            "ASHIATO_TRANSCRIPTION_MODEL": "openai/whisper-1",
            "ASHIATO_TRANSCRIPTION_URL": wire.url,
        }
        yield from serve(tmp_path, 0.003, **settings)


@pytest.mark.journey
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
