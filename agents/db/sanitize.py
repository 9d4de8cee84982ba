"""Makes texts, ids and events storable in every database."""

import json
import re
from dataclasses import replace
from typing import Any
from unicodedata import normalize

from agents.engine.events import DELTA_TYPES, Event

ASCII_TEXT = re.compile("[\x01-\x7f]*")
NUL_ESCAPE = "\\u0000"


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
    """Remove NUL and lone surrogates, which PostgreSQL rejects."""
    if event.type in DELTA_TYPES and ASCII_TEXT.fullmatch(event.data["content"]):
        return event
    text = json.dumps(event.data, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        event = replace(event, data=json.loads(text.encode(errors="replace")))
    return replace(event, data=_replace_nul(event.data)) if NUL_ESCAPE in text else event


def _replace_nul(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "�")
    if isinstance(value, dict):
        return {_replace_nul(key): _replace_nul(item) for key, item in value.items()}
    return [_replace_nul(item) for item in value] if isinstance(value, list) else value
