"""A small language for conditions and references: `steps.前処理.output.rows[0].total > 3`.

It has numbers, text, lists, paths, a few operators and functions, and nothing else: no Python
names, no loops, no way to call anything else. A path to something missing is null.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..errors import BadExpression
from .functions import FUNCTIONS, OPERATORS, EvaluationBudget, is_list, to_text
from .nodes import ExpressionNode, paths
from .parser import MAX_DEPTH, STEPS, ExpressionParser

__all__ = [
    "FUNCTIONS",
    "OPERATORS",
    "Expression",
    "embedded_expressions",
    "interpolate",
    "iter_strings",
    "parse",
    "parse_template",
    "references",
]

MAX_EXPRESSION_CHARS = 2_000
TEMPLATE_START = re.compile(r"\$?\$\{")


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression; its value depends on the names it is evaluated with."""

    text: str
    tree: ExpressionNode

    def value(self, names: Mapping[str, Any]) -> Any:
        """Return the value; raise BadExpression on a type mismatch or an oversized result."""
        return self.tree.value(names, EvaluationBudget())

    @property
    def steps(self) -> frozenset[str]:
        """The steps the expression refers to."""
        return self._keys(STEPS)

    @property
    def parameters(self) -> frozenset[str]:
        """The parameters the expression refers to by name."""
        return self._keys("parameters") - {""}

    @property
    def names(self) -> frozenset[str]:
        """The first names of its paths: `steps`, `parameters`, `item`."""
        return frozenset(name for name, _ in paths(self.tree))

    def _keys(self, of: str) -> frozenset[str]:
        return frozenset(key for name, key in paths(self.tree) if name == of)


@lru_cache(maxsize=1_000)
def parse(text: str) -> Expression:
    """Parse an expression; raise BadExpression with the position of the error."""
    if len(text) > MAX_EXPRESSION_CHARS:
        raise BadExpression(
            f"Expressions can be up to {MAX_EXPRESSION_CHARS:,} characters long."
        )
    reading = ExpressionParser(text)
    tree = reading.expression()
    reading.end()
    return Expression(text, tree)


def interpolate(value: Any, names: Mapping[str, Any]) -> Any:
    """Replace every `${…}` in the value's strings, at any depth.

    A string that is one `${…}` becomes the value itself; otherwise it is inserted as text.
    `$${` stands for `${`.
    """
    return _interpolate(value, names, EvaluationBudget(), 0)


def references(value: Any) -> frozenset[str]:
    """Return the steps the templates in this value refer to; raise BadExpression."""
    found: set[str] = set()
    for expression in embedded_expressions(value):
        found |= expression.steps
    return frozenset(found)


def embedded_expressions(value: Any) -> Iterator[Expression]:
    """Yield every expression in the strings of this value; raise BadExpression."""
    for _, words in iter_strings(value):
        yield from (piece for piece in parse_template(words) if isinstance(piece, Expression))


def iter_strings(value: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield every string in this value with its path."""
    waiting: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    while waiting:
        path, one = waiting.pop()
        if isinstance(one, str):
            yield path, one
        elif isinstance(one, Mapping):
            waiting += [((*path, name), inner) for name, inner in one.items()]
        elif is_list(one):
            waiting += [((*path, place), inner) for place, inner in enumerate(one)]


def _interpolate(
    value: Any, names: Mapping[str, Any], room: EvaluationBudget, level: int
) -> Any:
    if level > MAX_DEPTH:
        raise BadExpression(f"Arguments can be nested up to {MAX_DEPTH} levels deep.")
    if isinstance(value, str):
        return _interpolate_text(value, names, room)
    if isinstance(value, Mapping):
        return {key: _interpolate(one, names, room, level + 1) for key, one in value.items()}
    return (
        [_interpolate(one, names, room, level + 1) for one in value]
        if is_list(value)
        else value
    )


def _interpolate_text(template: str, names: Mapping[str, Any], room: EvaluationBudget) -> Any:
    found = parse_template(template)
    if len(found) == 1 and isinstance(found[0], Expression):
        return room.take(found[0].tree.value(names, room))
    words = []
    for piece in found:
        is_text = isinstance(piece, str)
        words.append(
            room.take(piece if is_text else _text_or_empty(piece.tree.value(names, room)))
        )
    return "".join(words)


def _text_or_empty(value: Any) -> str:
    return "" if value is None else to_text(value)


def parse_template(template: str) -> tuple[Any, ...]:
    """Split the template at its expressions: text, expression, text …"""
    cut = (
        _parse_template
        if len(template) <= MAX_EXPRESSION_CHARS
        else _parse_template.__wrapped__
    )
    return cut(template)


@lru_cache(maxsize=4_000)
def _parse_template(template: str) -> tuple[Any, ...]:
    cut: list[Any] = []
    at = 0
    while opening := TEMPLATE_START.search(template, at):
        cut.append(template[at : opening.start()])
        at = opening.end()
        if opening[0] == "$${":
            cut.append("${")
        else:
            expression, at = _parse_embedded(template, at)
            cut.append(expression)
    cut.append(template[at:])
    return tuple(piece for piece in cut if piece != "")


def _parse_embedded(template: str, start: int) -> tuple[Expression, int]:
    """Parse the expression that starts here; return it and the position after its bracket."""
    reading = ExpressionParser(template, start, start + MAX_EXPRESSION_CHARS)
    tree = reading.expression()
    end = reading.at
    reading.expect("}")
    return Expression(template[start:end].strip(), tree), reading.at
