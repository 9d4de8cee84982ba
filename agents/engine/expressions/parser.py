"""Parses text into expression nodes and reports where and why it can't."""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from ..errors import BadExpression
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


class ExpressionParser:
    """Parses the text in one pass, from the loosest operator to the tightest."""

    def __init__(self, text: str, at: int = 0, stop: int | None = None) -> None:
        self.text = text
        self.at = at
        self.stop = len(text) if stop is None else min(stop, len(text))
        self.level = 0

    def expression(self, looseness: int = 0) -> ExpressionNode:
        if looseness == len(PRECEDENCE):
            return self._parse_chain(MULTIPLICATIVE, self._parse_unary)
        return self._parse_chain(PRECEDENCE[looseness], lambda: self._parse_operand(looseness))

    def end(self) -> None:
        self._skip_whitespace()
        if self.at < self.stop:
            meant = FOREIGN_OPERATORS.get(self.text[self.at])
            sentence = f"Unexpected {self._next_text()}."
            raise self._error(suggest(sentence, meant))

    def expect(self, sign: str) -> None:
        if not self._accept(sign):
            raise self._error(f"Expected {sign!r}, found {self._next_text()}.")

    def _parse_operand(self, looseness: int) -> ExpressionNode:
        # `not` binds looser than a comparison: not a == b is not (a == b).
        if looseness == 1 and self._accept_word("not"):
            return NotNode(self._parse_nested(lambda: self._parse_operand(looseness)))
        return self.expression(looseness + 1)

    def _parse_chain(
        self, signs: set[str], parse_side: Callable[[], ExpressionNode]
    ) -> ExpressionNode:
        first = parse_side()
        rest = []
        while sign := self._parse_operator(signs):
            rest.append((sign, parse_side()))
        return ChainNode(first, tuple(rest)) if rest else first

    def _parse_operator(self, signs: set[str]) -> str:
        self._skip_whitespace()
        found = OPERATOR.match(self.text, self.at, self.stop)
        sign = " ".join(found[0].split()) if found else ""
        if not found or sign not in signs:
            return ""
        self.at = found.end()
        return sign

    def _parse_unary(self) -> ExpressionNode:
        if self._accept("-"):
            operand = self._parse_nested(self._parse_unary)
            return ChainNode(LiteralNode(0), (("-", operand),))
        start = self.at
        node = self._parse_path(self._parse_primary())
        if isinstance(node, NameNode) and node.name == STEPS:
            raise self._error("Specify a step, e.g. steps.name.", start)
        return node

    def _parse_primary(self) -> ExpressionNode:
        if self._accept("("):
            node = self._parse_nested(self.expression)
            self.expect(")")
            return node
        if self._accept("["):
            return ListNode(self._parse_list("]"))
        if found := self._match(NUMBER):
            return LiteralNode(self._parse_number(found))
        if found := self._match(STRING):
            return LiteralNode(_unquote(found))
        return self._parse_name()

    def _parse_name(self) -> ExpressionNode:
        start = self.at
        name = self._match(NAME)
        if not name:
            raise self._error(f"Expected a value, found {self._next_text()}.")
        if name in LITERALS:
            return LiteralNode(LITERALS[name])
        if name in ("and", "or", "not", "in"):
            raise self._error(f"Expected a value, found {name!r}.", start)
        return self._call(name, start) if self._accept("(") else NameNode(name)

    def _call(self, name: str, start: int) -> ExpressionNode:
        if name not in FUNCTIONS:
            raise self._error(_unknown_function(name), start)
        arguments = self._parse_list(")")
        function = FUNCTIONS[name]
        if not function.least <= len(arguments) <= function.most:
            expected = f"{function.least}" if function.least == function.most else "1 or more"
            raise self._error(
                f"Wrong number of arguments for {name}(): expected {expected}.", start
            )
        return CallNode(name, arguments)

    def _parse_path(self, node: ExpressionNode) -> ExpressionNode:
        for _ in range(MAX_DEPTH):
            if self._accept("."):
                node = SubscriptNode(node, LiteralNode(self._parse_path_part()))
            elif self._accept("["):
                node = SubscriptNode(node, self._parse_subscript(node))
            else:
                return node
        raise self._error(f"A path can have up to {MAX_DEPTH} parts.")

    def _parse_path_part(self) -> str:
        name = self._match(PATH_PART)
        if not name:
            raise self._error(f"Expected a name, found {self._next_text()}.")
        return name

    def _parse_subscript(self, of: ExpressionNode) -> ExpressionNode:
        start = self.at
        key = self._parse_nested(self.expression)
        is_text = isinstance(key, LiteralNode) and isinstance(key.constant, str)
        if isinstance(of, NameNode) and of.name == STEPS and not is_text:
            raise self._error('Put the step name in quotes: steps["name"].', start)
        self.expect("]")
        return key

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
            raise self._error(f"Expressions can be nested up to {MAX_DEPTH} levels deep.")
        node = parse()
        self.level -= 1
        return node

    def _parse_number(self, written: str) -> int | float:
        is_whole = written.isdigit()
        number = int(written) if is_whole and len(written) < 20 else float(written)
        if number > MAX_NUMBER:
            raise self._error("This number is too large.", self.at - len(written))
        return number

    def _skip_whitespace(self) -> None:
        blanks = WHITESPACE.match(self.text, self.at, self.stop)
        self.at = blanks.end() if blanks else self.at

    def _accept(self, sign: str) -> bool:
        self._skip_whitespace()
        is_there = self.text.startswith(sign, self.at, self.stop)
        self.at += len(sign) * is_there
        return is_there

    def _accept_word(self, word: str) -> bool:
        self._skip_whitespace()
        found = NAME.match(self.text, self.at, self.stop)
        is_there = found is not None and found[0] == word
        self.at += len(word) * is_there
        return is_there

    def _match(self, pattern: re.Pattern[str]) -> str:
        self._skip_whitespace()
        found = pattern.match(self.text, self.at, self.stop)
        self.at = found.end() if found else self.at
        return found[0] if found else ""

    def _next_text(self) -> str:
        self._skip_whitespace()
        found = PATH_PART.match(self.text, self.at, self.stop)
        rest = found[0] if found else self.text[self.at : min(self.at + 1, self.stop)]
        return repr(rest[:40]) if rest else "the end of the expression"

    def _error(self, sentence: str, position: int | None = None) -> BadExpression:
        return BadExpression(sentence, position=self.at if position is None else position)


def _unquote(quoted: str) -> str:
    return re.sub(
        r"\\(.)", lambda found: ESCAPES.get(found[1], found[1]), quoted[1:-1], flags=re.DOTALL
    )


def _unknown_function(name: str) -> str:
    near = get_close_matches(name.lower(), FUNCTIONS, n=1)
    return suggest(f"Unknown function: {name!r}.", near[0] if near else None)
