"""The only place where text becomes HTML: Markdown without raw HTML, then an allow-list.

The cost is bounded for any text: see `weight`, `MAX_MARKS` and `StreamingMarkdown`.
"""

import importlib
import re
import unicodedata
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import nh3
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt, helpers
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from agents.engine.guardrails import LINK_TARGET, MAX_GAP_CHARS

from . import markdown_syntax

# Limits per text. Beyond them it is plain text, or not highlighted: a mark costs up to 30 µs, a
# line 50 µs, a cell 20 µs, and a character of code 25 µs.
MAX_MARKS = 10_000
MAX_LINES = 6_000
MAX_PIPES = 20_000  # separators of table cells
MAX_TEXT_CHARS = 400_000
MAX_HIGHLIGHTED_CHARS = 20_000
MAX_FILLED_CELLS = 4_096  # empty cells added to short table rows
# Highlighting uses patterns that are quadratic on text unlike any code.
MAX_CODE_LINE_CHARS = 300
RUN_OF_WORDS = re.compile(r"(?:[\w.$<>\[\]?]++\s++){40}")
LANGUAGES = {
    *("bash", "c", "c#", "c++", "console", "cpp", "cs", "csharp", "css", "dart", "diff"),
    *("docker", "dockerfile", "elixir", "ex", "go", "golang", "graphql", "haskell", "hs"),
    *("html", "ini", "java", "javascript", "js", "json", "jsx", "kotlin", "kt", "latex"),
    *("lua", "make", "makefile", "markdown", "md", "nginx", "perl", "php", "pl"),
    *("powershell", "ps1", "py", "python", "python3", "r", "rb", "rs", "ruby", "rust"),
    *("scala", "scss", "sh", "shell", "sql", "swift", "tex", "toml", "ts", "tsx"),
    *("typescript", "xml", "yaml", "yml", "zsh"),
}
# What makes Markdown slow to parse, in equivalents of plain characters.
MARKS, MARK_WEIGHT = "[]!*_~`<&\\$", 16
BREAKS, BREAK_WEIGHT = "\n|", 10
# Up to this weight the open block is rendered at every flush. A heavier one is rendered again
# only after enough new text, so that all rendering together costs at most RENDER_BUDGET times
# the answer, or SCAN_BUDGET times if the block seems to have ended.
SMALL_WEIGHT = 4_000
RENDER_BUDGET, SCAN_BUDGET = 4, 8
BLOCK_END = re.compile(r"^[ \t]*\n(?=[^\s>|*+\-\d])", re.MULTILINE)
FENCE = re.compile(r"^ {0,3}(?:`{3,}|~{3,})", re.MULTILINE)
TRAILING_TAGS = re.compile(
    r"(?:</(?:p|li|ul|ol|blockquote|t[dhr]|tbody|thead|table|h[3-6]|div)>\s*"
    r"|\n?</code></pre>\s*)+\Z"
)
SMALL_TEXT_CHARS = 20_000
MAX_CODE_HTML_CHARS = (
    200_000  # characters of HTML: in dense code every character may have a tag
)
MAX_ANSWER_CHARS = 20_000  # characters of an answer on a page
MAX_ANSWER_HTML_CHARS = 100_000
MIN_SHOWN_CHARS = 500
CHECK_CHARS = 2_000  # characters between checks of the HTML size
# One line of plain words, which Markdown leaves unchanged: most streamed text.
PLAIN_START = re.compile(r"[^\W\d_]|[@(]")
PLAIN_REST = re.compile(r"[\w ,.;:?()%/@-]*")
UNUSUAL = re.compile(r"[^\x20-\x7e\n\t]")
BLANK_NAMES = re.compile(
    "VARIATION SELECTOR|FILLER|BRAILLE PATTERN BLANK|COMBINING GRAPHEME JOINER"
)
BLANK_LINE_CLOSES = {"paragraph_open", "heading_open", "table_open", "hr"}
TAGS = {
    *("p", "br", "hr", "h3", "h4", "h5", "h6", "blockquote", "ul", "ol", "li"),
    *("strong", "em", "s", "a", "code", "pre", "span", "div", "sup"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES = {
    "a": {"href", "id", "title"},
    "code": {"class"},
    "div": {"class"},
    "li": {"class", "id"},
    "ol": {"start"},
    "pre": {"class"},
    "span": {"class"},
    "td": {"class"},
    "th": {"class"},
}


class LimitUsage(NamedTuple):
    """How much of its limits a text has used."""

    marks: int = 0
    highlighted: int = 0


def weight(text: str) -> int:
    """Return the cost of rendering, in equivalents of plain characters."""
    marks, breaks = sum(map(text.count, MARKS)), sum(map(text.count, BREAKS))
    return len(text) + MARK_WEIGHT * marks + BREAK_WEIGHT * breaks


def render_markdown(text: str) -> SafeString:
    """Render safe HTML from text of any origin."""
    return _render_blocks(text, LimitUsage())[0]


def _render_blocks(text: str, spent: LimitUsage) -> tuple[SafeString, LimitUsage]:
    """Render blocks; return the HTML and the updated usage."""
    return (
        _few_blocks(text, spent) if len(text) <= SMALL_TEXT_CHARS else _many_blocks(text, spent)
    )


def _render_uncached(text: str, spent: LimitUsage) -> tuple[SafeString, LimitUsage]:
    line = text.rstrip("\n")
    if _plain_end(line) == len(line) > 0:
        return _paragraph(line), spent
    if _is_too_large(text):
        return _plain_block(text), spent
    about = {"spent": spent}
    return _render_safe(text, about), about["spent"]


# Long texts are few, and each takes as much memory as hundreds of short ones.
_few_blocks = lru_cache(maxsize=512)(_render_uncached)
_many_blocks = lru_cache(maxsize=16)(_render_uncached)


def _is_too_large(text: str) -> bool:
    return _exceeds(len(text), text.count("\n"), text.count("|"))


def _exceeds(length: int, lines: int, bars: int) -> bool:
    return length > MAX_TEXT_CHARS or lines > MAX_LINES or bars > MAX_PIPES


def _plain_block(text: str) -> SafeString:
    """Render the text as written, with its line breaks."""
    return format_html('<div class="prose-rest">{}</div>\n', text.replace("\0", ""))


def truncate(text: str, most: int) -> str:
    """Cut a text at the end of a paragraph, line or word."""
    if len(text) <= most:
        return text
    for end in ("\n\n", "\n", " "):
        if (at := text.rfind(end, most - most // 10, most)) > 0:
            return text[:at]
    return text[:most]


def _plain_end(text: str, start: int = 0) -> int:
    """Return up to where the text is plain, given that it is up to `start`."""
    if not start and not PLAIN_START.match(text):
        return 0
    rest = PLAIN_REST.match(text, start)
    end = rest.end() if rest else start
    mark = text.find("_", start, end)
    return end if mark < 0 else mark


def _paragraph(line: str) -> SafeString:
    return SafeString(f"<p>{line.rstrip(' ')}</p>\n")


def _render_safe(text: str, about: dict[str, Any]) -> SafeString:
    html = nh3.clean(
        MARKDOWN.render(text.replace("\0", ""), about),
        tags=TAGS,
        attributes=ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(html)


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
        self.tail, self._weight, self._plain = tail, weight(tail), 0
        self._head, self._read, self._sent_chars = SafeString(), 0, 0
        self._is_due = self._weight <= SMALL_WEIGHT  # whether the tail may be rendered now

    def feed(self, text: str) -> SafeString:
        """Add text and return HTML of the blocks that are finished."""
        text = text.replace("\0", "")
        self._parts.append(text)
        self._append(text)
        if "\n" not in text or not self._may_have_ended(len(text)):
            return SafeString()
        self._charge(self._weight)
        at = _closed_length(self.tail)
        if not at:
            return SafeString()
        closed = self.tail[:at]
        self._charge(weight(closed))
        ended, self._spent = _render_blocks(closed, self._spent)
        self._ended.append(ended)
        self._reset_tail(self.tail[at:])
        return ended

    def _charge(self, heavy: int) -> None:
        self.work += heavy
        self._credit_used += heavy if heavy > SMALL_WEIGHT else 0

    def _append(self, text: str) -> None:
        heavy = weight(text)
        self.tail += text
        self._weight += heavy
        self._given += heavy
        self._length += len(text)
        self._lines += text.count("\n")
        self._bars += text.count("|")
        # It is scanned for its end and rendered, so it counts twice.
        has_credit = self._credit_used + 2 * self._weight <= RENDER_BUDGET * self._given
        self._is_due = self._weight <= SMALL_WEIGHT or (has_credit and not self._is_too_large)

    def _may_have_ended(self, new: int) -> bool:
        if self._is_due or self._is_too_large:
            return self._is_due
        if self._credit_used + self._weight > SCAN_BUDGET * self._given:
            return False
        before = self.tail.rfind("\n", 0, max(0, self.tail.rfind("\n", 0, -new)))
        recent = self.tail[before + 1 :]
        if FENCE.match(self.tail.lstrip("\r\n")):
            return FENCE.search(recent) is not None
        return BLOCK_END.search(recent) is not None

    @property
    def _is_too_large(self) -> bool:
        return _exceeds(self._length, self._lines, self._bars)

    @property
    def frozen_html(self) -> SafeString:
        return mark_safe("".join(self._ended))

    def render_cost(self, text: str) -> int:
        """Return the cost of rendering when this text is added."""
        heavy = weight(text)
        tail = self._weight + heavy
        is_read = tail <= SMALL_WEIGHT or self._credit_used + tail <= SCAN_BUDGET * (
            self._given + heavy
        )
        return 2 * tail if is_read else heavy

    @property
    def tail_html(self) -> SafeString:
        """Return the whole tail; if it is long, later text can be appended."""
        if not self.tail:
            return SafeString()
        if self._is_due:
            self._render_tail()
        if self._weight <= SMALL_WEIGHT:
            return self._head
        self._sent_chars = len(self.tail)
        return _append_rest(self._head, self.tail[self._read :], self._name)

    def take_more(self) -> SafeString | None:
        """Return new text to append, or None if the tail must be replaced."""
        if self._is_due or not self._sent_chars:
            return None
        new, self._sent_chars = self.tail[self._sent_chars :], len(self.tail)
        return mark_safe(escape(new))

    def _render_tail(self) -> None:
        self._plain = _plain_end(self.tail, self._plain)
        if 0 < self._plain == len(self.tail):
            self._head = _paragraph(self.tail)
        else:
            self._head = _render_safe(self.tail, {"growing": True, "spent": self._spent})
        self._read, self._is_due = len(self.tail), False
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
        return mark_safe(self.frozen_html + _render_blocks(self.tail, self._spent)[0])


def _append_rest(html: str, rest: str, name: str) -> SafeString:
    """Append text that isn't rendered yet to the last block."""
    end = html[-400:]
    found = TRAILING_TAGS.search(end)
    at = len(html) - len(end) + found.start() if found else len(html)
    added = f'<span id="{name}-rest" class="prose-rest">{escape(rest)}</span>'
    return mark_safe(html[:at] + added + html[at:])


class BoundedMarkdown(StreamingMarkdown):
    """Streaming Markdown up to the limit of a page. Text beyond it is only counted."""

    def __init__(self, text: str = "", name: str = "answer") -> None:
        self.left_out = self.shown_chars = 0  # characters
        self._room, self._html = (
            MAX_ANSWER_CHARS,
            0,
        )  # remaining characters, and HTML created
        super().__init__(text, name)

    def feed(self, text: str) -> SafeString:
        ended: list[str] = []
        while text and self._room:
            piece = text[: min(self._room, CHECK_CHARS - self.shown_chars % CHECK_CHARS)]
            text = text[len(piece) :]
            ended.append(super().feed(piece))
            self._count(len(piece), len(ended[-1]))
        self.left_out += len(text)
        return mark_safe("".join(ended))

    def _count(self, shown_chars: int, html: int) -> None:
        """Count text; the limit is checked at the same positions, however it is split."""
        self.shown_chars += shown_chars
        self._room -= shown_chars
        self._html += html
        if self.shown_chars % CHECK_CHARS == 0 and self._html > MAX_ANSWER_HTML_CHARS:
            self._room = 0

    def render_cost(self, text: str) -> int:
        return super().render_cost(text[: self._room]) if self._room else 0

    def is_whole(self, text: str) -> bool:
        return not self.left_out and super().is_whole(text)


def render_excerpt(text: str, most: int = MAX_ANSWER_CHARS) -> tuple[SafeString, int]:
    """Render the beginning of a text; return the HTML and its number of characters."""
    text = truncate(text, most)
    html = render_markdown(text)
    while len(html) > MAX_ANSWER_HTML_CHARS and len(text) > MIN_SHOWN_CHARS:
        text = truncate(text, len(text) // 2)
        html = render_markdown(text)
    return html, len(text)


def _closed_length(text: str) -> int:
    """Return up to where nothing can change, in whole lines.

    This is the start of the last block, or its end after a blank line or a closing fence.
    """
    whole = text[: text.rfind("\n") + 1].replace("\r\n", " \n").replace("\r", "\n")
    tokens: list[Token] = []
    MARKDOWN.block.parse(whole, MARKDOWN, {}, tokens)
    blocks = [(t, t.map) for t in tokens if t.level == 0 and t.nesting >= 0 and t.map]
    if not blocks:
        return 0
    last, (start, end) = blocks[-1]
    if last.type in BLANK_LINE_CLOSES and whole.endswith("\n\n"):
        return len(whole)
    lines = whole.split("\n")
    if last.type == "math_block" or _is_closed_fence(last, lines[start:end]):
        return sum(len(line) + 1 for line in lines[:end])
    if len(blocks) < 2:
        return 0
    return sum(len(line) + 1 for line in lines[:start])


def _is_closed_fence(block: Token, lines: list[str]) -> bool:
    """Whether these lines are fenced code with its closing fence."""
    if block.type != "fence" or len(lines) < 2:
        return False
    last = lines[-1]
    return (
        FENCE.match(last) is not None
        and set(last.strip()) == {block.markup[0]}
        and (len(last.strip()) >= len(block.markup))
    )


def _parse_inline(state: StateCore) -> None:
    """Parse inline content until the text has too many marks."""
    spent: LimitUsage = state.env.get("spent", LimitUsage())
    for token in state.tokens:
        if token.type != "inline":
            continue
        spent = spent._replace(marks=spent.marks + sum(map(token.content.count, MARKS)))
        token.children = []
        if spent.marks <= MAX_MARKS:
            state.md.inline.parse(token.content, state.md, state.env, token.children)
        else:
            token.children.append(Token("text", "", 0, content=token.content))
    state.env["spent"] = spent


def _render_fence(tokens: list[Token], at: int, options: Any, about: dict[str, Any]) -> str:
    """Render code with highlighting, but not while it grows: every token would repeat it."""
    token = tokens[at]
    language = token.info.strip().split(" ")[0].lower()
    code: str = escape(token.content)
    if language in LANGUAGES and not about.get("growing"):
        spent: LimitUsage = about["spent"]
        about["spent"] = spent = spent._replace(highlighted=spent.highlighted + len(code))
        if spent.highlighted <= MAX_HIGHLIGHTED_CHARS and _looks_like_code(token.content):
            code = _highlight(token.content, language)
    label = f' class="language-{escape(language)}"' if language else ""
    return f'<pre class="code"><code{label}>{code}</code></pre>\n'


def _looks_like_code(text: str) -> bool:
    longest = max(map(len, text.split("\n")), default=0)
    return longest <= MAX_CODE_LINE_CHARS and RUN_OF_WORDS.search(text) is None


def _highlight(code: str, language: str) -> str:
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return escape(code)
    html = highlight(code, lexer, HtmlFormatter(nowrap=True))
    return html if len(html) <= MAX_CODE_HTML_CHARS else escape(code)


def warm() -> None:
    """Load the lexers, each of which takes up to 0.1 s on first use."""
    for language in sorted(LANGUAGES):
        _highlight("1\n", language)


def _render_image(tokens: list[Token], at: int, *_: Any) -> str:
    """Render a link instead: an external image would reveal who reads this."""
    token = tokens[at]
    source = escape(str(token.attrs.get("src", "")))
    return f'<a href="{source}">{escape(token.content or "image")}</a>'


def _open_cell(tokens: list[Token], at: int, *_: Any) -> str:
    """Use a class for alignment, because inline styles are blocked by the CSP."""
    token = tokens[at]
    style = str(token.attrs.get("style", ""))
    label = f' class="{style.removeprefix("text-align:")}"' if style else ""
    return f"<{token.tag}{label}>"


def _open_heading(tokens: list[Token], at: int, *_: Any) -> str:
    return f"<{_heading_tag(tokens[at])}>"


def _close_heading(tokens: list[Token], at: int, *_: Any) -> str:
    return f"</{_heading_tag(tokens[at])}>\n"


def _heading_tag(token: Token) -> str:
    """Return a lower heading level, below the page's own headings."""
    return f"h{min(6, int(token.tag[1]) + 2)}"


def _parse_destination(source: str, start: int, end: int) -> Any:
    """Parse a link target, if guardrails recognize it as a link too."""
    found = helpers.parseLinkDestination(source, start, end)
    before = source[max(0, start - MAX_GAP_CHARS - 3) : start].rstrip(" \t\r\n")
    is_inline = not before or before.endswith("(")
    if found.ok and is_inline:
        at = source.rfind("](", 0, start)
        found.ok = LINK_TARGET.match(source, at) is not None
    return found


def _create_parser() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    markdown.core.ruler.at("inline", _parse_inline)
    markdown.helpers = SimpleNamespace(  # type: ignore[assignment]  # replaces a module
        parseLinkLabel=helpers.parseLinkLabel,
        parseLinkDestination=_parse_destination,
        parseLinkTitle=helpers.parseLinkTitle,
    )
    # The library has no option for this, and 65,536 cells take more than a second.
    tables: Any = importlib.import_module("markdown_it.rules_block.table")
    tables.MAX_AUTOCOMPLETED_CELLS = MAX_FILLED_CELLS
    renderer: Any = markdown.renderer  # its protocol has no rules
    renderer.rules |= {
        "fence": _render_fence,
        "image": _render_image,
        "th_open": _open_cell,
        "td_open": _open_cell,
        "heading_open": _open_heading,
        "heading_close": _close_heading,
        "table_open": lambda *_: '<div class="table-box"><table>\n',
        "table_close": lambda *_: "</table></div>\n",
    }
    markdown_syntax.extend(markdown)
    return markdown


MARKDOWN = _create_parser()


def render_exact(text: str) -> SafeString:
    """Render the exact text for approval, with invisible characters revealed."""
    return mark_safe(UNUSUAL.sub(_mark_invisible, escape(text)))


def reveal_invisible(text: str) -> str:
    """Reveal invisible characters in plain text."""
    return UNUSUAL.sub(
        lambda match: _code_point(match[0]) if _is_invisible(match[0]) else match[0], text
    )


def _code_point(character: str) -> str:
    return f"[U+{ord(character):04X}]"


def _mark_invisible(match: re.Match[str]) -> str:
    character = match.group()
    if not _is_invisible(character):
        return character
    code = f"U+{ord(character):04X}"
    name = unicodedata.name(character, code)
    return format_html('<mark class="invisible" title="{}">{}</mark>', name, code)


def _is_invisible(character: str) -> bool:
    """Whether it is a control, joiner, direction mark, tag, unusual space or blank letter."""
    is_odd = unicodedata.category(character)[0] in "CZ"
    return is_odd or BLANK_NAMES.search(unicodedata.name(character, "")) is not None
