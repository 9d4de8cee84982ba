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
from agents.engine.sentences import Sentence as _
from agents.engine.sentences import joined
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

RETRY_ADVICE = _("Try again, or choose another model.")
TOO_DEEP = _("The answer is nested more than %(levels)s levels deep.", levels=MAX_DEPTH)
TOO_LARGE = _("The answer is too large to check against its schema.")
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
                _(
                    "Invalid schema name %(name)s. Use 1–64 letters, digits, '_' or '-'.",
                    name=repr(name),
                )
            )
        self.name = name
        self.model: type[BaseModel] | None = None
        if isinstance(schema, type):
            self.model = schema
            self.schema = schema.model_json_schema()
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
        # What can start the JSON if it is surrounded by text.
        openings = {"object": "{", "array": "["}.get(str(self.schema.get("type")), "{[")
        try:
            value = _sanitize(_parse_json(text, openings), MAX_DEPTH)
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

    def _validate(self, value: Any) -> Any:
        if self.model is None:
            if problems := violations(self.schema, value):
                raise _schema_error(problems)
            return value
        try:
            # As JSON, because only then does a strict model accept a date as text.
            return self.model.model_validate_json(json.dumps(value)).model_dump(mode="json")
        except ValidationError as error:
            errors = error.errors(include_url=False, include_input=False, include_context=False)
            problems = [format_violation(e["loc"], e["msg"]) for e in errors[:MAX_VIOLATIONS]]
            raise _schema_error(problems) from error


def to_markdown(value: Any) -> str:
    """Render the value as Markdown: uniform objects as a table, everything else as a list."""
    return (
        value if isinstance(value, str) else "\n".join(_render_block(value, MAX_RENDER_DEPTH))
    )


def table_columns(value: Any) -> list[str]:
    """Return the columns of a list of flat objects, or none if it isn't a table."""
    if not isinstance(value, list) or not value:
        return []
    if not all(isinstance(row, dict) and row for row in value):
        return []
    if any(isinstance(cell, dict | list) for row in value for cell in row.values()):
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
        raise _decoding_error(
            _("The answer is longer than %(limit)s characters.", limit=f"{MAX_ANSWER_CHARS:,}")
        )
    text = text.strip().lstrip("\ufeff")
    if len(text) > 6 and text.startswith("```") and text.endswith("```"):
        text = text[:-3].partition("\n")[2]
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        broken = error
    except ValueError as error:
        raise _decoding_error(
            _("The answer isn't valid JSON: %(reason)s.", reason=error)
        ) from error
    values = _find_json(text, openings)
    if len(values) == 1:
        return values[0]
    if not text:
        message = _("The answer is empty.")
    elif values:
        count = len(values)
        message = _("The answer contains %(count)s JSON values instead of one.", count=count)
    elif not text.startswith(tuple(openings)):
        message = _("The answer contains no JSON.")
    else:
        reason = _(
            "%(reason)s (line %(line)s, column %(column)s)",
            reason=broken.msg,
            line=broken.lineno,
            column=broken.colno,
        )
        message = _("The answer isn't valid JSON: %(reason)s.", reason=reason)
    raise _decoding_error(message) from broken


def _find_json(text: str, openings: str) -> list[Any]:
    """Return the JSON values in the text, ignoring those inside a broken one."""
    values = []
    position = 0
    opening = re.compile(f"[{re.escape(openings)}]")
    for _attempt in range(MAX_DECODE_ATTEMPTS):
        if (start := opening.search(text, position)) is None:
            break
        try:
            value, position = _DECODER.raw_decode(text, start.start())
            values.append(value)
        except json.JSONDecodeError as error:
            position = max(start.end(), error.pos)
        except ValueError as error:
            raise _decoding_error(
                _("The answer isn't valid JSON: %(reason)s.", reason=error)
            ) from error
    return values


def _reject_constant(constant: str) -> None:
    raise ValueError(_("%(constant)s isn't a JSON number", constant=constant))


def _parse_int(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(_("a number has more than %(limit)s digits", limit=MAX_DIGITS))
    return int(digits)


def _parse_float(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise ValueError(_("a number is too large"))
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


def _schema_error(problems: Sequence[str]) -> OutputDecodingFailed:
    return _decoding_error(
        _("The answer doesn't match its schema: %(problems)s.", problems=joined("; ", problems))
    )


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
    lines = []
    for mark, item in items[:MAX_ROWS]:
        block = _render_block(item, levels - 1)
        # Nested values are below their name, with a blank line before a table.
        if mark != "-" and table_columns(item):
            block = ["", "", *block]
        elif mark != "-" and _is_nested(item, levels - 1):
            block = ["", *block]
        lines.append(f"{mark} {block[0]}".rstrip())
        lines += [f"  {line}".rstrip() for line in block[1:]]
    if len(items) > MAX_ROWS:
        lines.append(f"- {_left_out_rows(items)}")
    return lines


def _is_nested(value: Any, levels: int) -> bool:
    return isinstance(value, dict | list) and bool(value) and levels > 0


def _render_table(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    alignments = [
        "---:" if all(is_number(row.get(n, 0)) for row in rows) else "---" for n in names
    ]
    cells = [
        [_render_cell(row[n]) if n in row else "" for n in names] for row in rows[:MAX_ROWS]
    ]
    table = [list(map(_render_cell, names)), alignments, *cells]
    lines = [f"| {' | '.join(row)} |" for row in table]
    if len(rows) > MAX_ROWS:
        lines += ["", _left_out_rows(rows)]
    return lines


def _left_out_rows(rows: Sequence[Any]) -> str:
    return f"… and {len(rows) - MAX_ROWS:,} more"


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
