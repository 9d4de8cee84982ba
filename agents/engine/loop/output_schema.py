"""Structured output: instructions for the model, decoding, and rendering as Markdown."""

import json
import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from pydantic import BaseModel, ValidationError

from agents.engine.errors import BadSchema, OutputDecodingFailed
from agents.engine.json_schema import (
    MAX_VIOLATIONS,
    TooManyChecks,
    format_violation,
    is_strict,
    validate_schema,
    violations,
)
from agents.engine.state import replace_surrogates

__all__ = ["BadSchema", "OutputSchema", "table_columns", "is_number", "to_markdown"]

MAX_ANSWER_CHARS = 1_000_000
MAX_DEPTH = 50
MAX_DIGITS = 300
MAX_DECODE_ATTEMPTS = 20
MAX_ROWS = 100
MAX_COLUMNS = 20
MAX_RENDER_DEPTH = 6
EMPTY_CELL = "—"

SCHEMA_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
MAX_WHOLE = 1e15  # larger ones are written with an exponent
MARKUP = re.compile(r"[\\`*\[\]<>|~&]|(?<![^\W_])_|_(?![^\W_])")
LINE_MARK = re.compile(r"^([ \t]*\d*)([#+=.)-])(?=[\s#=-]|$)", re.MULTILINE)

RETRY_ADVICE = "Try again, or choose another model."
TOO_DEEP = f"The answer is nested more than {MAX_DEPTH} levels deep."
TOO_LARGE = "The answer is too large to check against its schema."
INSTRUCTIONS = """\
Now write your answer as JSON that fits this JSON Schema:

{schema}

Write the JSON and nothing else: no words before or after it, no code fence. Use what this \
conversation says and invent nothing. Texts in it are in the language of the question. \
No tools can be used any more."""


class OutputSchema:
    """The schema of an answer: a JSON Schema or a pydantic model."""

    def __init__(
        self, schema: Mapping[str, Any] | type[BaseModel], *, name: str = "output"
    ) -> None:
        if not SCHEMA_NAME.fullmatch(name):
            raise BadSchema(
                f"Invalid schema name {name!r}. Use 1–64 letters, digits, '_' or '-'."
            )
        self.name = name
        self.model: type[BaseModel] | None = None
        if isinstance(schema, type):
            self.model, self.schema = schema, schema.model_json_schema()
        else:
            self.schema = validate_schema(schema)

    def response_format(self) -> dict[str, Any] | None:
        """The schema for the provider to enforce; None unless it is an object."""
        if self.schema.get("type") != "object":
            return None
        json_schema = {
            "name": self.name,
            "schema": self.schema,
            "strict": is_strict(self.schema),
        }
        return {"type": "json_schema", "json_schema": json_schema}

    def instructions(self) -> str:
        """Instructions for models whose provider doesn't enforce the schema."""
        return INSTRUCTIONS.format(schema=json.dumps(self.schema, ensure_ascii=False))

    def decode(self, text: str) -> Any:
        """Decode the answer; raise OutputDecodingFailed with a message the model can act on."""
        try:
            value = _sanitize(_parse_json(text, self._openings), MAX_DEPTH)
            return self._validate(value)
        except RecursionError:
            raise _decoding_error(TOO_DEEP) from None
        except TooManyChecks:
            raise _decoding_error(TOO_LARGE) from None

    def accepts(self, value: Any) -> bool:
        """Whether a changed value still matches the schema."""
        try:
            self._validate(value)
        except (OutputDecodingFailed, RecursionError, TooManyChecks):
            return False
        return True

    @property
    def _openings(self) -> str:
        """Characters that can start the JSON if it is surrounded by text."""
        return {"object": "{", "array": "["}.get(str(self.schema.get("type")), "{[")

    def _validate(self, value: Any) -> Any:
        if self.model is not None:
            return _validate_model(self.model, value)
        if found := violations(self.schema, value):
            raise _schema_error(found)
        return value


def to_markdown(value: Any) -> str:
    """Render the value as Markdown: uniform objects as a table, everything else as a list."""
    return (
        value if isinstance(value, str) else "\n".join(_render_block(value, MAX_RENDER_DEPTH))
    )


def table_columns(value: Any) -> list[str]:
    """Return the columns of a list of flat objects, or none if it isn't a table."""
    if not isinstance(value, list) or not value:
        return []
    if not all(isinstance(row, dict) and row and _is_flat(row.values()) for row in value):
        return []
    names = list(dict.fromkeys(name for row in value for name in row))
    return names if len(names) <= MAX_COLUMNS else []


def write_number(value: float) -> str:
    """Return a number as JSON, without decimals that are zero."""
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < MAX_WHOLE
    return json.dumps(int(value) if is_whole else value)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# Text to data


def _parse_json(text: str, openings: str) -> Any:
    """Return the one JSON value in the text, also in a fence or surrounded by text."""
    if len(text) > MAX_ANSWER_CHARS:
        raise _decoding_error(f"The answer is longer than {MAX_ANSWER_CHARS:,} characters.")
    text = _strip_fence(text.strip().lstrip("\ufeff"))
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        broken = error
    except ValueError as error:
        raise _decoding_error(f"The answer isn't valid JSON: {error}.") from error
    found = _find_json(text, openings)
    if len(found) == 1:
        return found[0]
    raise _decoding_error(_error_message(text, broken, len(found), openings)) from broken


