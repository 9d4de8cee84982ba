"""Numbers, dates and codes in a text, in any of the usual forms of English and Japanese."""

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from agents.engine.text import JAPANESE

from .numerals import KANJI, WORD, WORDS, kanji_number
from .units import NAMES, dimension_of, factor_between, unit_of

_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_MONTH_NAMES = (
    "Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    "|Sep(?:t(?:ember)?)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?"
)
_MONTH = rf"(?:{_MONTH_NAMES})\b\.?"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
ERAS = {
    "令和": 2018,
    "平成": 1988,
    "昭和": 1925,
    "大正": 1911,
    "明治": 1867,
    "R": 2018,
    "H": 1988,
    "S": 1925,
}
_YEAR = r"(?:\d{4}|(?:令和|平成|昭和|大正|明治)\s?(?:\d{1,2}|元))年"
_QUARTERS = {"一": 1, "二": 2, "三": 3, "四": 4}
_DATES = (
    r"(?P<iso>\d{4}(?P<dash>[-/.])\d{1,2}(?P=dash)\d{1,2}(?!\d))"
    rf"|(?P<kanji>{_YEAR}(?:度"
    rf"|\s?\d{{1,2}}月(?:\s?\d{{1,2}}日)?)?(?:度?の?第?[1-4一二三四]四半期)?)"
    rf"|(?P<mdy>{_MONTH}[^\S\n](?:{_DAY}(?!\d|\s?[°%])(?:,?\s\d{{4}}(?!\d))?|,?\d{{4}}(?!\d)))"
    rf"|(?P<dmy>{_DAY}[^\S\n](?:of\s)?{_MONTH}(?:,?\s\d{{4}}(?!\d))?)"
    r"|(?P<quarter>Q[1-4](?:\s?(?:of|in|[/-]|FY)?\s?'?\d{4})?(?!\d)"
    r"|(?:FY\s?)?\d{4}[ /-]?Q[1-4](?!\d)"
    r"|第?[1-4一二三四]四半期)"
    r"|(?P<half>[12]H\s?\d{4}(?!\d)|H[12]\s\d{4}(?!\d))"
    r"|(?P<era>[RHS]\d{1,2}\.\d{1,2}\.\d{1,2}(?![\d.]))"
    r"|(?P<fiscal>FY\s?\d{4}(?!\d))"
    r"|(?P<month>\d{4}-(?:0[1-9]|1[0-2])(?![\d-]))"
    r"|(?P<japanese>\d{1,2}月\s?\d{1,2}日|\d{1,2}月(?!間))"
    r"|(?P<slashes>\d{1,2}(?P<mark>[/.])\d{1,2}(?P=mark)\d{4}(?!\d))"
    r"|(?P<time>(?:午前|午後)\s?\d{1,2}時(?!間)(?:\d{1,2}分|半)?"
    r"|\d{1,2}時(?!間)(?:\d{1,2}分|半)?"
    r"|\d{1,2}:\d{2}(?::\d{2})?(?!\d)(?:\s?[AaPp]\.?[Mm]\b\.?)?|\d{1,2}\s?[AaPp]\.?[Mm]\b\.?)"
)
_DURATION = (
    r"\d{1,4}\s?(?:hours?|hrs?|h|時間)(?:\s|\sand\s|,\s)?"
    r"(?:\d{1,2}\s?(?:minutes?|mins?|m|分)|(?<=h )\d{2})(?![A-Za-z\d])"
)
_LARGE = r"\d[\d,]*(?:\.\d+)?[千百十]?[兆億万千]"
FIGURE = re.compile(
    r"(?<![A-Za-z0-9_.])(?=[\d$€£¥A-Z令平昭大明第午−-])(?<!\d:)"
    rf"(?:(?P<date>{_DATES})|(?P<duration>{_DURATION})"
    r"|(?P<phone>\+?\d{1,4}(?:[-‑]\d{2,5}){2,3}(?![\d-])|\+\d{1,3}[ -]\d[\d -]{6,14}\d)"
    r"|(?P<code>[A-Z]{1,8}(?:[-‑][A-Z]{1,8})?[-‑]?\d{1,12}(?:[-‑.]\d{1,12})*(?:[-‑][A-Z0-9]{1,8})*(?![A-Za-z0-9_]))"
    r"|(?P<version>\d{1,5}(?:\.\d{1,5}){2,4}(?![\d.]*\d))"
    r"|(?P<fraction>(?<!/)\d{1,4}/\d{1,4}(?![\d/])|\d{1,3}分の\d{1,3})"
    r"|(?P<sign>(?<![\w)\d])[-−])?(?P<currency>(?:US|A|C|S|NZ|HK)?[$€£¥]"
    r"|(?:USD|EUR|JPY|GBP)(?!\s?\d+[年月日時])\s?)?\s?(?:(?P<compound>"
    rf"(?:{_LARGE}){{2,4}}\d{{0,4}}|{_LARGE}\d[\d,]{{2,5}})"
    r"|(?P<european>\d{1,3}(?:\.\d{3}){2,5}(?:,\d{1,2})?(?![\d,.]\d)"
    r"|\d{1,3}\.\d{3},\d{1,2}(?!\d)"
    r"|\d{1,3},\d{1,2}(?=\s?(?:%|€|EUR|km\b|kg\b|ユーロ)))"
    r"|(?P<spaced>\d{1,3}(?:[\u00a0\u202f\u2009'’]\d{3}){1,5}(?!\d)"
    r"|\d{1,3}(?: \d{3}){2,4}(?!\d)"
    r"|\d{1,3} \d{3}(?=\s?(?:€|EUR\b)))"
    r"|(?P<digits>\d{1,3}(?:,\d{3}){1,5}(?:\.\d{1,20})?"
    r"|\d{1,18}(?:\.\d{1,20})?)(?![\d_]|\.\d|,\d))"
    r"(?:[^\S\n]?(?P<scale>thousand|million|billion|trillion|百万|[千百十]?[万億兆]|千|百(?=[万億]))"
    r"|(?P<letter>[kKMB]|\s?(?:bn|mn)|m)(?![A-Za-z0-9/²³]))?"
    rf"(?:[^\S\n]?(?P<unit>%|per\scent\b|円|ドル|割|[€£¥](?!\d)|°[CF])"
    rf"|(?=(?:[^\S\n]|-)?(?P<word>km/h|m/s|[ck]?m[²³]|[A-Za-zµμ]{{1,20}})(?![A-Za-z0-9_²³])"
    rf"|[^\S\n]?(?P<counter>[{JAPANESE}℃㎡]{{1,5}})))?)"
)
DIGIT = re.compile(r"\d")
DIGEST = re.compile(r"\b(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7,40}\b")
DIGITS = re.compile(r"\d+")
# Commas between values, which hide them if no space follows. In JSON, only texts have others.
JSON_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,')
CSV_COMMA = re.compile(r"(?<=\d),(?=\d)(?!\d{3}(?!\d))|(?<=\d{4}),(?=\d)")
ISO_TIME = re.compile(r"(?<=-\d\d)T(?=\d\d:)")
TIMES = re.compile(r"\bx(?=\d)")  # x412
SERIES = re.compile(r"\s?(?:[x×–~〜～-]|to)\s?")  # numbers with one unit
SCALES = {
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "k": 10**3,
    "K": 10**3,
    "m": 10**6,
    "M": 10**6,
    "mn": 10**6,
    "B": 10**9,
    "bn": 10**9,
    "十": 10,
    "百": 100,
    "千": 10**3,
    "万": 10**4,
    "億": 10**8,
    "兆": 10**12,
}
# One character each, so that positions stay the same.
HALF_WIDTH = str.maketrans(
    "０１２３４５６７８９，．％￥＄－＋［］：／", "0123456789,.%¥$-+[]:/"
)
MAX_TRIVIAL = 12
IMPOSSIBLE_DATE = "date"  # the unit of a text such as 33 August
# Days of a range, beside the date with its month.
_DAY_BEFORE = re.compile(r"(?<!\d)(\d{1,2})日?\s?[-–—~〜～]\s?$")
_DAY_AFTER = re.compile(r"\s?[-–—~〜～]\s?(\d{1,2})(?![\d:/月])")
WORD_UNIT = re.compile(r"[ -](?:(?:business|working|calendar|full) )?([A-Za-z]{1,20})")
_YEAR_AND_MONTH = {("年", "か月"), ("year", "month")}
_LARGE_PART = re.compile(r"([\d,.]+)([千百十]?)([兆億万千]?)")


