"""Reads the one number of a text answer, with its unit, in English and Japanese.

A text with several numbers, a range, a bound (“at least 40”) or a spelling that could mean
two numbers (“1,23”) has no clear number: a wrong figure in a sum is worse than none.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Context, Decimal

MAX_TEXT_CHARS = 20_000
MAX_DIGITS = 30
LOOK_BEHIND = 24

_EXACT = Context(prec=200)  # more than any number accepted here
_CURRENCIES = "$¥€£₩₹"
_ENGLISH_SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_JAPANESE_SCALES = {"百": 2, "千": 3, "万": 4, "億": 8, "兆": 12}
_SYMBOL_LIST = """
m cm mm km m2 km2 ha g mg kg lb oz ft L ml mL h min s ms
kB KB MB GB TB W kW MW kWh MWh V Hz kHz MHz GHz bps °C °F ° % ‰
"""
_SYMBOLS = {*_SYMBOL_LIST.split(), *_CURRENCIES}
_WORDS = {
    **dict.fromkeys(("us$", "usd", "dollar", "dollars"), "$"),
    **dict.fromkeys(("jpy", "yen"), "¥"),
    **dict.fromkeys(("eur", "euro", "euros"), "€"),
    **dict.fromkeys(("gbp", "pounds"), "£"),
    **{code: code.upper() for code in ("chf", "cny", "krw", "inr", "cad", "aud")},
    "percent": "%",
    **dict.fromkeys(("kilometer", "kilometers", "kilometre", "kilometres"), "km"),
    **dict.fromkeys(("meter", "meters", "metre", "metres"), "m"),
    **dict.fromkeys(("kilogram", "kilograms"), "kg"),
    **dict.fromkeys(("gram", "grams"), "g"),
    **dict.fromkeys(("ton", "tons", "tonne", "tonnes"), "t"),
    **dict.fromkeys(("liter", "liters", "litre", "litres"), "L"),
    **dict.fromkeys(("hour", "hours", "hrs"), "h"),
    **dict.fromkeys(("minute", "minutes", "mins"), "min"),
    **dict.fromkeys(("second", "seconds", "sec"), "s"),
    **dict.fromkeys(("day", "days"), "days"),
    **dict.fromkeys(("week", "weeks"), "weeks"),
    **dict.fromkeys(("month", "months"), "months"),
    **dict.fromkeys(("year", "years"), "years"),
    **dict.fromkeys(("mile", "miles"), "miles"),
    **dict.fromkeys(("feet", "foot"), "ft"),
    **dict.fromkeys(("people", "persons", "person"), "people"),
    **dict.fromkeys(("token", "tokens"), "tokens"),
}
_JAPANESE = {
    **{"円": "¥", "米ドル": "$", "ドル": "$", "ユーロ": "€", "ポンド": "£", "パーセント": "%"},
    **{"キロメートル": "km", "メートル": "m", "キログラム": "kg", "グラム": "g", "トン": "t"},
    **{"リットル": "L", "時間": "h", "分間": "min", "分": "min", "秒間": "s", "秒": "s"},
    **{
        "日間": "days",
        "週間": "weeks",
        "年間": "years",
        "マイル": "miles",
        "トークン": "tokens",
    },
    **dict.fromkeys(("か月", "カ月", "ヶ月", "ヵ月"), "months"),
    **dict.fromkeys(("人", "名"), "人"),
    **{unit: unit for unit in "個件本台枚冊回社点歳倍箱杯匹軒元日月年時"},
}

_LITERAL = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_DIGIT_RUN = re.compile(r"\d(?:[\d,.]*\d)?")
_PLAIN = re.compile(rf"{_LITERAL}(?:[eE][-+]?\d{{1,2}}(?![\d.,]))?")
_COMPOUND = re.compile(rf"(?:{_LITERAL}\s?[百千]?[百千万億兆]\s?)+(?:{_LITERAL})?")
_COMPOUND_PART = re.compile(rf"({_LITERAL})\s?([百千]?[百千万億兆]?)")
_SCALE_WORD = re.compile(r"[ -]?(thousand|million|billion|trillion)(?![A-Za-z])", re.I)
_BEFORE = re.compile(
    rf"(?P<bound>(?:[<>≤≥±~〜▲△]|(?<=\d)\s?[/:^×÷*])\s*)?(?P<sign>[-+]?)"
    rf"(?P<currency>[A-Z]{{0,3}}[{_CURRENCIES}]|(?<![A-Za-z])(?:USD|JPY|EUR|GBP|CHF)\s?)?"
    rf"(?P<late_sign>[-+]?)\Z"
)
_BOUND_BEFORE = re.compile(
    r"(?:at (?:least|most)|(?:more|less|fewer|greater) than|over|under|up to|above|below)\s*\Z",
    re.I,
)
_BOUND_AFTER = re.compile(
    r"\s*(?:or (?:more|less|fewer|over)|以上|以下|未満|超|[~〜±×÷^]|[-–—/:*]\s?\d|\+)", re.I
)
_UNIT_WORD = re.compile(r"(?P<space>[ -]?)(?P<word>[A-Za-z]+[23]?|°[CF]?|[%‰]|[$¥€£₩₹])")
_JAPANESE_UNIT = re.compile(
    r"\s?(" + "|".join(sorted(_JAPANESE, key=len, reverse=True)) + r")(?!の\d)"
)
_ORDINAL = re.compile(r"(?:st|nd|rd|th)(?![A-Za-z])")
_PER = re.compile(r"\s*(?:/|\bper\b)\s*([A-Za-z]+)")
_LIST_MARKER = re.compile(r"^\s*\d{1,3}[.)]\s+(?=\S)", re.M)
_CITATION = re.compile(r"\[\d{1,3}\]")
_CODE = re.compile(r"```.*?```|`[^`\n]+`", re.S)
_BOLD = re.compile(r"(?<![\d*])\*\*(?=[^\s*])([^*\n]+)\*\*(?![\d*])")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit; an empty unit is a plain number."""

    value: Decimal
    unit: str = ""


