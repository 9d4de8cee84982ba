"""What the document viewer displays: the parts around a place, as safe HTML."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from django.db.models import Q
from django.db.models.functions import Length
from django.http import QueryDict
from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from agents.engine.attachments import image_size
from agents.knowledge.files.serving import INLINE_TYPES
from agents.models import Document, DocumentPart
from agents.web.presentation import recordings

from .highlight import keep_short_cells, render_marked

# One page of the viewer: about ten pages of a book.
MAX_PAGE_CHARS = 40_000
MAX_PARTS = 30
MAX_HITS = 60
MAX_ROWS = 20
SNIPPET_CHARS = 60
MAX_HEADER_BYTES = 256 * 1024  # a photo's header can contain a preview
MAX_MARK_CHARS = len("[00:00:00]")
SUBHEADING = re.compile(r"(</?h)([3-6])>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where to open a document: a part, and characters in its text."""

    part: int = 1
    start: int | None = None
    end: int | None = None
    text: str = ""  # of the passage, which the PDF viewer searches for
    is_lost: bool = False  # the passage is no longer in the document
    seconds: int | None = None  # of a recording, from where it is played
    rows: tuple[int, ...] = ()  # where the table rows begin that the passage is cited for


@dataclass(frozen=True, slots=True, kw_only=True)
class PartView:
    """A part, or a piece of a long one."""

    number: int
    title: str
    html: SafeString
    is_recognized: bool = False
    certainty: int | None = None  # of text recognition, in percent
    is_start: bool = True
    seconds: int | None = None  # of a recording's clip


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """Where the searched words are in a document."""

    number: int
    title: str
    before: str
    found: str
    after: str
    place: Place
    url: str


@dataclass
class DocumentView:
    """One page of a document, with links to its other parts."""

    document: Document
    place: Place
    offset: int = 0
    parts: list[PartView] = field(default_factory=list)
    next_url: str = ""
    previous_url: str = ""

    @cached_property
    def index(self) -> list[tuple[int, str]]:
        """The number and title of every part."""
        rows = self.document.parts.only("number", "kind", "label", "document_id")
        return [(row.number, part_title(row)) for row in rows]

    @property
    def is_pdf(self) -> bool:
        return (
            self.document.mime_type == "application/pdf" and self.document.file_id is not None
        )

    @property
    def media(self) -> str:
        """The element that plays or displays the original, if there is one."""
        kind = self.document.mime_type.partition("/")[0]
        is_safe = self.document.mime_type in INLINE_TYPES
        return kind if is_safe and self.document.file_id is not None else ""

    @cached_property
    def image_size(self) -> tuple[int, int] | None:
        """Width and height of an image, known before the browser has loaded it."""
        if self.media != "image" or self.document.file is None:
            return None
        try:
            with self.document.file.open() as original:
                return image_size(original.read(MAX_HEADER_BYTES))
        except OSError:
            return None  # its text can be read without it

    @property
    def is_unplayable(self) -> bool:
        """Whether it is a recording in a format that browsers don't play."""
        is_recording = self.document.mime_type.startswith(("audio/", "video/"))
        return is_recording and self.document.file_id is not None and not self.media

    @property
    def file_url(self) -> str:
        """The original; a recording starts at the place."""
        url = reverse("library:file", args=[self.document.pk])
        return f"{url}#t={self.place.seconds}" if self.place.seconds else url


def find_place(document: Document, query: QueryDict) -> Place:
    """Return the place that a link names; ids that aren't in this document lead nowhere."""
    moment = _number(query.get("t"))
    if moment is not None:
        return _place_at(document, moment)
    chunk_pk = _number(query.get("chunk"))
    if chunk_pk is not None:
        if (chunk := document.chunks.filter(pk=chunk_pk).first()) is not None:
            part = document.parts.filter(number=chunk.part).first()
            chunk_start = chunk.start or 0
            chunk_end = chunk.end or 0
            rows = map(_number, query.getlist("row")[:MAX_ROWS])
            return Place(
                part=chunk.part,
                start=chunk.start,
                end=chunk.end,
                text=chunk.text,
                seconds=_seconds_at(part, chunk_start) if part is not None else None,
                rows=tuple(
                    row for row in rows if row is not None and chunk_start <= row < chunk_end
                ),
            )
        return Place(part=_number(query.get("part")) or 1, is_lost=True)
    start = _number(query.get("start"))
    end = _number(query.get("end"))
    number = _number(query.get("part")) or 1
    part = document.parts.filter(number=number).first()
    if part is None or start is None or end is None or start >= end:
        return Place(part=number, start=start, end=end)
    seconds = _seconds_at(part, start)
    return Place(part=number, start=start, end=end, text=part.text[start:end], seconds=seconds)


