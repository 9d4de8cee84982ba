"""Makes texts, ids and events storable in every database."""

import re
from dataclasses import replace
from typing import Any
from unicodedata import normalize

import orjson

from agents.engine.events import DELTA_TYPES, Event
from agents.engine.sentences import MARK, Sentence

# Without NUL and the mark of sentences.
PLAIN_ASCII = re.compile("[\x01-\x1d\x1f-\x7f]*")
REMOVED_ESCAPES = (b"\\u0000", b"\\u001e")


def sanitize_text(text: str) -> str:
    """Remove NUL and replace lone surrogates, which PostgreSQL rejects."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def sanitize_line(text: str) -> str:
    """Return a text that is typed on one line, with single spaces."""
    return " ".join(sanitize_text(text).split())


def visible_name(text: str) -> str:
    """Return a file's name or a title without invisible characters.

    Some turn the direction of writing, so that gpj.exe reads as exe.jpg.
    """
    plain = "".join(c if c.isprintable() else " " for c in sanitize_text(text))
    return " ".join(plain.split())


def fold_name(name: str) -> str:
    """Return what names have in common that differ only in case or in the form of accents."""
    return normalize("NFC", normalize("NFC", name).casefold())


def parse_id(text: object) -> int | None:
    """Return a row's id from a form or an address; None if no row can have it."""
    is_id = isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 19
    return int(text) if is_id else None  # type: ignore[call-overload]  # it is a text


def sanitize_event(event: Event) -> Event:
    """Remove NUL and lone surrogates, which PostgreSQL rejects, and the mark of sentences."""
    if event.type in DELTA_TYPES and PLAIN_ASCII.fullmatch(event.data["content"]):
        return event
    try:
        text = orjson.dumps(event.data)
        is_clean = not any(escape in text for escape in REMOVED_ESCAPES)
    except TypeError:  # it has surrogates or values that only a slower encoder knows
        is_clean = False
    return event if is_clean else replace(event, data=sanitize_value(event.data))


def sanitize_value(value: Any) -> Any:
    """Replace what no database stores, and the mark of sentences, in all texts of a value."""
    if isinstance(value, Sentence):
        return value.map(sanitize_value)
    if isinstance(value, str):
        text = value.replace("\0", "�").replace(MARK, "�")
        return text.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {sanitize_value(key): sanitize_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [sanitize_value(item) for item in value]
    return value
