"""PDF files: text per page, headings by their size, and OCR for scanned pages."""

import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from . import markdown, ocr
from .archive import DAMAGED
from .sniffing import PROTECTED
from .values import (
    NeedsRecognition,
    ParsedDocument,
    ParsedPart,
    SourceFile,
    UnreadableDocument,
    WorkLimit,
)

MAX_PAGES = 3_000
MAX_RECOGNIZED = 500
RECOGNITION_SHARE = 0.7  # of the time for the whole file
MAX_RENDERED_SIDE = 2_400
MIN_CHARS = 8  # a page with fewer, and with a picture, is scanned
HEADING_RATIO = 1.18
MAX_HEADING_CHARS = 120
MAX_PAGE_CHARS = 200_000
MAX_BOOKMARKS = 5_000
PAGE_STEPS, LETTER_STEPS = 1_000, 4
WIDE_END = re.compile(f"[{markdown.WIDE}]$")
WIDE_START = re.compile(f"^[{markdown.WIDE}]")
LIST_ITEM = re.compile(r"^(?:[•●○■□◆・‣▪\-–*]|\(?\d{1,3}[.)]|[①-⑳])\s*\S")
SENTENCE_END = re.compile(r"[.!?:;。！？」）)]$")
JUNK_TITLE = re.compile(
    r"^(?:\(?anonymous\)?$|microsoft word|microsoft powerpoint|untitled|無題|"
    r".*\.(?:docx?|pptx?|xlsx?|indd|dvi|tex|pdf)$)",
    re.IGNORECASE,
)
NO_TEXT = "This PDF has no text layer, and no text was recognized on its pages."
NO_OCR = f"This PDF has no text layer. {ocr.MISSING}"


@dataclass(slots=True)
class Line:
    """A line of text with its place on the page."""

    text: str
    height: float
    left: float
    right: float
    top: float


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
    body_height = _body_height(pages)
    levels = _heading_levels(pages, body_height)
    bookmarks = _bookmarks(pdf)
    parts = []
    for number, page in enumerate(pages, start=1):
        if isinstance(page, str):
            part = ParsedPart(kind="page", number=number, text=page, is_recognized=True)
        else:
            text = _write(page, levels, bookmarks.get(number - 1, {}))
            part = ParsedPart(kind="page", number=number, text=text)
        parts.append(part)
    notes = list(reader.notes)
    if count > reader.count:
        notes.append(f"Only the first {reader.count:,} of {count:,} pages were read.")
    return ParsedDocument(
        title=_title(pdf, pages, body_height),
        parts=parts,
        pages=count,
        notes=notes,
        why_empty=NO_TEXT if ocr.is_available() else NO_OCR,
    )


class _Reader:
    """Reads the pages one by one: lines of text, or recognized text."""

    def __init__(self, pdf: Any, source: SourceFile, count: int) -> None:
        self.pdf, self.source, self.count = pdf, source, count
        self.recognized = self.scanned = self.broken = 0
        self.stop_recognizing = time.monotonic() + source.seconds * RECOGNITION_SHARE

    def pages(self) -> Iterator[list[Line] | str]:
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

    def _page(self, number: int) -> list[Line] | str:
        from pypdfium2 import PdfiumError

        try:
            page = self.pdf[number]
        except PdfiumError:
            self.broken += 1
            return []
        try:
            lines = list(_lines(page, self.source.work))
            if sum(len(line.text) for line in lines) >= MIN_CHARS or not _has_picture(page):
                return lines
            self.scanned += 1
            return self._recognize(page) or lines
        except PdfiumError:
            self.broken += 1
            return []
        finally:
            page.close()

    def _recognize(self, page: Any) -> str:
        is_late = self.recognized and time.monotonic() > self.stop_recognizing
        if is_late or self.recognized >= MAX_RECOGNIZED or not ocr.is_available():
            return ""
        if not self.source.recognizes:
            raise NeedsRecognition
        self.recognized += 1
        longest = max(page.get_size())
        scale = min(200 / 72, MAX_RENDERED_SIDE / max(longest, 1))
        bitmap = page.render(scale=scale, rev_byteorder=True, prefer_bgrx=False)
        try:
            return markdown.escape(ocr.recognize(bitmap.to_numpy()[:, :, :3].copy()))
        finally:
            bitmap.close()

    @property
    def notes(self) -> Iterator[str]:
        if self.scanned and not ocr.is_available():
            yield f"{self.scanned} scanned pages weren't read. {ocr.MISSING}"
        elif self.scanned > self.recognized:
            yield f"Only the first {self.recognized} of {self.scanned} scanned pages were read."
        if self.broken:
            yield f"{self.broken} damaged pages were left out."


def _has_picture(page: Any) -> bool:
    import pypdfium2.raw as raw

    kinds = [raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_PATH]
    return next(iter(page.get_objects(filter=kinds, max_depth=3)), None) is not None


