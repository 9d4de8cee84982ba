"""The library: documents are uploaded, found, and opened at the passage."""

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests import document_files
from tests.browser.server import Server
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
    page.wait_for_load_state()  # before, no script notices the file
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


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("dropped", 'DragEvent("drop", { dataTransfer: data, cancelable: true })'),
        ("pasted", 'ClipboardEvent("paste", { clipboardData: data })'),
    ],
    ids=["dropped", "pasted"],
)
def test_dropped_and_pasted_files_are_uploaded(page: Page, name, event):
    new_collection(page, f"All {name}")
    page.wait_for_load_state()  # before, no script notices the file
    page.evaluate(
        f"""() => {{
            const data = new DataTransfer();
            data.items.add(new File(["Some words"], "{name}.txt", {{ type: "text/plain" }}));
            window.dispatchEvent(new {event});
        }}"""
    )
    expect(page.get_by_role("link", name=name, exact=True)).to_be_visible()


def test_a_folder_is_uploaded_with_its_paths_and_without_hidden_files(page: Page, tmp_path):
    folder = tmp_path / "handbook"
    (folder / "travel").mkdir(parents=True)
    write(folder, "leave.txt", "Leave is 30 days.")
    write(folder / "travel", "hotels.txt", "Hotels cost at most 180 euros.")
    write(folder, ".secret.txt", "Not for the library.")
    new_collection(page, "Folder")
    page.locator("[data-folder]").set_input_files(folder)
    expect(page.locator(".document-row[data-status=ready]")).to_have_count(2, timeout=90_000)
    expect(page.get_by_role("link", name="hotels", exact=True)).to_be_visible()


def test_an_upload_shows_its_progress_and_can_be_canceled(page: Page, tmp_path):
    new_collection(page, "Slow line")
    line = page.context.new_cdp_session(page)
    line.send("Network.enable")
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1}
    line.send("Network.emulateNetworkConditions", slow | {"uploadThroughput": 200_000})
    page.locator("input[name=file]").set_input_files(
        write(tmp_path, "large.txt", "words and more words\n" * 100_000)
    )
    bar = page.locator("#uploads progress")
    expect(bar).to_have_attribute("value", re.compile("^[1-9]"))
    page.locator("#uploads").get_by_role("button", name="Cancel").click()
    expect(page.locator("#uploads li")).to_have_count(0)
    line.send("Network.emulateNetworkConditions", slow | {"uploadThroughput": -1})
    page.reload()
    expect(page.locator(".document-row")).to_have_count(0)


def test_a_failed_upload_is_tried_again_in_place(page: Page, tmp_path, watch):
    watch.expect("Failed to load|ERR_|object Event")  # the last is the socket's
    new_collection(page, "Again")
    page.context.set_offline(True)
    page.locator("input[name=file]").set_input_files(write(tmp_path, "note.txt", "A note."))
    expect(page.locator("#uploads .problem")).to_contain_text("Check your connection")
    page.context.set_offline(False)
    page.locator("#uploads").get_by_role("button", name="Try again").click()
    expect(page.locator(".document-row[data-status=ready]")).to_have_count(1, timeout=90_000)


# Web pages


class Site:
    """A web site of a few pages, which can be taken away."""

    def __init__(self) -> None:
        self.pages = {f"/{n}": f"<title>Chapter {n}</title><p>Words {n}" for n in range(1, 6)}
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                content = site.pages.get(self.path)
                data = (content or "").encode()
                self.send_response(404 if content is None else 200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.place = f"127.0.0.1:{self.server.server_port}"
        self.url = f"http://{self.place}"
        listed = "".join(f"<url><loc>{self.url}{path}</loc></url>" for path in self.pages)
        self.pages["/sitemap.xml"] = f"<urlset>{listed}</urlset>"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.server.shutdown()
    site.server.server_close()


@pytest.fixture(scope="module")
def web_server(start_server, site) -> Iterator[Server]:
    """A server that may fetch pages of the site."""
    yield from start_server("web", 0.003, ASHIATO_PAGES_ALLOW=site.place)


def add_web(page: Page, url: str, **options: str) -> None:
    page.locator("summary", has_text="Add web pages").click()
    page.get_by_label("URL").fill(url)
    if "limit" in options:
        page.get_by_label("What to add").select_option("sitemap")
        page.get_by_label("Max pages").fill(options["limit"])
    page.locator("#add-interval").select_option(options.get("interval", "never"))
    page.get_by_role("button", name="Add", exact=True).click()


def test_a_sitemap_is_added_up_to_a_limit_and_a_page_that_vanished_is_marked(
    visit, web_server, site
):
    page = visit(web_server)
    new_collection(page, "Site")
    add_web(page, f"{site.url}/sitemap.xml", limit="2", interval="weekly")
    ready = page.locator(".document-row[data-status=ready]")
    expect(ready).to_have_count(2, timeout=90_000)
    sitemap = page.locator("li[id^=sitemap-]")
    expect(sitemap).to_contain_text("2 pages")
    expect(sitemap).to_contain_text("Next fetch in")
    taken, site.pages["/2"] = site.pages["/2"], None
    sitemap.get_by_role("button", name="Fetch now").click()
    gone = page.locator(".document-row", has_text="Chapter 2")
    expect(gone).to_contain_text("no longer on the web", timeout=90_000)
    site.pages["/2"] = taken


def test_a_page_is_added_and_its_schedule_is_saved_at_once(visit, web_server, site):
    page = visit(web_server)
    new_collection(page, "Page")
    add_web(page, f"{site.url}/5")
    row = page.locator(".document-row[data-status=ready]")
    expect(row).to_have_count(1, timeout=90_000)
    row.get_by_label("Fetch automatically").select_option("daily")
    expect(row).to_contain_text("Next fetch in")
    page.reload()
    expect(row.get_by_label("Fetch automatically")).to_have_value("daily")


def test_an_address_that_is_not_allowed_says_why_and_stays_in_the_form(
    visit, web_server, watch
):
    watch.expect("422")
    page = visit(web_server)
    new_collection(page, "Refused")
    add_web(page, "ftp://example.com/")
    expect(page.locator("#add-problem")).to_contain_text("must start with http")
    expect(page.get_by_label("URL")).to_have_value("ftp://example.com/")


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
    reader.locator(".document-row h2 a").first.click()
    reader.wait_for_url("**/library/documents/**")
    assert faults(reader) == []


def test_escape_closes_the_form_of_a_new_collection(page: Page):
    page.goto("/library/")
    summary = page.locator("summary", has_text="New collection")
    summary.press("Enter")
    expect(page.get_by_label("Name")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Name")).to_be_hidden()
    expect(summary).to_be_focused()


def test_a_document_with_code_does_not_scroll_sideways_on_a_phone(phone: Page, tmp_path):
    new_collection(phone, "Programs")
    code = "x = " + " + ".join(str(number) for number in range(80))
    upload(phone, write(tmp_path, "program.md", f"# Sum\n\n```python\n{code}\n```\n"))
    phone.locator(".document-row a").first.click()

    expect(phone.locator(".document-text pre")).to_be_visible()
    phone.wait_for_load_state()  # with its styles
    assert phone.evaluate("document.documentElement.scrollWidth") == 390
    assert faults(phone) == []
