"""The blocks of an answer's HTML, with the text that can be linked."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

TAG = re.compile(r'<(/?)([a-z0-9]+)([^"<>]*(?:"[^"]*"[^"<>]*)*)>')
LIST_TAG = re.compile(r"<(/?)(ul|ol|table|li|tr)\b")
SKIPPED_TAGS = {"a", "pre", "code"}
VOID_TAGS = {"br", "hr"}
INLINE_TAGS = {"a", "strong", "em", "s", "code", "span", "sup"}


@dataclass
class Block:
    """Text of one block, in segments between tags."""

    tag: str
    segments: list[tuple[str, str]] = field(default_factory=list)  # "text", "code" or "tag"


def split_blocks(html: str) -> Iterator[Block | str]:
    """Split HTML into blocks of text and the block tags between them."""
    stack: list[str] = []
    skipped = 0  # depth of elements whose text isn't linked
    block = Block("")
    position = 0
    for match in TAG.finditer(html):
        if match.start() > position:
            block.segments.append(
                ("code" if skipped else "text", html[position : match.start()])
            )
        position = match.end()
        name = match[2]
        if name in INLINE_TAGS or name == "br":
            block.segments.append(("tag", match[0]))
        else:
            yield block
            yield match[0]
        if match[1]:
            if stack:
                skipped -= stack.pop().startswith("!")
        elif name not in VOID_TAGS:
            is_skipped = name in SKIPPED_TAGS or 'class="math' in match[3]
            skipped += is_skipped
            stack.append(f"{'!' if is_skipped else ''}{name}")
        if name not in INLINE_TAGS and name != "br":
            open_blocks = [tag for tag in stack if tag.lstrip("!") not in INLINE_TAGS]
            block = Block(open_blocks[-1] if open_blocks else "")
    if position < len(html):
        block.segments.append(("text", html[position:]))
    yield block


def item_counts(html: str) -> frozenset[int]:
    """Return how many items the lists have, and how many rows the tables."""
    counts: list[int] = []
    finished: set[int] = set()
    for match in LIST_TAG.finditer(html):
        is_item = match[2] in {"li", "tr"}
        if not is_item and not match[1]:
            counts.append(0 if match[2] != "table" else -1)  # without its head
        elif not is_item and counts:
            finished.add(counts.pop())
        elif is_item and counts and not match[1]:
            counts[-1] += 1
    return frozenset(finished)


def plain_text(kind: str, segment: str) -> str:
    if kind == "tag":
        return "\n" if segment.startswith("<br") else ""
    return segment


def linkable_ranges(block: Block) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    offset = 0
    for kind, segment in block.segments:
        size = len(plain_text(kind, segment))
        if kind == "text":
            ranges.append((offset, offset + size))
        offset += size
    return ranges


def boundary_after(block: Block, index: int) -> int:
    """Return the segment before which an element fits that belongs to the text up to this one.

    It comes after the tags that close there, and never into a link or code.
    """
    segments = block.segments
    boundary = index + 1
    if segments[index][0] == "code":
        while boundary < len(segments) and segments[boundary][0] != "text":
            boundary += 1
        while segments[boundary - 1][0] == "tag" and not _is_closing(segments[boundary - 1]):
            boundary -= 1
        return boundary
    while boundary < len(segments) and _is_closing(segments[boundary]):
        boundary += 1
    return boundary


def _is_closing(segment: tuple[str, str]) -> bool:
    return segment[0] == "tag" and segment[1].startswith("</")
