"""Calculations in numbers or words, English and Japanese, as one expression for a calculator.

Each number in the text becomes a single private-use character. A table of rewrite rules then
joins these characters until no rule fits. A missing operand ("15% of that") stays `that`.
"""

import re
import tomllib
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import NamedTuple

THAT = "that"
MAX_NUMBERS = 80

_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_WORDS = _TABLE["words"]
_SCALES = _TABLE["scales"]
_WORD = "|".join(sorted(filter(str.isascii, [*_WORDS, *_SCALES]), key=len, reverse=True))
_NUMBER = re.compile(_TABLE["number"].replace("WORD", _WORD))
_OPERATOR = f" *(?:{'|'.join(_TABLE['operators'].values())}) *"
_N = "[\ue000-\uefff]"
_P = "[\uf000-\uf7ff]"
_ANY = "[\ue000-\uf7ff]"
_CLASSES = {
    "#N": f"({_N})",
    "#P": f"({_P})",
    "#L": f"({_N}(?:(?:,? and |, ?|、|と| to ){_N})+)",
    "#C": f"({_N}(?:{_OPERATOR}{_N})+)",
}


class Sum(NamedTuple):
    """An expression and the text around it; an open one needs another tool to find `that`."""

    expression: str
    context: str
    is_open: bool


def find(text: str) -> Sum | None:
    """Return the calculation in a lower-case text, if there is one."""
    is_prose = len(re.findall(r"[a-z]{3,}", text)) > 3
    reading = _Reading(re.sub(r"(?<!\S)\d+[-/]\d+(?!\S)", " ", text) if is_prose else text)
    sign = reading.rewrite("rules") or reading.rewrite("open_rules")
    if sign is None:
        return None
    expression = reading.terms[sign]
    if re.search(r"\bremainder\b|余り|あまり|剰余", text):
        expression = expression.replace(" / ", " % ")
    context = re.sub(
        _ANY, lambda match: reading.sources[match[0]], reading.text.replace(sign, " ", 1)
    )
    return Sum(expression, context.strip(), THAT in expression)


@cache
def _compile_rules(rules: str) -> list[tuple[re.Pattern[str], str]]:
    return [
        (re.compile(re.sub("#[NPLC]", lambda match: _CLASSES[match[0]], pattern)), template)
        for pattern, template in _TABLE[rules]
    ]


class _Reading:
    """A text in which each number is one character."""

    def __init__(self, text: str) -> None:
        self.terms: dict[str, str] = {}
        self.sources: dict[str, str] = {}
        self.text = _NUMBER.sub(self._number, text)
        minus = re.compile(rf"((?:^|[^\s){_ANY[1:]})\s*)-\s?({_N})")
        while match := minus.search(self.text):
            sign = self._add(f"-{self.terms[match[2]]}", f"-{match[2]}")
            self.text = minus.sub(f"\\1{sign}", self.text, count=1)

    def rewrite(self, rules: str) -> str | None:
        """Apply the rules until none fits; return the character of the last calculation."""
        last = None
        for _ in range(MAX_NUMBERS):
            for rule, template in _compile_rules(rules):
                if match := rule.search(self.text):
                    groups = [group for group in match.groups() if group]
                    last = self._add(self._fill_template(template, groups), match[0])
                    self.text = f"{self.text[: match.start()]}{last}{self.text[match.end() :]}"
                    break
            else:
                break
        return last

    def _fill_template(self, template: str, groups: list[str]) -> str:
        signs = re.findall(_ANY, groups[0])
        terms = [self._operand(sign) for sign in signs]
        chain = groups[0]
        for sign, words in _TABLE["operators"].items():
            # Only between numbers, or the two stars of a power would match separately.
            chain = re.sub(f"(?<={_N}) *(?:{words}) *(?={_N})", f" {sign} ", chain)
        chain = re.sub(_ANY, lambda match: self._operand(match[0]), chain)
        operands = [self._operand(group) for group in groups] if len(signs) == 1 else [chain]
        lists = {"total": " + ".join(terms), "product": " * ".join(terms), "count": len(terms)}
        return template.format(*operands, **lists)

    def _operand(self, sign: str) -> str:
        term = self.terms[sign]
        return f"({term})" if " " in term and sign < "\uf000" else term

    def _add(self, term: str, source: str, is_percent: bool = False) -> str:
        sign = chr((0xF000 if is_percent else 0xE000) + len(self.terms))
        self.terms[sign] = term
        self.sources[sign] = re.sub(_ANY, lambda match: self.sources[match[0]], source)
        return sign

    def _number(self, match: re.Match[str]) -> str:
        if match["skip"] or len(self.terms) > MAX_NUMBERS:
            return " "
        digits = _digits(match["number"])
        if match["percent"] and "割" in match["percent"]:
            digits = f"{digits} * 10"
        return self._add(digits, match[0], bool(match["percent"]))


def _digits(text: str) -> str:
    """Return the digits of a number: `1,234`, `3万`, `twenty-five`, `三百`."""
    plain = text.replace(",", "")
    if plain.endswith("万") and plain[0].isdigit():
        return f"{float(plain[:-1]) * 10_000:.12g}"
    if plain[0].isdigit() or plain[0] == ".":
        return f"{Decimal(plain):f}" if "e" in plain else re.sub(r"^0+(?=\d)", "", plain)
    total = 0
    section = 0  # below the next scale: the hundreds before "thousand"
    digits = 0
    for numeral in re.findall(r"[a-z]+", plain) if plain[0].isascii() else plain:
        scale = _SCALES.get(numeral, 0)
        if scale >= 10_000 or numeral == "thousand":
            total += (section + digits or 1) * scale
            section = 0
            digits = 0
        elif scale:
            section += (digits or 1) * scale
            digits = 0
        else:
            digits = digits * (1 if numeral.isascii() else 10) + _WORDS.get(numeral, 0)
    return str(total + section + digits)
