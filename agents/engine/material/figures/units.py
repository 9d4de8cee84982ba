"""Units of figures: which can be converted into each other, and by how much."""

import re
from functools import lru_cache

# For each kind of quantity, its units and how many of the smallest they are.
_DIMENSIONS: dict[str, dict[str, float]] = {
    "length": {
        "mm millimeter millimetre ミリ ミリメートル": 1,
        "cm centimeter centimetre センチ センチメートル": 10,
        "m meter metre メートル": 1_000,
        "km kilometer kilometre キロメートル": 1_000_000,
        "mile mi マイル": 1_609_344,
        "feet foot ft": 304.8,
        "inch インチ": 25.4,
    },
    "mass": {
        "mcg µg μg microgram マイクログラム": 1e-3,
        "mg milligram ミリグラム": 1,
        "g gram グラム": 1_000,
        "kg kilogram キログラム": 1_000_000,
        "t ton tonne トン": 1_000_000_000,
        "oz ounce": 28_349.52,
        "lb pound": 453_592.37,
    },
    "bytes": {
        "b byte バイト": 1,
        "kb kilobyte": 1e3,
        "kib": 1_024,
        "mb megabyte": 1e6,
        "mib": 1_024**2,
        "gb gigabyte ギガバイト": 1e9,
        "gib": 1_024**3,
        "tb terabyte テラバイト": 1e12,
    },
    "time": {
        "ms millisecond ミリ秒": 1e-3,
        "s sec second 秒 秒間": 1,
        "min minute mins 分 分間": 60,
        "h hr hour 時間": 3_600,
        "day 日間 日 営業日": 86_400,
        "week 週間 週": 604_800,
        "month か月 ヶ月 カ月 ヵ月 ケ月 箇月 か月間 ヶ月間 カ月間": 2_629_746,
        "quarter": 7_889_238,
        "year yr 年 年間": 31_556_952,
    },
    "volume": {
        "ml milliliter millilitre ミリリットル": 1,
        "dl": 100,
        "l liter litre リットル": 1_000,
        "m³ 立方メートル": 1_000_000,
    },
    "area": {
        "cm²": 1e-4,
        "m² ㎡ 平方メートル": 1,
        "ha hectare ヘクタール": 1e4,
        "km² 平方キロ 平方キロメートル": 1e6,
    },
    "speed": {"km/h": 1, "m/s": 3.6, "mph": 1.609344, "knot": 1.852},
    "power": {"w watt ワット": 1, "kw": 1e3, "mw": 1e6, "gw": 1e9},
    "energy": {"wh": 1, "kwh": 1e3, "mwh": 1e6, "gwh": 1e9, "kcal": 1.16222, "kj": 0.277778},
    "temperature": {"°c ℃ celsius degree 度": 1, "°f ℉": 1},
    "share": {"%": 1},
    "dollars": {"$": 1},
    "yen": {"¥": 100, "銭": 1},
    "euros": {"€": 1},
    "pounds": {"£": 1},
    "age": {"歳 才": 1},
}
_UNITS = {
    name: (dimension, factor)
    for dimension, units in _DIMENSIONS.items()
    for names, factor in units.items()
    for name in names.split()
}
NAMES = {
    "円": "¥",
    "jpy": "¥",
    "yen": "¥",
    "ドル": "$",
    "usd": "$",
    "dollar": "$",
    "米ドル": "$",
    "ユーロ": "€",
    "eur": "€",
    "euro": "€",
    "ポンド": "£",
    "gbp": "£",
    "percent": "%",
    "per cent": "%",
    "パーセント": "%",
    "ポイント": "%",
    "pt": "%",
    "pp": "%",
    "percentage": "%",
}
_DISK_UNITS = {"G": "gb", "T": "tb", "Gi": "gib", "Ti": "tib"}  # not grams and tons
# Words after a number that aren't what it counts.
_NO_UNITS = """
of and to or in on at for with from is are was were by as the a an that but than if
so out above below be had has which more other key main thing way tip point reason
option type part step different per つ
"""
NO_UNITS = frozenset(_NO_UNITS.split())
COUNTERS = (
    "人名件個回本台枚社店点棟部冊種行室席杯皿箱校戸隻機区票通匹頭羽着足駅便紙誌品語字章条項階倍"
)
_JAPANESE_NAMES = sorted((n for n in {*_UNITS, *NAMES} if not n.isascii()), key=len)
_JAPANESE_UNITS = re.compile("|".join(reversed(_JAPANESE_NAMES)))  # the longest first


@lru_cache(10_000)
def unit_of(word: str) -> str:
    """Return what a word after a number means as a unit; an empty string for a particle."""
    if not word:
        return ""
    word = _DISK_UNITS.get(word, word.lower())
    if word.isascii():
        singular = word.rstrip("s") if len(word) > 2 else word
        singular = NAMES.get(singular, singular)
        return "" if singular in NO_UNITS or word in NO_UNITS else singular
    if match := _JAPANESE_UNITS.match(word):
        return NAMES.get(match[0], match[0])
    if word[0] in COUNTERS:
        return "人" if word[0] == "名" else word[0]
    return "" if word[0] < "一" else word[:2]  # kana are particles


def dimension_of(unit: str) -> str:
    """Return what kind of quantity has this unit, if that is certain."""
    entry = _UNITS.get(unit)
    return entry[0] if entry else ""


@lru_cache(10_000)
def factors_of(unit: str) -> tuple[float, ...]:
    """Return the factors by which a figure in this unit becomes one in another."""
    entry = _UNITS.get(unit)
    if entry is None:
        return ()
    dimension, factor = entry
    factors = {factor / unit_factor for unit_factor in _DIMENSIONS[dimension].values()}
    if dimension == "bytes" and factor > 1:
        factors |= {factor / 1_024, 1 / 1_024, 1_024.0}
    return tuple(sorted(factors - {1.0}))


def factor_between(unit: str, other_unit: str) -> float | None:
    """Return by what a figure is multiplied for another unit; None if it can't be."""
    first = _UNITS.get(unit)
    second = _UNITS.get(other_unit)
    if first is None or second is None or first[0] != second[0]:
        return None
    return first[1] / second[1]


def is_alike(unit: str, other_unit: str) -> bool:
    """Whether figures with these units may be added up or compared; most words are no units."""
    are_words = unit not in _UNITS and other_unit not in _UNITS
    return unit == other_unit or not unit or not other_unit or are_words


def is_same_unit(unit: str, other_unit: str) -> bool:
    """Whether both are one unit, perhaps in other words."""
    return bool(unit) and (unit == other_unit or factor_between(unit, other_unit) == 1.0)