def _lines(page: Any, work: WorkLimit) -> Iterator[Line]:
    """Yield the lines of a page in the file's order, which is mostly the reading order."""
    textpage = page.get_textpage()
    try:
        count = min(textpage.count_chars(), MAX_PAGE_CHARS)
        if count <= 0:
            return
        work.spend(count * LETTER_STEPS)
        start = 0
        letters: list[str] = []
        for at in range(count):
            letter = _letter(textpage, at)
            if letter in "\r\n":
                if letters:
                    yield from _line(textpage, "".join(letters), start, at - 1)
                start, letters = at + 1, []
            else:
                letters.append(letter)
        if letters:
            yield from _line(textpage, "".join(letters), start, count - 1)
    finally:
        textpage.close()


def _letter(textpage: Any, at: int) -> str:
    import pypdfium2.raw as raw

    code = raw.FPDFText_GetUnicode(textpage, at)
    if code in (0xFFFE, 0x2):  # a hyphen at the end of a line
        return "\x02"
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else ""


def _line(textpage: Any, text: str, start: int, end: int) -> Iterator[Line]:
    text = text.rstrip(" \t")
    if not text.strip():
        return
    boxes = [box for at in (start, end) if (box := _box(textpage, at))]
    if not boxes:
        yield Line(text, 0, 0, 0, 0)
        return
    height = max(abs(box[3] - box[1]) for box in boxes)
    yield Line(text, height, boxes[0][0], boxes[-1][2], boxes[0][3])


def _box(textpage: Any, at: int) -> tuple[float, float, float, float] | None:
    import pypdfium2.raw as raw

    rect = raw.FS_RECTF()
    if not raw.FPDFText_GetLooseCharBox(textpage, at, rect):
        return None
    return rect.left, rect.bottom, rect.right, rect.top


def _body_height(pages: list[list[Line] | str]) -> float:
    """Return the height of most of the text."""
    heights: Counter[float] = Counter()
    for page in pages:
        for line in page if isinstance(page, list) else ():
            heights[round(line.height, 1)] += len(line.text)
    return heights.most_common(1)[0][0] if heights else 0.0


def _heading_levels(pages: list[list[Line] | str], body_height: float) -> dict[float, int]:
    """Return the level of each height that is larger than the text: at most three."""
    heights: Counter[float] = Counter()
    for page in pages:
        for line in page if isinstance(page, list) else ():
            if (
                body_height
                and line.height > body_height * HEADING_RATIO
                and _is_title_like(line.text)
            ):
                heights[round(line.height)] += 1
    largest = sorted(heights, reverse=True)
    return {height: min(at, 3) for at, height in enumerate(largest, start=1)}


def _is_title_like(text: str) -> bool:
    return 1 < len(text) <= MAX_HEADING_CHARS and any(letter.isalpha() for letter in text)


def _write(lines: list[Line], levels: dict[float, int], bookmarks: dict[str, int]) -> str:
    """Return a page's Markdown: paragraphs joined from their lines, and headings."""
    edge = max((line.right for line in lines), default=0.0)
    blocks: list[str] = []
    paragraph = ""
    last: Line | None = None
    heading_level = 0
    for line in lines:
        level = bookmarks.get(_fold(line.text)) or (
            levels.get(round(line.height), 0) if _is_title_like(line.text) else 0
        )
        if level and level == heading_level and last is not None and _continues(last, line):
            blocks[-1] = f"{blocks[-1]} {line.text.strip()}"
        elif level:
            blocks += [markdown.escape(paragraph), markdown.heading(level, line.text)]
            paragraph = ""
        elif paragraph and last is not None and _is_wrapped(last, line, edge):
            paragraph = _join(paragraph, line.text)
        else:
            blocks.append(markdown.escape(paragraph))
            paragraph = line.text.strip()
        last, heading_level = line, level
    blocks.append(markdown.escape(paragraph))
    return markdown.join(block.replace("\x02", "-") for block in blocks)


def _continues(last: Line, line: Line) -> bool:
    """Whether a heading goes on in this line."""
    return abs(last.top - line.top) < last.height * 2 and not LIST_ITEM.match(line.text)


def _is_wrapped(last: Line, line: Line, edge: float) -> bool:
    """Whether a line goes on where the last one had no more room."""
    if LIST_ITEM.match(line.text) and not last.text.endswith("\x02"):
        return False
    if last.text.endswith("\x02"):
        return True
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


def _join(paragraph: str, text: str) -> str:
    text = text.strip()
    if paragraph.endswith("\x02"):
        return paragraph[:-1] + text
    if WIDE_END.search(paragraph) and WIDE_START.search(text):
        return paragraph + text
    return f"{paragraph} {text}"


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


def _title(pdf: Any, pages: list[list[Line] | str], body_height: float) -> str:
    """Return the title in the file's properties, or the largest line of the first page."""
    metadata_title = markdown.collapse(pdf.get_metadata_value("Title") or "")
    if len(metadata_title) > 3 and not JUNK_TITLE.match(metadata_title):
        return metadata_title
    first = next((page for page in pages if page), [])
    if isinstance(first, str):
        return ""
    candidates = [line for line in first if _is_title_like(line.text)]
    largest = max(candidates, key=lambda line: line.height, default=None)
    if largest is None or largest.height <= body_height * HEADING_RATIO:
        return ""
    return markdown.collapse(largest.text.replace("\x02", "-"))
