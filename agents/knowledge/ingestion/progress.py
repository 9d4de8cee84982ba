"""Publishes what happens to the documents of a collection, at most twice a second each."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from agents.engine.resilience import TokenBucket
from agents.models import Document

Publisher = Callable[..., Awaitable[None]]

INTERVAL_SECONDS = 0.5
KIND = "document.changed"

_publisher: Publisher | None = None
_loop: asyncio.AbstractEventLoop | None = None
_limits: dict[int, TokenBucket] = {}  # by document


def topic(collection: int) -> str:
    """Return the topic of a collection's documents."""
    return f"documents.{collection}"


def register_publisher(publisher: Publisher) -> None:
    """Publish through this function; the product's is `runs.pubsub.publish`."""
    global _publisher
    _publisher = publisher


def bind(loop: asyncio.AbstractEventLoop) -> None:
    """Publish on this event loop, which is that of the server."""
    global _loop
    _loop = loop


def is_server() -> bool:
    """Whether this process has an event loop that publishes, so it isn't a command."""
    return _loop is not None and _loop.is_running()


def announce(document: Document, *, is_deleted: bool = False) -> None:
    """Publish a document's new status."""
    _limits.pop(document.pk, None)
    _publish(document, is_deleted=is_deleted)


def report(document: Document) -> None:
    """Publish how far a document is, unless that was done a moment ago."""
    limit = _limits.setdefault(document.pk, TokenBucket(1, 1 / INTERVAL_SECONDS))
    if limit.allows():
        _publish(document)


def announce_check(collection: int) -> None:
    """Publish that a check of one of the collection's sources begins or ends."""
    _publish_to(collection)


def _publish(document: Document, **facts: Any) -> None:
    facts |= {
        "document": document.pk,
        "status": document.status,
        "done": document.done,
        "total": document.total,
    }
    _publish_to(document.collection_id, **facts)


def _publish_to(collection: int, **facts: Any) -> None:
    if _publisher is None or _loop is None or not _loop.is_running():
        return
    publishing = _publisher(topic(collection), KIND, **facts)
    asyncio.run_coroutine_threadsafe(publishing, _loop)  # type: ignore[arg-type]
