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
from ..sentences import Sentence as _
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

    def _keys(self, root: str) -> frozenset[str]:
        return frozenset(key for name, key in paths(self.tree) if name == root)


@lru_cache(maxsize=1_000)
def parse(text: str) -> Expression:
    """Parse an expression; raise BadExpression with the position of the error."""
    if len(text) > MAX_EXPRESSION_CHARS:
        raise BadExpression(
            _(
                "Expressions can be up to %(limit)s characters long.",
                limit=f"{MAX_EXPRESSION_CHARS:,}",
            )
        )
    parser = ExpressionParser(text)
    tree = parser.expression()
    parser.end()
    return Expression(text, tree)


def interpolate(value: Any, names: Mapping[str, Any]) -> Any:
    """Replace every `${…}` in the value's strings, at any depth.

    A string that is one `${…}` becomes the value itself; otherwise it is inserted as text.
    `$${` stands for `${`.
    """
    return _interpolate(value, names, EvaluationBudget(), 0)


def references(value: Any) -> frozenset[str]:
    """Return the steps the templates in this value refer to; raise BadExpression."""
    return frozenset[str]().union(
        *(expression.steps for expression in embedded_expressions(value))
    )


def embedded_expressions(value: Any) -> Iterator[Expression]:
    """Yield every expression in the strings of this value; raise BadExpression."""
    for _path, text in iter_strings(value):
        yield from (piece for piece in parse_template(text) if isinstance(piece, Expression))


def iter_strings(value: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield every string in this value with its path."""
    waiting: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    while waiting:
        path, item = waiting.pop()
        if isinstance(item, str):
            yield path, item
        elif isinstance(item, Mapping):
            waiting += [((*path, name), inner) for name, inner in item.items()]
        elif is_list(item):
            waiting += [((*path, index), inner) for index, inner in enumerate(item)]


def _interpolate(
    value: Any, names: Mapping[str, Any], budget: EvaluationBudget, level: int
) -> Any:
    if level > MAX_DEPTH:
        raise BadExpression(
            _("Arguments can be nested up to %(limit)s levels deep.", limit=MAX_DEPTH)
        )
    if isinstance(value, Mapping):
        return {
            key: _interpolate(item, names, budget, level + 1) for key, item in value.items()
        }
    if is_list(value):
        return [_interpolate(item, names, budget, level + 1) for item in value]
    if not isinstance(value, str):
        return value
    pieces = parse_template(value)
    if len(pieces) == 1 and isinstance(pieces[0], Expression):
        return budget.take(pieces[0].tree.value(names, budget))
    texts = []
    for piece in pieces:
        text = piece
        if isinstance(piece, Expression):
            result = piece.tree.value(names, budget)
            text = "" if result is None else to_text(result)
        texts.append(budget.take(text))
    return "".join(texts)


def parse_template(template: str) -> tuple[Any, ...]:
    """Split the template at its expressions: text, expression, text …"""
    parse_pieces = (
        _parse_template
        if len(template) <= MAX_EXPRESSION_CHARS
        else _parse_template.__wrapped__
    )
    return parse_pieces(template)


@lru_cache(maxsize=4_000)
def _parse_template(template: str) -> tuple[Any, ...]:
    pieces: list[Any] = []
    position = 0
    while opening := TEMPLATE_START.search(template, position):
        pieces.append(template[position : opening.start()])
        position = opening.end()
        if opening[0] == "$${":
            pieces.append("${")
            continue
        parser = ExpressionParser(template, position, position + MAX_EXPRESSION_CHARS)
        tree = parser.expression()
        pieces.append(Expression(template[position : parser.position].strip(), tree))
        parser.expect("}")
        position = parser.position
    pieces.append(template[position:])
    return tuple(piece for piece in pieces if piece != "")
