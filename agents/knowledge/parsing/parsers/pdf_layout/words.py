"""The words of a page with their places, in lines."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..values import WorkLimit

MAX_PAGE_CHARS = 200_000
LETTER_STEPS = 4
HYPHEN = "\x02"  # at the end of a line


@dataclass(slots=True)
class Word:
    """A word and the box around it; the origin is at the bottom left."""

    text: str
    left: float
    bottom: float
    right: float
    top: float

    @property
    def middle(self) -> float:
        return (self.bottom + self.top) / 2

    @property
    def center(self) -> float:
        return (self.left + self.right) / 2


@dataclass(slots=True)
class Line:
    """Words beside each other."""

    words: list[Word]
    text: str = field(init=False)
    height: float = field(init=False)
    left: float = field(init=False)
    right: float = field(init=False)
    top: float = field(init=False)

    def __post_init__(self) -> None:
        first = self.words[0]
        last = self.words[-1]
        self.text = " ".join(word.text for word in self.words)
        self.height = max(abs(word.top - word.bottom) for word in (first, last))
        self.left = first.left
        self.right = last.right
        self.top = first.top

    @property
    def bottom(self) -> float:
        return self.top - self.height

    @property
    def middle(self) -> float:
        return self.top - self.height / 2


def read_lines(page: Any, work: WorkLimit) -> Iterator[Line]:
    """Yield the lines of a page in the file's order, which is mostly the reading order."""
    from pypdfium2 import raw

    textpage = page.get_textpage()
    try:
        count = min(textpage.count_chars(), MAX_PAGE_CHARS)
        if count <= 0:
            return
        work.spend(count * LETTER_STEPS)
        words: list[Word] = []
        letters: list[str] = []
        start = 0
        for position in range(count + 1):
            code = raw.FPDFText_GetUnicode(textpage, position) if position < count else 10
            is_hyphen = code in (0xFFFE, 0x2)
            is_letter = 0 < code < 0x110000
            if is_hyphen or (is_letter and code not in (9, 10, 13, 32)):
                if not letters:
                    start = position
                letters.append(HYPHEN if is_hyphen else chr(code))
                continue
            if letters:
                words.append(_word(textpage, "".join(letters), start, position - 1))
                letters = []
            if code not in (9, 32) and words:
                yield Line(words)
                words = []
    finally:
        textpage.close()


def _word(textpage: Any, text: str, start: int, end: int) -> Word:
    from pypdfium2 import raw

    # Rare letters come as two halves.
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
    boxes: list[Any] = []
    for position in (start, end):
        box = raw.FS_RECTF()
        if raw.FPDFText_GetLooseCharBox(textpage, position, box):
            boxes.append(box)
    if not boxes:
        return Word(text, 0, 0, 0, 0)
    # Right from left, except for text that is written the other way.
    return Word(
        text,
        left=boxes[0].left,
        bottom=min(box.bottom for box in boxes),
        right=boxes[-1].right,
        top=max(box.top for box in boxes),
    )