class UnclearNumber(ValueError):
    """Raised where a text has a figure that could mean several numbers."""


def read_quantity(text: str) -> Quantity | None:
    """Return the text's only number, or the only one that stands in bold by itself."""
    if len(text) > MAX_TEXT_CHARS:
        return None
    text = unicodedata.normalize("NFKC", _CITATION.sub("", text)).replace("−", "-")
    emphasized = {
        quantity for bold in _BOLD.findall(text) if (quantity := _whole(bold.strip(" .。:")))
    }
    if len(emphasized) == 1:
        return emphasized.pop()
    text = _BOLD.sub(r"\1", text)
    markers = _LIST_MARKER.findall(text)
    text = _LIST_MARKER.sub("", text) if len(markers) > 1 else text
    # Code is how a number was worked out, unless there is nothing else.
    return _only(_CODE.sub(" ", text)) or _only(text.replace("`", ""))


def format_quantity(value: Decimal, unit: str = "") -> str:
    """Format a number with its unit, as in $1,234.50, 12 km or 40%."""
    sign = "-" if value < 0 else ""
    figure = format(value.copy_abs(), ",f")
    currency, slash, per = unit.partition("/")
    if currency and currency[-1] in _CURRENCIES:
        return f"{sign}{currency}{figure}{slash}{per}"
    return f"{sign}{figure}{'' if unit[:1] in ('', '%', '‰', '°') else ' '}{unit}"


def _whole(text: str) -> Quantity | None:
    """Return the quantity if the text is nothing else."""
    try:
        quantities = list(_quantities(text))
    except UnclearNumber:
        return None
    if len(quantities) != 1:
        return None
    quantity, start, end = quantities[0]
    return quantity if not text[:start].strip() and not text[end:].strip() else None


def _only(text: str) -> Quantity | None:
    only: Quantity | None = None
    try:
        for quantity, _, _ in _quantities(text):
            if only is not None and quantity != only:
                return None
            only = quantity
    except UnclearNumber:
        return None
    return only


def _quantities(text: str) -> Iterator[tuple[Quantity, int, int]]:
    """Yield each quantity with its start and end; names such as Q3 and 2nd are none."""
    position = 0
    while digits := _DIGIT_RUN.search(text, position):
        start = digits.start()
        text_before = text[max(0, start - LOOK_BEHIND) : start]
        if re.search(r"[A-Za-z_#]-?\Z", text_before):
            position = digits.end()
            continue
        lead = _BEFORE.search(text_before)
        if lead is None or lead["bound"] is not None or _BOUND_BEFORE.search(text_before):
            raise UnclearNumber(text_before[-20:])
        is_signed = lead["sign"] or lead["late_sign"]
        if is_signed and re.search(r"[\d)%]\s?\Z", text_before[: lead.start()]):
            raise UnclearNumber(text_before[-20:])  # a range or a difference
        number, position = _number(text, start)
        if ordinal := _ORDINAL.match(text, position):
            position = ordinal.end()
            continue
        unit, position = _unit(text, position)
        if _BOUND_AFTER.match(text, position):
            raise UnclearNumber(digits.group())
        currency = (lead["currency"] or "").strip()
        per = unit if unit.startswith("/") else ""
        is_negative = "-" in lead["sign"] + lead["late_sign"]
        number = number.copy_negate() if is_negative else number
        unit = _WORDS.get(currency.lower(), currency) + per if currency else unit
        yield Quantity(number, unit), start - len(text_before) + lead.start(), position


def _number(text: str, start: int) -> tuple[Decimal, int]:
    if compound := _COMPOUND.match(text, start):  # such as 1億2,300万
        total = Decimal(0)
        last_exponent = 99
        for literal, scale in _COMPOUND_PART.findall(compound.group()):
            exponent = sum(_JAPANESE_SCALES[character] for character in scale)
            if exponent >= last_exponent:
                raise UnclearNumber(compound.group())
            total = _EXACT.add(total, _EXACT.scaleb(_decimal(literal), exponent))
            last_exponent = exponent
        return total, compound.end()
    digits = _DIGIT_RUN.match(text, start)
    plain = _PLAIN.match(text, start)
    assert digits is not None
    if plain is None or plain.end() < digits.end():
        raise UnclearNumber(digits.group())
    value = _decimal(plain.group())
    end = plain.end()
    if scale := _SCALE_WORD.match(text, end):
        return _EXACT.scaleb(value, _ENGLISH_SCALES[scale[1].lower()]), scale.end()
    return value, end


def _decimal(literal: str) -> Decimal:
    if len(literal) > MAX_DIGITS:
        raise UnclearNumber(literal)
    return Decimal(literal.replace(",", ""))


def _unit(text: str, start: int) -> tuple[str, int]:
    """Return the unit at this position and its end; letters on a number must be one."""
    unit = ""
    end = start
    if match := _JAPANESE_UNIT.match(text, start):
        unit = _JAPANESE[match[1]]
        end = match.end()
    elif match := _UNIT_WORD.match(text, start):
        name = match["word"]
        unit = name if name in _SYMBOLS else _WORDS.get(name.lower(), "")
        if not unit and not match["space"]:
            raise UnclearNumber(text[start - 5 : match.end()])
        end = match.end() if unit else start
    if per := _PER.match(text, end):
        return f"{unit}/{per[1]}", per.end()
    return unit, end
