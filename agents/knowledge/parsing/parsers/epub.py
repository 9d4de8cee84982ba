"""EPUB books: one part per chapter."""

from posixpath import dirname, join, normpath
from urllib.parse import unquote

from agents.engine.sentences import Sentence as _

from . import html, markdown
from .archive import DAMAGED, Archive
from .encoding import decode_leniently
from .office import local_name
from .values import ParsedDocument, ParsedPart, SourceFile, UnreadableDocument

CONTAINER = "META-INF/container.xml"
MAX_CHAPTERS = 2_000
PROTECTED_BOOK = _("This book is copy-protected, so it can't be read.")


def parse(source: SourceFile) -> ParsedDocument:
    archive = Archive(source.data, source.work)
    elements = archive.xml(CONTAINER).iter() if CONTAINER in archive.names else ()
    paths = (e.get("full-path", "") for e in elements if local_name(e) == "rootfile")
    package = next((path for path in paths if path in archive.names), None)
    if package is None:
        raise UnreadableDocument(DAMAGED)
    root = archive.xml(package)
    chapters = _spine(archive, package)[:MAX_CHAPTERS]
    parts: list[ParsedPart] = []
    for number, name in enumerate(chapters, start=1):
        source.progress(number - 1, len(chapters))
        page = html.convert(decode_leniently(archive.read(name)), source.work)
        headings = (line for line in page.text.split("\n") if line.startswith("#"))
        label = next(headings, "").lstrip("# ") or page.title
        parts.append(ParsedPart(kind="chapter", label=label[:200], text=page.text))
    # The first element of each name counts.
    metadata = {local_name(e): e.text or "" for e in reversed([*root.iter()])}
    language = metadata.get("language", "")[:2].lower()
    protected = "META-INF/encryption.xml" in archive.names and not any(p.text for p in parts)
    return ParsedDocument(
        title=markdown.collapse(metadata.get("title", "")),
        parts=parts,
        pages=len(parts),
        language=language if language in html.LANGUAGES else "",
        why_empty=PROTECTED_BOOK if protected else _("This book contains no text."),
    )


def _spine(archive: Archive, package: str) -> list[str]:
    """Return the chapters' names in reading order, each once."""
    root = archive.xml(package)
    items = {}
    for element in root.iter():
        if local_name(element) == "item" and "nav" not in element.get("properties", "").split():
            target = unquote(element.get("href", ""))
            items[element.get("id", "")] = normpath(join(dirname(package), target))
    chapters = (
        items.get(element.get("idref", ""), "")
        for element in root.iter()
        if local_name(element) == "itemref"
    )
    return [name for name in dict.fromkeys(chapters) if name in archive.names]
