"""Rich Text Format: paragraphs, headings and tables."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from . import markdown
from .archive import DAMAGED
from .values import MAX_CHARS, ParsedDocument, SourceFile, UnreadableDocument, WorkLimit

TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z])|([{}])|[\r\n]+"
    rb"|([^\\{}\r\n]+)"
)
MAX_DEPTH = 500
TOKEN_STEPS = 2
# Groups that aren't text: tables of fonts and styles, pictures, objects, instructions.
SKIPPED = frozenset(
    b"fonttbl colortbl stylesheet info pict object objdata themedata colorschememapping "
    b"datastore latentstyles listtable listoverridetable rsidtbl generator xmlnstbl fldinst "
    b"header headerl headerr headerf footer footerl footerr footerf template revtbl filetbl "
    b"mmathPr userprops bkmkstart bkmkend nonshppict private annotation atnid atnauthor "
    b"pnseclvl listtext pntext".split()
)
BREAKS = {b"line": "\n", b"tab": "\t", b"emdash": "—", b"endash": "–", b"bullet": "•"}
BREAKS |= {b"lquote": "‘", b"rquote": "’", b"ldblquote": "“", b"rdblquote": "”"}
SYMBOLS = {b"~": "\u00a0", b"_": "-", b"{": "{", b"}": "}", b"\\": "\\", b"\n": "\n"}
HEADING = re.compile(rb"\\s(\d{1,4})[^{};]{0,300}?heading ?([1-9]);")
TITLE = re.compile(rb"\{\\title ([^{}]{1,500})\}")
CHARSETS = {128: "cp932", 129: "cp949", 134: "gbk", 136: "big5", 161: "cp1253", 162: "cp1254"}
CHARSETS |= {177: "cp1255", 178: "cp1256", 204: "cp1251", 222: "cp874", 238: "cp1250"}
FONT = re.compile(rb"\\f(\d{1,5})[^{};]{0,200}?\\fcharset(\d{1,3})")


@dataclass(frozen=True, slots=True)
class _State:
    """What holds until the end of a group."""

    is_skipped: bool = False
    fallback_chars: int = 1  # after a character by number
    encoding: str = "cp1252"
    level: int = 0
    is_cell: bool = False


def parse(source: SourceFile) -> ParsedDocument:
    data = source.data
    if not data.startswith(b"{\\rtf"):
        raise UnreadableDocument(DAMAGED)
    page = re.search(rb"\\ansicpg(\d{2,5})", data[:2_000])
    encoding = _known(f"cp{int(page[1])}" if page else "cp1252")
    title = TITLE.search(data[:20_000])
    blocks = list(_Reader(source.work, data, encoding).blocks())
    return ParsedDocument(
        title=_plain(title[1], encoding) if title else "",
        parts=markdown.parts(markdown.join(blocks)),
    )


def _known(encoding: str) -> str:
    try:
        "".encode(encoding)
    except LookupError:
        return "utf-8" if encoding == "cp65001" else "cp1252"
    return encoding


def _plain(raw: bytes, encoding: str) -> str:
    escaped = re.sub(rb"\\'([0-9a-fA-F]{2})", lambda match: bytes([int(match[1], 16)]), raw)
    return markdown.collapse(
        re.sub(rb"\\[a-z]+-?\d* ?", b"", escaped).decode(encoding, "replace")
    )


class _Reader:
    """Reads the file's words in order, with the state of the group that each is in."""

    def __init__(self, work: WorkLimit, data: bytes, encoding: str) -> None:
        self.work = work
        self.data = data
        head = data[:500_000]
        self.levels = {int(match[1]): int(match[2]) for match in HEADING.finditer(head)}
        self.fonts = {
            int(match[1]): _known(CHARSETS.get(int(match[2]), encoding))
            for match in FONT.finditer(head)
        }
        self.state = _State(encoding=encoding)
        self.states: list[_State] = []
        self.raw = bytearray()  # characters of several bytes come one by one
        self.text: list[str] = []
        self.cells: list[str] = []
        self.rows: list[list[str]] = []
        self.size = 0

    def blocks(self) -> Iterator[str]:
        position = 0
        to_skip = 0
        is_optional = False
        while match := TOKEN.match(self.data, position):
            position = match.end()
            self.work.spend(TOKEN_STEPS)
            word, number, code, symbol, brace, letters = match.groups()
            if brace == b"{":
                self._write_raw()
                self.states.append(self.state)
                if len(self.states) > MAX_DEPTH:
                    raise UnreadableDocument(DAMAGED)
            elif brace == b"}":
                self._write_raw()
                if not self.states:
                    break
                self.state = self.states.pop()
            elif symbol == b"*":
                is_optional = True
                continue
            elif word == b"bin":
                position += max(int(number or 0), 0)
            elif word and (word in SKIPPED or is_optional):
                is_known = is_optional and word in {b"shppict", b"shptxt", b"shpinst"}
                self.state = replace(
                    self.state, is_skipped=not is_known or self.state.is_skipped
                )
            elif self.state.is_skipped:
                pass
            elif code or letters:
                raw = bytes([int(code, 16)]) if code else letters
                self.raw += raw[to_skip:]
                to_skip = max(0, to_skip - len(raw))
            elif word == b"u":
                self._write_raw()
                self._write(chr(int(number or 63) % 65_536))
                to_skip = self.state.fallback_chars
            elif word in {b"par", b"cell", b"row", b"sect", b"page", b"nestcell"}:
                self._write_raw()
                yield from self._end(word)
            elif word:
                self._write_raw()
                self._control(word, int(number) if number else None)
            elif symbol:
                self._write_raw()
                self._write(SYMBOLS.get(symbol, ""))
            is_optional = False
        self._write_raw()
        yield from self._end(b"par")
        yield from self._table()

    def _control(self, word: bytes, number: int | None) -> None:
        if word in BREAKS:
            self._write(BREAKS[word])
        elif word == b"footnote":
            self._write(" ")
        elif word == b"uc":
            self.state = replace(self.state, fallback_chars=min(max(number or 0, 0), 20))
        elif word == b"f" and number in self.fonts:
            self.state = replace(self.state, encoding=self.fonts[number])
        elif word == b"pard":
            self.state = replace(self.state, level=0, is_cell=False)
        elif word == b"intbl":
            self.state = replace(self.state, is_cell=True)
        elif word == b"s" and number in self.levels:
            self.state = replace(self.state, level=self.levels[number])
        elif word == b"outlinelevel" and number is not None and 0 <= number < 9:
            self.state = replace(self.state, level=number + 1)
        elif word == b"v" and number != 0:
            self.state = replace(self.state, is_skipped=True)

    def _end(self, word: bytes) -> Iterator[str]:
        """End a paragraph, a cell or a row; rows are held until their table ends."""
        pairs = "".join(self.text).encode("utf-16-le", "surrogatepass")
        text = pairs.decode("utf-16-le", "replace").strip()
        if word in {b"cell", b"nestcell"}:
            self.cells.append(text)
        elif word == b"row":
            self.rows.append(self.cells)
            self.cells = []
        elif self.state.is_cell and word == b"par" and (self.cells or self.rows or text):
            self.text.append("\n")
            return
        elif text:
            yield from self._table()
            level = self.state.level
            yield markdown.heading(level, text) if level else markdown.escape(text)
        self.text = []

    def _table(self) -> Iterator[str]:
        if self.cells:
            self.rows.append(self.cells)
            self.cells = []
        if self.rows:
            yield markdown.table(self.rows)
            self.rows = []

    def _write_raw(self) -> None:
        if self.raw:
            self._write(self.raw.decode(self.state.encoding, "replace"))
            self.raw.clear()

    def _write(self, text: str) -> None:
        self.size += len(text)
        if text and self.size < MAX_CHARS:
            self.text.append(text)
