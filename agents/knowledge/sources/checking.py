"""Checks sources that are due: reads new and changed files, deletes vanished documents.

One process checks a source at a time, with a lease. A check that is interrupted is done again
from the start: what was read has its version, so it isn't read twice.
"""

import logging
import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet, Sum
from django.utils import timezone

from agents.db import claims, jobs
from agents.db.installation import configured
from agents.db.periodic import periodic
from agents.db.sanitize import sanitize_text, visible_name
from agents.engine import fault_injection
from agents.engine.sentences import Sentence as _
from agents.knowledge.files import FileRefused, store
from agents.knowledge.ingestion import add_file, leases, progress
from agents.knowledge.ingestion.documents import SUFFIXES, clean_name, delete_all
from agents.models import Document, DocumentSource
from agents.models.knowledge.sources import INTERVALS
from agents.models.secret import UnreadableSecret

from .place import FileUnreadable, OpenPlace, Place, PlaceFile, PlaceUnreadable

logger = logging.getLogger(__name__)

MAX_FILES = 10_000
MAX_LISTED = 200_000  # with files that aren't documents
MAX_BYTES = 20_000_000_000
LISTING_SECONDS = 300.0
# Then it is the turn of the next source, and the rest of this one is read later.
CHECK_SECONDS = 600.0
HEARTBEAT_SECONDS = 5.0
RETRY_AFTER = timedelta(hours=1)  # if the interval is longer
MAX_REASON_CHARS = 500
# More are deleted only if that is at most half of the source's documents.
MAX_SILENT_DELETIONS = 10

TOO_MANY = _(
    "Only the first %(count)s files were read, and nothing is deleted: this place has more "
    "than %(limit)s. Follow a smaller part of it.",
)
TOO_LARGE = _("It is larger than %(size)s MB.")
MISSING = _(
    "%(missing)s of %(count)s documents are no longer there. They stay until an administrator "
    "agrees to delete them."
)
TOO_SLOW = _("The check took longer than %(minutes)s minutes.", minutes=10)
TOO_MUCH = _("Its documents are larger than %(size)s GB.")
FAILED_FILES = _("%(count)s files couldn't be read. %(name)s: %(reason)s")
FAILED_FILE = _("%(name)s couldn't be read. %(reason)s")
CRASHED = _("The check failed. Look at the server's log.")
UNAVAILABLE = _("This server can't read sources of this kind.")

_openers: dict[str, OpenPlace] = {}


class _OutOfTime(Exception):
    """Raised when the check has used its time."""


def register(kind: str, open_place: OpenPlace) -> None:
    """Open places of this kind with this function."""
    _openers[kind] = open_place


def kinds() -> list[str]:
    """Return the kinds of places that this installation can read."""
    return [kind for kind in DocumentSource.Kind.values if kind in _openers]


def check_soon(source: DocumentSource, **values: Any) -> None:
    """Save values of a source, and let the next process that looks check it."""
    values |= {"next_check_at": timezone.now()}
    DocumentSource.objects.filter(pk=source.pk).update(**values)


def mark_removed(documents: Iterable[Document], *, is_removed: bool) -> None:
    """Have sources not add files again whose documents a user deleted, until these return.

    Call it in the transaction that deletes or restores them.
    """
    keys: dict[int, set[str]] = {}
    for document in documents:
        if document.origin_id is not None:
            keys.setdefault(document.origin_id, set()).add(document.origin_key)
    for source in DocumentSource.objects.select_for_update().filter(pk__in=keys):
        others = set(source.removed) - keys[source.pk]
        source.removed = sorted(others | keys[source.pk] if is_removed else others)
        source.save(update_fields=["removed"])


def has_due() -> bool:
    # With workers, they are the ones that have the folders.
    if settings.WORKERS and not leases.is_worker:
        return False
    return _due(timezone.now()).exists()


@periodic("sources", every=10, when=has_due)
def check_due(now: datetime | None = None) -> int:
    """Check each source that is due; return how many."""
    count = 0
    with jobs.in_hand():
        for source in _due(now or timezone.now()):
            if jobs.stopping.is_set():
                break
            if claims.take(source, among=_due(now or timezone.now())):
                check(source)
                count += 1
    return count


def _due(now: datetime) -> QuerySet[DocumentSource]:
    due = DocumentSource.objects.filter(
        claims.is_due(timezone.now()),
        enabled=True,
        next_check_at__lte=now,
        collection__deleted_at=None,
    )
    return due.select_related("collection").order_by("next_check_at", "pk")