def _strip_fence(text: str) -> str:
    is_fenced = len(text) > 6 and text.startswith("```") and text.endswith("```")
    return text[:-3].partition("\n")[2] if is_fenced else text


def _find_json(text: str, openings: str) -> list[Any]:
    """Return the JSON values in the text, ignoring those inside a broken one."""
    found, at = [], 0
    opening = re.compile(f"[{re.escape(openings)}]")
    for _ in range(MAX_DECODE_ATTEMPTS):
        if (start := opening.search(text, at)) is None:
            break
        try:
            value, at = _DECODER.raw_decode(text, start.start())
            found.append(value)
        except json.JSONDecodeError as error:
            at = max(start.end(), error.pos)
        except ValueError as error:
            raise _decoding_error(f"The answer isn't valid JSON: {error}.") from error
    return found


def _error_message(text: str, error: json.JSONDecodeError, found: int, openings: str) -> str:
    if not text:
        return "The answer is empty."
    if found:
        return f"The answer contains {found} JSON values instead of one."
    if not text.startswith(tuple(openings)):
        return "The answer contains no JSON."
    reason = f"{error.msg} (line {error.lineno}, column {error.colno})"
    return f"The answer isn't valid JSON: {reason}."


def _reject_constant(constant: str) -> None:
    raise ValueError(f"{constant} isn't a JSON number")


def _parse_int(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number has more than {MAX_DIGITS} digits")
    return int(digits)


def _parse_float(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise ValueError("a number is too large")
    return number


# Not strict: models put plain line breaks into strings.
_DECODER = json.JSONDecoder(
    strict=False,
    parse_constant=_reject_constant,
    parse_int=_parse_int,
    parse_float=_parse_float,
)


def _sanitize(value: Any, levels: int) -> Any:
    """Remove characters that can't be stored or sent, and limit the depth."""
    if isinstance(value, str):
        return replace_surrogates(value).replace("\0", "")
    if not isinstance(value, dict | list):
        return value
    if levels == 0:
        raise _decoding_error(TOO_DEEP)
    if isinstance(value, list):
        return [_sanitize(item, levels - 1) for item in value]
    return {_sanitize(key, 0): _sanitize(item, levels - 1) for key, item in value.items()}


def _validate_model(model: type[BaseModel], value: Any) -> Any:
    try:
        # As JSON, because only then does a strict model accept a date as text.
        return model.model_validate_json(json.dumps(value)).model_dump(mode="json")
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        problems = [
            format_violation(each["loc"], each["msg"]) for each in found[:MAX_VIOLATIONS]
        ]
        raise _schema_error(problems) from error


def _schema_error(problems: Sequence[str]) -> OutputDecodingFailed:
    return _decoding_error(f"The answer doesn't match its schema: {'; '.join(problems)}.")


def _decoding_error(sentence: str) -> OutputDecodingFailed:
    return OutputDecodingFailed(sentence, advice=RETRY_ADVICE)


# Data to text


def _render_block(value: Any, levels: int) -> list[str]:
    if names := table_columns(value):
        return _render_table(value, names)
    if not _is_nested(value, levels):
        return _render_inline(value).split("\n")
    if isinstance(value, dict):
        items = [(f"- **{_render_cell(key)}:**", item) for key, item in value.items()]
    else:
        items = [("-", item) for item in value]
    lines = [
        line for mark, item in items[:MAX_ROWS] for line in _render_item(mark, item, levels)
    ]
    return [*lines, *(f"- {more}" for more in _more_line(len(items)))]


def _render_item(mark: str, value: Any, levels: int) -> list[str]:
    """Put nested values below their name, with a blank line before a table."""
    lines = _render_block(value, levels - 1)
    if mark != "-" and (table_columns(value) or _is_nested(value, levels - 1)):
        lines = ["", "", *lines] if table_columns(value) else ["", *lines]
    return [f"{mark} {lines[0]}".rstrip(), *(f"  {line}".rstrip() for line in lines[1:])]


def _is_nested(value: Any, levels: int) -> bool:
    return isinstance(value, dict | list) and bool(value) and levels > 0


def _render_table(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    alignments = [
        "---:" if all(is_number(row.get(n, 0)) for row in rows) else "---" for n in names
    ]
    cells = [
        [_render_cell(row[n]) if n in row else "" for n in names] for row in rows[:MAX_ROWS]
    ]
    lines = [
        _render_row(map(_render_cell, names)),
        _render_row(alignments),
        *map(_render_row, cells),
    ]
    return [*lines, *(line for more in _more_line(len(rows)) for line in ("", more))]


def _render_row(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def _more_line(count: int) -> list[str]:
    return [f"… and {count - MAX_ROWS:,} more"] if count > MAX_ROWS else []


def _render_cell(value: Any) -> str:
    return " ".join(_render_inline(value).split())


def _render_inline(value: Any) -> str:
    if value is None or value in ({}, []):
        return EMPTY_CELL
    if is_number(value):
        text = write_number(value)
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # A line must not start a heading or a list either.
    return LINE_MARK.sub(r"\1\\\2", MARKUP.sub(r"\\\g<0>", text))


def _is_flat(values: Any) -> bool:
    return not any(isinstance(value, dict | list) for value in values)
