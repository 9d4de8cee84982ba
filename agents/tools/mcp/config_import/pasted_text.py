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
from agents.engine.sentences import Sentence as _
from agents.tools import foreign_json

from ..configuration.config import InvalidServerConfig

MAX_CONFIG_CHARS = 1_000_000

FENCE = re.compile(r"^[ \t]*(```+|~~~+)[^\n]*\n", re.M)
QUOTES = '"\u201c\u201d\u201e\u201f\u2033\uff02'
BLANKS = re.compile("[\ufeff\u00a0\u200b\u200c\u200d\u2060\u2000-\u200a\u202f\u3000]")
TOML_TABLE = re.compile(r"^[ \t]*\[\[?[\w.\"'-]+\]\]?[ \t]*(?:#.*)?\r?$", re.M)
YAML_KEY = re.compile(r"^[\w.$@/-]+:(?:\s|$)", re.M)


def decode(text: str) -> Any:
    """Return the value in the text; raise InvalidServerConfig with the position of an error."""
    if len(text) > MAX_CONFIG_CHARS:
        raise InvalidServerConfig(
            _("The text is longer than %(limit)s characters.", limit=f"{MAX_CONFIG_CHARS:,}")
        )
    if fence := FENCE.search(text):
        # The first code block, on the lines where it was. Its end may not have been copied.
        end = re.compile(rf"^[ \t]*{fence[1]}[ \t]*$", re.M).search(text, fence.end())
        newlines = "\n" * text[: fence.end()].count("\n")
        text = newlines + text[fence.end() : end.start() if end else len(text)]
    start = text.lstrip().lstrip("\ufeff")[:1]
    if start not in ("{", "[", "/", *QUOTES) or (
        start == "[" and TOML_TABLE.match(text.lstrip())
    ):
        if TOML_TABLE.search(text):
            try:
                return tomllib.loads(text)
            except (ValueError, RecursionError) as error:
                raise InvalidServerConfig(_("Invalid TOML: %(words)s.", words=error)) from None
        if YAML_KEY.search(text):
            root, problems = read_yaml(text)
            for problem in problems:
                raise InvalidServerConfig(
                    _(
                        "Invalid YAML (line %(line)s, column %(column)s): %(sentence)s",
                        line=problem.line,
                        column=problem.column,
                        sentence=problem.message,
                    )
                )
            return root.plain if root else None
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
        reason = _(
            "%(reason)s (line %(line)s, column %(column)s)",
            reason=error.msg,
            line=error.lineno,
            column=max(column, 1),
        )
        raise InvalidServerConfig(_("Invalid JSON: %(reason)s.", reason=reason)) from None
    except RecursionError:
        raise InvalidServerConfig(_("This is nested too deeply.")) from None


def normalize_json(text: str) -> str:
    """Return strict JSON of the same length: no comments, trailing commas or curly quotes."""
    tokens = list(_tokens(text))
    closing = True  # the end of a fragment closes it too
    for index in range(len(tokens) - 1, -1, -1):
        token = tokens[index]
        if token == "," and closing:
            tokens[index] = " "
        elif not token.isspace():
            closing = token in "}]"
    return "".join(tokens)


def _tokens(text: str) -> Iterator[str]:
    """Yield strings, single characters and blanks; comments become blanks."""
    start = 0
    while start < len(text):
        char = text[start]
        if char in QUOTES:
            # A curly quote ends only what one began.
            closing = '"' if char == '"' else QUOTES
            end = start + 1
            while end < len(text) and text[end] not in closing and text[end] != "\n":
                end += 2 if text[end] == "\\" else 1
            end = min(end + 1, len(text))
            string = text[start:end]
            if char == '"':
                yield string
            elif len(string) > 1 and string[-1] in QUOTES:
                yield f'"{string[1:-1]}"'
            else:
                yield f'"{string[1:]}'
        elif text.startswith("//", start) or char == "#":
            newline = text.find("\n", start)
            end = len(text) if newline < 0 else newline
            yield " " * (end - start)
        elif text.startswith("/*", start):
            closing_mark = text.find("*/", start + 2)
            end = len(text) if closing_mark < 0 else closing_mark + 2
            yield re.sub(r"[^\n]", " ", text[start:end])
        else:
            end = start + 1
            yield " " if BLANKS.match(char) else char
        start = end
