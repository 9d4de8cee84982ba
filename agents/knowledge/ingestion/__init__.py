"""Adds documents to collections: they are queued, read in the background, and indexed.

Requests only save rows. A thread of the web process, or of a worker, does the rest (`queue`).
"""

from .documents import add_file, add_url, cancel, delete, refresh, retry
from .progress import topic
from .queue import (
    process,
    process_claimed,
    process_waiting,
    register_publisher,
    shut_down,
)
from .readers import register_reader
from .refetching import fetch_due, fetch_sitemap, set_schedule
from .sitemaps import MAX_PAGES, SitemapUnreadable, add_sitemap

__all__ = [
    "MAX_PAGES",
    "SitemapUnreadable",
    "add_file",
    "add_sitemap",
    "add_url",
    "cancel",
    "delete",
    "fetch_due",
    "fetch_sitemap",
    "process",
    "process_claimed",
    "process_waiting",
    "refresh",
    "register_publisher",
    "register_reader",
    "retry",
    "set_schedule",
    "shut_down",
    "topic",
]
