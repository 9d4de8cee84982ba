"""Reads YAML or JSON into values with positions.

It only supports what plans need: text, numbers, true, false, null, lists and mappings. Aliases
are never expanded, so the result is never larger than the input.
"""

import re
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from ...sentences import Sentence as _

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

# What the parser says, in sentences of ours.
YAML_PROBLEMS: dict[str | None, str] = {
    str(sentence): sentence
    for sentence in (
        _("control characters are not allowed"),
        _("mapping values are not allowed in this context"),
        _("could not find expected ':'"),
        _("did not find expected key"),
        _("did not find expected '-' indicator"),
        _("did not find expected node content"),
        _("did not find expected ',' or ']'"),
        _("did not find expected ',' or '}'"),
        _("found unexpected end of stream"),
        _("found character that cannot start any token"),
        _("found undefined tag handle"),
    )
}


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
            return {name: item.plain for name, item in self.value.items()}
        if isinstance(self.value, list):
            return [item.plain for item in self.value]
        return self.value

    def place(self, path: ValuePath) -> tuple[int, int]:
        """Return the position of this path, or of its nearest existing parent."""
        located = self
        for key in path:
            match located.value:
                case dict() as mapping if key in mapping:
                    located = mapping[key]
                case list() as items if isinstance(key, int) and key < len(items):
                    located = items[key]
                case _:
                    break
        return located.line, located.column


def read_yaml(text: str) -> tuple[LocatedValue | None, list[PlanProblem]]:
    """Return the value, as far as it is readable, and its problems."""
    if len(text) > MAX_CHARS:
        return None, [
            PlanProblem(
                message=_(
                    "The text is longer than %(limit)s characters.", limit=f"{MAX_CHARS:,}"
                )
            )
        ]
    builder = _TreeBuilder()
    clean = LONE_SURROGATES.sub("\ufffd", text)
    if clean.lstrip().startswith("{"):
        clean = SURROGATE_PAIR.sub(
            lambda pair: bytes.fromhex(pair[1] + pair[2]).decode("utf-16-be"), clean
        )
    try:
        for event in yaml.parse(clean, Loader=LOADER):
            builder.take(event)
    except yaml.YAMLError as error:
        builder.problems.append(_syntax_problem(text, error))
    except _LimitExceeded as error:
        builder.problems.append(error.problem)
    return builder.root, builder.problems


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
                        _("Only one YAML document is allowed. A second one starts here."), event
                    )
            case yaml.MappingStartEvent():
                self._open_container({}, event)
            case yaml.SequenceStartEvent():
                self._open_container([], event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self.open.pop()
                self.names.pop()
            case yaml.ScalarEvent():
                # YAML's escapes `"\0"` and `"\ud800"` are characters no database accepts.
                text = UNSTORABLE.sub("\ufffd", event.value)
                is_plain = event.implicit[0] and not event.style
                value = parse_scalar(text) if is_plain else text
                self._add_value(replace(_located_value(value, event), text=text), event)
            case yaml.AliasEvent():
                self._report(
                    _("YAML aliases (*name) aren't supported. Write out the value."), event
                )
                self._add_value(_located_value(None, event), event)

    def _open_container(self, value: Any, event: Any) -> None:
        if len(self.open) >= MAX_DEPTH:
            raise _LimitExceeded(
                _("This is nested more than %(limit)s levels deep.", limit=MAX_DEPTH), event
            )
        located = _located_value(value, event)
        self._add_value(located, event)
        self.open.append(located)
        self.names.append(None)

    def _add_value(self, located: LocatedValue, event: Any) -> None:
        self.value_count += 1
        if self.value_count > MAX_VALUES:
            raise _LimitExceeded(
                _("This contains more than %(limit)s values.", limit=f"{MAX_VALUES:,}"), event
            )
        tag = getattr(event, "tag", None)
        if tag not in (None, "!"):
            self._report(_("YAML tags (%(tag)s) aren't supported.", tag=tag), event)
        if not self.open:
            self.root = self.root or located
            return
        container = self.open[-1]
        if isinstance(container.value, list):
            container.value.append(located)
        elif (name := self.names[-1]) is None:
            self.names[-1] = located
        else:
            self.names[-1] = None
            if isinstance(name.value, list | dict):
                self._report(_("Keys must be text."), name)
            elif name.text in container.value:
                self._report(_("%(name)s is defined twice.", name=repr(name.text)), name)
            else:
                container.value[name.text] = located
                container.names[name.text] = (name.line, name.column)

    def _report(self, message: str, source: Any) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(_problem(message, source))


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
        problem = getattr(error, "problem", None)
        reason = YAML_PROBLEMS.get(problem, problem) or _("invalid YAML")
        line = mark.line + 1
        column = mark.column + 1
    else:
        reason = getattr(error, "reason", _("invalid YAML"))
        # It is a control character, of which YAML doesn't report the position.
        character = yaml.reader.Reader.NON_PRINTABLE.search(text)
        text_before = text[: character.start()] if character else ""
        line = text_before.count("\n") + 1
        column = len(text_before) - text_before.rfind("\n")
    return PlanProblem(
        message=_("Syntax error: %(reason)s.", reason=reason), line=line, column=column
    )
