"""Planted secrets, where each of them belongs, and the search for leaks.

A place is a text such as `database chat_message.text` or `page stranger /traces/`. None of the
secrets looks like one, so only a known value can be masked.
"""

import base64
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import quote

LEAST = 8  # minimum length of a searched form
SAMPLE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentinel:
    """A secret, and patterns of the places where it belongs."""

    name: str
    value: str
    belongs: tuple[str, ...] = ()

    def is_at_home(self, place: str) -> bool:
        return any(fnmatchcase(place, pattern) for pattern in self.belongs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was found at a place."""

    place: str
    text: str = field(repr=False)


def leaks(sentinels: Iterable[Sentinel], everything: Iterable[Found]) -> list[str]:
    """Return each secret found where it doesn't belong, with some context."""
    sought = [(each, form) for each in sentinels for form in forms(each.value)]
    return [
        f"{sentinel.name} in {found.place}: {_around(found.text, form)}"
        for found in everything
        for sentinel, form in sought
        if form in found.text and not sentinel.is_at_home(found.place)
    ]


def forms(secret: str) -> Iterator[str]:
    """Yield the secret as it is, URL-encoded, in hexadecimal, and in Base64 at any offset."""
    data = secret.encode()
    yield from {secret, quote(secret, safe=""), data.hex()}
    for shift in range(3):
        text = base64.b64encode(b" " * shift + data).decode()
        # The characters at both ends depend on what is next to it.
        inner = text[-(-shift * 4 // 3) : len(text) - 4]
        if len(inner) >= LEAST:
            yield from {inner, inner.replace("+", "-").replace("/", "_")}


def database(path: Path) -> Iterator[Found]:
    """Yield every value of every column of every table."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as opened:
        opened.text_factory = lambda data: data.decode(errors="replace")
        names = [
            n for (n,) in opened.execute("SELECT name FROM sqlite_master WHERE type='table'")
        ]
        for table in names:
            rows = opened.execute(f'SELECT * FROM "{table}"')
            columns = [about[0] for about in rows.description]
            for row in rows:
                yield from _values(table, columns, row)


def _values(table: str, columns: list[str], row: tuple) -> Iterator[Found]:
    for column, value in zip(columns, row, strict=True):
        if isinstance(value, bytes):
            value = value.decode(errors="replace")
        if isinstance(value, str):
            yield Found(place=f"database {table}.{column}", text=value)


def _around(text: str, form: str) -> str:
    at = text.index(form)
    return repr(text[max(0, at - SAMPLE) : at + len(form) + SAMPLE])
