"""Streamed Markdown: finished blocks are rendered once, the open one as it grows."""

import re

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it.token import Token

from .excerpts import MAX_ANSWER_CHARS, MAX_ANSWER_HTML_CHARS
from .limits import LimitUsage, exceeds_limits, max_weight, weight
from .parser import MARKDOWN
from .rendering import plain_end, render_blocks, render_paragraph, render_safe

# Up to this weight the open block is rendered at every flush. A heavier one is rendered again
# only after enough new text, so that all rendering together costs at most RENDER_BUDGET times
# the answer, or SCAN_BUDGET times if the block seems to have ended.
SMALL_WEIGHT = 4_000
RENDER_BUDGET = 4
SCAN_BUDGET = 8
BLOCK_END = re.compile(r"^[ \t]*\n(?=[^\s>|*+\-\d])", re.MULTILINE)
FENCE = re.compile(r"^ {0,3}(?:`{3,}|~{3,})", re.MULTILINE)
TABLE_RULE = re.compile(r"[ |:-]*")
TABLE_COLUMN = re.compile(r"-+:?\s*\|")
TRAILING_TAGS = re.compile(
    r"(?:</(?:p|li|ul|ol|blockquote|t[dhr]|tbody|thead|table|h[3-6]|div)>\s*"
    r"|\n?</code></pre>\s*)+\Z"
)
CHECK_CHARS = 2_000  # characters between checks of the HTML size
BLANK_LINE_CLOSES = {"paragraph_open", "heading_open", "table_open", "hr"}


class StreamingMarkdown:
    """Markdown that is still being streamed.

    Finished blocks are rendered once, by `feed`; only the open `tail` is rendered repeatedly. A
    long one is rendered at growing intervals, with new text appended as plain text.
    """

    left_out = shown_chars = 0  # characters, if the text is truncated

    def __init__(self, text: str = "", name: str = "answer") -> None:
        self.tail = ""
        self.work = 0  # weight of everything rendered so far
        self._credit_used = 0  # of it, in large blocks
        self._name = name
        self._parts: list[str] = []
        self._ended: list[str] = []
        self._spent = LimitUsage()
        self._given = self._length = self._lines = self._bars = 0
        self._reset_tail("")
        self.feed(text)

    def _reset_tail(self, tail: str) -> None:
        self.tail = tail
        self._weight = weight(tail)
        self._plain = 0
        self._head = SafeString()
        self._read = 0
        self._sent_chars = 0
        self._is_due = self._weight <= SMALL_WEIGHT  # whether the tail may be rendered now

    def feed(self, text: str) -> SafeString:
        """Add text and return HTML of the blocks that are finished."""
        text = text.replace("\0", "")
        text_weight = weight(text)
        self._parts.append(text)
        self.tail += text
        self._weight += text_weight
        self._given += text_weight
        self._length += len(text)
        self._lines += text.count("\n")
        self._bars += text.count("|")
        # It is scanned for its end and rendered, so it counts twice.
        has_credit = self._credit_used + 2 * self._weight <= RENDER_BUDGET * self._given
        self._is_due = self._weight <= SMALL_WEIGHT or (has_credit and not self._is_too_large)
        if "\n" not in text or not self._may_have_ended(len(text)):
            return SafeString()
        self._charge(self._weight)
        closed_length = _closed_length(self.tail)
        if not closed_length:
            return SafeString()
        closed = self.tail[:closed_length]
        self._charge(weight(closed))
        ended, self._spent = render_blocks(closed, self._spent)
        self._ended.append(ended)
        self._reset_tail(self.tail[closed_length:])
        return ended

    def _charge(self, text_weight: int) -> None:
        self.work += text_weight
        self._credit_used += text_weight if text_weight > SMALL_WEIGHT else 0

    def _may_have_ended(self, new: int) -> bool:
        if self._is_due or self._is_too_large:
            return self._is_due
        if self._credit_used + self._weight > SCAN_BUDGET * self._given:
            return False
        line_end = self.tail.rfind("\n", 0, max(0, self.tail.rfind("\n", 0, -new)))
        recent = self.tail[line_end + 1 :]
        if FENCE.match(self.tail.lstrip("\r\n")):
            return FENCE.search(recent) is not None
        return BLOCK_END.search(recent) is not None

    @property
    def _is_too_large(self) -> bool:
        return exceeds_limits(self._length, self._lines, self._bars)

    @property
    def frozen_html(self) -> SafeString:
        return mark_safe("".join(self._ended))

    def max_render_cost(self, chars: int) -> int:
        """Return the most that rendering can cost when a text of this length is added."""
        return 2 * (self._weight + max_weight(chars))

    def render_cost(self, text: str) -> int:
        """Return the cost of rendering when this text is added."""
        text_weight = weight(text)
        tail = self._weight + text_weight
        is_read = tail <= SMALL_WEIGHT or self._credit_used + tail <= SCAN_BUDGET * (
            self._given + text_weight
        )
        return 2 * tail if is_read else text_weight

    @property
    def tail_html(self) -> SafeString:
        """Return the whole tail; if it is long, later text can be appended."""
        if not self.tail:
            return SafeString()
        if self._is_due:
            self._render_tail()
        html = self._head
        if self._weight <= SMALL_WEIGHT:
            return html
        # Text that isn't rendered yet goes to the end of the last block.
        self._sent_chars = len(self.tail)
        end = html[-400:]
        trailing = TRAILING_TAGS.search(end)
        position = len(html) - len(end) + trailing.start() if trailing else len(html)
        unread = escape(self.tail[self._read :])
        added = f'<span id="{self._name}-rest" class="prose-rest">{unread}</span>'
        return mark_safe(html[:position] + added + html[position:])

    def take_more(self) -> SafeString | None:
        """Return new text to append, or None if the tail must be replaced."""
        if self._is_due or not self._sent_chars:
            return None
        new_text = self.tail[self._sent_chars :]
        self._sent_chars = len(self.tail)
        return mark_safe(escape(new_text))

    def _render_tail(self) -> None:
        self._plain = plain_end(self.tail, self._plain)
        if 0 < self._plain == len(self.tail):
            self._head = render_paragraph(self.tail)
        else:
            env = {"growing": True, "spent": self._spent}
            text = _complete_table(self.tail)
            # What comes next decides whether this ends a formula or begins a price.
            if self._weight <= SMALL_WEIGHT and text.endswith("$") and text[-2:] != "$$":
                text = text[:-1]
            self._head = render_safe(text, env)
        self._read = len(self.tail)
        self._is_due = False
        self._charge(self._weight)

    def is_whole(self, text: str) -> bool:
        """Whether this is the whole text and no block depends on another one."""
        is_apart = "]:" not in text and not self._is_too_large
        return is_apart and "".join(self._parts) == text.replace("\0", "")

    @property
    def is_short(self) -> bool:
        """Whether the HTML is within the limit of a page."""
        return len(self.whole) <= MAX_ANSWER_HTML_CHARS

    @property
    def whole(self) -> SafeString:
        """All HTML, now that the text is complete."""
        return mark_safe(self.frozen_html + render_blocks(self.tail, self._spent)[0])