class Period(NamedTuple):
    """A date without its year or its day, a month, a quarter or a time of day."""

    year: int = 0
    month: int = 0
    day: int = 0
    quarter: int = 0
    minute: int = -1  # of the day
    second: int = 0  # of the minute


class Figure(NamedTuple):
    """A number, date or code in a text.

    `step` is the value of its last written digit. A trivial one may match by chance.
    """

    start: int
    end: int
    value: Decimal | date | Period | str
    unit: str = ""
    decimals: int = 0
    digits: int = 0  # significant ones
    is_trivial: bool = False
    step: float = 1.0
    is_word: bool = False  # written in words or in kanji


def figures_in(text: str, *, words: bool = False) -> Iterator[Figure]:
    """Return numbers, dates and codes, in any of the usual forms; `words` are numbers, too."""
    if not text.isascii():
        text = half_width(text)
        if KANJI.search(text):
            for match in KANJI.finditer(text):
                figure = _kanji_figure(match, text)
                if figure is not None:
                    yield figure
            text = KANJI.sub(_kanji_date, text)
    if DIGIT.search(text) is not None or "元年" in text:
        previous: Figure | None = None
        for match in FIGURE.finditer(text):
            figure = _date(match) if match["date"] else _code_or_number(match)
            if figure is None:
                continue
            joined = _joined(previous, figure, text)
            if joined is None and previous is not None:
                yield previous
            previous = joined or figure
        if previous is not None:
            yield previous
        for match in DIGEST.finditer(text):
            yield Figure(*match.span(), match[0])
    if words:
        for match in WORD.finditer(text):
            unit = WORD_UNIT.match(text, match.end())
            name = unit_of(unit[1]) if unit else ""
            value = Decimal(WORDS[match[0].lower()])
            end = unit.end() if unit and dimension_of(name) else match.end()
            yield Figure(match.start(), end, value, name, 0, 2, True, 1.0, True)


