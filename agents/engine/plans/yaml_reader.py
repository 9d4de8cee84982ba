"""Reads YAML or JSON into values with positions.

It only supports what plans need: text, numbers, true, false, null, lists and mappings. Aliases
are never expanded, so the result is never larger than the input.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

MAX_CHARS = 1_000_000
MAX_DEPTH = 40
MAX_VALUES = 100_000
MAX_DIGITS = 30
MAX_PROBLEMS = 100

LITERALS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
INTEGER = re.compile(r"[-+]?[0-9]+")
NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
# JSON's escape for characters beyond the first 65,536; YAML has none.
SURROGATE_PAIR = re.compile(r"\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})", re.IGNORECASE)
LONE_SURROGATES = re.compile("[\ud800-\udfff]")
UNSTORABLE = re.compile("[\0\ud800-\udfff]")
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

ValuePath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanProblem:
    """A problem and its position: a line, or a path to something missing."""

    message: str
    line: int = 0
    column: int = 0
    path: ValuePath = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedValue:
    """A value with its position.

    Lists and mappings contain others; `names` has their keys' positions.
    """

    line: int
    column: int
    value: Any
    text: str = ""
    names: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def plain(self) -> Any:
        if isinstance(self.value, dict):
            return {name: one.plain for name, one in self.value.items()}
        if isinstance(self.value, list):
            return [one.plain for one in self.value]
        return self.value

    def place(self, path: ValuePath) -> tuple[int, int]:
        """Return the position of this path, or of its nearest existing parent."""
        located = self
        for key in path:
            container = located.value
            is_there = (
                key in container if isinstance(container, dict) else _has_index(container, key)
            )
            if not is_there:
                break
            located = container[key]
        return located.line, located.column


def read_yaml(text: str) -> tuple[LocatedValue | None, list[PlanProblem]]:
    """Return the value, as far as it is readable, and its problems."""
    if len(text) > MAX_CHARS:
        return None, [PlanProblem(message=f"The text is longer than {MAX_CHARS:,} characters.")]
    builder = _TreeBuilder()
    try:
        for event in _yaml_events(text):
            builder.take(event)
    except yaml.YAMLError as error:
        builder.problems.append(_syntax_problem(text, error))
    except _LimitExceeded as error:
        builder.problems.append(error.problem)
    return builder.root, builder.problems


def _yaml_events(text: str) -> Iterator[Any]:
    text = LONE_SURROGATES.sub("\ufffd", text)
    if text.lstrip().startswith("{"):
        text = SURROGATE_PAIR.sub(_join_surrogates, text)
    events: Iterator[Any] = yaml.parse(text, Loader=LOADER)
    return events


def _join_surrogates(pair: re.Match[str]) -> str:
    return bytes.fromhex(pair[1] + pair[2]).decode("utf-16-be")


class _LimitExceeded(Exception):
    def __init__(self, message: str, event: Any) -> None:
        self.problem = _problem(message, event)


class _TreeBuilder:
    """Builds the values from parser events; unsupported ones are reported and omitted."""

    def __init__(self) -> None:
        self.root: LocatedValue | None = None
        self.problems: list[PlanProblem] = []
        self.open: list[LocatedValue] = []
        self.names: list[LocatedValue | None] = []  # the current key of each open mapping
        self.document_count = self.value_count = 0

    def take(self, event: Any) -> None:
        match event:
            case yaml.DocumentStartEvent():
                self.document_count += 1
                if self.document_count == 2:
                    self._report(
                        "Only one YAML document is allowed. A second one starts here.", event
                    )
            case yaml.MappingStartEvent():
                self._open_container({}, event)
            case yaml.SequenceStartEvent():
                self._open_container([], event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self.open.pop()
                self.names.pop()
            case yaml.ScalarEvent():
                self._add_value(_read_scalar(event), event)
            case yaml.AliasEvent():
                self._report(
                    "YAML aliases (*name) aren't supported. Write out the value.", event
                )
                self._add_value(_located_value(None, event), event)

    def _open_container(self, value: Any, event: Any) -> None:
        if len(self.open) >= MAX_DEPTH:
            raise _LimitExceeded(f"This is nested more than {MAX_DEPTH} levels deep.", event)
        written = _located_value(value, event)
        self._add_value(written, event)
        self.open.append(written)
        self.names.append(None)

    def _add_value(self, written: LocatedValue, event: Any) -> None:
        self._check_limits(event)
        if not self.open:
            self.root = self.root or written
            return
        holder = self.open[-1]
        if isinstance(holder.value, list):
            holder.value.append(written)
        elif self.names[-1] is None:
            self.names[-1] = written
        else:
            self._set_field(holder, self.names[-1], written)
            self.names[-1] = None

    def _set_field(
        self, holder: LocatedValue, name: LocatedValue, written: LocatedValue
    ) -> None:
        key, place = name.text, (name.line, name.column)
        if isinstance(name.value, list | dict):
            self._report("Keys must be text.", name)
        elif key in holder.value:
            self._report(f"{key!r} is defined twice.", name)
        else:
            holder.value[key] = written
            holder.names[key] = place

    def _check_limits(self, event: Any) -> None:
        self.value_count += 1
        if self.value_count > MAX_VALUES:
            raise _LimitExceeded(f"This contains more than {MAX_VALUES:,} values.", event)
        tag = getattr(event, "tag", None)
        if tag not in (None, "!"):
            self._report(f"YAML tags ({tag}) aren't supported.", event)

    def _report(self, message: str, source: Any) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(_problem(message, source))


def _read_scalar(event: Any) -> LocatedValue:
    # YAML's escapes `"\0"` and `"\ud800"` are characters no database accepts.
    text = UNSTORABLE.sub("\ufffd", event.value)
    is_plain = event.implicit[0] and not event.style
    value = parse_scalar(text) if is_plain else text
    return replace(_located_value(value, event), text=text)


def parse_scalar(text: str) -> Any:
    """Parse a scalar as in JSON: dates, yes and no are text."""
    if text in LITERALS:
        return LITERALS[text]
    if len(text) > MAX_DIGITS:
        return text
    if INTEGER.fullmatch(text):
        return int(text)
    number = float(text) if NUMBER.fullmatch(text) else None
    return text if number is None or number in (float("inf"), -float("inf")) else number


def _located_value(value: Any, event: Any) -> LocatedValue:
    mark = event.start_mark
    return LocatedValue(line=mark.line + 1, column=mark.column + 1, value=value)


def _problem(message: str, source: Any) -> PlanProblem:
    if isinstance(source, LocatedValue):
        return PlanProblem(message=message, line=source.line, column=source.column)
    mark = source.start_mark
    return PlanProblem(message=message, line=mark.line + 1, column=mark.column + 1)


def _syntax_problem(text: str, error: yaml.YAMLError) -> PlanProblem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is not None:
        reason = getattr(error, "problem", None) or "invalid YAML"
        line, column = mark.line + 1, mark.column + 1
    else:
        reason = getattr(error, "reason", "invalid YAML")
        line, column = _control_character_position(text)
    return PlanProblem(message=f"Syntax error: {reason}.", line=line, column=column)


def _control_character_position(text: str) -> tuple[int, int]:
    """Return the position of the first control character, which YAML doesn't report."""
    found = yaml.reader.Reader.NON_PRINTABLE.search(text)
    before = text[: found.start()] if found else ""
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def _has_index(held: Any, key: str | int) -> bool:
    is_list = isinstance(held, Sequence) and not isinstance(held, str)
    return is_list and isinstance(key, int) and key < len(held)
