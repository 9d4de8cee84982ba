"""Reads a page on the web for the tool read_page: fetched, parsed and split into passages."""

import asyncio
import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urljoin, urlsplit

from agents.engine import call_context
from agents.engine.errors import ToolError
from agents.engine.material import Passage
from agents.engine.sentences import Sentence as _
from agents.tools import sandbox
from agents.tools.egress import EgressFailed
from agents.tools.http.response_text import format_status
from agents.tools.web.read_page import MAX_URL_CHARS, Page
from agents.tools.web.recent import RecentResults

from .chunking import split_parts
from .ingestion import web_pages
from .parsing import NeedsRecognition, ParsedDocument, UnreadableDocument, parse

MAX_BYTES = 5_000_000
FETCH_SECONDS = 15.0
PARSE_SECONDS = 12.0
SLOT_SECONDS = 5.0
MAX_PASSAGES = 2_000
MAX_SAVED_CHARS = 20_000_000
HEADERS = {
    "Accept": web_pages.ACCEPT,
    # Who operates a site can tell these requests from others, and refuse them.
    "User-Agent": "Mozilla/5.0 (compatible; Ashiato; reads pages for users)",
}
NEEDS_RECOGNITION = _("This page is an image or a scan, so it has no text to read.")
TOO_BUSY = _("Too many pages are being read. Try again later.")

# Many threads, because most of them wait for their turn or for a server.
THREADS = ThreadPoolExecutor(32, thread_name_prefix="read-page")
SLOTS = sandbox.FairSlots(6, per_owner=2)


def _size(page: Page) -> int:
    links = sum(len(text) + len(url) for text, url in page.links)
    return 1_000 + links + sum(len(passage.text) for passage in page.passages)


RECENT: RecentResults[Page] = RecentResults(MAX_SAVED_CHARS, _size)


class PageUnreadable(ToolError):
    message = _("This page can't be read.")


async def read(url: str) -> Page:
    """Return the page at a public address; raise ToolError."""
    saved = RECENT.get(url)
    if saved is not None:
        return saved
    owner = call_context.current().user_id
    page = await asyncio.get_running_loop().run_in_executor(THREADS, _read, url, owner)
    RECENT.add(url, page)
    return page


def _read(url: str, owner: str) -> Page:
    try:
        with SLOTS.slot(owner, SLOT_SECONDS):
            response = web_pages.get(url, HEADERS, MAX_BYTES, FETCH_SECONDS)
            if response.status != 200:
                sentence = _("The server returned status %(status)s.")
                raise EgressFailed(sentence.fill(status=format_status(response.status)))
            if len(response.url) > MAX_URL_CHARS:  # after redirects
                raise EgressFailed(_("The URL is too long."))
            path = PurePosixPath(unquote(urlsplit(response.url).path))
            # Without its ending: what the server says and the content decide what it is.
            name = re.sub(r"[.\s]+", " ", path.stem or _host(response.url)).strip()[:200]
            with tempfile.TemporaryDirectory(prefix="page-") as folder:
                file = Path(folder, "page")
                file.write_bytes(response.content)
                document = parse(
                    file,
                    name,
                    mime_type=response.headers.get("content-type", "")[:200],
                    deadline=PARSE_SECONDS,
                    recognizes=False,
                )
    except sandbox.NoFreeSlot as error:
        raise PageUnreadable(TOO_BUSY) from error
    except NeedsRecognition as error:
        raise PageUnreadable(NEEDS_RECOGNITION) from error
    except UnreadableDocument as error:
        raise PageUnreadable(str(error)) from error
    return _page(response.url, document)


def _page(url: str, document: ParsedDocument) -> Page:
    parts = {part.number: part for part in document.parts}
    title = " ".join(document.title.split())[:200] or _host(url)
    passages = [
        Passage(
            title=title,
            heading=chunk.heading,
            text=chunk.text,
            url=url,
            ordinal=ordinal,
            part=chunk.part,
            kind=parts[chunk.part].kind,
            label=parts[chunk.part].label,
        )
        for ordinal, chunk in enumerate(split_parts(document.parts, title=title))
    ]
    links: dict[str, str] = {}
    for text, address in document.links:
        try:
            target = urljoin(url, address).partition("#")[0]
        except ValueError:
            continue
        is_short = len(target) <= MAX_URL_CHARS
        if target.startswith(("http://", "https://")) and target != url and is_short:
            links.setdefault(target, text)
    return Page(
        url=url,
        passages=passages[:MAX_PASSAGES],
        links=[(text, target) for target, text in links.items()],
        notes=document.notes,
    )


def _host(url: str) -> str:
    return urlsplit(url).hostname or url
