"""The Markdown parser: no raw HTML, no images, links as guardrails see them."""

import importlib
from types import SimpleNamespace
from typing import Any

from django.utils.html import escape
from markdown_it import MarkdownIt, helpers
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from agents.engine.guardrails import LINK_TARGET, MAX_GAP_CHARS

from . import autolinks, syntax
from .highlighting import LANGUAGES, MAX_HIGHLIGHTED_CHARS, highlight_code, looks_like_code
from .limits import MAX_MARKS, LimitUsage, count_marks

MAX_FILLED_CELLS = 4_096  # empty cells added to short table rows


def _parse_inline(state: StateCore) -> None:
    """Parse inline content until the text has too many marks."""
    spent: LimitUsage = state.env.get("spent", LimitUsage())
    for token in state.tokens:
        if token.type != "inline":
            continue
        addresses = token.content.count(autolinks.SCHEME_END)  # each takes as long as two marks
        marks = count_marks(token.content) + 2 * addresses
        spent = spent._replace(marks=spent.marks + marks)
        token.children = []
        if spent.marks <= MAX_MARKS:
            state.md.inline.parse(token.content, state.md, state.env, token.children)
        else:
            token.children.append(Token("plain", "", 0, content=token.content))
    state.env["spent"] = spent


def _render_fence(tokens: list[Token], index: int, options: Any, env: dict[str, Any]) -> str:
    """Render code with highlighting, but not while it grows: every token would repeat it."""
    token = tokens[index]
    language = token.info.strip().split(" ")[0].lower()
    code: str = escape(token.content)
    if language in LANGUAGES and not env.get("growing"):
        spent: LimitUsage = env["spent"]
        env["spent"] = spent = spent._replace(highlighted=spent.highlighted + len(code))
        if spent.highlighted <= MAX_HIGHLIGHTED_CHARS and looks_like_code(token.content):
            code = highlight_code(token.content, language)
    label = f' class="language-{escape(language)}"' if language else ""
    return f'<pre class="code"><code{label}>{code}</code></pre>\n'


def _render_image(tokens: list[Token], index: int, *_: Any) -> str:
    """Render a link instead: an external image would reveal who reads this."""
    token = tokens[index]
    source = escape(str(token.attrs.get("src", "")))
    return f'<a href="{source}">{escape(token.content or "image")}</a>'


def _open_cell(tokens: list[Token], index: int, *_: Any) -> str:
    """Use a class for alignment, because inline styles are blocked by the CSP."""
    token = tokens[index]
    style = str(token.attrs.get("style", ""))
    label = f' class="{style.removeprefix("text-align:")}"' if style else ""
    return f"<{token.tag}{label}>"


def _open_heading(tokens: list[Token], index: int, _: Any, env: dict[str, Any]) -> str:
    """Open a heading one level below its parent, so that the page skips no level."""
    level = int(tokens[index].tag[1])
    spent: LimitUsage = env["spent"]
    parents = tuple(parent for parent in spent.headings if parent < level)
    env["spent"] = spent._replace(headings=(*parents, level))
    return f"<{_heading_tag(env)}>"


def _close_heading(tokens: list[Token], index: int, _: Any, env: dict[str, Any]) -> str:
    return f"</{_heading_tag(env)}>\n"


def _heading_tag(env: dict[str, Any]) -> str:
    """Return the tag of the last heading."""
    spent: LimitUsage = env["spent"]
    return f"h{min(6, spent.top_level - 1 + len(spent.headings))}"


def _parse_destination(source: str, start: int, end: int) -> Any:
    """Parse a link target, if guardrails recognize it as a link too."""
    destination = helpers.parseLinkDestination(source, start, end)
    text_before = source[max(0, start - MAX_GAP_CHARS - 3) : start].rstrip(" \t\r\n")
    is_inline = not text_before or text_before.endswith("(")
    if destination.ok and is_inline:
        opening = source.rfind("](", 0, start)
        destination.ok = LINK_TARGET.match(source, opening) is not None
    return destination


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
        "plain": lambda tokens, index, *_: escape(tokens[index].content),
        "fence": _render_fence,
        "image": _render_image,
        "th_open": _open_cell,
        "td_open": _open_cell,
        "heading_open": _open_heading,
        "heading_close": _close_heading,
        "table_open": lambda *_: '<div class="table-box"><table>\n',
        "table_close": lambda *_: "</table></div>\n",
    }
    syntax.extend(markdown)
    autolinks.extend(markdown)
    return markdown


MARKDOWN = _create_parser()
