"""Fetches web pages and files through the egress function, and again only if they changed."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from functools import lru_cache

from django.conf import settings
from django.db import transaction

from agents.engine.sentences import Sentence as _
from agents.knowledge.files import release, save
from agents.models import Document
from agents.tools.addresses import AllowList
from agents.tools.egress import (
    AddressBlocked,
    Egress,
    EgressFailed,
    HostNotFound,
    Response,
    resolve_in_own_loop,
)
from agents.tools.egress import fetch as egress_fetch

MAX_BYTES = 25_000_000
TIMEOUT_SECONDS = 60.0
MAX_HEADER_CHARS = 200
RETRY_AFTER = timedelta(days=1)  # if the schedule is longer
GONE_STATUSES = (404, 410)
GONE = _(
    "This page is no longer on the web (status %(status)s). The earlier text stays "
    "searchable until you delete it."
)
NOT_FETCHED = _("The last fetch failed, so the earlier text stays. %(sentence)s")
# One sentence for a private host and for one that doesn't exist: users can add any address, and
# must not find out by it which hosts the private network has.
NOT_PUBLIC = _(
    "This page isn't on the public web. Check the URL. An administrator can allow a "
    "private host in ASHIATO_PAGES_ALLOW."
)
ACCEPT = "text/html,application/xhtml+xml,application/pdf,text/*;q=0.9,*/*;q=0.5"


class PageGone(EgressFailed):
    """The page doesn't exist any more."""

    is_passing = False


class PageNotPublic(EgressFailed):
    """The page's host is private or doesn't exist."""


def fetch(document: Document, save_fields: Callable[..., None]) -> bool:
    """Fetch a document's address and save its content; return False if it hasn't changed."""
    headers = {"Accept": ACCEPT}
    if document.indexed_at is not None:
        headers |= {"If-None-Match": document.etag} if document.etag else {}
        headers |= (
            {"If-Modified-Since": document.last_modified} if document.last_modified else {}
        )
    response = get(document.url, headers)
    if response.status == 304:
        return False
    if response.status in GONE_STATUSES and document.indexed_at is not None:
        raise PageGone(GONE.fill(status=response.status))
    if response.status != 200:
        raise EgressFailed(_("The server returned status %(status)s.", status=response.status))
    previous = document.file_id
    declared = response.headers.get("content-type", "")[:130]
    with transaction.atomic():
        stored = save(response.content, name=document.name, owner=document.owner)
        save_fields(
            file=stored,
            size=stored.size,
            mime_type=declared or stored.mime_type,
            etag=response.headers.get("etag", "")[:MAX_HEADER_CHARS],
            last_modified=response.headers.get("last-modified", "")[:MAX_HEADER_CHARS],
        )
    if previous not in (None, stored.pk):
        release([previous])
    return previous != stored.pk or document.indexed_at is None


def describe_failure(error: Exception) -> str:
    """Return why a page that was read before couldn't be fetched again."""
    return str(error) if isinstance(error, PageGone) else NOT_FETCHED.fill(sentence=error)


def get(
    url: str,
    headers: dict[str, str] | None = None,
    most_bytes: int = MAX_BYTES,
    seconds: float = TIMEOUT_SECONDS,
) -> Response:
    """Fetch an address from a thread without an event loop."""
    policy = _policy(tuple(settings.PAGES_ALLOW), most_bytes, seconds)
    try:
        return asyncio.run(egress_fetch("GET", url, policy=policy, headers=headers))
    except (AddressBlocked, HostNotFound) as error:
        raise PageNotPublic(NOT_PUBLIC) from error


@lru_cache(maxsize=4)
def _policy(allowed: tuple[str, ...], most_bytes: int, seconds: float) -> Egress:
    return Egress(
        allow=AllowList.read(allowed),
        timeout=seconds,
        most_bytes=most_bytes,
        # Users can add any name: one that hangs must not delay the lookups of tools.
        resolve=resolve_in_own_loop,
    )
