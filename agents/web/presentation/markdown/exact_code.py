"""Code that someone approves: highlighted, with every character of it, none invisible."""

from collections.abc import Iterable, Iterator
from typing import Any

from django.utils.safestring import SafeString
from pygments import format as format_tokens
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.token import Keyword, Name, Punctuation

from .highlighting import MAX_HIGHLIGHTED_CHARS
from .invisible_characters import mark_invisible, render_exact

# A query on one line may be longer than any line of code in an answer.
MAX_QUERY_CHARS = 4_000
CLAUSES = {
    *("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "OFFSET"),
    *("UNION", "INTERSECT", "EXCEPT", "JOIN", "VALUES", "SET", "RETURNING"),
}
JOINS = {"LEFT", "RIGHT", "FULL", "INNER", "CROSS", "NATURAL", "OUTER"}
# Words after which the next one doesn't start a clause: DELETE FROM, IS DISTINCT FROM.
CONTINUED = {"DELETE", "DISTINCT", "UPDATE", *JOINS}
INDENT = "  "

CodeToken = tuple[Any, str]  # Pygments' type of the token and its text


def render_exact_json(text: str) -> SafeString:
    """Render formatted JSON."""
    if len(text) > MAX_HIGHLIGHTED_CHARS:
        return render_exact(text)
    return _render(_tokens(text, "json"))


def render_exact_sql(text: str) -> SafeString:
    """Render a query, with its clauses on lines of their own if it is on one line."""
    if len(text) > MAX_QUERY_CHARS:
        return render_exact(text)
    tokens = _tokens(text, "sql")
    return _render(tokens if "\n" in text else _break_lines(tokens))


def _tokens(text: str, language: str) -> list[CodeToken]:
    # Not `get_tokens`, which changes line ends and drops a byte order mark.
    tokens = get_lexer_by_name(language).get_tokens_unprocessed(text)
    return [
        # In this lexer a column can't be named c.
        (Name if kind is Keyword and len(value) == 1 else kind, value)
        for _position, kind, value in tokens
    ]


def _render(tokens: Iterable[CodeToken]) -> SafeString:
    html = format_tokens(tokens, HtmlFormatter(nowrap=True))
    return mark_invisible(html.removesuffix("\n"))


def _break_lines(tokens: list[CodeToken]) -> Iterator[CodeToken]:
    """Yield the tokens with a line break instead of the space before each clause.

    A subquery is indented; other parentheses stay on their line.
    """
    words = [value.upper() for _kind, value in tokens if value.strip()]
    position = 0  # of the next word
    is_query = [True]  # the parentheses around a token, and whether each has a query
    for kind, value in tokens:
        previous = words[position - 1] if position else ""
        following, after = [*words[position : position + 2], "", ""][:2]
        if value.strip():
            position += 1
            if kind is Punctuation and value == "(":
                is_query.append(after == "SELECT")
            elif kind is Punctuation and value == ")" and len(is_query) > 1:
                is_query.pop()
        elif not value.strip(" \t") and is_query[-1] and previous not in {"", "(", *CONTINUED}:
            is_join = following in JOINS and after in {"JOIN", "OUTER"}
            if following in CLAUSES or is_join:
                value = "\n" + INDENT * (len(is_query) - 1)
        yield kind, value
