"""Numbers as people write them, in the figures that a calculator takes."""

import re
from decimal import Decimal

_ONES_IN_WORDS = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
    fifteen sixteen seventeen eighteen nineteen
"""
_TENS_IN_WORDS = "twenty thirty forty fifty sixty seventy eighty ninety"

_ONES = {word: value for value, word in enumerate(_ONES_IN_WORDS.split())}
_TENS = {word: value * 10 for value, word in enumerate(_TENS_IN_WORDS.split(), start=2)}
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}
_KANJI = {sign: value for value, sign in enumerate("〇一二三四五六七八九")}
_KANJI_SCALES = {"十": 10, "百": 100, "千": 1_000}

_WORD = "|".join(sorted([*_ONES, *_TENS, *_SCALES], key=len, reverse=True))

SCIENTIFIC = r"\d+(?:\.\d+)?e[+-]?\d{1,2}(?![a-z\d])"
FIGURES = r"\d+(?:,\d{3})+(?:\.\d+)?万?|\d+(?:\.\d+)?万?|\.\d+"
WORDED = (
    rf"(?<![a-z])(?:{_WORD})(?![a-z])(?:[ -](?:and )?(?:{_WORD})(?![a-z]))*"
    r"|[〇一二三四五六七八九十百千万]+(?!番|方|緒|般|月|年|日|乗)"
)


def figures(text: str) -> str:
    """The same number in plain figures: `1,234`, `3万`, `twenty-five`, `三百`."""
    plain = text.replace(",", "")
    if plain.endswith("万") and plain[0].isdigit():
        return f"{float(plain[:-1]) * 10_000:.12g}"
    if re.fullmatch(SCIENTIFIC, plain):
        return f"{Decimal(plain):f}"
    if plain[0].isdigit() or plain[0] == ".":
        return re.sub(r"^0+(?=\d)", "", plain)
    return str(_from_words(plain) if plain[0].isascii() else _from_kanji(plain))


def _from_words(text: str) -> int:
    total, section = 0, 0
    for word in re.findall(r"[a-z]+", text):
        if word == "hundred":
            section = (section or 1) * 100
        elif word in _SCALES:
            total, section = total + (section or 1) * _SCALES[word], 0
        else:
            section += _ONES.get(word, _TENS.get(word, 0))
    return total + section


def _from_kanji(text: str) -> int:
    total, section, digits = 0, 0, 0
    for sign in text:
        if sign == "万":
            total, section, digits = total + (section + digits or 1) * 10_000, 0, 0
        elif sign in _KANJI_SCALES:
            section, digits = section + (digits or 1) * _KANJI_SCALES[sign], 0
        else:
            digits = digits * 10 + _KANJI[sign]
    return total + section + digits
