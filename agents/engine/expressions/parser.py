"""How an expression is read: text → terms, and where and why it cannot be."""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from ..errors import BadExpression
from .functions import FUNCTIONS, LARGEST
from .nodes import Call, Chain, Given, Items, Name, Node, Not, Part

MOST_LEVELS = 20
STEPS = "steps"
WORDS: Mapping[str, Any] = {"true": True, "false": False, "null": None}
SIGNS = ({"or"}, {"and"}, {"==", "!=", "<", "<=", ">", ">=", "in", "not in"}, {"+", "-"})
TIMES = {"*", "/", "%"}
ELSEWHERE = {"=": "==", "&": "and", "|": "or", "!": "not"}
ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}

BLANKS = re.compile(r"\s*")
NAME = re.compile(r"[^\W\d]\w*")
PART = re.compile(r"\w+")
NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
TEXT = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""", re.DOTALL)
SIGN = re.compile(r"(?:or|and|in|not\s+in)\b|[=!<>]=|[<>+\-*/%]")


class Reading:
    """Goes through the text once, from the loosest sign to the tightest."""

    def __init__(self, text: str, at: int = 0, stop: int | None = None) -> None:
        self.text = text
        self.at = at
        self.stop = len(text) if stop is None else min(stop, len(text))
        self.level = 0

    def expression(self, looseness: int = 0) -> Node:
        if looseness == len(SIGNS):
            return self._chain(TIMES, self._single)
        return self._chain(SIGNS[looseness], lambda: self._side(looseness))

    def end(self) -> None:
        self._skip()
        if self.at < self.stop:
            meant = ELSEWHERE.get(self.text[self.at])
            instead = f" Did you mean {meant!r}?" if meant else ""
            raise self._wrong(f"{self._seen()} is not expected here.{instead}")

    def need(self, sign: str) -> None:
        if not self._took(sign):
            raise self._wrong(f"{sign!r} is expected here, and not {self._seen()}.")

    def _side(self, looseness: int) -> Node:
        # `not` binds looser than a comparison: not a == b is not (a == b).
        if looseness == 1 and self._word("not"):
            return Not(self._deeper(lambda: self._side(looseness)))
        return self.expression(looseness + 1)

    def _chain(self, signs: set[str], side: Callable[[], Node]) -> Node:
        first = side()
        rest = []
        while sign := self._sign(signs):
            rest.append((sign, side()))
        return Chain(first, tuple(rest)) if rest else first

    def _sign(self, signs: set[str]) -> str:
        self._skip()
        found = SIGN.match(self.text, self.at, self.stop)
        sign = " ".join(found[0].split()) if found else ""
        if not found or sign not in signs:
            return ""
        self.at = found.end()
        return sign

    def _single(self) -> Node:
        if self._took("-"):
            minus = self._deeper(self._single)
            return Chain(Given(0), (("-", minus),))
        start = self.at
        node = self._parts(self._beginning())
        if isinstance(node, Name) and node.name == STEPS:
            raise self._wrong("Say which step is meant: steps.name.", start)
        return node

    def _beginning(self) -> Node:
        if self._took("("):
            node = self._deeper(self.expression)
            self.need(")")
            return node
        if self._took("["):
            return Items(self._list("]"))
        if found := self._match(NUMBER):
            return Given(self._number(found))
        if found := self._match(TEXT):
            return Given(_unquoted(found))
        return self._named()

    def _named(self) -> Node:
        start = self.at
        name = self._match(NAME)
        if not name:
            raise self._wrong(f"A value is expected here, and not {self._seen()}.")
        if name in WORDS:
            return Given(WORDS[name])
        if name in ("and", "or", "not", "in"):
            raise self._wrong(f"A value is expected here, and not {name!r}.", start)
        return self._call(name, start) if self._took("(") else Name(name)

    def _call(self, name: str, start: int) -> Node:
        if name not in FUNCTIONS:
            raise self._wrong(_unknown(name), start)
        arguments = self._list(")")
        function = FUNCTIONS[name]
        if not function.least <= len(arguments) <= function.most:
            few = f"{function.least}" if function.least == function.most else "1 or more"
            raise self._wrong(f"{name}() takes {few} values.", start)
        return Call(name, arguments)

    def _parts(self, node: Node) -> Node:
        for _ in range(MOST_LEVELS):
            if self._took("."):
                node = Part(node, Given(self._part()))
            elif self._took("["):
                node = Part(node, self._key(node))
            else:
                return node
        raise self._wrong(f"A path has at most {MOST_LEVELS} parts.")

    def _part(self) -> str:
        name = self._match(PART)
        if not name:
            raise self._wrong(f"A name is expected here, and not {self._seen()}.")
        return name

    def _key(self, of: Node) -> Node:
        start = self.at
        key = self._deeper(self.expression)
        is_text = isinstance(key, Given) and isinstance(key.it, str)
        if isinstance(of, Name) and of.name == STEPS and not is_text:
            raise self._wrong('A step is named in quotes: steps["name"].', start)
        self.need("]")
        return key

    def _list(self, closing: str) -> tuple[Node, ...]:
        if self._took(closing):
            return ()
        items = [self._deeper(self.expression)]
        while self._took(","):
            items.append(self._deeper(self.expression))
        self.need(closing)
        return tuple(items)

    def _deeper(self, read: Callable[[], Node]) -> Node:
        self.level += 1
        if self.level > MOST_LEVELS:
            raise self._wrong(f"An expression is nested at most {MOST_LEVELS} levels deep.")
        node = read()
        self.level -= 1
        return node

    def _number(self, written: str) -> int | float:
        is_whole = written.isdigit()
        number = int(written) if is_whole and len(written) < 20 else float(written)
        if number > LARGEST:
            raise self._wrong("This number is too large.", self.at - len(written))
        return number

    def _skip(self) -> None:
        blanks = BLANKS.match(self.text, self.at, self.stop)
        self.at = blanks.end() if blanks else self.at

    def _took(self, sign: str) -> bool:
        self._skip()
        is_there = self.text.startswith(sign, self.at, self.stop)
        self.at += len(sign) * is_there
        return is_there

    def _word(self, word: str) -> bool:
        self._skip()
        found = NAME.match(self.text, self.at, self.stop)
        is_there = found is not None and found[0] == word
        self.at += len(word) * is_there
        return is_there

    def _match(self, pattern: re.Pattern[str]) -> str:
        self._skip()
        found = pattern.match(self.text, self.at, self.stop)
        self.at = found.end() if found else self.at
        return found[0] if found else ""

    def _seen(self) -> str:
        self._skip()
        found = PART.match(self.text, self.at, self.stop)
        rest = found[0] if found else self.text[self.at : min(self.at + 1, self.stop)]
        return repr(rest[:40]) if rest else "the end"

    def _wrong(self, sentence: str, position: int | None = None) -> BadExpression:
        return BadExpression(sentence, position=self.at if position is None else position)


def _unquoted(quoted: str) -> str:
    return re.sub(
        r"\\(.)", lambda found: ESCAPES.get(found[1], found[1]), quoted[1:-1], flags=re.DOTALL
    )


def _unknown(name: str) -> str:
    near = get_close_matches(name.lower(), FUNCTIONS, n=1)
    return f"There is no function {name!r}." + (f" Did you mean {near[0]!r}?" if near else "")
