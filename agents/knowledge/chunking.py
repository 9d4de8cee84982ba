"""Splits the parts of a document into passages at headings, paragraphs and table rows."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt

from agents.models import Chunk, DocumentPart

from .parsing import ParsedPart

CHUNK_SIZE = 1_200
MAX_HEADING = 500
MAX_TABLE_HEADER = 400

FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
PIECE_PATTERN = re.compile(
    rf"(?s:.{{1,{CHUNK_SIZE}}})(?:(?<=[\n。！？])|(?<=[.!?]\s)|\Z)|(?s:.{{1,{CHUNK_SIZE}}})"
)
ROW_PATTERN = re.compile(rf"[^\n]{{1,{CHUNK_SIZE}}}\n?|\n")
# Only blocks are needed, and the inline rules take most of the time.
BLOCKS = MarkdownIt().enable("table").disable("inline")
INLINE = MarkdownIt()
# A heading on one page is the heading of the next, but not of the next sheet.
CONTINUED_KINDS = {DocumentPart.Kind.TEXT, DocumentPart.Kind.PAGE}


@dataclass(frozen=True, slots=True)
class Block:
    """A heading with its level, or text with level 0."""

    level: int
    start: int
    end: int
    heading: str = ""
    is_table: bool = False


@dataclass(slots=True)
class HeadingPath:
    """The headings above a passage; the document's title isn't repeated."""

    title: str
    names: dict[int, str] = field(default_factory=dict)

    def enter(self, level: int, heading: str) -> None:
        above = {key: name for key, name in self.names.items() if key < level}
        self.names = above | {level: heading}

    def __str__(self) -> str:
        names = [name for name in self.names.values() if name and name != self.title]
        return " › ".join(names)[:MAX_HEADING]


def split_parts(parts: Sequence[ParsedPart], *, title: str) -> list[Chunk]:
    """Return the passages of a document, not saved yet; one without text is its headings."""
    path = HeadingPath(title)
    chunks: list[Chunk] = []
    for part in parts:
        if part.kind not in CONTINUED_KINDS:
            path = HeadingPath(title, {0: part.label})
        chunks += _split_part(part, path)
    return chunks or [
        _chunk(part, "", 0, CHUNK_SIZE, "") for part in parts if part.text.strip()
    ]


def find_title(text: str) -> str:
    """Return the first main heading, or an empty string."""
    return next((block.heading for block in _blocks(text) if block.level == 1), "")


def _split_part(part: ParsedPart, path: HeadingPath) -> Iterator[Chunk]:
    blocks: list[Block] = []
    for block in _blocks(part.text):
        if block.level:
            yield from _pack(blocks, part, str(path))
            blocks = []
            path.enter(block.level, block.heading)
        else:
            blocks.append(block)
    yield from _pack(blocks, part, str(path))


def _pack(blocks: Iterable[Block], part: ParsedPart, heading: str) -> Iterator[Chunk]:
    """Fill passages with whole pieces; the place of a passage is from its first to its last."""
    start = end = 0
    header = ""  # of the table that the passage begins in
    for piece_start, piece_end, table_header in _pieces(blocks, part.text):
        if end > start and piece_end - start + len(header) > CHUNK_SIZE:
            yield _chunk(part, heading, start, end, header)
            start = piece_start
            header = table_header
        elif end <= start:
            start = piece_start
            header = ""
        end = piece_end
    if end > start:
        yield _chunk(part, heading, start, end, header)


def _chunk(part: ParsedPart, heading: str, start: int, end: int, header: str) -> Chunk:
    text = part.text[start:end]
    end = start + len(text)
    start += len(text) - len(text.lstrip())
    end -= len(text) - len(text.rstrip())
    return Chunk(
        heading=heading, text=header + text.strip(), part=part.number, start=start, end=end
    )


def _pieces(blocks: Iterable[Block], text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the places of sentences and rows, with the header of the table they are in."""
    for block in blocks:
        body = text[block.start : block.end]
        pattern = ROW_PATTERN if block.is_table else PIECE_PATTERN
        header = _table_header(body) if block.is_table else ""
        for piece in pattern.finditer(body):
            if piece[0].strip():
                yield block.start + piece.start(), block.start + piece.end(), header


def _table_header(table: str) -> str:
    """Return a table's first two lines, which make the rest readable, unless they are long."""
    lines = table.split("\n", 2)[:2]
    header = "".join(f"{line}\n" for line in lines)
    return header if len(header) <= MAX_TABLE_HEADER else ""


def _blocks(text: str) -> Iterator[Block]:
    """Yield headings, and everything between them."""
    skipped = len(found[0]) if (found := FRONT_MATTER.match(text)) else 0
    text = text[skipped:]
    offsets = _line_offsets(text, skipped)
    tokens = BLOCKS.parse(text)
    starts = [(at, t.map[0]) for at, t in enumerate(tokens) if t.level == 0 and t.map]
    for (at, first), (_, last) in pairwise([*starts, (len(tokens), len(offsets) - 1)]):
        token = tokens[at]
        start, end = offsets[first], offsets[last]
        if token.type == "heading_open":
            yield Block(int(token.tag[1]), start, end, _plain(tokens[at + 1].content))
        else:
            yield Block(0, start, end, is_table=token.type == "table_open")


def _line_offsets(text: str, skipped: int) -> list[int]:
    """Return where each line begins, and the end."""
    offsets = [skipped]
    for line in text.split("\n"):
        offsets.append(offsets[-1] + len(line) + 1)
    offsets[-1] -= 1  # the last line has no line end
    return offsets


def _plain(markdown: str) -> str:
    tokens: list[Any] = INLINE.parseInline(markdown)
    return "".join(
        child.content or " " for token in tokens for child in token.children or ()
    ).strip()
