"""The beginning of a text, up to the limit of a page."""

from django.utils.safestring import SafeString

from agents.engine.text import truncate

from .rendering import render_markdown

MAX_ANSWER_CHARS = 20_000  # characters of an answer on a page
MAX_ANSWER_HTML_CHARS = 100_000
MIN_SHOWN_CHARS = 500


def render_excerpt(text: str, max_chars: int = MAX_ANSWER_CHARS) -> tuple[SafeString, int]:
    """Render the beginning of a text; return the HTML and its number of characters."""
    text = truncate(text, max_chars)
    html = render_markdown(text)
    while len(html) > MAX_ANSWER_HTML_CHARS and len(text) > MIN_SHOWN_CHARS:
        text = truncate(text, len(text) // 2)
        html = render_markdown(text)
    return html, len(text)
