"""A chat as it is imported, independent of the product it comes from."""

import re
from collections.abc import Sized
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from math import isfinite
from typing import Any

MAX_MESSAGES = 20_000  # per chat
MAX_TEXT_CHARS = 1_000_000  # per message
MAX_NOTE_CHARS = 100_000
MAX_NOTES = 200  # per answer
# What a chat becomes: answers above a fork are repeated in each of its branches.
MAX_CHAT_CHARS = 64_000_000
MAX_CHAT_NOTES = 50_000
CUT_MARK = "…"
FIRST_YEAR = 1970  # of a message
# Powers of ten of seconds, milliseconds, microseconds and nanoseconds since 1970.
EPOCH_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3), (0.0, 1.0))


class Problem(StrEnum):
    """Why a chat isn't imported; the page has a sentence for each."""

    BAD_ZIP = "bad_zip"
    BROKEN = "broken"
    CRASHED = "crashed"
    EMPTY = "empty"
    FILE_GONE = "file_gone"
    NO_CHATS = "no_chats"
    NOT_A_CHAT = "not_a_chat"
    NOT_JSON = "not_json"
    OLD = "old"
    TOO_DEEP = "too_deep"
    TOO_LARGE = "too_large"
    TOO_MANY_CHATS = "too_many_chats"
    TOO_MANY_FILES = "too_many_files"
    TOO_MANY_MESSAGES = "too_many_messages"
    TOO_MUCH = "too_much"
    UNEXPECTED = "unexpected"


class NotImportable(Exception):
    """Raised when a chat can't be imported; the others still are."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem


class LimitExceeded(Exception):
    """Raised when an upload is too large to be read any further."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem


@dataclass(slots=True, kw_only=True)
class Node:
    """One entry of the source's tree, before questions and answers are paired.

    A node without a role is skipped, and what follows it is attached to what precedes it.
    """

    id: str
    parent: str | None
    role: str = ""  # "user" or "assistant"
    text: str = ""
    notes: list[str] = field(default_factory=list)  # thoughts and tool use
    model: str = ""
    error: str = ""
    created_at: datetime | None = None


@dataclass(slots=True, kw_only=True)
class Answer:
    text: str
    notes: list[str]
    model: str
    error: str
    created_at: datetime


@dataclass(slots=True, kw_only=True)
class Turn:
    """A question with its answer; `parent` is the place of the turn before it."""

    parent: int | None
    text: str
    created_at: datetime
    answer: Answer | None


@dataclass(slots=True, kw_only=True)
class SourceChat:
    """A chat with its nodes, as one of the formats reads it."""

    source: str
    original_id: str
    title: str
    nodes: list[Node]
    current: str | None = None  # the node at the end of the visible branch
    agent: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None
    is_archived: bool = False
    is_pinned: bool = False


def check_count(messages: Sized) -> None:
    """Raise NotImportable if a chat has too many messages, before they are all copied."""
    if len(messages) > MAX_MESSAGES:
        raise NotImportable(Problem.TOO_MANY_MESSAGES)


def text_of(value: Any) -> str:
    """Return the value if it is text."""
    return value if isinstance(value, str) else ""


def dict_of(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def id_of(value: Any) -> str:
    """Return an id as text; numbers occur, too."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def parse_time(value: Any) -> datetime | None:
    """Return a time given as ISO 8601 or as a number since 1970; None if it is neither."""
    try:
        if isinstance(value, str):
            time = datetime.fromisoformat(value)
            time = time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC)
            # Pages can't display the year 1 in every time zone.
            return time if time.year >= FIRST_YEAR else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if not isfinite(value) or value <= 0:
            return None
        unit = next(unit for minimum, unit in EPOCH_UNITS if value >= minimum)
        return datetime.fromtimestamp(value / unit, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def collect_text(value: Any) -> str:
    """Return all text in a value of unknown shape, in its order."""
    texts: list[str] = []
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, list):
            stack += reversed(item)
        elif isinstance(item, dict):
            keys = [key for key in reversed(item) if key not in {"content_type", "type"}]
            stack += [item[key] for key in keys]
    return "\n".join(text for text in texts if text.strip())


def with_files(text: str, files: list[Any], key: str) -> str:
    """Return a text with the names of its files, whose content isn't in an export."""
    names = [text_of(dict_of(file).get(key)) for file in files]
    return "\n".join(filter(None, [text, *(f"[file: {name}]" for name in names if name)]))


def code_block(text: str, language: str = "") -> str:
    """Return a Markdown code block with a fence longer than any in the text."""
    longest = max(map(len, re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def cut(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else f"{text[:max_chars]}{CUT_MARK}"
