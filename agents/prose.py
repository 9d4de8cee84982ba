"""Text becomes HTML here and nowhere else: Markdown without raw HTML, then an allow-list."""

import re
import unicodedata
from functools import lru_cache
from typing import Any

import nh3
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

MOST_HIGHLIGHTED = 20_000
# One line of plain words, which Markdown leaves as it is: most of what is streamed.
BEGINS_PLAIN = re.compile(r"[^\W\d_]|[@(]")
GOES_ON_PLAIN = re.compile(r"[\w ,.;:?()%/@-]*")
UNUSUAL = re.compile(r"[^\x20-\x7e\n\t]")
BLANK = re.compile("VARIATION SELECTOR|FILLER|BRAILLE PATTERN BLANK|COMBINING GRAPHEME JOINER")
ENDED_BY_EMPTY_LINE = {"paragraph_open", "heading_open", "table_open", "hr"}
TAGS = {
    *("p", "br", "hr", "h3", "h4", "h5", "h6", "blockquote", "ul", "ol", "li"),
    *("strong", "em", "s", "a", "code", "pre", "span", "div"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES = {
    "a": {"href", "title"},
    "code": {"class"},
    "div": {"class"},
    "ol": {"start"},
    "pre": {"class"},
    "span": {"class"},
    "td": {"class"},
    "th": {"class"},
}


@lru_cache(maxsize=512)
def render_markdown(text: str) -> SafeString:
    """Safe HTML for anything a model, a tool or a person wrote."""
    line = text.rstrip("\n")
    return _paragraph(line) if _plain(line) == len(line) > 0 else _rendered(text, {})


def _plain(text: str, start: int = 0) -> int:
    """Up to where this is plain, if it is known to be so up to its start."""
    if not start and not BEGINS_PLAIN.match(text):
        return 0
    end = GOES_ON_PLAIN.match(text, start).end()
    mark = text.find("_", start, end)
    return end if mark < 0 else mark


def _paragraph(line: str) -> SafeString:
    return SafeString(f"<p>{line.rstrip(' ')}</p>\n")


def _rendered(text: str, about: dict[str, bool]) -> SafeString:
    html = nh3.clean(
        MARKDOWN.render(text.replace("\0", ""), about),
        tags=TAGS,
        attributes=ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(html)


class GrowingProse:
    """Markdown that is still being written.

    Blocks that have ended are rendered once, by `feed`; only the open `tail` is rendered
    again and again.
    """

    def __init__(self, text: str = "") -> None:
        self.tail = ""
        self._said: list[str] = []
        self._ended: list[str] = []
        self._plain = 0
        self.feed(text)

    def feed(self, text: str) -> SafeString:
        """HTML of the blocks that have ended by now."""
        text = text.replace("\0", "")
        self._said.append(text)
        self.tail += text
        at = _closed(self.tail) if "\n" in text else 0
        if not at:
            return SafeString()
        closed, self.tail, self._plain = self.tail[:at], self.tail[at:], 0
        ended = render_markdown(closed)
        self._ended.append(ended)
        return ended

    @property
    def frozen(self) -> SafeString:
        return mark_safe("".join(self._ended))

    @property
    def tail_html(self) -> SafeString:
        self._plain = _plain(self.tail, self._plain)
        if 0 < self._plain == len(self.tail):
            return _paragraph(self.tail)
        return _rendered(self.tail, {"growing": True}) if self.tail else SafeString()

    def is_whole(self, text: str) -> bool:
        """Whether this is all of it, and no block of it says what another one means."""
        return "]:" not in text and "".join(self._said) == text.replace("\0", "")

    @property
    def whole(self) -> SafeString:
        """All of it, now that nothing more will come."""
        return mark_safe(self.frozen + render_markdown(self.tail))


def _closed(text: str) -> int:
    """Up to where nothing can change any more, counting whole lines only.

    That is where the last block begins, or its end where an empty line has ended it.
    """
    whole = text[: text.rfind("\n") + 1].replace("\r\n", " \n").replace("\r", "\n")
    tokens: list[Token] = []
    MARKDOWN.block.parse(whole, MARKDOWN, {}, tokens)
    blocks = [t for t in tokens if t.level == 0 and t.nesting >= 0 and t.map]
    if blocks and blocks[-1].type in ENDED_BY_EMPTY_LINE and whole.endswith("\n\n"):
        return len(whole)
    if len(blocks) < 2:
        return 0
    starts = [block.map[0] for block in blocks]
    return sum(len(line) + 1 for line in whole.split("\n")[: starts[-1]])


def _fence(tokens: list[Token], at: int, options: Any, about: dict[str, bool]) -> str:
    """Code in colours, but not while it grows: it would be coloured anew for every word."""
    token = tokens[at]
    language = token.info.strip().split(" ")[0].lower()
    code = _highlighted(token.content, "" if about.get("growing") else language)
    label = f' class="language-{escape(language)}"' if language else ""
    return f'<pre class="code"><code{label}>{code}</code></pre>\n'


def _highlighted(code: str, language: str) -> str:
    if not language or len(code) > MOST_HIGHLIGHTED:
        return escape(code)
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return escape(code)
    return highlight(code, lexer, HtmlFormatter(nowrap=True))


def _image(tokens: list[Token], at: int, *_: Any) -> str:
    """A link instead: an image from elsewhere would tell elsewhere who reads this."""
    token = tokens[at]
    source = escape(str(token.attrs.get("src", "")))
    return f'<a href="{source}">{escape(token.content or "image")}</a>'


def _open_cell(tokens: list[Token], at: int, *_: Any) -> str:
    """Alignment as a class, because styles in attributes are not allowed on our pages."""
    token = tokens[at]
    style = str(token.attrs.get("style", ""))
    label = f' class="{style.removeprefix("text-align:")}"' if style else ""
    return f"<{token.tag}{label}>"


def _open_heading(tokens: list[Token], at: int, *_: Any) -> str:
    return f"<{_heading(tokens[at])}>"


def _close_heading(tokens: list[Token], at: int, *_: Any) -> str:
    return f"</{_heading(tokens[at])}>\n"


def _heading(token: Token) -> str:
    """The page has headings of its own above those of an answer."""
    return f"h{min(6, int(token.tag[1]) + 2)}"


def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    markdown.renderer.rules |= {
        "fence": _fence,
        "image": _image,
        "th_open": _open_cell,
        "td_open": _open_cell,
        "heading_open": _open_heading,
        "heading_close": _close_heading,
    }
    return markdown


MARKDOWN = _markdown()


def render_exact(text: str) -> SafeString:
    """The text as it is, to agree to: what cannot be seen in it is made visible."""
    return mark_safe(UNUSUAL.sub(_seen, escape(text)))


def _seen(match: re.Match[str]) -> str:
    character = match.group()
    if not _is_invisible(character):
        return character
    code = f"U+{ord(character):04X}"
    name = unicodedata.name(character, code)
    return format_html('<mark class="invisible" title="{}">{}</mark>', name, code)


def _is_invisible(character: str) -> bool:
    """Controls, joiners, direction marks, tags, odd spaces, and letters that are blank."""
    is_odd = unicodedata.category(character)[0] in "CZ"
    return is_odd or BLANK.search(unicodedata.name(character, "")) is not None
