"""Adds the pages of a site's sitemap, up to a limit and from the same host only."""

import time
import zlib
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element

from django.db import transaction
from django.utils import timezone

from agents.engine.sentences import Sentence as _
from agents.knowledge.parsing import UnreadableDocument
from agents.knowledge.parsing.parsers.archive import parse_xml
from agents.knowledge.parsing.parsers.values import WorkLimit
from agents.models import Collection, Document, Sitemap
from agents.models.types import AnyUser
from agents.tools.egress import EgressFailed, EgressRefused, validate_url

from . import web_pages
from .documents import add_url

MAX_PAGES = 1_000
DEFAULT_PAGES = 200
MAX_SITEMAPS = 20
MAX_SECONDS = 30.0  # a request waits for it; what was found by then is added
MAX_BYTES = 10_000_000
NEVER = Document.Interval.NEVER
# Of 50,000 pages with five tags each, opened and closed. It is parsed in this process.
MAX_TAGS = 600_000
TOO_LARGE = _(
    "This sitemap lists more than 50,000 pages. Use one that covers only part of the site."
)
GZIP_MAGIC = b"\x1f\x8b"


class SitemapUnreadable(ValueError):
    """Raised when an address has no sitemap; its text is a sentence for the user."""


def add_sitemap(
    collection: Collection, owner: AnyUser | None, url: str, limit: int = DEFAULT_PAGES
) -> Sitemap:
    """Add the pages that a sitemap lists; raise SitemapUnreadable or an egress error.

    Other sitemaps that it lists are read too, up to a limit.
    """
    limit = min(max(limit, 1), MAX_PAGES)
    url = str(validate_url(url.strip()))
    pages = find_pages(url, limit)
    if not pages:
        raise SitemapUnreadable(_("This sitemap lists no pages of its own site."))
    with transaction.atomic():
        sitemap, _is_new = Sitemap.objects.get_or_create(collection=collection, url=url)
        sitemap.max_pages = limit
        sitemap.fetched_at = timezone.now()
        sitemap.known = []
        sitemap.fetch_problem = ""
        sitemap.save()
    add_pages(sitemap, owner, pages)
    return sitemap


def add_pages(sitemap: Sitemap, owner: AnyUser | None, pages: Sequence[str]) -> int:
    """Add pages that weren't known; one that a user has deleted isn't added again."""
    digests = set(sitemap.known)
    new = [page for page in pages if _digest(page) not in digests]
    free_slots = sitemap.max_pages - sitemap.documents.exclude(url__in=new).count()
    for page in new[: max(free_slots, 0)]:
        digests.add(_digest(page))
        with suppress(EgressRefused), transaction.atomic():
            document = add_url(sitemap.collection, owner, page)
            # A page that was added by itself stays so, with its own schedule.
            of_sitemap = Document.objects.filter(pk=document.pk, fetch_interval=NEVER)
            of_sitemap.update(sitemap=sitemap)
    sitemap.known = sorted(digests)
    Sitemap.objects.filter(pk=sitemap.pk).update(known=sitemap.known)
    return len(new)


def _digest(page: str) -> str:
    return sha256(page.encode()).hexdigest()[:16]


def find_pages(url: str, limit: int) -> list[str]:
    """Return the addresses of pages on the sitemap's host."""
    first = str(validate_url(url.strip()))
    waiting = [first]
    visited = set[str]()
    pages = dict[str, None]()
    end = time.monotonic() + MAX_SECONDS
    while waiting and len(visited) < MAX_SITEMAPS and len(pages) < limit:
        if visited and time.monotonic() > end:
            break
        sitemap_url = waiting.pop(0)
        if sitemap_url in visited:
            continue
        visited.add(sitemap_url)
        root = _read(sitemap_url)
        locations: dict[str, None] = {}  # on the same host, each once
        for element in root.iter():
            if element.tag.rpartition("}")[2] == "loc" and element.text:
                location = element.text.strip()
                if _host(location) == _host(first):
                    locations[location] = None
        if root.tag.endswith("sitemapindex"):
            listed = {*visited, *waiting}
            waiting += [location for location in locations if location not in listed]
            del waiting[MAX_SITEMAPS:]  # more aren't read, and one file can list 100,000
        else:
            pages |= locations
    return list(pages)[:limit]


def _read(url: str) -> Element:
    response = web_pages.get(url, most_bytes=MAX_BYTES)
    if response.status != 200:
        raise EgressFailed(_("The server returned status %(status)s.", status=response.status))
    data = response.content
    try:
        if data.startswith(GZIP_MAGIC):
            data = zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(data, MAX_BYTES)
        if max(data.count(b"<"), data.count(b"=")) > MAX_TAGS:
            raise SitemapUnreadable(TOO_LARGE)
        root = parse_xml(data, WorkLimit())
    except (UnreadableDocument, zlib.error) as error:
        raise SitemapUnreadable(_("There is no sitemap at this URL.")) from error
    if root.tag.rpartition("}")[2] not in {"urlset", "sitemapindex"}:
        raise SitemapUnreadable(_("There is no sitemap at this URL."))
    return root


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").removeprefix("www.")
    except ValueError:
        return ""