def _complete_table(text: str) -> str:
    """Return open text with the second line of its table, which makes it one."""
    line_before, line_above, last = ["", "", *text.rsplit("\n", 3)][-3:]
    if line_above.startswith("|") and TABLE_RULE.fullmatch(last):
        header = line_above
        start = text[: len(text) - len(last)]
    elif last.startswith("|"):
        line_before = line_above
        header = last
        start = f"{text}\n"
    else:
        return text
    if not header.strip("| "):
        return text.removesuffix(last)  # not even a column yet
    columns = header.replace("\\|", "").strip().strip("|").count("|") + 1
    has_rule = len(TABLE_COLUMN.findall(last)) >= columns
    if line_before.startswith("|") or has_rule or FENCE.search(text):
        return text
    return f"{start}{'|---' * columns}|"


class BoundedMarkdown(StreamingMarkdown):
    """Streaming Markdown up to the limit of a page. Text beyond it is only counted."""

    def __init__(self, text: str = "", name: str = "answer") -> None:
        self.left_out = self.shown_chars = 0  # characters
        self._room = MAX_ANSWER_CHARS  # remaining characters
        self._html_chars = 0  # of the HTML created
        super().__init__(text, name)

    def feed(self, text: str) -> SafeString:
        max_chars = min(self._room, CHECK_CHARS - self.shown_chars % CHECK_CHARS)
        if 0 < len(text) <= max_chars:  # as nearly always
            html = super().feed(text)
            self._count(len(text), len(html))
            return html
        ended: list[str] = []
        while text and self._room:
            piece = text[: min(self._room, CHECK_CHARS - self.shown_chars % CHECK_CHARS)]
            text = text[len(piece) :]
            ended.append(super().feed(piece))
            self._count(len(piece), len(ended[-1]))
        self.left_out += len(text)
        return mark_safe("".join(ended))

    def _count(self, shown_chars: int, html_chars: int) -> None:
        """Count text; the limit is checked at the same positions, however it is split."""
        self.shown_chars += shown_chars
        self._room -= shown_chars
        self._html_chars += html_chars
        if self.shown_chars % CHECK_CHARS == 0 and self._html_chars > MAX_ANSWER_HTML_CHARS:
            self._room = 0

    def render_cost(self, text: str) -> int:
        return super().render_cost(text[: self._room]) if self._room else 0

    def is_whole(self, text: str) -> bool:
        return not self.left_out and super().is_whole(text)


def _closed_length(text: str) -> int:
    """Return up to where nothing can change, in whole lines.

    This is the start of the last block, or its end after a blank line or a closing fence.
    """
    source = text[: text.rfind("\n") + 1].replace("\r\n", " \n").replace("\r", "\n")
    tokens: list[Token] = []
    MARKDOWN.block.parse(source, MARKDOWN, {}, tokens)
    blocks = [(t, t.map) for t in tokens if t.level == 0 and t.nesting >= 0 and t.map]
    if not blocks:
        return 0
    block, (start, end) = blocks[-1]
    if block.type in BLANK_LINE_CLOSES and source.endswith("\n\n"):
        return len(source)
    lines = source.split("\n")
    is_closed = block.type == "math_block"
    if block.type == "fence" and end - start >= 2:
        fence = lines[end - 1]
        signs = fence.strip()
        is_closed = (
            FENCE.match(fence) is not None
            and set(signs) == {block.markup[0]}
            and len(signs) >= len(block.markup)
        )
    if is_closed:
        return sum(len(line) + 1 for line in lines[:end])
    if len(blocks) < 2:
        return 0
    return sum(len(line) + 1 for line in lines[:start])
