"""HTML of one element as a format string, for what is rendered too often for a template."""

from collections.abc import Iterable
from html import escape

from django.utils.html import conditional_escape
from django.utils.safestring import SafeString
from django.utils.translation import get_language

from agents.models.types import LazyText


class Element:
    """HTML with `{names}` of values and labels; whatever isn't HTML already is escaped.

    Labels are the same for all readers of a language, so they are translated once.
    """

    def __init__(self, markup: str, **labels: LazyText) -> None:
        self._markup = markup
        self._labels = labels
        self._translated: dict[str | None, dict[str, SafeString]] = {}

    def __call__(self, **values: object) -> SafeString:
        for name, value in values.items():
            # As `conditional_escape`, which takes three times as long.
            if not isinstance(value, SafeString) and value != "":
                values[name] = escape(str(value))
        if self._labels:
            language = get_language()
            if language not in self._translated:
                self._translated[language] = {
                    name: conditional_escape(label) for name, label in self._labels.items()
                }
            values |= self._translated[language]
        return SafeString(self._markup.format_map(values))


def join(pieces: Iterable[str], separator: str = "") -> SafeString:
    """Join elements and texts; texts are escaped."""
    return SafeString(
        separator.join(
            piece if isinstance(piece, SafeString) else escape(piece) for piece in pieces
        )
    )
