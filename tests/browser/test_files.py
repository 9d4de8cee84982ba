"""Files in the composer: attached, pasted, dropped, and read by the model."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests import wire
from tests.browser.conftest import use_model
from tests.browser.conversation import (
    last_run,
    open_trace,
)
from tests.browser.server import Server
from tests.browser.test_accessibility import faults
from tests.browser.test_sessions import record_shifts
from tests.pictures import png

NOTES = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"The code word is heron."}
BROKEN = {"name": "a.zip", "mimeType": "application/zip", "buffer": b"PK\x05\x06" + bytes(18)}
FITS = "() => document.documentElement.scrollWidth <= window.innerWidth"
# A real clipboard can't be filled without a window.
PASTE = """bytes => {
  const data = new DataTransfer();
  data.items.add(new File([new Uint8Array(bytes)], "image.png", { type: "image/png" }));
  const told = { clipboardData: data, bubbles: true, cancelable: true };
  document.getElementById("text").dispatchEvent(new ClipboardEvent("paste", told));
}"""
DROP = """kind => {
  const data = new DataTransfer();
  data.items.add(new File(["Heron."], "dropped.md", { type: "text/markdown" }));
  const told = { dataTransfer: data, bubbles: true, cancelable: true };
  document.body.dispatchEvent(new DragEvent(kind, told));
}"""


@pytest.fixture(scope="module")
def model() -> Iterator[wire.WireServer]:
    """A model that sees, and says what it was sent."""

    def answer(request: wire.Request) -> wire.Reply:
        last = request.body["messages"][-1]["content"]
        seen = "an image" if isinstance(last, list) else "text"
        word = "heron" if "heron" in json.dumps(last) else "nothing"
        return wire.say(f"I was sent {seen} and read {word}.")

    with wire.serve_in_thread(answer) as model:
        yield model


@pytest.fixture(scope="module")
def reading_server(start_server, model) -> Iterator[Server]:
    yield from start_server("files", 0, **use_model(model.url))


@pytest.fixture
def page(visit, reading_server: Server) -> Page:
    page = visit(reading_server)
    page.goto("/")
    return page


def attach(page: Page, *files) -> None:
    page.locator("input[data-picked]").first.set_input_files(list(files))


@pytest.mark.journey
def test_a_file_is_attached_read_and_used_in_the_answer(page: Page, watch):
    watch.expect("422")
    attach(page, NOTES, BROKEN)
    chip = page.locator(".upload", has_text="notes.txt")
    expect(chip).to_have_attribute("data-state", "ready")
    expect(chip).to_contain_text("Whole text")
    expect(page.locator(".upload", has_text="a.zip")).to_contain_text("can't be read")
    assert faults(page) == []
    page.reload()  # the draft keeps its upload
    expect(page.locator(".upload")).to_have_count(1)

    page.locator("#text").fill("Which word?")
    page.locator("#text").press("Enter")

    expect(page.locator(".question .sent-file")).to_contain_text("notes.txt")
    expect(last_run(page)).to_contain_text("read heron")
    expect(page.locator(".upload")).to_have_count(0)


def test_a_pasted_image_is_sent_without_words(page: Page):
    page.evaluate(PASTE, list(png(40, 30)))
    expect(page.locator(".upload img")).to_be_visible()
    page.locator("button.send").click()

    picture = page.locator(".question .sent-image img")
    # It has its size before it has its bytes.
    assert picture.evaluate("async image => (await image.decode(), image.naturalWidth)") == 40
    expect(last_run(page)).to_contain_text("I was sent an image")
    assert page.evaluate(FITS)


def test_on_a_phone_a_trace_does_not_move_when_the_image_of_its_question_is_loaded(page: Page):
    page.set_viewport_size({"width": 390, "height": 844})
    page.evaluate(PASTE, list(png(900, 600)))
    expect(page.locator(".upload img")).to_be_visible()
    page.locator("button.send").click()
    expect(last_run(page)).to_contain_text("I was sent an image")
    record_shifts(page)
    page.goto(f"/traces/{last_run(page).get_attribute('id').removeprefix('run-')}/")
    expect(page.locator(".asked .attached-image img")).to_have_js_property("naturalWidth", 900)
    page.wait_for_timeout(300)

    assert page.evaluate("window.shifted") < 0.05


def test_a_dropped_file_can_be_removed(page: Page):
    page.evaluate(DROP, "dragenter")
    expect(page.locator(".drop")).to_be_visible()
    page.evaluate(DROP, "drop")
    expect(page.locator(".drop")).to_be_hidden()
    expect(page.locator(".upload[data-state=ready]")).to_contain_text("dropped.md")
    page.get_by_role("button", name="Remove").click()
    expect(page.locator(".upload")).to_have_count(0)
    expect(page.locator("#text")).to_be_focused()


def test_a_message_waits_until_its_files_are_read(page: Page):
    page.route("**/chat/files/", lambda route: (page.wait_for_timeout(700), route.continue_()))
    attach(page, NOTES)
    page.locator("#text").fill("Which word?")
    page.locator("#text").press("Enter")
    expect(page.locator("#notice")).to_contain_text("sent when its files are read")
    expect(last_run(page)).to_contain_text("read heron")


def test_a_file_is_searched_instead_of_sent_and_the_trace_shows_its_text(page: Page):
    attach(page, NOTES)
    choice = page.get_by_label("How the model gets this file")
    expect(choice).to_have_value("whole")
    expect(choice).to_have_attribute(
        "title", "About 7 tokens. Files of up to 8,000 tokens are sent in full."
    )
    choice.select_option("searchable")
    expect(choice).to_have_attribute("title", "About 7 tokens. Chosen manually.")
    page.locator("#text").fill("Which word?")
    page.locator("#text").press("Enter")
    expect(page.get_by_label("How the model gets notes.txt")).to_have_value("searchable")

    open_trace(last_run(page))
    page.get_by_text("Text sent to the model").click()

    expect(page.locator(".attached-body")).to_contain_text("Outline and beginning")
    expect(page.locator(".attached-body")).to_contain_text("The code word is heron.")


# Pasting by a script inserts nothing, so the text is inserted as a browser would.
PASTE_TEXT = """words => {
  const data = new DataTransfer();
  data.setData("text/plain", words);
  const told = { clipboardData: data, bubbles: true, cancelable: true };
  const field = document.getElementById("text");
  field.focus();
  if (field.dispatchEvent(new ClipboardEvent("paste", told)))
    document.execCommand("insertText", false, words);
}"""


def test_a_long_paste_becomes_a_file_with_one_click_and_back_again(page: Page):
    words = "The code word is heron. " * 400
    page.locator("#text").fill("Which word? ")
    page.evaluate(PASTE_TEXT, words)
    page.locator("#notice [data-attach-text]").press("Enter")
    chip = page.locator(".upload")
    expect(chip).to_have_attribute("data-state", "ready")
    expect(page.locator("#text")).to_have_value("Which word? ")

    page.locator("#notice [data-put-back]").press("Enter")
    expect(chip).to_have_count(0)
    expect(page.locator("#text")).to_have_value(f"Which word? {words}")
    page.locator("#text").fill("Which word?")
    page.evaluate(PASTE_TEXT, words * 22)  # more than a message can have
    expect(chip).to_have_attribute("data-state", "ready")
    page.locator("#text").press("Enter")
    expect(last_run(page).locator(".answer")).to_contain_text("read heron")


def test_a_message_that_is_too_long_is_shortened_or_attached(page: Page):
    page.locator("#text").fill("word " * 50_000)
    page.locator("#text").press("Enter")
    page.locator("#notice [data-shorten]").press("Enter")
    page.keyboard.press("Delete")
    assert len(page.locator("#text").input_value()) == 200_000

    page.locator("#text").fill("heron " * 50_000)
    page.locator("#text").press("Enter")
    page.locator("#notice [data-attach-text]").click()
    expect(page.locator(".upload")).to_have_attribute("data-state", "ready")
    expect(page.locator("#text")).to_have_value("")
