"""Markdown files, which are parts already."""

import re

from . import markdown, plain
from .values import ParsedDocument, SourceFile

FRONT_MATTER = re.compile(r"\A---\n(.*?)\n(?:---|\.\.\.)\n", re.DOTALL)
TITLE_LINE = re.compile(r"""^title:\s*["']?(.+?)["']?\s*$""", re.MULTILINE)
FIRST_HEADING = re.compile(r"^#\s+(.+?)\s*#*$", re.MULTILINE)


def parse(source: SourceFile) -> ParsedDocument:
    text, notes = plain.read(source)
    front = FRONT_MATTER.match(text)
    title = TITLE_LINE.search(front[1]) if front else None
    body = text[front.end() :] if front else text
    title = title or FIRST_HEADING.search(body)
    return ParsedDocument(
        title=title[1] if title else "", parts=markdown.parts(body), notes=notes
    )
