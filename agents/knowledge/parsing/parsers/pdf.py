"""PDF files: text per page, headings by their size, and OCR for scanned pages."""

import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from agents.engine.sentences import Sentence as _

from . import markdown, ocr
from .archive import DAMAGED
from .pdf_layout import forms
from .pdf_layout.layout import read_page
from .pdf_layout.tables import Table
from .pdf_layout.words import HYPHEN, Line
from .values import (
    PROTECTED,
    NeedsRecognition,
    ParsedDocument,
    ParsedPart,
    SourceFile,
    UnreadableDocument,
)

MAX_PAGES = 3_000
MAX_RECOGNIZED = 500
RECOGNITION_SHARE = 0.7  # of the time for the whole file
MAX_RENDERED_SIDE = 2_400
MIN_CHARS = 8  # a page with fewer, and with a picture, is scanned
HEADING_RATIO = 1.18
MAX_HEADING_CHARS = 120
MAX_BOOKMARKS = 5_000
PAGE_STEPS = 1_000
WIDE_END = re.compile(f"[{markdown.WIDE}]$")
WIDE_START = re.compile(f"^[{markdown.WIDE}]")
LIST_ITEM = re.compile(r"^(?:[•●○■□◆・‣▪\-–*]|\(?\d{1,3}[.)]|[①-⑳])\s*\S")
SENTENCE_END = re.compile(r"[.!?:;。！？」）)]$")
JUNK_TITLE = re.compile(
    r"^(?:\(?anonymous\)?$|microsoft word|microsoft powerpoint|untitled|無題|"
    r".*\.(?:docx?|pptx?|xlsx?|indd|dvi|tex|pdf)$)",
    re.IGNORECASE,
)
NO_TEXT = _("This PDF has no text layer, and no text was recognized on its pages.")
NO_OCR = _("This PDF has no text layer. %(sentence)s", sentence=ocr.MISSING)


Block = Line | Table


def parse(source: SourceFile) -> ParsedDocument:
    import pypdfium2
    from pypdfium2 import PdfDocument, PdfiumError

    try:
        pdf = PdfDocument(source.data)
        return _parse(pdf, source)
    except PdfiumError as error:
        if getattr(error, "err_code", None) == pypdfium2.raw.FPDF_ERR_PASSWORD:
            raise UnreadableDocument(PROTECTED) from error
        raise UnreadableDocument(DAMAGED) from error


def _parse(pdf: Any, source: SourceFile) -> ParsedDocument:
    count = len(pdf)
    reader = _Reader(pdf, source, min(count, MAX_PAGES))
    pages = list(reader.pages())
    lines = [
        block
        for page in pages
        if isinstance(page, list)
        for block in page
        if isinstance(block, Line)
    ]
    # The height of most of the text, and the levels of those that are larger: at most three.
    chars_by_height: Counter[float] = Counter()
    for line in lines:
        chars_by_height[round(line.height, 1)] += len(line.text)
    body_height = chars_by_height.most_common(1)[0][0] if chars_by_height else 0.0
    min_height = body_height * HEADING_RATIO
    heights = {
        round(line.height)
        for line in lines
        if body_height and line.height > min_height and _is_title_like(line.text)
    }
    largest = sorted(heights, reverse=True)
    levels = {height: min(level, 3) for level, height in enumerate(largest, start=1)}
    bookmarks = _bookmarks(pdf)
    parts: list[ParsedPart] = []
    for number, page in enumerate(pages, start=1):
        if isinstance(page, ocr.Recognition):
            part = ParsedPart(
                kind="page",
                number=number,
                text=markdown.escape(page.text),
                is_recognized=True,
                certainty=page.percent,
            )
        else:
            text = _write(page, levels, bookmarks.get(number - 1, {}))
            text = markdown.join([text, reader.fields.get(number - 1, "")])
            part = ParsedPart(kind="page", number=number, text=text)
        parts.append(part)
    notes = list(reader.notes)
    if count > reader.count:
        notes.append(
            _(
                "Only the first %(read)s of %(count)s pages were read.",
                read=f"{reader.count:,}",
                count=f"{count:,}",
            )
        )
    return ParsedDocument(
        title=_title(pdf, pages, min_height),
        parts=parts,
        pages=count,
        notes=notes,
        why_empty=_why_empty(reader),
    )


