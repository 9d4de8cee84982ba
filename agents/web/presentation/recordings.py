"""Times of recordings, such as [12:34], as links that play the recording from there."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from django.db.models import Q
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from agents.knowledge.media.transcript import time_code
from agents.models import Document, DocumentPart, Run

from .evidence import Observation
from .evidence.text_blocks import Block, split_blocks
from .formats.icons import cached_url

TIME = re.compile(r"(?<![\d:.])(?:(\d{1,2}):)?(\d{1,3}):([0-5]\d)(?![\d:])")
MARK = re.compile(rf"\[{TIME.pattern}\]")
OPENING = "[(（【［"
CLOSING = "])）】］"
MAX_RECORDINGS = 20
MAX_LINKS = 500
# A model may name a moment between two lines, also in the last one.
LAST_LINE_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A document with sound; `moments` are the times in its transcript."""

    document: int
    kind: str
    title: str
    moments: frozenset[int] = frozenset()

    def includes(self, seconds: int) -> bool:
        """Whether a time may be one of this recording."""
        return seconds <= max(self.moments, default=0) + LAST_LINE_SECONDS

    def link(self, seconds: int, text: str) -> SafeString:
        """Return a link that plays it on the page, or opens its transcript there."""
        return format_html(
            '<a class="moment" href="{}?t={}#place" data-play="{}" data-kind="{}" '
            'data-name="{}" title="{}">{}</a>',
            cached_url("library:document", self.document),
            str(seconds),
            f"{cached_url('library:file', self.document)}#t={seconds}",
            self.kind,
            self.title,
            _("Play from here"),
            text,
        )


def from_document(document: Document) -> Recording:
    """Return a document as a recording, for all times in its own text."""
    kind = document.mime_type.partition("/")[0]
    return Recording(document=document.pk, kind=kind, title=document.title)


def find_recordings(run: Run, sources: Iterable[Observation]) -> tuple[Recording, ...]:
    """Return the recordings that a run's answer may be about: its chat's, and those it read."""
    titles = {
        source.passage.document: source.passage.title
        for source in sources
        if source.passage is not None and source.passage.kind == DocumentPart.Kind.CLIP
    }
    is_here = Q(pk__in=[pk for pk in titles if pk is not None])
    is_here |= Q(collection__topic=run.topic) if run.topic else Q()
    rows = Document.objects.filter(is_here, file__isnull=False, parts__kind="clip").distinct()
    rows = rows.only("title", "mime_type", "indexed_at").order_by("-pk")[:MAX_RECORDINGS]
    return tuple(
        Recording(
            document=row.pk,
            kind=row.mime_type.partition("/")[0],
            # Not every reader can open it, so they don't get its present title.
            title=titles.get(row.pk) or row.title,
            moments=_moments(row.pk, row.indexed_at),
        )
        for row in rows
    )


@lru_cache(maxsize=256)
def _moments(document: int, _indexed_at: datetime | None) -> frozenset[int]:
    """Return the times in a transcript, as it was read then."""
    texts = DocumentPart.objects.filter(document=document).values_list("text", flat=True)
    return frozenset(to_seconds(match) for text in texts for match in MARK.finditer(text))


def to_seconds(match: re.Match[str]) -> int:
    hours, minutes, seconds = (int(digits or 0) for digits in match.groups())
    return hours * 3600 + minutes * 60 + seconds


def play_passage(recordings: Iterable[Recording], source: Observation) -> SafeString:
    """Return a link that plays a recording where a passage of it begins; empty if none does."""
    document = source.passage.document if source.passage is not None else None
    recording = next(
        (candidate for candidate in recordings if candidate.document == document), None
    )
    mark = MARK.search(source.text)
    if recording is None or mark is None:
        return SafeString()
    seconds = to_seconds(mark)
    return recording.link(seconds, time_code(seconds))


def has_times(text: str) -> bool:
    return TIME.search(text) is not None


def link_moments(html: str, recording: Recording) -> SafeString:
    """Link the times in brackets of a recording's own transcript."""
    return _rewrite(html, lambda match: recording if _is_in_brackets(match) else None)


def link_times(html: str, recordings: Iterable[Recording]) -> SafeString:
    """Link the times in an answer to the recording they are of, if that is clear.

    A time in brackets is one of a recording. Any other may be the time of day, unless the
    transcript has a line at that time.
    """
    candidates = tuple(recordings)

    def choose(match: re.Match[str]) -> Recording | None:
        seconds = to_seconds(match)
        exact = [recording for recording in candidates if seconds in recording.moments]
        if len(exact) == 1:
            return exact[0]
        near = [recording for recording in exact or candidates if recording.includes(seconds)]
        return near[0] if len(near) == 1 and _is_in_brackets(match) else None

    return _rewrite(html, choose)


def _is_in_brackets(match: re.Match[str]) -> bool:
    text_before = match.string[max(0, match.start() - 2) : match.start()].rstrip()
    text_after = match.string[match.end() : match.end() + 2].lstrip()
    return text_before[-1:] in {*OPENING} or text_after[:1] in {*CLOSING}


def _rewrite(html: str, choose: Callable[[re.Match[str]], Recording | None]) -> SafeString:
    """Return the HTML with links around times in its text."""
    pieces: list[str] = []
    remaining_links = MAX_LINKS

    def replace(match: re.Match[str]) -> str:
        nonlocal remaining_links
        recording = choose(match) if remaining_links > 0 else None
        if recording is None:
            return match[0]
        remaining_links -= 1
        return recording.link(to_seconds(match), match[0])

    for block in split_blocks(html):
        if not isinstance(block, Block):
            pieces.append(block)
            continue
        for kind, segment in block.segments:
            pieces.append(TIME.sub(replace, segment) if kind == "text" else segment)
    return mark_safe("".join(pieces))
