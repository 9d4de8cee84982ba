"""The only place where text becomes HTML: Markdown, then an allow-list."""

import re
from functools import lru_cache
from typing import Any

import nh3
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from .autolinks import SCHEME_END
from .limits import LimitUsage, is_too_large
from .parser import MARKDOWN

SMALL_TEXT_CHARS = 20_000
# One line of plain words, which Markdown leaves unchanged: most streamed text.
PLAIN_START = re.compile(r"[^\W\d_]|[@(]")
PLAIN_REST = re.compile(r"[\w ,.;:?()%/@-]*")
TAGS = {
    *("p", "br", "hr", "h2", "h3", "h4", "h5", "h6", "blockquote", "ul", "ol", "li"),
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


def render_markdown(text: str, *, top_level: int = 3) -> SafeString:
    """Render safe HTML from text of any origin, with headings from this level on."""
    return render_blocks(text, LimitUsage(top_level=top_level))[0]


def render_blocks(text: str, spent: LimitUsage) -> tuple[SafeString, LimitUsage]:
    """Render blocks; return the HTML and the updated usage."""
    return (
        _few_blocks(text, spent) if len(text) <= SMALL_TEXT_CHARS else _many_blocks(text, spent)
    )


def _render_uncached(text: str, spent: LimitUsage) -> tuple[SafeString, LimitUsage]:
    line = text.rstrip("\n")
    if plain_end(line) == len(line) > 0:
        return render_paragraph(line), spent
    if is_too_large(text):
        # As written, with its line breaks.
        html = format_html('<div class="prose-rest">{}</div>\n', text.replace("\0", ""))
        return html, spent
    env = {"spent": spent}
    return render_safe(text, env), env["spent"]


# Long texts are few, and each takes as much memory as hundreds of short ones.
_few_blocks = lru_cache(maxsize=512)(_render_uncached)
_many_blocks = lru_cache(maxsize=16)(_render_uncached)


def plain_end(text: str, start: int = 0) -> int:
    """Return up to where the text is plain, given that it is up to `start`."""
    if not start and not PLAIN_START.match(text):
        return 0
    plain_rest = PLAIN_REST.match(text, start)
    end = plain_rest.end() if plain_rest else start
    # An underscore may be emphasis, and an address becomes a link.
    stops = (text.find("_", start, end), text.find(SCHEME_END, max(0, start - 2), end))
    return min((stop for stop in stops if stop >= 0), default=end)


def render_paragraph(line: str) -> SafeString:
    return SafeString(f"<p>{line.rstrip(' ')}</p>\n")


def render_safe(text: str, env: dict[str, Any]) -> SafeString:
    html = nh3.clean(
        MARKDOWN.render(text.replace("\0", ""), env),
        tags=TAGS,
        attributes=ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(html)
