"""Secrets that are planted, where each of them belongs, and the search for the others.

A place is said in words, such as `database chat_message.text` or `page stranger /traces/`.
None of the secrets looks like one: it is found out by what is known, or not at all.
"""

import base64
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import quote

LEAST = 8  # of a form that is searched for
SAMPLE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentinel:
    """A secret, and patterns of the places where it may be."""

    name: str
    value: str
    belongs: tuple[str, ...] = ()

    def is_at_home(self, place: str) -> bool:
        return any(fnmatchcase(place, pattern) for pattern in self.belongs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was seen at a place."""

    place: str
    text: str = field(repr=False)


def leaks(sentinels: Iterable[Sentinel], everything: Iterable[Found]) -> list[str]:
    """Each secret that is where it does not belong, with a little of what stands around it."""
    sought = [(each, form) for each in sentinels for form in forms(each.value)]
    return [
        f"{sentinel.name} in {found.place}: {_around(found.text, form)}"
        for found in everything
        for sentinel, form in sought
        if form in found.text and not sentinel.is_at_home(found.place)
    ]


def forms(secret: str) -> Iterator[str]:
    """As it is, as an address has it, in hexadecimal, and in Base64 wherever it begins."""
    data = secret.encode()
    yield from {secret, quote(secret, safe=""), data.hex()}
    for shift in range(3):
        text = base64.b64encode(b" " * shift + data).decode()
        # The signs at its two ends depend on what stands beside it.
        inner = text[-(-shift * 4 // 3) : len(text) - 4]
        if len(inner) >= LEAST:
            yield from {inner, inner.replace("+", "-").replace("/", "_")}


def database(path: Path) -> Iterator[Found]:
    """Every value of every column of every table."""
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
