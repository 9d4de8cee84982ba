"""Plain text, in any of the usual encodings."""

import re

from agents.engine.sentences import Sentence as _

from . import markdown
from .encoding import decode, normalize_lines
from .sniffing import UNKNOWN
from .values import MAX_CHARS, ParsedDocument, SourceFile, UnreadableDocument

CONTROL_CHARS = re.compile(r"[\x00-\x06\x0e-\x1a\x1c-\x1f]")
MAX_CONTROL_SHARE = 0.01
TRUNCATED = _("Only the first %(limit)s characters were read.")


def parse(source: SourceFile) -> ParsedDocument:
    """Parse plain text; what looks like Markdown in it is left alone."""
    text, notes = read(source)
    return ParsedDocument(parts=markdown.parts(text), notes=notes)


def read(source: SourceFile) -> tuple[str, list[str]]:
    """Return the text and a note if it was cut; raise UnreadableDocument if it is binary."""
    text = decode(source.data)
    if text is None:
        raise UnreadableDocument(UNKNOWN)
    if len(CONTROL_CHARS.findall(text[:100_000])) > MAX_CONTROL_SHARE * len(text[:100_000]):
        raise UnreadableDocument(UNKNOWN)
    text = normalize_lines(text)
    if len(text) <= MAX_CHARS:
        return text, []
    return text[:MAX_CHARS], [TRUNCATED.fill(limit=f"{MAX_CHARS:,}")]
