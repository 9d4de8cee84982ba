"""HTML of one element as a format string, for what is rendered too often for a template."""

import re
from collections.abc import Iterable
from html import escape

from django.utils.html import conditional_escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language

from agents.models.types import LazyText

FIELD = re.compile(r"\{(\w+)\}")
# In a frame: the element takes the place of the one with the same ID.
OUT_OF_BAND = mark_safe(' hx-swap-oob="true"')


class Element:
    """HTML with `{names}` of values and labels; whatever isn't HTML already is escaped.

    Labels are the same for all readers of a language, so they are filled in once.
    """

    def __init__(self, markup: str, **labels: LazyText) -> None:
        self._markup = markup
        self._labels = labels
        # By language: the pieces of the markup, and which of them are values.
        self._split: dict[str | None, tuple[list[str], list[tuple[int, str]]]] = {}

    def __call__(self, **values: object) -> SafeString:
        language = get_language() if self._labels else None
        if language not in self._split:
            self._split[language] = self._split_markup()
        # Joined, because `str.format` parses the markup each time.
        markup, fields = self._split[language]
        pieces = markup.copy()
        for index, name in fields:
            value = values[name]
            if isinstance(value, SafeString):
                pieces[index] = value
            elif value == "":
                pieces[index] = ""
            else:  # as `conditional_escape`, which takes three times as long
                pieces[index] = escape(str(value))
        return SafeString("".join(pieces))

    def _split_markup(self) -> tuple[list[str], list[tuple[int, str]]]:
        pieces = FIELD.split(self._markup)  # text and names in turn
        fields = []
        for index in range(1, len(pieces), 2):
            name = pieces[index]
            if name in self._labels:
                pieces[index] = conditional_escape(self._labels[name])
            else:
                fields.append((index, name))
        return pieces, fields


def join(pieces: Iterable[str], separator: str = "") -> SafeString:
    """Join elements and texts; texts are escaped."""
    return SafeString(
        separator.join(
            piece if isinstance(piece, SafeString) else escape(piece) for piece in pieces
        )
    )
