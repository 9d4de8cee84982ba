"""Adds the pages of a site's sitemap, up to a limit and from the same host only."""

import zlib
from collections.abc import Iterator
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element

from agents.knowledge.parsing import UnreadableDocument
from agents.knowledge.parsing.parsers.archive import parse_xml
from agents.models import Collection, Document
from agents.models.types import AnyUser
from agents.tools.egress import EgressFailed, EgressRefused, validate_url

from . import web_pages
from .documents import add_url

MAX_PAGES = 1_000
DEFAULT_PAGES = 200
MAX_SITEMAPS = 20
MAX_BYTES = 10_000_000
GZIP_MAGIC = b"\x1f\x8b"


class SitemapUnreadable(ValueError):
    """Raised when an address has no sitemap; its text is a sentence for the user."""


def add_sitemap(
    collection: Collection, owner: AnyUser | None, url: str, limit: int = DEFAULT_PAGES
) -> list[Document]:
    """Add the pages that a sitemap lists; raise SitemapUnreadable or an egress error.

    Other sitemaps that it lists are read too, up to a limit.
    """
    pages = find_pages(url, min(max(limit, 1), MAX_PAGES))
    documents = []
    for page in pages:
        try:
            documents.append(add_url(collection, owner, page))
        except EgressRefused:
            continue
    if not documents:
        raise SitemapUnreadable("This sitemap lists no pages of its own site.")
    return documents


def find_pages(url: str, limit: int) -> list[str]:
    """Return the addresses of pages on the sitemap's host."""
    first = str(validate_url(url.strip()))
    waiting, seen, pages = [first], set[str](), dict[str, None]()
    while waiting and len(seen) < MAX_SITEMAPS and len(pages) < limit:
        place = waiting.pop(0)
        if place in seen:
            continue
        seen.add(place)
        root = _read(place)
        found = [each for each in _locations(root) if _host(each) == _host(first)]
        if root.tag.endswith("sitemapindex"):
            waiting += found
        else:
            pages |= dict.fromkeys(found)
    return list(pages)[:limit]


def _read(url: str) -> Element:
    response = web_pages.get(url, most_bytes=MAX_BYTES)
    if response.status != 200:
        raise EgressFailed(f"The server answered with status {response.status}.")
    data = response.content
    try:
        if data.startswith(GZIP_MAGIC):
            data = zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(data, MAX_BYTES)
        root = parse_xml(data)
    except (UnreadableDocument, zlib.error) as error:
        raise SitemapUnreadable("There is no sitemap at this address.") from error
    if root.tag.rpartition("}")[2] not in {"urlset", "sitemapindex"}:
        raise SitemapUnreadable("There is no sitemap at this address.")
    return root


def _locations(root: Element) -> Iterator[str]:
    for element in root.iter():
        if element.tag.rpartition("}")[2] == "loc" and element.text:
            yield element.text.strip()


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").removeprefix("www.")
    except ValueError:
        return ""
