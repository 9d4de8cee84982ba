"""Numbers, dates and codes in a text, in any of the usual forms."""

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from agents.engine.text import JAPANESE

_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_MONTH = rf"(?:{'|'.join(_MONTHS)})[a-z]{{0,6}}\.?"
_DATES = (
    r"\d{4}(?P<dash>[-/])\d{1,2}(?P=dash)\d{1,2}(?!\d)|\d{4}年\s?\d{1,2}月\s?\d{1,2}日"
    rf"|{_MONTH}\s\d{{1,2}}(?:st|nd|rd|th)?,?\s\d{{4}}|\d{{1,2}}\s{_MONTH},?\s\d{{4}}"
)
FIGURE = re.compile(
    rf"(?<![A-Za-z0-9_.])(?:(?P<date>{_DATES})|(?P<code>[A-Z]{{2,8}}-\d{{2,12}})"
    r"|(?P<sign>(?<![\w)])[-−])?(?P<currency>[$€£¥])?"
    r"(?P<digits>\d{1,3}(?:,\d{3}){1,5}(?:\.\d{1,20})?|\d{1,18}(?:\.\d{1,20})?)(?![\d_]|\.\d|,\d)"
    r"(?:\s?(?P<scale>thousand|million|billion|[千万億兆]))?"
    rf"(?:\s?(?P<unit>%|円|ドル)|\s?(?P<word>[A-Za-z]{{1,20}}|[{JAPANESE}]{{1,2}}))?)"
)
DIGIT = re.compile(r"\d")
# Commas between values, which hide them if no space follows. In JSON, only texts have others.
JSON_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,')
CSV_COMMA = re.compile(r"(?<=\d),(?=\d)(?!\d{3}(?!\d))|(?<=\d{4}),(?=\d)")
SCALES = {
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "千": 10**3,
    "万": 10**4,
    "億": 10**8,
    "兆": 10**12,
}
CURRENCIES = {"円": "¥", "ドル": "$"}
# One character each, so that positions stay the same.
HALF_WIDTH = str.maketrans("０１２３４５６７８９，．％￥＄－＋［］", "0123456789,.%¥$-+[]")


class Figure(NamedTuple):
    """A number, date or code in a text."""

    start: int
    end: int
    value: Decimal | date | str
    unit: str = ""
    decimals: int = 0
    digits: int = 0  # significant ones
    is_trivial: bool = False


def figures_in(text: str) -> Iterator[Figure]:
    """Return numbers, dates and codes, in any of the usual forms."""
    if DIGIT.search(text) is None:
        return
    for match in FIGURE.finditer(half_width(text)):
        figure = _date(match) if match["date"] else _code_or_number(match)
        if figure is not None:
            yield figure


def figures_in_data(text: str) -> Iterator[Figure]:
    """Return the figures of a tool's result, which can be JSON or CSV."""
    if text.startswith(("[", "{")):
        text = JSON_COMMA.sub(lambda match: match[1] or " ", text)
    return figures_in(CSV_COMMA.sub(" ", text))


def half_width(text: str) -> str:
    return text if text.isascii() else text.translate(HALF_WIDTH)


def _code_or_number(match: re.Match[str]) -> Figure | None:
    if match["code"]:
        return Figure(match.start(), match.end("code"), match["code"])
    digits = match["digits"]
    scale = SCALES.get(match["scale"] or "", 1)
    value = Decimal(digits.replace(",", "")) * scale
    unit = match["unit"] or match["currency"] or ""
    is_whole = "." not in digits and not match["currency"] and not match["unit"] and scale == 1
    is_year = "," not in digits and 1900 <= value <= 2100
    ends = [match.end(name) for name in ("digits", "scale", "unit")]
    return Figure(
        match.start(),
        max(ends),
        -value if match["sign"] else value,
        CURRENCIES.get(unit, unit) or (match["word"] or "").lower().rstrip("s"),
        len(digits.partition(".")[2]) if scale == 1 else 0,
        len(digits.replace(",", "").replace(".", "").lstrip("0")),
        is_whole and (value <= 12 or is_year),
    )


def _date(match: re.Match[str]) -> Figure | None:
    text = match["date"]
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    if len(numbers) == 3:
        year, month, day = numbers
    else:
        name = next(name for name in _MONTHS if name in text)
        year = max(numbers)
        month = _MONTHS.index(name) + 1
        day = min(numbers)
    try:
        return Figure(match.start(), match.end("date"), date(year, month, day))
    except ValueError:
        return None
