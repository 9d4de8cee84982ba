"""EPUB books: one part per chapter."""

from posixpath import dirname, join, normpath
from urllib.parse import unquote

from . import html, markdown
from .archive import DAMAGED, Archive
from .encoding import decode_leniently
from .office import local_name
from .values import ParsedDocument, ParsedPart, SourceFile, UnreadableDocument

MAX_CHAPTERS = 2_000
PROTECTED_BOOK = "This book is copy-protected, so it can't be read."


def parse(source: SourceFile) -> ParsedDocument:
    archive = Archive(source.data, source.work)
    package = _package(archive)
    root = archive.xml(package)
    chapters = _spine(archive, package)[:MAX_CHAPTERS]
    parts = []
    for number, name in enumerate(chapters, start=1):
        source.progress(number - 1, len(chapters))
        page = html.convert(decode_leniently(archive.read(name)), source.work)
        label = _first_heading(page.text) or page.title
        parts.append(ParsedPart(kind="chapter", label=label[:200], text=page.text))
    titles = (each.text for each in root.iter() if local_name(each) == "title")
    languages = [each.text or "" for each in root.iter() if local_name(each) == "language"]
    language = (languages or [""])[0][:2].lower()
    protected = "META-INF/encryption.xml" in archive.names and not any(p.text for p in parts)
    return ParsedDocument(
        title=markdown.collapse(next(titles, "") or ""),
        parts=parts,
        pages=len(parts),
        language=language if language in html.LANGUAGES else "",
        why_empty=PROTECTED_BOOK if protected else "This book contains no text.",
    )


def _package(archive: Archive) -> str:
    if "META-INF/container.xml" not in archive.names:
        raise UnreadableDocument(DAMAGED)
    for element in archive.xml("META-INF/container.xml").iter():
        path = element.get("full-path", "")
        if local_name(element) == "rootfile" and path in archive.names:
            return path
    raise UnreadableDocument(DAMAGED)


def _spine(archive: Archive, package: str) -> list[str]:
    """Return the chapters' names in reading order, each once."""
    root = archive.xml(package)
    items = {}
    for element in root.iter():
        if local_name(element) == "item" and "nav" not in element.get("properties", "").split():
            target = unquote(element.get("href", ""))
            items[element.get("id", "")] = normpath(join(dirname(package), target))
    wanted = (
        items.get(element.get("idref", ""), "")
        for element in root.iter()
        if local_name(element) == "itemref"
    )
    return [name for name in dict.fromkeys(wanted) if name in archive.names]


def _first_heading(text: str) -> str:
    lines = (line for line in text.split("\n") if line.startswith("#"))
    return next(lines, "").lstrip("# ")
