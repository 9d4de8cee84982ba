"""Socket frames: HTML of whole elements, in sizes that every server and browser accepts."""

import logging
import re
from collections.abc import Iterator

from django.utils import translation
from django.utils.html import escape
from django.utils.translation import gettext as _

logger = logging.getLogger(__name__)

# Daphne closes a socket when a frame exceeds 1 MiB.
MAX_FRAME_BYTES = 524_288
MAX_TAG_CHARS = 2_000  # characters of a tag
MAX_CHAR_BYTES = 4  # bytes
TAG = re.compile(r"""<(/?)([a-zA-Z][^\s/>]*)(?:"[^"]*"|'[^']*'|[^'">])*?(/?)>""")
VOID_TAGS = {"area", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}


def split_frames(html: str, language: str | None = None) -> list[str]:
    """Split elements into frames of at most MAX_FRAME_BYTES.

    Callers make sure that no single element is longer. One that is gets replaced by a notice in
    the page's language.
    """
    if len(html) * MAX_CHAR_BYTES <= MAX_FRAME_BYTES or len(html.encode()) <= MAX_FRAME_BYTES:
        return [html]
    frames: list[str] = []
    free_bytes = 0
    for element in _top_elements(html):
        size = len(element.encode())
        if size > MAX_FRAME_BYTES:
            logger.error("An element of %d bytes is too large to send: %.80s", size, element)
            element = _too_long_notice(element, language)
            size = len(element.encode())
        if not element:
            continue
        if size > free_bytes:
            frames.append(element)
            free_bytes = MAX_FRAME_BYTES - size
        else:
            frames[-1] += element
            free_bytes -= size
    return frames


def _too_long_notice(element: str, language: str | None) -> str:
    """Return the element with a notice, so that the page doesn't keep its old content."""
    opening = TAG.match(element)
    if opening is None or len(opening[0]) > MAX_TAG_CHARS:
        return ""
    with translation.override(language or translation.get_language()):
        notice = _("This part is too long to display here. Open the trace to see all of it.")
    return f'{opening[0]}<p class="too-long">{escape(notice)}</p></{opening[2]}>'


def _top_elements(html: str) -> Iterator[str]:
    """Yield the top-level elements; text between them isn't displayed."""
    depth = start = 0
    for tag in TAG.finditer(html):
        closes, name, is_empty = tag.groups()
        if closes:
            depth -= 1
        elif depth == 0:
            start = tag.start()
        if not closes and not is_empty and name.lower() not in VOID_TAGS:
            depth += 1
        if depth == 0:
            yield html[start : tag.end()]