def _joined(first: Figure | None, second: Figure, text: str) -> Figure | None:
    """Return a length, duration or amount in two units as one: 1年2か月, 143円62銭."""
    if first is None or not isinstance(first.value, Decimal):
        return None
    factor = factor_between(first.unit, second.unit)
    if factor is None or factor <= 1 or not isinstance(second.value, Decimal):
        return None
    gap = text[first.end : second.start]
    is_time = dimension_of(first.unit) == "time"
    if gap not in {"", " "} and not (is_time and gap == " and ") or second.value >= factor:
        return None
    factor = 12 if (first.unit, second.unit) in _YEAR_AND_MONTH else round(factor)
    value = first.value * factor + second.value
    digits = max(3, first.digits + second.digits)
    return Figure(first.start, second.end, value, second.unit, 0, digits, False, second.step)


def figures_in_data(text: str) -> Iterator[Figure]:
    """Return the figures of a tool's result, which can be JSON or CSV."""
    if text.startswith(("[", "{")) and text.rstrip().endswith(("]", "}")):
        text = JSON_COMMA.sub(lambda match: match[1] or " ", text)
    text = TIMES.sub(" ", ISO_TIME.sub(" ", CSV_COMMA.sub(" ", text)))
    figures = list(figures_in(text))
    for index in range(len(figures) - 2, -1, -1):
        figure = figures[index]
        following = figures[index + 1]
        gap = text[figure.end : following.start]
        is_number = isinstance(figure.value, Decimal) and figure.unit in {"", "x"}
        if is_number and len(gap) < 5 and SERIES.fullmatch(gap):
            figures[index] = figure._replace(unit=following.unit)
    for figure in figures:
        yield figure
        start = figure.start
        if figure.unit == "/":
            for match in DIGITS.finditer(str(figure.value)):
                number = Decimal(match[0])
                size = len(match[0])
                yield Figure(start + match.start(), start + match.end(), number, "", 0, size)
        elif isinstance(figure.value, date | Period) and figure.value.day:
            day = _DAY_BEFORE.search(text[max(0, start - 6) : start]) or _DAY_AFTER.match(
                text, figure.end
            )
            if day is not None and 0 < int(day[1]) <= 28:
                yield figure._replace(value=_with_day(figure.value, int(day[1])))


