"""OpenDocument texts and presentations."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from agents.engine.sentences import Sentence as _

from . import markdown
from .archive import DAMAGED, Archive
from .office import DC_TITLE, local_name
from .values import ParsedDocument, ParsedPart, SourceFile, UnreadableDocument, WorkLimit

TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
DRAW = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}"
PRESENTATION = "{urn:oasis:names:tc:opendocument:xmlns:presentation:1.0}"
MAX_REPEATED = 100  # cells and rows that a file has once
MAX_SPACES = 100
CELL_STEPS = 20
MAX_SLIDES = 2_000
# Text that isn't said: what was deleted, comments, and numbers of lists.
SKIPPED = {
    "tracked-changes",
    "annotation",
    "number",
    "page-number",
    "ruby-text",
    "title",
    "desc",
    "settings",
}


def parse(source: SourceFile) -> ParsedDocument:
    archive = Archive(source.data, source.work)
    if "content.xml" not in archive.names:
        raise UnreadableDocument(DAMAGED)
    root = archive.xml("content.xml")
    body = next((element for element in root if local_name(element) == "body"), None)
    if body is None:
        raise UnreadableDocument(DAMAGED)
    title = ""
    if "meta.xml" in archive.names:
        title = markdown.collapse(archive.xml("meta.xml").findtext(f".//{DC_TITLE}") or "")
    reader = _Reader(source.work)
    slides = [e for e in body.iter() if e.tag == f"{DRAW}page"][:MAX_SLIDES]
    if not slides:
        text = markdown.join([*reader.blocks(body), *reader.notes])
        return ParsedDocument(title=title or reader.title, parts=markdown.parts(text))
    parts: list[ParsedPart] = []
    for number, slide in enumerate(slides, start=1):
        source.progress(number - 1, len(slides))
        heading, text = reader.slide(slide)
        title = title or heading
        parts.append(ParsedPart(kind="slide", number=number, label=heading[:200], text=text))
    return ParsedDocument(
        title=title,
        parts=parts,
        pages=len(parts),
        why_empty=_("This presentation contains no text. Its slides may be pictures."),
    )


class _Reader:
    """Turns elements into Markdown blocks, and remembers the title and the notes."""

    def __init__(self, work: WorkLimit) -> None:
        self.work = work
        self.title = ""
        self.notes: list[str] = []

    def slide(self, slide: Element) -> tuple[str, str]:
        """Return a slide's title, and its text with its tables and notes."""
        title = ""
        blocks: list[str] = []
        for shape in slide:
            if shape.get(f"{PRESENTATION}class") == "title" and not title:
                title = markdown.collapse(" ".join(self.blocks(shape))).removeprefix("- ")
            elif local_name(shape) == "notes":
                notes = markdown.join(self.blocks(shape))
                blocks.append(f"**Notes:** {notes}" if notes else "")
            else:
                blocks += self.blocks(shape)
        heading = markdown.heading(2, title) if title else ""
        return title, markdown.join([heading, *blocks])

    def blocks(self, parent: Element) -> Iterator[str]:
        for element in parent:
            tag = local_name(element)
            if tag in SKIPPED:
                continue
            if tag == "h":
                text = markdown.collapse(self.text(element))
                level = element.get(f"{TEXT}outline-level", "1")
                if text:
                    self.title = self.title or text
                    yield markdown.heading(int(level) if level.isdigit() else 1, text)
                yield from self._boxes(element)
            elif tag == "p":
                lines = map(markdown.collapse, self.text(element).strip().split("\n"))
                yield markdown.escape("\n".join(lines))
                yield from self._boxes(element)
            elif tag == "list":
                yield "\n".join(self.items(element, 0))
            elif tag == "table":
                yield markdown.table(self.rows(element))
            else:
                yield from self.blocks(element)

    def items(self, listed: Element, level: int) -> Iterator[str]:
        for item in listed:
            for child in item:
                if local_name(child) == "list":
                    yield from self.items(child, level + 1)
                elif text := markdown.collapse(" ".join(self.blocks(item_of(child)))):
                    yield f"{'  ' * min(level, 8)}- {text}"

    def rows(self, table: Element) -> list[list[str]]:
        rows: list[list[str]] = []
        for row in _rows(table):
            cells: list[str] = []
            for cell in row:
                if local_name(cell) not in {"table-cell", "covered-table-cell"}:
                    continue
                text = markdown.collapse(" ".join(self.blocks(cell)))
                count = _repeated(cell, "number-columns-repeated")
                cells += [text] * count
            count = _repeated(row, "number-rows-repeated")
            # A table in a cell is repeated with it.
            self.work.spend((len(cells) * CELL_STEPS + sum(map(len, cells))) * count)
            rows += [cells] * count
        return rows

    def text(self, element: Element) -> str:
        return "".join(self._pieces(element))

    def _pieces(self, element: Element) -> Iterator[str]:
        yield element.text or ""
        for child in element:
            tag = local_name(child)
            if tag == "s":
                count = child.get(f"{TEXT}c", "1")
                yield " " * (min(int(count[:4]), MAX_SPACES) if count.isdigit() else 1)
            elif tag == "tab":
                yield "\t"
            elif tag == "line-break":
                yield "\n"
            elif tag == "note":
                self.notes += self._note(child)
                yield f"[^{len(self.notes)}]"
            elif tag not in SKIPPED and tag not in {"frame", "custom-shape", "g"}:
                yield from self._pieces(child)
            yield child.tail or ""

    def _note(self, note: Element) -> Iterator[str]:
        number = len(self.notes) + 1
        bodies = [child for child in note if local_name(child) == "note-body"]
        text = markdown.collapse(
            " ".join(block for body in bodies for block in self.blocks(body))
        )
        yield f"[^{number}]: {text}"

    def _boxes(self, paragraph: Element) -> Iterator[str]:
        """Yield the text in boxes that are anchored to a paragraph."""
        for child in paragraph:
            if local_name(child) in {"frame", "custom-shape", "g"}:
                yield from self.blocks(child)
            elif local_name(child) not in {"note", *SKIPPED}:
                yield from self._boxes(child)


def item_of(element: Element) -> Element:
    """Return an element in one of its own, so that it is read as a block."""
    holder = Element("item")
    holder.append(element)
    return holder


def _rows(table: Element) -> Iterator[Element]:
    for child in table:
        tag = local_name(child)
        if tag == "table-row":
            yield child
        elif tag in {"table-header-rows", "table-rows", "table-row-group"}:
            yield from _rows(child)


def _repeated(element: Element, name: str) -> int:
    count = element.get(f"{TABLE}{name}", "1")
    return min(int(count[:6]), MAX_REPEATED) if count.isdigit() and int(count[:6]) else 1
