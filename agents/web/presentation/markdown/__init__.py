"""Markdown without raw HTML, rendered once or while it is streamed.

The cost is bounded for any text: see `limits` and `streaming`.
"""

from .exact_code import render_exact_json, render_exact_sql
from .excerpts import MAX_ANSWER_CHARS, render_excerpt
from .highlighting import warm
from .invisible_characters import render_exact, reveal_invisible
from .rendering import render_markdown
from .streaming import BoundedMarkdown, StreamingMarkdown

__all__ = [
    "BoundedMarkdown",
    "MAX_ANSWER_CHARS",
    "StreamingMarkdown",
    "render_exact",
    "render_exact_json",
    "render_exact_sql",
    "render_excerpt",
    "render_markdown",
    "reveal_invisible",
    "warm",
]
