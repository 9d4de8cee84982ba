"""Marks a passage in rendered Markdown, by its place in the source."""

import re
from collections.abc import Iterable

from django.utils.safestring import SafeString, mark_safe

from agents.web.presentation.markdown import render_markdown

# From the private use area: neither Markdown nor the sanitizer changes them.
OPEN = "\ue0f0"
CLOSE = "\ue0f1"
ROW = "\ue0f2"
# What a line begins with, if that isn't text: moving into it would change the block.
LINE_START = re.compile(
    r"[ \t]*(?:(?:#{1,6}[ \t]+|[-*+][ \t]+|\d{1,9}[.)][ \t]+|>[ \t]?|\|)[ \t]*)*"
)
# Lines without text: fences, rules and the line below a table's head.
NO_TEXT = re.compile(r"[ \t]*(?:```.*|~~~.*|[-*_ \t]{3,}|\|?[ \t]*:?-{2,}[-:| \t]*|=+)?[ \t]*")
PLACE = ' id="place" tabindex="-1"'
# Words up to 10 characters, dates and numbers up to 18.
SHORT_CELL = re.compile(
    r"<td>(?=(?:<mark[^>]*>)?(?:[^<\d]{1,10}|(?=[^<]*\d)[^<]{1,18})(?:</mark>)?</td>)"
)
SIGNS = re.compile(f"[{OPEN}{CLOSE}{ROW}]")
PIECES = re.compile(r"(<[^>]*>)")


def render_marked(
    text: str, start: int | None, end: int | None, rows: Iterable[int] = ()
) -> SafeString:
    """Render Markdown with the passage from `start` to `end` in <mark> elements.

    The first has the id `place`. Without a passage, or if it has no text, nothing is marked.
    `rows` are where the table rows begin that it is cited for; the first of them is the place.
    """
    text = SIGNS.sub("\ufffd", text)
    if start is None or end is None or not start < end <= len(text):
        return render_markdown(text, top_level=2)
    # Whole lines next: the ends may be inside of a link or other markup.
    lines_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    lines_end = len(text) if line_end < 0 else line_end
    for first, last in ((start, end), (lines_start, lines_end)):
        html = render_markdown(_with_signs(text, first, last, rows), top_level=2)
        if html.count(OPEN) == html.count(CLOSE) == 1 and html.index(OPEN) < html.index(CLOSE):
            return _to_marks(html)
    return render_markdown(text, top_level=2)


def keep_short_cells(html: str) -> SafeString:
    """Mark cells of tables that aren't broken into lines, such as dates."""
    return mark_safe(SHORT_CELL.sub('<td class="short">', html))


def _with_signs(text: str, start: int, end: int, rows: Iterable[int]) -> str:
    passage_start = start
    start = _first_text(text, passage_start, end)
    end = _last_text(text, passage_start, end)
    if start >= end:
        return text
    inside = {_first_text(text, max(row, start), end) for row in rows if row < end}
    signs = {start: OPEN, end: CLOSE}
    signs |= {row: signs.get(row, "") + ROW for row in inside if start <= row < end}
    pieces = []
    last = 0
    for position in sorted(signs):
        pieces += [text[last:position], signs[position]]
        last = position
    return "".join([*pieces, text[last:]])


def _first_text(text: str, start: int, end: int) -> int:
    """Return where the passage's text begins, after marks at the start of a line."""
    while start < end:
        line_start = text.rfind("\n", 0, start) + 1
        line_end = text.find("\n", start)
        line_end = len(text) if line_end < 0 else line_end
        if not NO_TEXT.fullmatch(text, line_start, line_end):
            prefix = LINE_START.match(text, line_start, line_end)
            position = max(start, prefix.end() if prefix else start)
            content = text[position:line_end]
            if content.strip():
                return position + len(content) - len(content.lstrip())
        start = line_end + 1
    return end


def _last_text(text: str, start: int, end: int) -> int:
    """Return where the passage's text ends, before the end of a table row or fence."""
    while start < end:
        line_start = max(text.rfind("\n", 0, end) + 1, 0)
        line_end = text.find("\n", end)
        line_end = len(text) if line_end < 0 else line_end
        content = text[line_start:end].rstrip(" \t|")
        if content and not NO_TEXT.fullmatch(text, line_start, line_end):
            return line_start + len(content)
        end = line_start - 1
    return start


def _to_marks(html: str) -> SafeString:
    """Mark every text between the signs; elements may begin and end in between."""
    html_before, _, following = html.partition(OPEN)
    passage, _, html_after = following.partition(CLOSE)
    pieces: list[str] = []
    has_place = False
    has_rows = ROW in passage
    for piece in PIECES.split(passage):
        is_row = ROW in piece
        plain = piece.replace(ROW, "")
        if plain.startswith("<") or not plain.strip():
            pieces.append(plain)
            continue
        is_place = not has_place and (is_row or not has_rows)
        has_place |= is_place
        class_attribute = ' class="cited-row"' if is_row else ""
        pieces.append(f"<mark{class_attribute}{PLACE if is_place else ''}>{plain}</mark>")
    return mark_safe("".join([html_before, *pieces, html_after]))