def _with_day(value: date | Period, day: int) -> date | Period:
    return value.replace(day=day) if isinstance(value, date) else value._replace(day=day)


def half_width(text: str) -> str:
    return text if text.isascii() else text.translate(HALF_WIDTH)


def _kanji_figure(match: re.Match[str], text: str) -> Figure | None:
    counter = text[match.end() : match.end() + 3]
    if counter.startswith(("年", "月", "日")) and not counter.startswith("年間"):
        return None  # of a date
    value = kanji_number(match[0])
    unit = unit_of(counter)
    if counter.startswith("割"):
        value *= 10
        unit = "%"
    end = match.end() + (len(unit) if counter.startswith(unit) else 0)
    return Figure(
        match.start(),
        end,
        Decimal(value),
        unit,
        0,
        max(1, len(str(value).rstrip("0"))),
        value <= MAX_TRIVIAL,
        1.0,
        True,
    )


def _kanji_date(match: re.Match[str]) -> str:
    """Write numbers of dates as digits, if these are as long."""
    if match.string[match.end() : match.end() + 1] not in {"年", "月", "日"}:
        return match[0]
    digits = str(kanji_number(match[0]))
    is_as_long = len(match[0]) - len(digits) in {0, 1}
    return digits.rjust(len(match[0])) if is_as_long else match[0]


def _code_or_number(match: re.Match[str]) -> Figure | None:
    for kind in ("code", "phone", "version"):
        if match[kind]:
            return Figure(match.start(), match.end(kind), match[kind].replace("‑", "-"))
    if match["fraction"]:
        return Figure(
            match.start(), match.end("fraction"), match["fraction"], "/", is_trivial=True
        )
    if match["duration"]:
        hours, minutes = re.findall(r"\d+", match["duration"])
        total = Decimal(60 * int(hours) + int(minutes))
        return Figure(match.start(), match.end("duration"), total, "min", 0, 3)
    letter = (match["letter"] or "").strip()
    is_metres = letter == "m" and not match["currency"]
    multiplier = 1 if is_metres else SCALES.get(letter, 1)
    for character in match["scale"] or "" if (match["scale"] or "") not in SCALES else ():
        multiplier *= SCALES[character]
    multiplier *= SCALES.get(match["scale"] or "", 1)
    written = "compound" if match["compound"] else "digits"
    if match["compound"]:
        value = _compound(match["compound"])
        digits = re.sub(r"[^\d]", "", match["compound"])
        plain = str(value)
        step = float(10 ** (len(plain) - len(plain.rstrip("0"))))
        decimals = 0
    else:
        if match["european"]:
            written = "european"
            digits = match["european"].replace(".", "").replace(",", ".")
        elif match["spaced"]:
            written = "spaced"
            digits = re.sub(r"\D", "", match["spaced"])
        else:
            digits = match["digits"].replace(",", "")
        value = Decimal(digits)
        fraction = digits.partition(".")[2]
        value *= multiplier
        step = 10.0 ** -len(fraction) * multiplier
        decimals = len(fraction) if multiplier == 1 else 0
    unit = match["unit"] or (match["currency"] or "").strip()[-3:]
    is_whole = written == "digits" and "." not in digits and not unit and multiplier == 1
    if unit == "割":
        value *= 10
        step *= 10
        unit = "%"
    end = max(match.end(name) for name in (written, "scale", "letter", "unit"))
    word = "m" if is_metres else match["word"] or match["counter"] or ""
    if not unit and word:
        unit = unit_of(word)
        if dimension_of(unit) or unit in NAMES.values():
            end = _unit_end(match, unit)
    else:
        unit = NAMES.get(unit.lower(), unit[-1:] if unit[-1:] in "$€£¥" else unit.lower())
    is_year = "," not in (match["digits"] or ",") and 1900 <= value <= 2100
    return Figure(
        match.start(),
        end,
        -value if match["sign"] else value,
        unit,
        decimals,
        len(digits.replace(".", "").lstrip("0")),
        is_whole and (value <= MAX_TRIVIAL or is_year),
        step,
    )