def check(source: DocumentSource) -> None:
    """Check a claimed source, and save the outcome."""
    now = timezone.now()
    upcoming = now + INTERVALS[DocumentSource.Interval(source.interval)]
    values: dict[str, Any] = {"checked_at": now, "next_check_at": upcoming}
    work = _Check(source)
    progress.announce_check(source.collection_id)
    try:
        values |= work.run()
    except claims.ClaimLost:
        return  # changed, paused or removed meanwhile, or another process was faster
    except leases.ShuttingDown:
        values = {}
    except _OutOfTime:
        if work.has_progress:
            values["next_check_at"] = timezone.now()
        else:
            values["problem"] = TOO_SLOW
    except (PlaceUnreadable, UnreadableSecret) as error:
        values["problem"] = _plain(str(error))
        values["next_check_at"] = min(upcoming, now + RETRY_AFTER)
        values["deletable"] = 0
    except Exception:  # it is tried again
        logger.exception("Can't check the source %s.", source.pk)
        values["problem"] = CRASHED
        values["next_check_at"] = min(upcoming, now + RETRY_AFTER)
        values["deletable"] = 0
    # Who asked for a check meanwhile gets another one.
    has_request = not claims.held(source).filter(next_check_at=source.next_check_at).exists()
    if has_request:
        values.pop("next_check_at", None)
        values.pop("deletable", None)  # it may have been an approval
    claims.release(source, **values)
    progress.announce_check(source.collection_id)


@dataclass(slots=True)
class _Listing:
    """The files of a place that can be documents, by key."""

    files: dict[str, PlaceFile] = field(default_factory=dict)
    skipped: int = 0
    size: int = 0
    is_complete: bool = False


