"""The panel beside a chat: documents, files, images, diagrams and previews."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests import document_files, wire
from tests.browser.conftest import use_model
from tests.browser.conversation import LOOKUP, ask, ask_and_wait, last_run
from tests.browser.server import Server
from tests.browser.test_accessibility import faults
from tests.pictures import png

# Resolves when the entry of the panel is left.
LEFT = """
() => new Promise((resolve) => {
  if (history.state?.sidePanel) addEventListener("popstate", () => resolve(), { once: true });
  else resolve();
})
"""
PAGES = [[(20, "Cover")], [(20, "Kettles"), (12, "The kettle holds two litres.")]]
MADE = """```html
<h1>Tea</h1><script>document.title = self.origin;</script>
```

```mermaid
flowchart LR
  A[Leaf] --> B[Cup]
```
"""


@pytest.fixture(scope="module")
def model() -> Iterator[wire.WireServer]:
    with wire.serve_in_thread(lambda request: wire.say(MADE)) as model:
        yield model


@pytest.fixture(scope="module")
def maker(start_server, model) -> Iterator[Server]:
    """A server whose model answers with a page and a diagram."""
    yield from start_server("maker", 0, **use_model(model.url))


def panel_of(page: Page) -> Locator:
    return page.locator("#side-panel")


def send_with(page: Page, *files: dict) -> Locator:
    page.goto("/")
    page.locator("input[data-picked]").first.set_input_files(list(files))
    expect(page.locator(".upload[data-state=ready]")).to_have_count(len(files))
    ask(page, "What is this?")
    expect(last_run(page)).to_have_attribute("data-status", "completed")
    return page.locator(".question").last


@pytest.mark.journey
def test_a_citation_opens_beside_the_chat_and_escape_returns_to_it(page: Page):
    run = ask_and_wait(page, LOOKUP)
    source = run.locator(".evidence-sources a[href]").first
    chat = page.url
    source.focus()
    page.keyboard.press("Enter")

    panel = panel_of(page)
    expect(panel.locator("#place")).to_be_in_viewport()
    expect(panel.locator("#place")).to_be_focused()
    expect(source).to_have_attribute("aria-current", "true")
    assert page.url == chat
    answer = run.locator(".answer").bounding_box()
    assert answer["x"] + answer["width"] <= panel.bounding_box()["x"]
    assert faults(page) == []
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(source).to_be_focused()

    source.click()
    with page.context.expect_page() as opened:
        panel.get_by_role("link", name="Open in a new tab").click()
    expect(opened.value).to_have_url(re.compile(r"/library/documents/\d+/\?.*#place$"))
    panel.get_by_role("button", name="Close").click()
    with page.context.expect_page() as opened:
        source.click(modifiers=["ControlOrMeta"])
    opened.value.close()
    expect(panel).to_be_hidden()


def test_the_pager_walks_through_the_sources_of_the_answer(page: Page):
    run = ask_and_wait(page, LOOKUP)
    read = run.locator(".evidence-sources details")
    read.locator("summary").click()
    links = read.locator("a[href]")
    count = links.count()
    links.first.click()
    panel = panel_of(page)
    status = panel.get_by_role("status")

    expect(status).to_have_text(f"Source 1 of {count}")
    panel.get_by_role("button", name="Next source").click()
    expect(status).to_have_text(f"Source 2 of {count}")
    expect(links.nth(1)).to_have_attribute("aria-current", "true")
    expect(links.first).not_to_have_attribute("aria-current", "true")
    expect(panel.get_by_role("button", name="Next source")).to_be_focused()
    panel.get_by_role("button", name="Previous source").click()
    panel.get_by_role("button", name="Previous source").click()
    expect(status).to_have_text(f"Source {count} of {count}")
    page.keyboard.press("Escape")
    expect(links.first).to_be_focused()


def test_on_a_phone_it_fills_the_screen(phone: Page):
    phone.goto("/")
    phone.locator("#text").fill(LOOKUP)
    phone.get_by_role("button", name="Send").tap()
    run = last_run(phone)
    expect(run).to_have_attribute("data-status", "completed")
    run.locator(".evidence-sources a[href]").first.tap()

    panel = panel_of(phone)
    expect(panel.locator("#place")).to_be_in_viewport()
    assert panel.bounding_box() == {"x": 0, "y": 0, "width": 390, "height": 844}
    expect(phone.locator("main")).to_have_js_property("inert", True)
    assert faults(phone, "#side-panel") == []
    panel.get_by_role("button", name="Close").tap()
    expect(panel).to_be_hidden()
    expect(phone.locator("main")).to_have_js_property("inert", False)


def test_on_a_phone_back_closes_it(phone: Page):
    phone.goto("/")
    phone.locator("#text").fill(LOOKUP)
    phone.get_by_role("button", name="Send").tap()
    run = last_run(phone)
    expect(run).to_have_attribute("data-status", "completed")
    chat = phone.url
    source = run.locator(".evidence-sources a[href]").first
    panel = panel_of(phone)

    source.tap()
    expect(panel).to_be_visible()
    phone.go_back()
    expect(panel).to_be_hidden()
    expect(source).to_be_focused()
    phone.go_forward()
    expect(panel.locator("#place")).to_be_in_viewport()
    phone.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    assert phone.url == chat
    phone.evaluate(LEFT)
    phone.go_back()
    expect(phone).not_to_have_url(chat)


def test_attached_images_and_files_open_in_it(page: Page):
    picture = {"name": "tea.png", "mimeType": "image/png", "buffer": png(640, 480)}
    pdf = {
        "name": "kettle.pdf",
        "mimeType": "application/pdf",
        "buffer": document_files.pdf(PAGES),
    }
    question = send_with(page, picture, pdf)
    question.locator(".sent-image").click()
    panel = panel_of(page)

    expect(panel.get_by_role("heading")).to_have_text("tea.png")
    expect(panel.locator("img")).to_have_js_property("naturalWidth", 640)
    question.locator(".sent-file").click()
    expect(panel.locator(".document-text")).to_contain_text("two litres")
    expect(panel.get_by_role("link", name="Download")).to_be_visible()
    panel.get_by_text("Original", exact=True).click()
    expect(panel.locator("#pdf-page-1 canvas")).to_be_visible()
    expect(panel.locator(".document-text")).to_be_hidden()
    assert faults(page) == []
    # What was made for one document doesn't stay for the next.
    question.locator(".sent-image").click()
    expect(panel.get_by_text("Original", exact=True)).to_have_count(0)


def test_a_preview_is_sandboxed_and_a_diagram_has_the_full_width(visit, maker):
    page = visit(maker)
    run = ask_and_wait(page, "Make something.")
    preview = run.get_by_role("button", name="Preview")
    preview.click()
    panel = panel_of(page)

    frame = panel.locator("iframe")
    expect(frame).to_have_attribute("sandbox", "allow-scripts")
    content = frame.element_handle().content_frame()
    expect(panel.frame_locator("iframe").get_by_role("heading")).to_have_text("Tea")
    assert content.evaluate("self.origin") == "null"
    panel.get_by_role("button", name="Close").click()
    expect(preview).to_be_focused()
    expect(frame).to_have_count(0)

    run.get_by_role("button", name="Open in side panel").click()
    expect(panel.locator("img")).to_be_visible()
    panel.get_by_role("button", name="Full width").click()
    assert panel.bounding_box()["x"] == 0
    assert faults(page, "#side-panel") == []
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()


def test_its_width_is_changed_and_remembered(page: Page):
    run = ask_and_wait(page, LOOKUP)
    source = run.locator(".evidence-sources a[href]").first
    source.click()
    panel = panel_of(page)
    expect(panel.locator("#place")).to_be_visible()
    box = panel.bounding_box()

    page.mouse.move(box["x"], 400)
    page.mouse.down()
    page.mouse.move(box["x"] - 100, 400)
    page.mouse.up()
    wider = panel.bounding_box()["width"]
    assert abs(wider - box["width"] - 100) <= 2
    panel.get_by_role("separator").press("ArrowRight")
    narrower = panel.bounding_box()["width"]
    assert narrower == wider - 32
    page.reload()
    source.click()
    expect(panel.locator("#place")).to_be_visible()
    assert panel.bounding_box()["width"] == narrower
