"""Reads configuration that was copied from a README, a settings file or a web page.

Such text is JSON with comments, trailing commas or curly quotes, a fragment without its outer
braces, a fenced code block, or the YAML or TOML of another program. Every replacement keeps the
length of the text, so that an error names the line and column people see.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from agents.engine.plans import read_yaml
from agents.tools import foreign_json

from ..config import InvalidServerConfig

MAX_CONFIG_CHARS = 1_000_000

FENCE = re.compile(r"^[ \t]*(```+|~~~+)[^\n]*\n", re.M)
QUOTES = '"\u201c\u201d\u201e\u201f\u2033\uff02'
BLANKS = re.compile("[\ufeff\u00a0\u200b\u200c\u200d\u2060\u2000-\u200a\u202f\u3000]")
TOML_TABLE = re.compile(r"^[ \t]*\[\[?[\w.\"'-]+\]\]?[ \t]*(?:#.*)?\r?$", re.M)
YAML_KEY = re.compile(r"^[\w.$@/-]+:(?:\s|$)", re.M)


def decode(text: str) -> Any:
    """Return the value in the text; raise InvalidServerConfig with the position of an error."""
    if len(text) > MAX_CONFIG_CHARS:
        raise InvalidServerConfig(f"The text is longer than {MAX_CONFIG_CHARS:,} characters.")
    text = _unfence(text)
    start = text.lstrip().lstrip("\ufeff")[:1]
    if start not in ("{", "[", "/", *QUOTES) or (
        start == "[" and TOML_TABLE.match(text.lstrip())
    ):
        if TOML_TABLE.search(text):
            return _decode_toml(text)
        if YAML_KEY.search(text):
            return _decode_yaml(text)
    return decode_json(text)


def decode_json(text: str) -> Any:
    """Return the value of JSON with comments, trailing commas, curly quotes or no braces."""
    plain = normalize_json(text)
    is_fragment = plain.lstrip()[:1] == '"'
    try:
        # The brace goes in front of the text, so only columns of the first line move.
        return foreign_json.loads(f"{{{plain}}}" if is_fragment else plain)
    except json.JSONDecodeError as error:
        column = error.colno - (1 if is_fragment and error.lineno == 1 else 0)
        reason = f"{error.msg} (line {error.lineno}, column {max(column, 1)})"
        raise InvalidServerConfig(f"Invalid JSON: {reason}.") from None
    except RecursionError:
        raise InvalidServerConfig("This is nested too deeply.") from None


def normalize_json(text: str) -> str:
    """Return strict JSON of the same length: no comments, trailing commas or curly quotes."""
    pieces = list(_pieces(text))
    closing = True  # the end of a fragment closes it too
    for index in range(len(pieces) - 1, -1, -1):
        piece = pieces[index]
        if piece == "," and closing:
            pieces[index] = " "
        elif not piece.isspace():
            closing = piece in "}]"
    return "".join(pieces)


def _pieces(text: str) -> Iterator[str]:
    """Yield strings, single characters and blanks; comments become blanks."""
    place = 0
    while place < len(text):
        sign = text[place]
        if sign in QUOTES:
            end = _string_end(text, place)
            yield _plain_string(text[place:end])
            place = end
        elif comment := _comment_end(text, place):
            yield re.sub(r"[^\n]", " ", text[place:comment])
            place = comment
        else:
            yield " " if BLANKS.match(sign) else sign
            place += 1


def _string_end(text: str, start: int) -> int:
    """Return the position after a string; a curly quote ends only what one began."""
    closing = '"' if text[start] == '"' else QUOTES
    place = start + 1
    while place < len(text) and text[place] not in closing and text[place] != "\n":
        place += 2 if text[place] == "\\" else 1
    return min(place + 1, len(text))


def _plain_string(string: str) -> str:
    """Return a string with straight quotes around it."""
    if string[0] == '"':
        return string
    is_closed = len(string) > 1 and string[-1] in QUOTES
    return f'"{string[1:-1]}"' if is_closed else f'"{string[1:]}'


def _comment_end(text: str, place: int) -> int:
    """Return where a comment ends that begins here; 0 if none does."""
    if text.startswith("//", place) or text[place] == "#":
        end = text.find("\n", place)
        return len(text) if end < 0 else end
    if text.startswith("/*", place):
        end = text.find("*/", place + 2)
        return len(text) if end < 0 else end + 2
    return 0


def _unfence(text: str) -> str:
    """Return the content of the first code block, on the lines where it was."""
    begin = FENCE.search(text)
    if begin is None:
        return text
    before = "\n" * text[: begin.end()].count("\n")
    end = re.compile(rf"^[ \t]*{begin[1]}[ \t]*$", re.M).search(text, begin.end())
    # It may have been copied without its end.
    return before + text[begin.end() : end.start() if end else len(text)]


def _decode_toml(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidServerConfig(f"Invalid TOML: {error}.") from None


def _decode_yaml(text: str) -> Any:
    root, problems = read_yaml(text)
    for problem in problems:
        raise InvalidServerConfig(
            f"Invalid YAML (line {problem.line}, column {problem.column}): {problem.message}"
        )
    return root.plain if root else None
