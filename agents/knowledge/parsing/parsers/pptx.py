"""Presentations: one part per slide, with its tables and speaker notes."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from agents.engine.sentences import Sentence as _

from . import markdown
from .archive import Archive
from .charts import chart_tables
from .office import local_name, macro_notes, property_title
from .values import ParsedDocument, ParsedPart, SourceFile

MAX_SLIDES = 2_000
TITLES = {"title", "ctrTitle"}
UNSAID = {"sldNum", "dt", "ftr", "hdr", "sldImg"}


def parse(source: SourceFile) -> ParsedDocument:
    archive = Archive(source.data, source.work)
    slides: list[str] = []
    if "ppt/presentation.xml" in archive.names:
        targets = archive.relationships("ppt/presentation.xml")
        for element in archive.xml("ppt/presentation.xml").iter():
            if local_name(element) == "sldId":
                keys = (value for key, value in element.attrib.items() if key.endswith("}id"))
                kind, target = targets.get(next(keys, ""), ("", ""))
                if kind == "slide" and target in archive.names:
                    slides.append(target)
    slides = list(dict.fromkeys(slides))[:MAX_SLIDES]
    parts: list[ParsedPart] = []
    title = property_title(archive)
    for number, name in enumerate(slides, start=1):
        source.progress(number - 1, len(slides))
        heading, text = _slide(archive, name)
        title = title or heading
        parts.append(ParsedPart(kind="slide", number=number, label=heading[:200], text=text))
    return ParsedDocument(
        title=title,
        parts=parts,
        pages=len(slides),
        notes=macro_notes(archive),
        why_empty=_("This presentation contains no text. Its slides may be pictures."),
    )


def _slide(archive: Archive, name: str) -> tuple[str, str]:
    """Return a slide's title, and its text with notes and diagrams."""
    title = ""
    blocks: list[str] = []
    for kind, block in _shapes(archive.xml(name)):
        if kind in TITLES and not title:
            title = markdown.collapse(block)
        else:
            blocks.append(block)
    blocks += chart_tables(archive, name)
    for kind, target in archive.relationships(name).values():
        if target not in archive.names:
            continue
        if kind == "notesSlide":
            notes = markdown.join(block for _, block in _shapes(archive.xml(target)))
            blocks.append(f"**Notes:** {notes}" if notes else "")
        elif kind == "diagramData":
            blocks.append("\n".join(f"- {line}" for line in _lines(archive.xml(target))))
    return title, markdown.join([markdown.heading(2, title) if title else "", *blocks])


def _shapes(parent: Element) -> Iterator[tuple[str, str]]:
    """Yield each shape's placeholder type and its text."""
    for element in parent:
        tag = local_name(element)
        if tag == "Fallback":
            continue
        if tag == "sp":
            placeholder = next((e for e in element.iter() if local_name(e) == "ph"), None)
            kind = "" if placeholder is None else placeholder.get("type", "body")
            if kind in TITLES:
                yield kind, " ".join(_lines(element))
            elif kind not in UNSAID:
                lines = [(level, line) for level, line in _leveled_lines(element) if line]
                yield kind, "\n".join(f"{'  ' * level}- {line}" for level, line in lines)
        elif tag == "tbl":
            rows = [row for row in element if local_name(row) == "tr"]
            cells = [
                [" ".join(_lines(c)) for c in row if local_name(c) == "tc"] for row in rows
            ]
            yield "", markdown.table(cells)
        else:
            yield from _shapes(element)


def _lines(element: Element) -> list[str]:
    return [line for _, line in _leveled_lines(element) if line]


def _leveled_lines(element: Element) -> Iterator[tuple[int, str]]:
    for paragraph in element.iter():
        if local_name(paragraph) != "p":
            continue
        level = 0
        pieces = []
        is_number = False  # of the slide
        for piece in paragraph.iter():
            tag = local_name(piece)
            if tag in {"r", "fld"}:
                is_number = piece.get("type") == "slidenum"
            elif tag == "pPr" and piece.get("lvl", "").isdigit():
                level = min(int(piece.get("lvl", "0")), 8)
            elif tag == "t" and not is_number:
                pieces.append(piece.text or "")
            elif tag == "br":
                pieces.append(" ")
        yield level, markdown.collapse("".join(pieces))