def _unit_end(match: re.Match[str], unit: str) -> int:
    """Return where a unit ends that belongs to the number: in 3か月後, before 後."""
    if match["letter"]:
        return match.end("letter")
    if match["word"]:
        return match.end("word")
    start = match.start("counter")
    size = next((n for n in range(5, 0, -1) if _is_unit(match["counter"][:n], n, unit)), 1)
    return min(start + size, match.end("counter"))


@lru_cache(1_000)
def _is_unit(text: str, size: int, unit: str) -> bool:
    return len(text) == size and (text == unit or NAMES.get(text) == unit)


def _compound(text: str) -> Decimal:
    total = Decimal(0)
    for digits, small, large in _LARGE_PART.findall(text):
        scale = SCALES.get(small, 1) * SCALES.get(large, 1)
        total += Decimal(digits.replace(",", "")) * scale
    return total


def _date(match: re.Match[str]) -> Figure:
    text = match["date"]
    start = match.start()
    end = match.end("date")
    try:
        value = _date_value(match, text)
    except ValueError:
        return Figure(start, end, text, IMPOSSIBLE_DATE)
    return Figure(start, end, value)


def _date_value(match: re.Match[str], text: str) -> date | Period:
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    if match["time"]:
        return _time(text, numbers)
    if match["quarter"] or "四半期" in text:
        kanji = re.search(r"([1-4一二三四])四半期", text)
        if kanji is not None:
            quarter = _QUARTERS.get(kanji[1]) or int(kanji[1])
        else:
            quarter = min(numbers)
        year = (
            _era_year(text, numbers)
            if "年" in text
            else max((n for n in numbers if n > 999), default=0)
        )
        return Period(year=year, quarter=quarter)
    if match["half"]:
        return Period(year=max(numbers), quarter=10 + min(numbers))
    if match["fiscal"]:
        return Period(year=numbers[0])
    if match["era"]:
        return date(ERAS[text[0]] + numbers[0], numbers[1], numbers[2])
    if match["iso"]:
        return date(*numbers)
    if match["month"]:
        return Period(numbers[0], numbers[1])
    if match["slashes"]:
        first, second, year = numbers
        # The other order where only that is possible.
        is_day_first = first > 12 or match["mark"] == "."
        return date(year, second, first) if is_day_first else date(year, first, second)
    if match["kanji"]:
        year = _era_year(text, numbers)
        rest = numbers if "元" in text else numbers[1:]
        return date(year, *rest[:2]) if len(rest) > 1 else Period(year, *rest)
    if match["japanese"]:
        return _checked(Period(0, *numbers))
    month = next(number for number, name in enumerate(_MONTHS, start=1) if name in text)
    year = next((number for number in numbers if number > 31), 0)
    days = [number for number in numbers if number != year]
    day = days[0] if days else 0
    return date(year, month, day) if year and day else _checked(Period(year, month, day))


def _checked(period: Period) -> Period:
    date(2000, period.month, period.day or 1)  # raises ValueError
    return period


def _era_year(text: str, numbers: list[int]) -> int:
    era = next(
        (name for name in ("令和", "平成", "昭和", "大正", "明治") if text.startswith(name)), ""
    )
    number = 1 if "元年" in text else numbers[0]
    return ERAS[era] + number if era else number


def _time(text: str, numbers: list[int]) -> Period:
    hour = numbers[0]
    minute = numbers[1] if len(numbers) > 1 else 30 if "半" in text else 0
    letter = text.replace(".", "").rstrip()[-2:-1].lower()
    is_late = text.startswith("午後") or (
        letter == "p" and text.rstrip(". ")[-1:].lower() == "m"
    )
    is_early = text.startswith("午前") or letter == "a"
    if hour > 24 or minute > 59:
        raise ValueError(text)  # no time of a day
    if is_late and hour < 12:
        hour += 12
    if is_early and hour == 12:
        hour = 0
    second = numbers[2] if len(numbers) > 2 else 0
    return Period(minute=60 * hour + minute, second=second)
