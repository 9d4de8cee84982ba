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
    for page in parts:
        if page.kind not in CONTINUED_KINDS:
            path = HeadingPath(title, {0: page.label})
        blocks: list[Block] = []
        for block in _blocks(page.text):
            if block.level:
                chunks += _pack(blocks, page, str(path))
                blocks = []
                path.enter(block.level, block.heading)
            else:
                blocks.append(block)
        chunks += _pack(blocks, page, str(path))
    return chunks or [
        _chunk(page, "", 0, CHUNK_SIZE, "") for page in parts if page.text.strip()
    ]


def find_title(text: str) -> str:
    """Return the first main heading, or an empty string."""
    return next((block.heading for block in _blocks(text) if block.level == 1), "")


def _pack(blocks: Iterable[Block], page: ParsedPart, heading: str) -> Iterator[Chunk]:
    """Fill passages with whole sentences and rows, each passage from its first to its last."""
    start = end = 0
    header = ""  # of the table that the passage begins in
    for block in blocks:
        body = page.text[block.start : block.end]
        table_header = ""
        if block.is_table:
            # The first two lines make the others readable, unless they are long.
            table_header = "".join(f"{line}\n" for line in body.split("\n", 2)[:2])
            if len(table_header) > MAX_TABLE_HEADER:
                table_header = ""
        for piece in (ROW_PATTERN if block.is_table else PIECE_PATTERN).finditer(body):
            if not piece[0].strip():
                continue
            piece_start = block.start + piece.start()
            piece_end = block.start + piece.end()
            if end > start and piece_end - start + len(header) > CHUNK_SIZE:
                yield _chunk(page, heading, start, end, header)
                start = piece_start
                header = table_header
            elif end <= start:
                start = piece_start
                header = ""
            end = piece_end
    if end > start:
        yield _chunk(page, heading, start, end, header)


def _chunk(page: ParsedPart, heading: str, start: int, end: int, header: str) -> Chunk:
    text = page.text[start:end]
    end = start + len(text)
    start += len(text) - len(text.lstrip())
    end -= len(text) - len(text.rstrip())
    return Chunk(
        heading=heading, text=header + text.strip(), part=page.number, start=start, end=end
    )


def _blocks(text: str) -> Iterator[Block]:
    """Yield headings, and everything between them."""
    front_matter = FRONT_MATTER.match(text)
    skipped = len(front_matter[0]) if front_matter else 0
    text = text[skipped:]
    offsets = [skipped]  # where each line begins, and the end
    for line in text.split("\n"):
        offsets.append(offsets[-1] + len(line) + 1)
    offsets[-1] -= 1  # the last line has no line end
    tokens = BLOCKS.parse(text)
    starts = [(index, t.map[0]) for index, t in enumerate(tokens) if t.level == 0 and t.map]
    for (index, first), (_, last) in pairwise([*starts, (len(tokens), len(offsets) - 1)]):
        token = tokens[index]
        if token.type == "heading_open":
            inline: list[Any] = INLINE.parseInline(tokens[index + 1].content)
            children = (child for parent in inline for child in parent.children or ())
            heading = "".join(child.content or " " for child in children).strip()
            yield Block(int(token.tag[1]), offsets[first], offsets[last], heading)
        else:
            yield Block(0, offsets[first], offsets[last], is_table=token.type == "table_open")