class _Reader:
    """Reads the pages one by one: lines of text, or recognized text."""

    def __init__(self, pdf: Any, source: SourceFile, count: int) -> None:
        self.pdf = pdf
        self.source = source
        self.count = count
        self.recognized = 0
        self.scanned = 0
        self.broken = 0
        self.unreadable: list[tuple[int, int]] = []  # pages, and how sure the models were
        # The values of fields aren't part of the text. JavaScript isn't built in.
        pdf.init_forms()
        self.fields: dict[int, str] = {}  # by page
        self.stop_recognizing = time.monotonic() + source.seconds * RECOGNITION_SHARE

    def pages(self) -> Iterator[list[Block] | ocr.Recognition]:
        for number in range(self.count):
            self.source.progress(number, self.count)
            try:
                self.source.work.spend(PAGE_STEPS)
                page = self._page(number)
            except UnreadableDocument:
                if number == 0:
                    raise
                self.count = number  # what was read is worth more than a refusal
                return
            yield page
        self.source.progress(self.count, self.count)

    def _page(self, number: int) -> list[Block] | ocr.Recognition:
        from pypdfium2 import PdfiumError, raw

        try:
            page = self.pdf[number]
        except PdfiumError:
            self.broken += 1
            return []
        try:
            blocks = read_page(page, self.source.work)
            if self.pdf.formenv is not None:
                values = forms.field_values(page, self.pdf.formenv, self.source.work)
                self.fields[number] = "\n".join(
                    f"- {markdown.collapse(f'{name}: {value}' if name else value)}"
                    for name, value in values
                )
            if self.fields.get(number):
                return blocks
            if any(isinstance(block, Table) for block in blocks):
                return blocks
            if sum(len(block.text) for block in blocks if isinstance(block, Line)) >= MIN_CHARS:
                return blocks
            kinds = [raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_PATH]
            pictures = page.get_objects(filter=kinds, max_depth=3)
            if next(iter(pictures), None) is None:
                return blocks
            self.scanned += 1
            return self._recognize(page, number) or blocks
        except PdfiumError:
            self.broken += 1
            return []
        finally:
            page.close()

    def _recognize(self, page: Any, number: int) -> ocr.Recognition | None:
        is_late = self.recognized and time.monotonic() > self.stop_recognizing
        if is_late or self.recognized >= MAX_RECOGNIZED or not ocr.is_available():
            return None
        if not self.source.recognizes:
            raise NeedsRecognition
        self.recognized += 1
        longest = max(page.get_size())
        scale = min(200 / 72, MAX_RENDERED_SIDE / max(longest, 1))
        bitmap = page.render(scale=scale, rev_byteorder=True, prefer_bgrx=False)
        try:
            read = ocr.recognize(bitmap.to_numpy()[:, :, :3].copy())
        finally:
            bitmap.close()
        if read.is_readable:
            return read if read.text else None
        self.unreadable.append((number + 1, read.percent))
        return None

    @property
    def notes(self) -> Iterator[str]:
        if self.scanned and not ocr.is_available():
            yield _(
                "%(count)s scanned pages weren't read. %(sentence)s",
                count=self.scanned,
                sentence=ocr.MISSING,
            )
        elif self.scanned > self.recognized:
            yield _(
                "Only the first %(read)s of %(count)s scanned pages were read.",
                read=self.recognized,
                count=self.scanned,
            )
        if self.unreadable:
            numbers = ", ".join(
                f"{number} ({percent} %)" for number, percent in self.unreadable
            )
            yield _(
                "The text on these pages wasn't recognized (certainty in brackets): %(pages)s. "
                "Text recognition reads Latin letters, Japanese and Chinese.",
                pages=numbers if len(numbers) <= 500 else f"{numbers[:500]}…",
            )
        if self.broken:
            yield _("%(count)s damaged pages were left out.", count=self.broken)


def _why_empty(reader: _Reader) -> str:
    if reader.unreadable:
        return ocr.UNREADABLE.fill(certainty=max(percent for _, percent in reader.unreadable))
    return NO_TEXT if ocr.is_available() else NO_OCR


