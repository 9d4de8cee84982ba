"""The library: documents are uploaded, found, and opened at the passage."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests import document_files
from tests.browser.test_accessibility import READERS, faults

REST = "\n\n".join(f"Paragraph {number} about something else." for number in range(60))
MARKDOWN = f"# Kettle manual\n\n## Steeping\n\nGreen tea is steeped at 80 degrees.\n\n{REST}"
JAPANESE = "# 出張規程\n\n## 宿泊費\n\n東京都内の宿泊費は一泊あたり一万八千円を上限とします。\n"


def new_collection(page: Page, name: str) -> None:
    page.goto("/library/")
    page.locator("summary", has_text="New collection").click()
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Create collection").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)


def upload(page: Page, *paths: Path) -> None:
    page.locator("input[name=file]").set_input_files(paths)
    ready = page.locator(".document-row[data-status=ready]")
    expect(ready).to_have_count(len(paths), timeout=90_000)


def write(folder: Path, name: str, content: str | bytes) -> Path:
    data = content.encode() if isinstance(content, str) else content
    (folder / name).write_bytes(data)
    return folder / name


@pytest.mark.journey
def test_a_document_is_uploaded_with_progress_found_and_opened_at_the_passage(
    page: Page, tmp_path
):
    new_collection(page, "Kitchen")
    pages = [[(20, "Cover")], [(20, "Kettles"), (12, "The kettle holds two litres. 湯沸かし")]]
    pdf = write(tmp_path, "kettle.pdf", document_files.pdf(pages))
    upload(page, write(tmp_path, "manual.md", MARKDOWN), pdf)
    expect(page.locator("#collection-summary")).to_contain_text("2 documents")

    page.get_by_label("Search in Kitchen").fill("green tea steeped")
    page.keyboard.press("Enter")
    page.locator(".passages a").first.click()
    place = page.locator("#place")
    expect(place).to_contain_text("Green tea is steeped")
    expect(place).to_be_in_viewport()

    page.goto("/library/search/?q=kettle+litres")
    page.locator(".passages li").filter(has_text="kettle.pdf").locator("a").first.click()
    hit = page.locator(".pdf-hit").first
    expect(hit).to_be_in_viewport()
    expect(page.locator("#pdf-page-2 canvas")).to_be_visible()
    page.get_by_text("Text", exact=True).click()
    expect(page.locator("#document-text mark").first).to_be_visible()


def test_selected_documents_are_deleted_and_restored(page: Page, tmp_path):
    new_collection(page, "Drawer")
    upload(page, *(write(tmp_path, f"note {n}.txt", f"Note {n} is here.") for n in (1, 2, 3)))
    for number in (1, 2):
        page.get_by_label(f"Select note {number}").check()
    expect(page.get_by_text("2 documents selected")).to_be_visible()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.locator(".document-row")).to_have_count(1)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".document-row")).to_have_count(3)


def test_a_file_that_cannot_be_read_says_why(page: Page, tmp_path, watch):
    watch.expect("422")
    new_collection(page, "Broken")
    page.locator("input[name=file]").set_input_files(
        [
            write(tmp_path, "empty.txt", ""),
            write(tmp_path, "broken.docx", b"PK\x05\x06" + b"\0" * 18),
        ]
    )
    expect(page.locator("#uploads .problem")).to_contain_text("empty")
    row = page.locator(".document-row[data-status=failed]")
    expect(row.locator(".problem")).not_to_be_empty()
    expect(row.get_by_role("button", name=re.compile("Try again"))).to_be_visible()


def test_dropped_files_are_uploaded(page: Page):
    new_collection(page, "Dropped")
    page.evaluate(
        """() => {
            const data = new DataTransfer();
            data.items.add(new File(["Dropped words"], "dropped.txt", { type: "text/plain" }));
            const about = { dataTransfer: data, cancelable: true };
            window.dispatchEvent(new DragEvent("drop", about));
        }"""
    )
    expect(page.get_by_role("link", name="dropped", exact=True)).to_be_visible()


def test_a_japanese_document_is_found_and_opened(page: Page, tmp_path):
    new_collection(page, "規程")
    upload(page, write(tmp_path, "規程.md", JAPANESE.encode("shift_jis")))
    page.get_by_label("Search in 規程").fill("宿泊費の上限")
    page.keyboard.press("Enter")
    page.locator(".passages a").first.click()
    expect(page.locator("#place")).to_contain_text("東京都内の宿泊費")
    page.get_by_label("Search in this document").fill("一泊")
    page.keyboard.press("Enter")
    expect(page.locator("#place")).to_have_text("一泊")


@pytest.mark.parametrize("options", READERS)
def test_the_library_is_accessible(options, visit, server):
    reader = visit(server, **READERS[options])
    reader.goto("/library/")
    assert faults(reader) == []
    reader.locator(".collection-about a").first.click()
    expect(reader.locator(".document-row").first).to_be_visible()
    assert faults(reader) == []
    reader.locator(".document-row h3 a").first.click()
    assert faults(reader) == []
