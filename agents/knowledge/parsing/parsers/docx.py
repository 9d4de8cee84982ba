"""Word documents: headings, paragraphs, lists, tables and footnotes."""

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from . import markdown
from .archive import Archive
from .charts import chart_tables
from .office import local_name, macro_notes, property_title
from .values import ParsedDocument, SourceFile

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
STRICT_W = "{http://purl.oclc.org/ooxml/wordprocessingml/main}"
HEADING_NAME = re.compile(r"(?:heading|見出し)\s*([1-9])", re.IGNORECASE)
# Deleted text, and the copy of a text box for old readers.
SKIPPED = {"del", "moveFrom", "Fallback", "instrText", "delText", "pPr", "rPr", "sectPr"}
BREAKS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "softHyphen": ""}


def parse(source: SourceFile) -> ParsedDocument:
    archive = Archive(source.data, source.work)
    main = next(
        (
            target
            for kind, target in archive.relationships("").values()
            if kind == "officeDocument" and target in archive.names
        ),
        "word/document.xml",
    )
    reader = _Reader(_heading_levels(archive))
    body = _child(archive.xml(main), "body")
    blocks = list(reader.blocks(body)) if body is not None else []
    blocks += chart_tables(archive, main)
    for kind in ("footnotes", "endnotes"):
        name = main.replace("document.xml", f"{kind}.xml")
        for note in archive.xml(name) if name in archive.names else ():
            # Those with a type are separators.
            if not _get(note, "type") and (text := markdown.collapse(reader.text(note))):
                blocks.append(f"[^{_get(note, 'id')}]: {text}")
    return ParsedDocument(
        title=reader.title or property_title(archive),
        parts=markdown.parts(markdown.join(blocks)),
        notes=macro_notes(archive),
    )


def _heading_levels(archive: Archive) -> dict[str, int]:
    """Return the heading level of each style; 0 is the title."""
    if "word/styles.xml" not in archive.names:
        return {}
    levels: dict[str, int] = {}
    parents: dict[str, str] = {}
    for style in _children(archive.xml("word/styles.xml"), "style"):
        key = _get(style, "styleId")
        name = _get(_child(style, "name"), "val")
        parents[key] = _get(_child(style, "basedOn"), "val")
        outline = _get(_child(_child(style, "pPr"), "outlineLvl"), "val")
        if name.lower() in {"title", "表題"}:
            levels[key] = 0
        elif match := HEADING_NAME.fullmatch(name):
            levels[key] = int(match[1])
        elif outline.isdigit() and int(outline) < 9:
            levels[key] = int(outline) + 1
    for key in parents:
        ancestor = key
        for _ in range(10):
            ancestor = parents.get(ancestor, "")
            if ancestor in levels:
                levels.setdefault(key, levels[ancestor])
    return levels


class _Reader:
    """Turns elements into Markdown blocks, and remembers the title."""

    def __init__(self, levels: dict[str, int]) -> None:
        self.levels = levels
        self.title = ""

    def blocks(self, parent: Element) -> Iterator[str]:
        items: list[str] = []
        for element in parent:
            tag = local_name(element)
            is_item = tag == "p" and _is_item(element)
            if items and not is_item:
                yield "\n".join(items)
                items = []
            if tag == "p":
                block = self.paragraph(element)
                if is_item and block:
                    items.append(f"- {markdown.collapse(block)}")
                elif not is_item:
                    yield block
            elif tag == "tbl":
                yield self.table(element)
            elif tag in {"sdt", "sdtContent", "customXml", "ins", "moveTo", "smartTag"}:
                yield from self.blocks(element)
        if items:
            yield "\n".join(items)

    def paragraph(self, element: Element) -> str:
        text = self.text(element).strip()
        level = self.level(element)
        if not text or level is None:
            return markdown.escape(text)
        if level == 0 or (level == 1 and not self.title):
            self.title = self.title or markdown.collapse(text)
        return markdown.heading(level or 1, text)

    def level(self, element: Element) -> int | None:
        properties = _child(element, "pPr")
        outline = _get(_child(properties, "outlineLvl"), "val")
        if outline.isdigit() and int(outline) < 9:
            return int(outline) + 1
        return self.levels.get(_get(_child(properties, "pStyle"), "val"))

    def table(self, element: Element) -> str:
        rows = []
        for row in _rows(element):
            cells: list[str] = []
            for cell in _children(row, "tc"):
                properties = _child(cell, "tcPr")
                merged = _child(properties, "vMerge")
                is_hidden = merged is not None and _get(merged, "val") != "restart"
                text = "" if is_hidden else self.text(cell)
                span = _get(_child(properties, "gridSpan"), "val")
                cells += [text] + [""] * (min(int(span), 50) - 1 if span.isdigit() else 0)
            rows.append(cells)
        return markdown.table(rows)

    def text(self, element: Element) -> str:
        return "".join(self._pieces(element))

    def _pieces(self, element: Element) -> Iterator[str]:
        for child in element:
            tag = local_name(child)
            if tag in SKIPPED:
                continue
            if tag == "t":
                yield child.text or ""
            elif tag in BREAKS:
                yield BREAKS[tag]
            elif tag in {"footnoteReference", "endnoteReference"}:
                yield f"[^{_get(child, 'id')}]"
            else:
                yield from self._pieces(child)
                if tag == "p":
                    yield "\n"


def _rows(table: Element) -> Iterator[Element]:
    for child in table:
        tag = local_name(child)
        if tag == "tr":
            yield child
        elif tag in {"sdt", "sdtContent", "customXml", "ins"}:
            yield from _rows(child)


def _is_item(paragraph: Element) -> bool:
    properties = _child(paragraph, "pPr")
    listed = _child(_child(properties, "numPr"), "numId")
    style = _get(_child(properties, "pStyle"), "val").lower()
    is_heading = _child(properties, "outlineLvl") is not None or "heading" in style
    is_listed = listed is not None and _get(listed, "val") != "0"
    return not is_heading and (is_listed or style.startswith(("listbullet", "listnumber")))


def _child(element: Element | None, name: str) -> Element | None:
    if element is None:
        return None
    child = element.find(W + name)
    return child if child is not None else element.find(STRICT_W + name)


def _children(element: Element, name: str) -> Iterator[Element]:
    return (child for child in element if local_name(child) == name)


def _get(element: Element | None, name: str) -> str:
    if element is None:
        return ""
    return element.get(W + name) or element.get(STRICT_W + name) or ""
