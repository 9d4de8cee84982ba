"""Sums in figures and in words, English and Japanese, as one expression for a calculator.

A small Pratt parser reads the words that it knows and takes every other word as a border.
An operand that is not a number ("15% of that", "売上の10%") is left open as `that`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from .numerals import figures
from .tokens import Token, runs

THAT = "that"
DEEPEST = 20

_LEVELS = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2, "**": 4}
_ATOM = 5
_REMAINDER = re.compile(r"\bremainder\b|余り|あまり|剰余")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """An expression, where in the text it was said, and how many operations it has."""

    expression: str
    start: int
    end: int
    operations: int

    @property
    def is_open(self) -> bool:
        """Whether a number from elsewhere is needed."""
        return THAT in self.expression

    def close(self, number: str) -> str:
        return self.expression.replace(THAT, number)


def find(text: str) -> Sum | None:
    """The longest sum that the text asks for."""
    stretches: Iterator[list[Token]] = runs(text)
    if _REMAINDER.search(text):
        stretches = map(_for_remainder, stretches)
    sums = [found for run in stretches for found in _sums(run) if _is_meant(found, text)]
    return max(sums, key=lambda found: found.operations, default=None)


def _for_remainder(run: Sequence[Token]) -> list[Token]:
    """The same words with what divides asking for what is left over."""
    kinds = {"/": "%", "LIST_/": "LIST_%"}
    return [replace(token, kind=kinds.get(token.kind, token.kind)) for token in run]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Term:
    """A piece of an expression and how tightly it holds together."""

    text: str
    level: int = _ATOM
    is_percent: bool = False

    def within(self, level: int) -> str:
        plain = self.plain
        return plain.text if plain.level >= level else f"({plain.text})"

    @property
    def plain(self) -> "_Term":
        return _Term(text=f"{self.text} / 100", level=2) if self.is_percent else self


def _sums(run: Sequence[Token]) -> Iterator[Sum]:
    at = 0
    while at < len(run):
        parser = _Parser(run, at)
        try:
            term = parser.expression()
        except ValueError:
            at += 1
            continue
        if parser.operations:
            yield Sum(
                expression=term.plain.text,
                start=run[at].start,
                end=run[parser.at - 1].end,
                operations=parser.operations,
            )
        at = max(parser.at, at + 1)


def _is_meant(found: Sum, text: str) -> bool:
    """A sum with a number in it; "2-3 sentences" and "24/7" among words are none."""
    said = text[found.start : found.end]
    others = text[: found.start] + text[found.end :]
    is_compound = re.fullmatch(r"\d+[-/]\d+", said) is not None
    return any(map(str.isdigit, found.expression)) and not (
        is_compound and len(re.findall(r"[a-z]{3,}", others)) > 3
    )


class _Parser:
    def __init__(self, tokens: Sequence[Token], at: int) -> None:
        self.tokens = tokens
        self.begin = self.at = at
        self.depth = self.operations = 0

    def expression(self, level: int = 0) -> _Term:
        self.depth += 1
        if self.depth > DEEPEST:
            raise ValueError("too deep")
        left = self.operand()
        while (longer := self.grow(left, level)) is not None:
            left = longer
        self.depth -= 1
        return left

    def grow(self, left: _Term, level: int) -> _Term | None:
        """What is on the left with the next operation done to it."""
        kind = self.peek()
        if kind in _LEVELS and _LEVELS[kind] > level:
            return self.infix(left, kind)
        if kind in _SUFFIXES:
            self.advance()
            return self.suffixed(left, kind)
        if kind == "SHARE" and level == 0:
            self.advance()
            self.skip("OF")
            return self.share(left, self.expression(2))
        if kind in ("MORE", "FEWER") and level == 0:
            self.advance()
            return self.combine("+" if kind == "MORE" else "-", left, self.expression(2))
        if left.is_percent and kind in ("OF", "OFF"):
            return self.percent_of(left)
        if kind == "NO":
            return self.possession(left)
        return self.japanese(left) if level == 0 else None

    def infix(self, left: _Term, operator: str) -> _Term | None:
        start = self.at
        self.advance()
        try:
            return self.combine(operator, left, self.expression(_LEVELS[operator]))
        except ValueError:
            self.at = start
            return None

    def operand(self) -> _Term:
        kind, at = self.peek(), self.at
        if kind == "number":
            return self.number()
        if kind == "tenths":
            self.advance()
            return _Term(text=f"{figures(self.tokens[at].text[:-1])} * 10", is_percent=True)
        if kind == "part":
            self.advance()
            below, above = self.tokens[at].text.split("分の")
            return _Term(text=f"{above} / {below}", level=2)
        if kind == "THAT":
            self.advance()
            return _Term(text=THAT)
        if kind == "(":
            return self.group()
        if kind == "-" and self.peek(1) in ("number", "("):
            self.advance()
            return _Term(text=f"-{self.operand().within(_ATOM)}", level=3)
        return self.prefixed(kind)

    def number(self) -> _Term:
        text = figures(self.tokens[self.at].text)
        self.advance()
        is_modulo = self.peek(1) in ("number", "(")
        if self.peek() == "PERCENT" and not is_modulo:
            self.advance()
            return _Term(text=text, is_percent=True)
        if self.peek() == "PERCENT" or self.peek() == "MOD":
            self.advance()
            return self.combine("%", _Term(text=text), self.expression(3))
        return _Term(text=text)

    def group(self) -> _Term:
        self.advance()
        inner = self.expression()
        self.expect(")")
        return _Term(text=f"({inner.plain.text})")

    def prefixed(self, kind: str) -> _Term:
        """A word that comes before what it works on, or an operand left open."""
        if self.at == self.begin and kind in ("+", "*", "/", "-", "NO", "PARTICLE", "MORE"):
            return _Term(text=THAT)
        self.advance()
        if kind.startswith("PREFIX_"):
            return self.suffixed(self.one(), _PREFIXES[kind])
        if kind.startswith("LIST_"):
            return self.listed(kind.removeprefix("LIST_"))
        if kind == "FROM":
            taken, whole = self.pair()
            return self.combine("-", whole, taken)
        if kind in ("RAISE", "LOWER"):
            whole, change = self.pair()
            return self.combine("+" if kind == "RAISE" else "-", whole, change)
        if kind == "CHANGE":
            old, new = self.pair()
            return self.change(old, new)
        if kind == "SHARE":
            return self.asked_share()
        raise ValueError(f"no operand: {kind!r}")

    def one(self) -> _Term:
        """The next operand; at the end of what is known, the one left open."""
        return self.expression(2) if self.at < len(self.tokens) else _Term(text=THAT)

    def listed(self, operator: str) -> _Term:
        terms = self.several()
        # "Add 15% to 200" is 15% of the 200, so the percentage has to come last.
        if operator == "+" and len(terms) == 2 and terms[0].is_percent:
            terms.reverse()
        return self.fold(operator, terms)

    def several(self) -> list[_Term]:
        terms = [self.expression(2)]
        while self.peek() == "JOIN":
            self.skip("JOIN")
            terms.append(self.expression(2))
        return terms

    def pair(self) -> tuple[_Term, _Term]:
        terms = self.several()
        if len(terms) != 2:
            raise ValueError("needs two")
        return terms[0], terms[1]

    def asked_share(self) -> _Term:
        """`what percent of 800 is 200` and `what percentage is 200 of 800`."""
        of_first = self.skip("OF")
        first = self.expression(2)
        self.skip("OF")
        second = self.expression(2)
        return self.share(second, first) if of_first else self.share(first, second)

    def percent_of(self, percent: _Term) -> _Term:
        kind = self.peek()
        self.advance()
        whole = self.one()
        return (
            self.portion(whole, percent) if kind == "OF" else self.combine("-", whole, percent)
        )

    def possession(self, left: _Term) -> _Term | None:
        """`80の15%`, `80の15%引き`, `2の10乗`, `50の2倍`, `90の3分の1`."""
        start = self.at
        self.advance()
        if self.peek() not in ("number", "tenths", "part"):
            self.at = start
            return None
        right = self.operand()
        kind = self.peek()
        if right.is_percent:
            return self.portioned(left, right, kind)
        if self.tokens[self.at - 1].kind == "part":
            return self.combine("*", left, right)
        if kind in ("POWER", "FOLD"):
            self.advance()
            return self.combine("**" if kind == "POWER" else "*", left, right)
        self.at = start
        return None

    def portioned(self, whole: _Term, percent: _Term, kind: str) -> _Term:
        if kind not in ("OFF", "EXTRA"):
            return self.portion(whole, percent)
        self.advance()
        return self.combine("+" if kind == "EXTRA" else "-", whole, percent)

    def japanese(self, left: _Term) -> _Term | None:
        """Forms in which the verb comes last: `12に7をかけて3を足す`, `3と4の和`."""
        start, terms = self.at, [left]
        is_share = self.skip("WA")
        while self.skip("JOIN") or self.skip("PARTICLE") or self.peek() in ("number", "tenths"):
            if self.peek() not in ("number", "tenths", "("):
                break
            terms.append(self.operand())
        if is_share and self.peek() == "number":
            terms.append(self.operand())
        self.skip("NO")
        term = self.verb(terms, is_share) if len(terms) > 1 else None
        if term is None:
            self.at = start
        return term

    def verb(self, terms: list[_Term], is_share: bool) -> _Term | None:
        kind = self.peek()
        operator = kind if kind in _LEVELS else _NOUNS.get(kind)
        if is_share:
            operator = "SHARE" if kind == "SHARE" else None
        if operator is None:
            return None
        self.advance()
        self.skip("JOIN")
        return self.share(*terms[:2]) if is_share else self.fold(operator, terms)

    def fold(self, operator: str, terms: list[_Term]) -> _Term:
        if operator == "MEAN":
            total = self.fold("+", terms)
            return self.combine("/", total, _Term(text=str(len(terms))))
        return reduce(lambda left, right: self.combine(operator, left, right), terms)

    def combine(self, operator: str, left: _Term, right: _Term) -> _Term:
        self.operations += 1
        if left.is_percent and right.is_percent and operator in "+-":
            return _Term(text=f"({left.text} {operator} {right.text})", is_percent=True)
        if right.is_percent and operator in "+-":
            return self.portion(left, right, f"(100 {operator} {right.text})")
        level = _LEVELS[operator]
        first = left.within(level + 1 if operator == "**" else level)
        second = right.within(level if operator == "**" else level + 1)
        return _Term(text=f"{first} {operator} {second}", level=level)

    def portion(self, whole: _Term, percent: _Term, rate: str = "") -> _Term:
        self.operations += 1
        return _Term(text=f"{whole.within(2)} * {rate or percent.text} / 100", level=2)

    def share(self, part: _Term, whole: _Term) -> _Term:
        self.operations += 1
        return _Term(text=f"{part.within(2)} / {whole.within(3)} * 100", level=2)

    def change(self, old: _Term, new: _Term) -> _Term:
        self.operations += 1
        return _Term(
            text=f"({new.plain.text} - {old.within(2)}) / {old.within(3)} * 100", level=2
        )

    def suffixed(self, term: _Term, kind: str) -> _Term:
        operator, number = _SUFFIXES[kind]
        return self.combine(operator, term, _Term(text=number))

    def peek(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.tokens[at].kind if at < len(self.tokens) else ""

    def advance(self) -> None:
        self.at += 1

    def skip(self, kind: str) -> bool:
        """Step over tokens of this kind; whether there were any."""
        start = self.at
        while self.peek() == kind:
            self.at += 1
        return self.at > start

    def expect(self, kind: str) -> None:
        if self.peek() != kind:
            raise ValueError(f"expected {kind!r}")
        self.advance()


_SUFFIXES = {
    "SQUARED": ("**", "2"),
    "CUBED": ("**", "3"),
    "ROOTED": ("**", "0.5"),
    "HALVED": ("/", "2"),
    "THIRDED": ("/", "3"),
    "QUARTERED": ("/", "4"),
    "DOUBLED": ("*", "2"),
    "TRIPLED": ("*", "3"),
}
_PREFIXES = {
    "PREFIX_ROOT": "ROOTED",
    "PREFIX_SQUARE": "SQUARED",
    "PREFIX_CUBE": "CUBED",
    "PREFIX_HALF": "HALVED",
    "PREFIX_THIRD": "THIRDED",
    "PREFIX_QUARTER": "QUARTERED",
    "PREFIX_DOUBLE": "DOUBLED",
    "PREFIX_TRIPLE": "TRIPLED",
}
_NOUNS = {"TOTAL": "+", "GAP": "-", "TIMES": "*", "MEAN": "MEAN", "OFF": "-", "EXTRA": "+"}
