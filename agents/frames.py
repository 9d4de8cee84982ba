"""Frames of a socket: HTML of whole elements, in pieces that every server and browser takes."""

import logging
import re
from collections.abc import Iterator

logger = logging.getLogger(__name__)

# Daphne closes a socket over which it is to send more than 1 MiB at once.
MOST_SENT = 524_288
LONGEST_LETTER = 4  # bytes
TAG = re.compile(r"""<(/?)([a-zA-Z][^\s/>]*)(?:"[^"]*"|'[^']*'|[^'">])*?(/?)>""")
VOID = {"area", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}


def bounded(html: str) -> list[str]:
    """The same elements in frames of at most MOST_SENT bytes.

    One that is longer by itself is left out: whoever makes elements sees to it that none is.
    """
    if len(html) * LONGEST_LETTER <= MOST_SENT or len(html.encode()) <= MOST_SENT:
        return [html]
    frames: list[str] = []
    room = 0
    for element in _elements(html):
        size = len(element.encode())
        if size > MOST_SENT:
            logger.error("An element of %d bytes is not sent: %.80s", size, element)
        elif size > room:
            frames.append(element)
            room = MOST_SENT - size
        else:
            frames[-1] += element
            room -= size
    return frames


def _elements(html: str) -> Iterator[str]:
    """Those at the top; text between them is nothing that a page would show."""
    depth = start = 0
    for tag in TAG.finditer(html):
        closes, name, is_empty = tag.groups()
        if closes:
            depth -= 1
        elif depth == 0:
            start = tag.start()
        if not closes and not is_empty and name.lower() not in VOID:
            depth += 1
        if depth == 0:
            yield html[start : tag.end()]