def _seconds_at(row: DocumentPart, start: int) -> int | None:
    """Return when in a recording the text at this place is said."""
    if row.kind != DocumentPart.Kind.CLIP:
        return None
    marks = recordings.MARK.finditer(row.text, 0, start + MAX_MARK_CHARS)
    earlier = [mark for mark in marks if mark.start() <= start]
    return recordings.to_seconds(earlier[-1]) if earlier else clip_seconds(row)


def _place_at(document: Document, seconds: int) -> Place:
    """Return the line of a transcript that is said at this time."""
    place = Place(seconds=seconds)
    for row in document.parts.filter(kind=DocumentPart.Kind.CLIP):
        for mark in recordings.MARK.finditer(row.text):
            if recordings.to_seconds(mark) > seconds:
                return place
            end = row.text.find("\n", mark.end())
            end = len(row.text) if end < 0 else end
            text = row.text[mark.start() : end]
            place = Place(
                part=row.number, start=mark.start(), end=end, text=text, seconds=seconds
            )
    return place


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) < 10 else None


def build(document: Document, place: Place, offset: int = 0) -> DocumentView:
    """Return the page of the viewer with this place.

    `offset` is where a piece of a long part begins, if no passage is to be marked.
    """
    part_sizes = list(
        document.parts.annotate(size=Length("text")).values_list("number", "size")
    )
    index = next((i for i, (number, _size) in enumerate(part_sizes) if number >= place.part), 0)
    view = DocumentView(document=document, place=place, offset=offset)
    if not part_sizes:
        # It was added before parts were saved: its passages are displayed.
        chars_left = MAX_PAGE_CHARS
        for chunk in document.chunks.all():
            start = 0 if place.text == chunk.text else None
            html = render_marked(chunk.text, start, len(chunk.text))
            view.parts.append(PartView(number=chunk.ordinal, title=chunk.heading, html=html))
            chars_left -= len(chunk.text)
            if chars_left < 0:
                break
        return view
    if part_sizes[index][1] > MAX_PAGE_CHARS:
        _fill_with_piece(
            view, document.parts.get(number=part_sizes[index][0]), part_sizes, index
        )
    else:
        _fill_with_parts(view, part_sizes, index)
    _drop_title(view)
    return view


def _drop_title(view: DocumentView) -> None:
    """Leave out a first heading that repeats the document's title, which is above it."""
    if not view.parts or view.previous_url:
        return
    first = view.parts[0]
    pattern = rf"\s*<h([1-6])[^>]*>{re.escape(escape(view.document.title))}</h\1>"
    if title := re.match(pattern, first.html):
        # The headings below it move up, so that the page skips no level.
        below, next_heading, following = first.html[title.end() :].partition(f"<h{title[1]}>")
        below = SUBHEADING.sub(lambda tag: f"{tag[1]}{int(tag[2]) - 1}>", below)
        view.parts[0] = replace(first, html=mark_safe(below + next_heading + following))


def _fill_with_parts(
    view: DocumentView, part_sizes: Sequence[tuple[int, int]], index: int
) -> None:
    """Display parts from this one on, as many as fit on a page."""
    chosen: list[int] = []
    chars_left = MAX_PAGE_CHARS
    for number, size in part_sizes[index : index + MAX_PARTS]:
        if chosen and size > chars_left:
            break
        chosen.append(number)
        chars_left -= size
    rows = view.document.parts.filter(number__in=chosen)
    view.parts = [_part_view(row, view.place) for row in rows]
    next_index = index + len(chosen)
    if next_index < len(part_sizes):
        view.next_url = _part_url(view.document, part_sizes[next_index][0])
    view.previous_url = _previous_url(view.document, part_sizes, index)


def _previous_url(document: Document, part_sizes: Sequence[tuple[int, int]], index: int) -> str:
    """Return the page that ends right before this part."""
    chars_left = MAX_PAGE_CHARS
    first = index
    while first > 0 and index - first < MAX_PARTS:
        chars_left -= part_sizes[first - 1][1]
        if chars_left < 0 and first < index:
            break
        first -= 1
        if chars_left < 0:
            break
    return _part_url(document, part_sizes[first][0]) if first < index else ""


