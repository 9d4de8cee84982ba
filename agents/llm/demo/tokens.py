"""The words of arithmetic, English and Japanese, as tokens."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .numerals import FIGURES, SCIENTIFIC, WORDED

LONGEST = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A word or a number, what it means, and where it stands."""

    kind: str
    text: str
    start: int
    end: int


def runs(text: str) -> Iterator[list[Token]]:
    """The stretches of the text that are made of known words only."""
    run: list[Token] = []
    for found in _SCANNER.finditer(text):
        name = found.lastgroup or "other"
        kind = _KINDS[int(name[1:])] if name[1:].isdigit() else name
        if kind in ("other", "date", "stuck") or len(run) == LONGEST:
            yield run
            run = []
        elif kind:
            run.append(
                Token(kind=kind, text=found.group(), start=found.start(), end=found.end())
            )
    yield run


# Each token with the words that mean it, longest words first where one begins another.
_VOCABULARY = {
    "CHANGE": r"percent(?:age)? (?:change|increase|growth|difference) from|変化率",
    "SHARE": r"(?:is |as )?(?:what|which|a) (?:percentage|percent|%|share)"
    r"|何(?:%|パーセント|割合)",
    "THAT": r"that(?: number| result)?|it|them|those|the result|そ(?=の)|それ|これ",
    "PREFIX_ROOT": r"square root(?: of)?",
    "PREFIX_SQUARE": r"square of|the square",
    "PREFIX_CUBE": r"cube of",
    "PREFIX_HALF": r"half(?: of)?",
    "PREFIX_THIRD": r"(?:a|one) third(?: of)?",
    "PREFIX_QUARTER": r"(?:a|one) quarter(?: of)?",
    "PREFIX_DOUBLE": r"double|twice",
    "PREFIX_TRIPLE": r"triple",
    "LIST_+": r"add|sum of",
    "LIST_*": r"multiply|product of",
    "LIST_/": r"divide",
    "LIST_-": r"difference between",
    "LIST_MEAN": r"(?:average|mean) of",
    "FROM": r"subtract|take away",
    "RAISE": r"increase|raise",
    "LOWER": r"decrease|reduce|discount",
    "MORE": r"increased by|raised by|up by",
    "FEWER": r"decreased by|reduced by|down by|discounted by",
    "**": r"\*\*|\^|to the power(?: of)?|raised to(?: the power of)?",
    "*": r"\*|×|[a-z]+ (?:at|for) (?=[$¥€]?\d[\d.,]* (?:\w+ )?each)"
    r"|multiplied by|times|(?<=\d)\s*x\s*(?=\d)|(?:かけ|掛け)(?:る|て|た|ると|たら)?"
    r"|乗じ(?:る|て)",
    "/": r"/|÷|divided by|(?:割|わ)(?:る|って|った|ると|り)",
    "+": r"\+|plus|(?:足|た)(?:す|して|した|し)|プラス|加え(?:る|て|た)",
    "-": r"(?<![a-z])[-−]|minus|(?:引|ひ)(?:く|いて|いた)|マイナス",
    "MOD": r"modulo|mod",
    "PERCENT": r"%|percent|per cent|パーセント",
    "OFF": r"off|割?引き?|オフ|割安",
    "EXTRA": r"増し?|アップ|上乗せ",
    "SQUARED": r"squared|(?:の)?(?:二乗|2乗|平方)(?!根)",
    "CUBED": r"cubed|(?:の)?(?:三乗|3乗)",
    "ROOTED": r"の?平方根",
    "HALVED": r"の?半分",
    "POWER": r"乗",
    "FOLD": r"倍",
    "TOTAL": r"合計|和",
    "GAP": r"差",
    "TIMES": r"積",
    "MEAN": r"平均",
    "OF": r"of|(?:tip|tax|vat|commission) on",
    "JOIN": r"and|by|from|to|with|,|、|と",
    "NO": r"の",
    "WA": r"は",
    "PARTICLE": r"に|から|を|で",
    "(": r"\(",
    ")": r"\)",
    "": r"remainder(?: of| when| after| from)?|余り|あまり|剰余"
    r"|the|an?|is|are|what's|what|how much|please|calculate|compute|equals?|=|\?|dollars?"
    r"|euros?|yen|[$¥€円]|ドル|ユーロ|\s+",
}


def _bounded(pattern: str) -> str:
    """The pattern with a border around those of its choices that are English words."""
    return rf"(?:(?<![a-z])(?=[a-z])(?:{pattern})(?![a-z])|(?![a-z])(?:{pattern}))"


_KINDS = list(_VOCABULARY)
_STUCK = r"[a-wyz]+\d[a-z\d.,]*|\d[\d.,]*(?!x\s*\d|yen|dollar|euro|percent)[a-z][a-z\d]*"
_SCANNER = re.compile(
    r"(?P<date>\d{4}-\d\d(?:-\d\d)?|0\d+(?:-\d+)+)"
    # A number that touches letters ("5k", "gpt4") is not the number alone.
    rf"|(?P<stuck>(?!{SCIENTIFIC})(?:{_STUCK}))"
    r"|(?P<tenths>(?:\d+(?:\.\d+)?|[一二三四五六七八九])割(?!る|っ|り|れ))"
    r"|(?P<part>\d+分の\d+)"
    rf"|(?P<number>{SCIENTIFIC}|{FIGURES}|{WORDED})|"
    + "|".join(f"(?P<k{at}>{_bounded(_VOCABULARY[kind])})" for at, kind in enumerate(_KINDS))
    + r"|(?P<other>[a-z'_]+|.)",
    re.DOTALL,
)