class _Check:
    """One check of a source by this process."""

    def __init__(self, source: DocumentSource) -> None:
        self._source = source
        self._started = time.monotonic()
        self._renew_at = 0.0
        self._stored_bytes = 0
        self.has_progress = False  # so the next check has less to do

    def run(self) -> dict[str, Any]:
        """Return what is to be saved about a check that was completed."""
        source = self._source
        open_place = _openers.get(source.kind)
        if open_place is None:
            raise PlaceUnreadable(UNAVAILABLE)
        with open_place(source, self._heartbeat) as place:
            place_version = _short(place.version)
            if place_version and place_version == source.place_version:
                return {"problem": ""}
            listing = self._list(place)
            documents = self._documents().values_list("pk", "origin_key", "origin_version")
            saved = {key: (pk, version) for pk, key, version in documents}
            self._stored_bytes = self._documents().aggregate(size=Sum("size"))["size"] or 0
            missing = 0
            if listing.is_complete:
                missing = self._delete_vanished(listing, saved)
            problem = self._read_changed(place, listing, saved)
        if missing:
            problem = MISSING.fill(missing=missing, count=len(saved))
        elif not listing.is_complete:
            problem = TOO_MANY.fill(count=len(listing.files), limit=_limit(listing))
        return {
            "problem": problem,
            "place_version": "" if problem else place_version,
            "skipped": listing.skipped,
            "missing": missing,
            "deletable": 0,
        }

    def _list(self, place: Place) -> _Listing:
        """Return the files; if they are too many, some of them."""
        listing = _Listing()
        for listed, file in enumerate(place.files(), start=1):
            self._heartbeat()
            fault_injection.point("during_source_listing")
            if time.monotonic() - self._started > LISTING_SECONDS:
                sentence = _("The list of files took longer than %(seconds)s s.")
                raise PlaceUnreadable(sentence.fill(seconds=f"{LISTING_SECONDS:g}"))
            names = file.name.split("/")
            is_hidden = any(name.startswith(".") for name in names)
            if is_hidden or PurePosixPath(names[-1]).suffix.lower() not in SUFFIXES:
                listing.skipped += 1
            elif (key := _digest(file.key)) not in listing.files:
                listing.files[key] = file
                listing.size += file.size
            if (
                listed > MAX_LISTED
                or len(listing.files) > MAX_FILES
                or (listing.size > MAX_BYTES)
            ):
                return listing
        listing.is_complete = True
        return listing

    def _delete_vanished(self, listing: _Listing, saved: dict[str, tuple[int, str]]) -> int:
        """Delete documents whose files are gone; return how many need an approval first."""
        vanished = [pk for key, (pk, _version) in saved.items() if key not in listing.files]
        is_loss = len(vanished) > MAX_SILENT_DELETIONS and 2 * len(vanished) > len(saved)
        # An empty place is often one that isn't connected.
        is_loss |= bool(vanished) and not listing.files
        if is_loss and len(vanished) > self._source.deletable:
            return len(vanished)
        for pk in vanished:
            claims.renew(self._source)
            fault_injection.point("during_source_deletion")
            delete_all(self._documents().filter(pk=pk))
            self.has_progress = True
            self._heartbeat()
        return 0

    def _read_changed(
        self, place: Place, listing: _Listing, saved: dict[str, tuple[int, str]]
    ) -> str:
        """Queue files that are new or have changed; return what is wrong with others."""
        removed = set(self._source.removed)
        changed = []
        for key, file in listing.files.items():
            pk, version = saved.get(key, (None, ""))
            is_same = pk is not None and file.version != "" and version == _short(file.version)
            if not is_same and (pk is not None or key not in removed):
                changed.append((key, file, pk))
        # New ones first, and in any order: if there is no time for all, each has its turn.
        random.shuffle(changed)
        changed.sort(key=lambda entry: entry[2] is not None)
        failures: list[tuple[str, str]] = []
        for key, file, pk in changed:
            self._heartbeat()
            try:
                self._read(place, file, key, pk)
            except (FileUnreadable, FileRefused) as error:
                failures.append((clean_name(file.name)[:200], _plain(str(error))))
        if not failures:
            return ""
        name, reason = min(failures)
        sentence = FAILED_FILE if len(failures) == 1 else FAILED_FILES
        return sentence.fill(count=len(failures), name=name, reason=reason)

    def _read(self, place: Place, file: PlaceFile, key: str, pk: int | None) -> None:
        max_megabytes = configured.DOCUMENT_MB.value
        max_bytes = max_megabytes * 1_000_000
        if file.size > max_bytes:
            raise FileUnreadable(TOO_LARGE.fill(size=max_megabytes))
        content = self._pieces(place, file)
        with (
            store.stage(content, name=file.name, max_bytes=max_bytes) as staged,
            transaction.atomic(),
        ):
            claims.renew(self._source)
            replaced_bytes = 0
            if pk is None:
                name = self._new_name(file, key)
            else:
                document = self._documents().select_for_update().filter(pk=pk).first()
                if document is None:
                    return  # a user has deleted or replaced it meanwhile
                name = document.source
                replaced_bytes = document.size
            stored = store.commit(staged, owner=None)
            document = add_file(self._source.collection, None, name, stored)
            Document.objects.filter(pk=document.pk).update(
                origin=self._source, origin_key=key, origin_version=_short(file.version)
            )
            fault_injection.point("before_source_document")
        self.has_progress |= pk is None or bool(file.version)
        self._stored_bytes += stored.size - replaced_bytes
        if self._stored_bytes > MAX_BYTES:
            raise PlaceUnreadable(TOO_MUCH.fill(size=MAX_BYTES // 1_000_000_000))

    def _pieces(self, place: Place, file: PlaceFile) -> Iterator[bytes]:
        for piece in place.read(file):
            self._heartbeat()
            yield piece

    def _new_name(self, file: PlaceFile, key: str) -> str:
        """Return a name that no other document of the collection has."""
        folder = self._source.name
        name = clean_name(f"{folder}/{file.name}")
        collection = Document.objects.filter(collection=self._source.collection_id)
        if collection.filter(source=name).exists():
            name = clean_name(f"{folder}/{key[:12]}/{file.name}")
        return name

    def _documents(self) -> QuerySet[Document]:
        return Document.objects.filter(
            origin=self._source.pk, collection=self._source.collection_id
        )

    def _heartbeat(self) -> None:
        """Renew the lease now and then; raise if the check has to end."""
        if jobs.stopping.is_set():
            raise leases.ShuttingDown
        now = time.monotonic()
        if now - self._started > CHECK_SECONDS:
            raise _OutOfTime
        if now >= self._renew_at:
            claims.renew(self._source)
            self._renew_at = now + HEARTBEAT_SECONDS


def _limit(listing: _Listing) -> str:
    if listing.size > MAX_BYTES:
        return f"{MAX_BYTES // 1_000_000_000} GB"
    return f"{MAX_FILES if len(listing.files) > MAX_FILES else MAX_LISTED:,}"


def _digest(key: str) -> str:
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(text: str) -> str:
    """Return a sentence, or what a server says, without control characters and not too long."""
    if isinstance(text, _):
        return text.map(visible_name)
    return visible_name(text)[:MAX_REASON_CHARS]


def _short(version: str) -> str:
    version = sanitize_text(version)
    return version if len(version) <= 64 else sha256(version.encode()).hexdigest()
