"""Highlights code, where its size and shape allow it."""

import re

from django.utils.html import escape
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

MAX_HIGHLIGHTED_CHARS = 20_000
# Highlighting uses patterns that are quadratic on text unlike any code.
MAX_CODE_LINE_CHARS = 300
RUN_OF_WORDS = re.compile(r"(?:[\w.$<>\[\]?]++\s++){40}")
LANGUAGES = {
    *("bash", "c", "c#", "c++", "console", "cpp", "cs", "csharp", "css", "dart", "diff"),
    *("docker", "dockerfile", "elixir", "ex", "go", "golang", "graphql", "haskell", "hs"),
    *("html", "ini", "java", "javascript", "js", "json", "jsx", "kotlin", "kt", "latex"),
    *("lua", "make", "makefile", "markdown", "md", "nginx", "perl", "php", "pl"),
    *("powershell", "ps1", "py", "python", "python3", "r", "rb", "rs", "ruby", "rust"),
    *("scala", "scss", "sh", "shell", "sql", "svg", "swift", "tex", "toml", "ts", "tsx"),
    *("typescript", "xml", "yaml", "yml", "zsh"),
}
LEXERS = {"svg": "xml"}  # where the name of the language isn't that of its lexer
MAX_CODE_HTML_CHARS = (
    200_000  # characters of HTML: in dense code every character may have a tag
)


def looks_like_code(text: str) -> bool:
    longest = max(map(len, text.split("\n")), default=0)
    return longest <= MAX_CODE_LINE_CHARS and RUN_OF_WORDS.search(text) is None


def highlight_code(code: str, language: str) -> str:
    try:
        lexer = get_lexer_by_name(LEXERS.get(language, language))
    except ClassNotFound:
        return escape(code)
    html = highlight(code, lexer, HtmlFormatter(nowrap=True))
    return html if len(html) <= MAX_CODE_HTML_CHARS else escape(code)


def warm() -> None:
    """Load the lexers, each of which takes up to 0.1 s on first use."""
    for language in sorted(LANGUAGES):
        highlight_code("1\n", language)
