"""Numbers in words and in kanji."""

import re

_WORDS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen twenty
"""
WORDS = {word: number for number, word in enumerate(_WORDS.split())}
_ORDINALS = """
first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth
"""
ORDINALS = {word: number for number, word in enumerate(_ORDINALS.split(), start=1)}
WORD = re.compile(rf"\b(?:{'|'.join(WORDS)})\b", re.IGNORECASE)
_DIGITS = {character: number for number, character in enumerate("〇一二三四五六七八九")}
_SMALL = {"十": 10, "百": 100, "千": 1_000}
_LARGE = {"万": 10**4, "億": 10**8, "兆": 10**12}
CHARACTERS = "〇一二三四五六七八九十百千"
# Followed by what is counted: in other words, these characters are no numbers.
KANJI = re.compile(
    rf"(?<![{CHARACTERS}万億兆数第0-9])[{CHARACTERS}][{CHARACTERS}万億兆]*"
    r"(?=か月|ヶ月|カ月|時間|週間|年|月|日|分|秒|円|人|名|件|個|回|本|台|枚|社|店|歳|点|割|倍|％|%"
    r"|パーセント|ドル|ユーロ|キロ|メートル|グラム|トン|リットル|部屋|種類|駅|校|冊|枚|杯|匹|頭|戸|棟|か所|カ所|箇所|段|位|票|室|席|便|試合|科目|項目)"
)


def kanji_number(text: str) -> int:
    """Return the number that these characters stand for: 三千二百 or 二〇二五."""
    if not any(character in _SMALL or character in _LARGE for character in text):
        return int("".join(str(_DIGITS[character]) for character in text))
    total = section = digit = 0
    for character in text:
        if character in _DIGITS:
            digit = 10 * digit + _DIGITS[character]
        elif character in _SMALL:
            section += (digit or 1) * _SMALL[character]
            digit = 0
        else:
            total += (section + digit or 1) * _LARGE[character]
            section = digit = 0
    return total + section + digit


def number_words(number: int) -> tuple[str, ...]:
    """Return the words of a small number in English."""
    words = [word for word, value in WORDS.items() if value == number]
    words += [word for word, value in ORDINALS.items() if value == number]
    words += {1: ["once", "single"], 2: ["twice", "both", "pair"], 12: ["dozen"]}.get(
        number, []
    )
    return tuple(words)
