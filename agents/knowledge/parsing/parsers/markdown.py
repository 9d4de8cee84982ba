"""Writes Markdown: headings, tables with one row per line, and parts of long texts."""

import re
from collections.abc import Iterable, Sequence

from .values import TOO_COMPLEX, Kind, ParsedPart, UnreadableDocument

MAX_CELL_CHARS = 10_000
MAX_COLUMNS = 500
MAX_TABLE_CELLS = 5_000_000  # also those that short rows don't have
PART_CHARS = 150_000
# Characters that are written without spaces between them; a reader loads no engine.
WIDE = "\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef"
SPACES = re.compile(r"[ \t\u00a0\u3000]*\n[ \t\u00a0]*|[ \t\u00a0]+")
BLANK_LINES = re.compile(r"\n{3,}")
# Characters of control, and those that are invisible and only hide text: tags and overrides.
INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\u00ad\u200b\u2060\ufeff\ufffe\uffff"
    "\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f\ud800-\udfff]"
)
STRUCTURE = re.compile(r"(?m)^(\s{0,3})(#{1,6}\s|>|[-+*]\s|```|~~~|={3,}$|-{3,}$)")
FENCE = re.compile(r"^\s{0,3}(```|~~~)")
TOP_HEADING = re.compile(r"^#{1,2}\s")


def clean(text: str) -> str:
    """Remove invisible characters, and normalize line ends and blank lines."""
    text = INVISIBLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return BLANK_LINES.sub("\n\n", text).strip("\n")


def collapse(text: str) -> str:
    """Return text on one line with single spaces."""
    return SPACES.sub(" ", INVISIBLE.sub("", text)).strip()


def escape(text: str) -> str:
    """Escape what would be read as Markdown structure at the start of a line."""
    return STRUCTURE.sub(r"\1\\\2", text)


def heading(level: int, text: str) -> str:
    return f"{'#' * min(max(level, 1), 6)} {collapse(text)}"


def fenced(text: str, language: str = "") -> str:
    """Return code between fences that it can't close itself."""
    text = text.strip("\n")
    fence = "~~~" if "```" in text else "```"
    return f"{fence}{language}\n{text}\n{fence}" if text.strip() else ""


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose first row is the header, without empty rows and columns."""
    cells = [[cell(text) for text in row[:MAX_COLUMNS]] for row in rows]
    cells = [row for row in cells if any(row)]
    width = max((len(row) for row in cells), default=0)
    if width * len(cells) > MAX_TABLE_CELLS:
        raise UnreadableDocument(TOO_COMPLEX)
    cells = [row + [""] * (width - len(row)) for row in cells]
    used = [column for column in range(width) if any(row[column] for row in cells)]
    lines = [_line([row[column] for column in used]) for row in cells]
    if not lines:
        return ""
    return "\n".join([lines[0], _line(["---"] * len(used)), *lines[1:]])


def cell(text: str) -> str:
    short = text if len(text) <= MAX_CELL_CHARS else f"{text[:MAX_CELL_CHARS]}…"
    return collapse(short).replace("|", "\\|")


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def join(blocks: Iterable[str]) -> str:
    return clean("\n\n".join(block for block in blocks if block.strip()))


def parts(text: str, kind: Kind = "text") -> list[ParsedPart]:
    """Return a text as one part, or a long one as several, split at its main headings."""
    text = clean(text)
    if len(text) <= PART_CHARS:
        return [ParsedPart(kind=kind, text=text)]
    split: list[ParsedPart] = []
    lines: list[str] = []
    size = 0
    is_fenced = False
    for line in text.split("\n"):
        is_fenced ^= bool(FENCE.match(line))
        is_start = TOP_HEADING.match(line) and size > PART_CHARS // 2 or not line
        if size > PART_CHARS * (1 if is_start and not is_fenced else 2) or (
            is_start and line and not is_fenced
        ):
            split.append(ParsedPart(kind=kind, text="\n".join(lines)))
            lines = []
            size = 0
        lines.append(line)
        size += len(line) + 1
    return [*split, ParsedPart(kind=kind, text="\n".join(lines))]
