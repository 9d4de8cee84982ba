"""Source code: whole functions and classes in fenced blocks that name the language."""

import re
from collections.abc import Iterator

from . import markdown, plain
from .languages import LANGUAGES
from .values import ParsedDocument, ParsedPart, SourceFile

MAX_BLOCK_CHARS = 1_100  # with its fence, one passage
# Lines that end a definition, or go on with it after a line without indentation.
GOES_ON = re.compile(r"^(?:[)\]}>]|else\b|elif\b|except\b|finally\b|catch\b|end\b|then\b|\{)")
# What belongs to the definition that follows.
LEADS = re.compile(r"^\s*(?:@|//|/\*|\*|#|--|\[|template\b|///)")


def parse(source: SourceFile) -> ParsedDocument:
    text, notes = plain.read(source)
    fence, label = LANGUAGES.get(source.suffix, ("", ""))
    blocks: list[str] = []
    size = 0
    for block in _blocks(text.split("\n"), 0):
        source.work.spend(len(block))
        if blocks and size + len(block) <= MAX_BLOCK_CHARS:
            blocks[-1] += f"\n{block}"
            size += len(block)
        else:
            blocks.append(block)
            size = len(block)
    body = "\n\n".join(markdown.fenced(block, fence) for block in blocks)
    name = f"{source.stem}{source.suffix}"
    parts = [ParsedPart(text=part.text, label=label) for part in markdown.parts(body)]
    return ParsedDocument(title=name, parts=parts, notes=notes)


def _blocks(lines: list[str], depth: int) -> Iterator[str]:
    """Yield definitions with what leads to them; long ones by those that are in them."""
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    indent = min(indents, default=0) if not depth else _next_indent(indents)
    block: list[str] = []
    leading: list[str] = []
    for line in lines:
        is_outer = bool(line.strip()) and len(line) - len(line.lstrip()) <= indent
        if is_outer and LEADS.match(line):
            leading.append(line)
        elif is_outer and not GOES_ON.match(line.strip()):
            yield from _fitting(block, depth)
            block = [*leading, line]
            leading = []
        else:
            block += [*leading, line]
            leading = []
    yield from _fitting([*block, *leading], depth)


def _next_indent(indents: list[int]) -> int:
    distinct = sorted(set(indents))
    return distinct[1] if len(distinct) > 1 else 0


def _fitting(block: list[str], depth: int) -> Iterator[str]:
    text = "\n".join(block).strip("\n")
    if not text.strip():
        return
    if len(text) <= MAX_BLOCK_CHARS or depth > 2:
        yield text
    else:
        yield from _blocks(block, depth + 1)
