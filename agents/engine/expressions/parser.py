"""Parses text into expression nodes and reports where and why it can't."""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from ..errors import BadExpression
from ..sentences import Sentence as _
from ..suggestions import suggest
from .functions import FUNCTIONS, MAX_NUMBER
from .nodes import (
    CallNode,
    ChainNode,
    ExpressionNode,
    ListNode,
    LiteralNode,
    NameNode,
    NotNode,
    SubscriptNode,
)

MAX_DEPTH = 20
STEPS = "steps"
LITERALS: Mapping[str, Any] = {"true": True, "false": False, "null": None}
PRECEDENCE = ({"or"}, {"and"}, {"==", "!=", "<", "<=", ">", ">=", "in", "not in"}, {"+", "-"})
MULTIPLICATIVE = {"*", "/", "%"}
FOREIGN_OPERATORS = {"=": "==", "&": "and", "|": "or", "!": "not"}
ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}

WHITESPACE = re.compile(r"\s*")
NAME = re.compile(r"[^\W\d]\w*")
PATH_PART = re.compile(r"\w+")
NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
STRING = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""", re.DOTALL)
OPERATOR = re.compile(r"(?:or|and|in|not\s+in)\b|[=!<>]=|[<>+\-*/%]")
ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class ExpressionParser:
    """Parses the text in one pass, from the loosest operator to the tightest."""

    def __init__(self, text: str, position: int = 0, stop: int | None = None) -> None:
        self.text = text
        self.position = position
        self.stop = len(text) if stop is None else min(stop, len(text))
        self.level = 0

    def expression(self, looseness: int = 0) -> ExpressionNode:
        if looseness == len(PRECEDENCE):
            return self._parse_chain(MULTIPLICATIVE, self._parse_unary)
        return self._parse_chain(PRECEDENCE[looseness], lambda: self._parse_operand(looseness))

    def end(self) -> None:
        self._skip_whitespace()
        if self.position < self.stop:
            suggestion = FOREIGN_OPERATORS.get(self.text[self.position])
            sentence = _("Unexpected %(seen)s.", seen=self._next_text())
            raise self._error(suggest(sentence, suggestion))

    def expect(self, sign: str) -> None:
        if not self._accept(sign):
            raise self._error(
                _("Expected %(sign)s, found %(seen)s.", sign=repr(sign), seen=self._next_text())
            )

    def _parse_operand(self, looseness: int) -> ExpressionNode:
        # `not` binds looser than a comparison: not a == b is not (a == b).
        if looseness == 1:
            start = self.position
            if self._match(NAME) == "not":
                return NotNode(self._parse_nested(lambda: self._parse_operand(looseness)))
            self.position = start
        return self.expression(looseness + 1)

    def _parse_chain(
        self, signs: set[str], parse_side: Callable[[], ExpressionNode]
    ) -> ExpressionNode:
        first = parse_side()
        links = list[tuple[str, ExpressionNode]]()
        while True:
            start = self.position
            sign = " ".join(self._match(OPERATOR).split())
            if sign not in signs:
                self.position = start
                return ChainNode(first, tuple(links)) if links else first
            links.append((sign, parse_side()))

    def _parse_unary(self) -> ExpressionNode:
        if self._accept("-"):
            operand = self._parse_nested(self._parse_unary)
            return ChainNode(LiteralNode(0), (("-", operand),))
        start = self.position
        node = self._parse_path(self._parse_primary())
        if isinstance(node, NameNode) and node.name == STEPS:
            raise self._error(_("Specify a step, e.g. steps.name."), start)
        return node

    def _parse_primary(self) -> ExpressionNode:
        if self._accept("("):
            node = self._parse_nested(self.expression)
            self.expect(")")
            return node
        if self._accept("["):
            return ListNode(self._parse_list("]"))
        if digits := self._match(NUMBER):
            number = int(digits) if digits.isdigit() and len(digits) < 20 else float(digits)
            if number > MAX_NUMBER:
                raise self._error(_("This number is too large."), self.position - len(digits))
            return LiteralNode(number)
        if quoted := self._match(STRING):
            return LiteralNode(
                ESCAPE.sub(lambda match: ESCAPES.get(match[1], match[1]), quoted[1:-1])
            )
        start = self.position
        name = self._match(NAME)
        if not name:
            raise self._error(_("Expected a value, found %(seen)s.", seen=self._next_text()))
        if name in LITERALS:
            return LiteralNode(LITERALS[name])
        if name in ("and", "or", "not", "in"):
            raise self._error(_("Expected a value, found %(seen)s.", seen=repr(name)), start)
        if not self._accept("("):
            return NameNode(name)
        if name not in FUNCTIONS:
            sentence = _("Unknown function: %(name)s.", name=repr(name))
            close_matches = get_close_matches(name.lower(), FUNCTIONS, n=1)
            raise self._error(suggest(sentence, next(iter(close_matches), None)), start)
        arguments = self._parse_list(")")
        minimum = FUNCTIONS[name].min_arguments
        maximum = FUNCTIONS[name].max_arguments
        if not minimum <= len(arguments) <= maximum:
            raise self._error(
                _(
                    "Wrong number of arguments for %(name)s(): expected %(count)s.",
                    name=name,
                    count=f"{minimum}" if minimum == maximum else _("1 or more"),
                ),
                start,
            )
        return CallNode(name, arguments)

    def _parse_path(self, node: ExpressionNode) -> ExpressionNode:
        for _level in range(MAX_DEPTH):
            if self._accept("."):
                name = self._match(PATH_PART)
                if not name:
                    raise self._error(
                        _("Expected a name, found %(seen)s.", seen=self._next_text())
                    )
                node = SubscriptNode(node, LiteralNode(name))
            elif self._accept("["):
                start = self.position
                key = self._parse_nested(self.expression)
                is_text = isinstance(key, LiteralNode) and isinstance(key.constant, str)
                if isinstance(node, NameNode) and node.name == STEPS and not is_text:
                    raise self._error(_('Put the step name in quotes: steps["name"].'), start)
                self.expect("]")
                node = SubscriptNode(node, key)
            else:
                return node
        raise self._error(_("A path can have up to %(limit)s parts.", limit=MAX_DEPTH))

    def _parse_list(self, closing: str) -> tuple[ExpressionNode, ...]:
        if self._accept(closing):
            return ()
        items = [self._parse_nested(self.expression)]
        while self._accept(","):
            items.append(self._parse_nested(self.expression))
        self.expect(closing)
        return tuple(items)

    def _parse_nested(self, parse: Callable[[], ExpressionNode]) -> ExpressionNode:
        self.level += 1
        if self.level > MAX_DEPTH:
            raise self._error(
                _("Expressions can be nested up to %(limit)s levels deep.", limit=MAX_DEPTH)
            )
        node = parse()
        self.level -= 1
        return node

    def _skip_whitespace(self) -> None:
        blanks = WHITESPACE.match(self.text, self.position, self.stop)
        self.position = blanks.end() if blanks else self.position

    def _accept(self, sign: str) -> bool:
        self._skip_whitespace()
        is_next = self.text.startswith(sign, self.position, self.stop)
        if is_next:
            self.position += len(sign)
        return is_next

    def _match(self, pattern: re.Pattern[str]) -> str:
        self._skip_whitespace()
        match = pattern.match(self.text, self.position, self.stop)
        if match is None:
            return ""
        self.position = match.end()
        return match[0]

    def _next_text(self) -> str:
        self._skip_whitespace()
        name = PATH_PART.match(self.text, self.position, self.stop)
        text = name[0] if name else self.text[self.position : min(self.position + 1, self.stop)]
        return repr(text[:40]) if text else _("the end of the expression")

    def _error(self, sentence: str, position: int | None = None) -> BadExpression:
        return BadExpression(sentence, position=self.position if position is None else position)
