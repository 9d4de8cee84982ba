"""Splits text into passages at headings and paragraphs."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt

CHUNK_SIZE = 1_200

FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
PIECE_PATTERN = re.compile(
    rf"(?s:.{{1,{CHUNK_SIZE}}})(?:(?<=[\n。！？])|(?<=[.!?]\s)|\Z)|(?s:.{{1,{CHUNK_SIZE}}})"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A passage of a document and its headings."""

    heading: str
    text: str


def split_document(text: str, *, title: str) -> tuple[str, list[Section]]:
    """Return the title, `title` by default, and the passages."""
    blocks = list(_blocks(FRONT_MATTER.sub("", text)))
    title = next((block for level, block in blocks if level == 1), title)
    path: dict[int, str] = {}
    sections: list[tuple[str, list[str]]] = [("", [])]
    for level, block in blocks:
        if level:
            path = {key: above for key, above in path.items() if key < level} | {level: block}
            names = [name for key, name in path.items() if (key, name) != (1, title)]
            sections.append((" › ".join(names)[:500], []))
        else:
            sections[-1][1].append(block)
    return title, [
        Section(heading=heading, text=text)
        for heading, paragraphs in sections
        for text in _pack_paragraphs(paragraphs)
    ]


def _blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield headings with their level, and everything between them with level 0."""
    lines = text.split("\n")
    tokens = MarkdownIt().parse(text)
    starts = [(at, t.map[0]) for at, t in enumerate(tokens) if t.level == 0 and t.map]
    for (at, start), (_, end) in pairwise([*starts, (len(tokens), len(lines))]):
        if tokens[at].type == "heading_open":
            yield int(tokens[at].tag[1]), _inline_text(tokens[at + 1])
        else:
            yield 0, "\n".join(lines[start:end]).strip()


def _inline_text(token: Any) -> str:
    return "".join(child.content or " " for child in token.children).strip()


def _pack_paragraphs(paragraphs: Iterable[str]) -> Iterator[str]:
    passage = ""
    for piece in (piece for text in paragraphs for piece in PIECE_PATTERN.findall(text)):
        if passage and len(passage) + len(piece) > CHUNK_SIZE:
            yield passage
            passage = ""
        passage = f"{passage}\n\n{piece.strip()}".strip()
    if passage:
        yield passage
