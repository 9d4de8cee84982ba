"""Adds documents to a collection: uploaded files, web pages and sitemaps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.utils.translation import gettext as _

from agents.db.installation import configured
from agents.db.sanitize import sanitize_text, visible_name
from agents.db.sentences import translate
from agents.knowledge import files, ingestion
from agents.models import Collection, Document, Sitemap
from agents.tools import egress

MAX_PATH_CHARS = 400
# Files that a folder has without anyone having written them.
HIDDEN_NAMES = {"Thumbs.db", "desktop.ini", "__MACOSX"}


class UploadRejected(Exception):
    """Raised when nothing is added; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file and its path within the folder that was chosen, if any."""

    file: UploadedFile
    path: str = ""

    @property
    def name(self) -> str:
        """A name that leads nowhere: without drive, root or parent folders."""
        path = (self.path or self.file.name or "").replace("\\", "/")
        names = [visible_name(name) for name in PurePosixPath(path).parts]
        names = [name for name in names if name not in {"/", "..", ".", ""}]
        return "/".join(names)[-MAX_PATH_CHARS:].lstrip("/") or _("File")

    @property
    def is_hidden(self) -> bool:
        names = self.name.split("/")
        return any(name.startswith(".") or name in HIDDEN_NAMES for name in names)


def add_files(collection: Collection, user: User, uploads: Sequence[Upload]) -> list[Document]:
    """Save files and queue them for reading."""
    visible = [upload for upload in uploads if not upload.is_hidden]
    if not visible:
        raise UploadRejected(_("Choose a file first."))
    max_bytes = configured.DOCUMENT_MB.value * 1_000_000
    documents = []
    for upload in visible:
        try:
            # The file is released if no document refers to it.
            with transaction.atomic():
                stored = files.save(
                    upload.file, name=upload.name, owner=user, max_bytes=max_bytes
                )
                documents.append(ingestion.add_file(collection, user, upload.name, stored))
        except files.FileRefused as reason:
            raise UploadRejected(str(reason)) from reason
    return documents


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSource:
    """What the form for web pages says: a page or a sitemap, and how often to fetch it."""

    kind: str
    url: str
    limit: int
    interval: str

    def add(self, collection: Collection, user: User) -> None:
        """Add the page, or the sitemap's pages; raise UploadRejected."""
        target: Document | Sitemap
        try:
            if self.kind == "sitemap":
                target = ingestion.add_sitemap(collection, user, self.url, limit=self.limit)
            else:
                target = ingestion.add_url(collection, user, self.url)
        except (
            ingestion.SitemapUnreadable,
            egress.EgressRefused,
            egress.EgressFailed,
        ) as reason:
            raise UploadRejected(translate(str(reason))) from reason
        if target.fetch_interval != self.interval:
            ingestion.set_schedule(target, self.interval, user)


def parse_web_source(form: Mapping[str, str]) -> WebSource:
    """Read the form; what isn't a choice becomes the default."""
    limit = form.get("limit", "")
    is_number = limit.isdecimal() and len(limit) < 6
    return WebSource(
        kind="sitemap" if form.get("kind") == "sitemap" else "page",
        url=sanitize_text(form.get("url", "")).strip(),
        limit=int(limit) if is_number else configured.SITEMAP_PAGES.value,
        interval=parse_interval(form.get("interval", "")) or Document.Interval.NEVER,
    )


def parse_interval(value: str) -> str:
    """Return how often a page is fetched; empty if that isn't a choice."""
    return value if value in Document.Interval.values else ""