def _fill_with_piece(
    view: DocumentView, row: DocumentPart, part_sizes: Sequence[tuple[int, int]], index: int
) -> None:
    """Display a piece of a part that is longer than a page."""
    place = view.place if view.place.part == row.number else Place(part=row.number)
    offset = place.start if place.start is not None else view.offset
    pieces = list(split_text(row.text))
    piece_index = next((i for i, (s, e) in enumerate(pieces) if s <= offset < e), 0)
    start, end = pieces[piece_index]
    marked = Place(part=place.part)
    if place.start is not None and place.end is not None:  # relative to the piece
        marked = Place(
            part=place.part,
            start=max(place.start - start, 0),
            end=min(place.end, end) - start,
            rows=tuple(
                row_start - start for row_start in place.rows if start <= row_start < end
            ),
        )
    view.parts = [_part_view(row, marked, text=row.text[start:end], is_start=piece_index == 0)]
    if piece_index + 1 < len(pieces):
        view.next_url = _part_url(view.document, row.number, pieces[piece_index + 1][0])
    elif index + 1 < len(part_sizes):
        view.next_url = _part_url(view.document, part_sizes[index + 1][0])
    if piece_index:
        view.previous_url = _part_url(view.document, row.number, pieces[piece_index - 1][0])
    else:
        view.previous_url = _previous_url(view.document, part_sizes, index)


def split_text(text: str) -> Iterator[tuple[int, int]]:
    """Yield the bounds of pieces that end with a paragraph or line, if possible."""
    start = 0
    while start < len(text):
        end = min(len(text), start + MAX_PAGE_CHARS)
        if end < len(text):
            for mark in ("\n\n", "\n", " "):
                if (position := text.rfind(mark, start + MAX_PAGE_CHARS // 2, end)) > 0:
                    end = position + len(mark)
                    break
        yield start, end
        start = end


def _part_view(
    row: DocumentPart, place: Place, text: str | None = None, is_start: bool = True
) -> PartView:
    is_here = row.number == place.part
    html = render_marked(
        row.text if text is None else text,
        place.start if is_here else None,
        place.end if is_here else None,
        place.rows if is_here else (),
    )
    if row.kind == DocumentPart.Kind.CLIP and row.document.file_id is not None:
        html = recordings.link_moments(html, recordings.from_document(row.document))
    return PartView(
        number=row.number,
        title=part_title(row),
        html=keep_short_cells(html),
        is_recognized=row.is_recognized,
        certainty=row.certainty,
        is_start=is_start,
        seconds=clip_seconds(row),
    )


def clip_seconds(row: DocumentPart) -> int | None:
    """Return when a clip begins, from its label or the start of its text."""
    if row.kind != DocumentPart.Kind.CLIP:
        return None
    time = recordings.TIME.search(row.label) or recordings.MARK.match(row.text)
    return recordings.to_seconds(time) if time else None


def part_title(row: DocumentPart) -> str:
    """Return a part's name: its own, or what it is and its number."""
    kinds: dict[str, Any] = {
        DocumentPart.Kind.PAGE: _("Page %(number)d"),
        DocumentPart.Kind.SLIDE: _("Slide %(number)d"),
        DocumentPart.Kind.SHEET: _("Sheet %(number)d"),
        DocumentPart.Kind.CHAPTER: _("Chapter %(number)d"),
        DocumentPart.Kind.CLIP: _("Clip %(number)d"),
    }
    if row.kind == DocumentPart.Kind.TEXT:
        return row.label
    number = kinds[row.kind] % {"number": row.number}
    if not row.label:
        return number
    return f"{number} · {row.label}" if row.kind in NUMBERED else row.label


NUMBERED = {DocumentPart.Kind.PAGE, DocumentPart.Kind.SLIDE}


def _part_url(document: Document, part: int, offset: int = 0) -> str:
    url = f"{reverse('library:document', args=[document.pk])}?part={part}"
    return f"{url}&at={offset}" if offset else url


def find_in_document(document: Document, query: str) -> tuple[list[Occurrence], bool]:
    """Return where the searched text occurs, in order, and whether there are more."""
    hits: list[Occurrence] = []
    for row in document.parts.filter(Q(text__icontains=query)).iterator(chunk_size=20):
        for match in re.finditer(re.escape(query), row.text, re.IGNORECASE):
            if len(hits) == MAX_HITS:
                return hits, True
            start, end = match.span()
            # The text around a hit begins and ends with whole words.
            head = _one_line(row.text[max(0, start - SNIPPET_CHARS) : start])
            if start > SNIPPET_CHARS:
                head = "…" + re.sub(r"^[a-zA-Z0-9]*\W?", "", head)
            tail = _one_line(row.text[end : end + SNIPPET_CHARS])
            if end + SNIPPET_CHARS < len(row.text):
                tail = re.sub(r"\W?[a-zA-Z0-9]*$", "", tail) + "…"
            text = match[0]
            hits.append(
                Occurrence(
                    number=row.number,
                    title=part_title(row),
                    before=head,
                    found=text,
                    after=tail,
                    place=Place(part=row.number, start=start, end=end, text=text),
                    url=f"{_part_url(document, row.number)}&start={start}&end={end}#place",
                )
            )
    return hits, False


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)