def _is_title_like(text: str) -> bool:
    return 1 < len(text) <= MAX_HEADING_CHARS and any(letter.isalpha() for letter in text)


def _write(page: list[Block], levels: dict[int, int], bookmarks: dict[str, int]) -> str:
    """Return a page's Markdown: paragraphs joined from their lines, headings and tables."""
    edge = max((block.right for block in page if isinstance(block, Line)), default=0.0)
    blocks: list[str] = []
    paragraph = ""
    last: Line | None = None
    heading_level = 0
    for line in page:
        if isinstance(line, Table):
            blocks += [markdown.escape(paragraph), markdown.table(line.rows)]
            paragraph = ""
            last = None
            continue
        level = bookmarks.get(_fold(line.text)) or (
            levels.get(round(line.height), 0) if _is_title_like(line.text) else 0
        )
        is_continued = (
            level == heading_level
            and last is not None
            and abs(last.top - line.top) < last.height * 2
            and not LIST_ITEM.match(line.text)
        )
        if level and is_continued:
            blocks[-1] = f"{blocks[-1]} {line.text.strip()}"
        elif level:
            blocks += [markdown.escape(paragraph), markdown.heading(level, line.text)]
            paragraph = ""
        elif paragraph and last is not None and _is_wrapped(last, line, edge):
            text = line.text.strip()
            if paragraph.endswith(HYPHEN):
                paragraph = paragraph[:-1] + text
            elif WIDE_END.search(paragraph) and WIDE_START.search(text):
                paragraph += text
            else:
                paragraph = f"{paragraph} {text}"
        else:
            blocks.append(markdown.escape(paragraph))
            paragraph = line.text.strip()
        last = line
        heading_level = level
    blocks.append(markdown.escape(paragraph))
    return markdown.join(block.replace(HYPHEN, "-") for block in blocks)


def _is_wrapped(last: Line, line: Line, edge: float) -> bool:
    """Whether a line goes on where the last one had no more room."""
    if last.text.endswith(HYPHEN):
        return True
    if LIST_ITEM.match(line.text):
        return False
    if last.height and abs(last.height - line.height) > max(last.height, line.height) * 0.25:
        return False
    gap = last.top - line.top
    if last.height and not 0 < gap < last.height * 2.2:
        return False
    space_left = edge - last.right
    if space_left < last.height * 2.5:
        return True
    # A column's edge isn't the page's: a long line without an end goes on.
    return (
        line.right - line.left > 0
        and last.right >= line.right - last.height
        and len(last.text) > 25
        and not SENTENCE_END.search(last.text)
    )


def _bookmarks(pdf: Any) -> dict[int, dict[str, int]]:
    """Return the outline's titles and levels by page."""
    from pypdfium2 import PdfiumError

    bookmarks: dict[int, dict[str, int]] = {}
    try:
        for number, bookmark in enumerate(pdf.get_toc(max_depth=6)):
            if number >= MAX_BOOKMARKS:
                break
            destination = bookmark.get_dest()
            page = destination.get_index() if destination else None
            if page is not None:
                titles = bookmarks.setdefault(page, {})
                titles[_fold(bookmark.get_title())] = min(bookmark.level + 1, 6)
    except PdfiumError:
        pass  # a damaged outline is no reason to refuse the text
    return bookmarks


def _fold(text: str) -> str:
    return "".join(text.split()).casefold()


def _title(pdf: Any, pages: list[list[Block] | ocr.Recognition], min_height: float) -> str:
    """Return the title in the file's properties, or the largest line of the first page."""
    metadata_title = markdown.collapse(pdf.get_metadata_value("Title") or "")
    if len(metadata_title) > 3 and not JUNK_TITLE.match(metadata_title):
        return metadata_title
    first = next((page for page in pages if page), [])
    if isinstance(first, ocr.Recognition):
        return ""
    candidates = [
        block for block in first if isinstance(block, Line) and _is_title_like(block.text)
    ]
    largest = max(candidates, key=lambda line: line.height, default=None)
    if largest is None or largest.height <= min_height:
        return ""
    return markdown.collapse(largest.text.replace(HYPHEN, "-"))
