"""Names in a sentence that neither a result nor the question has."""

import re
from collections.abc import Iterator

from agents.engine.text import KANJI, KATAKANA, STOP_WORDS

from .numerals import CHARACTERS

_TITLES = r"(?:Dr|Mr|Ms|Mrs|Prof)\."
_CAPITALIZED = rf"(?!{_TITLES})[A-Z][a-zà-öø-ÿ'’]+(?:-[A-Z][a-z]+)?"
# Two or more in a row, or one inside a sentence.
NAME = re.compile(
    rf"\b(?:{_TITLES}\s)?{_CAPITALIZED}(?:\s(?:(?:of|de|van|von|der|la"
    rf"|&)\s)?(?:{_CAPITALIZED}|[A-Z]\.))*"
)
BEGINNING = re.compile(r"(?:^|[.!?:;•*\-–—|(（\"“「\n]|\*\*)\s*$")
JAPANESE_NAME = re.compile(
    rf"((?![{CHARACTERS}万]+駅)[{KANJI}]{{1,4}}|[{KATAKANA}]{{2,12}}(?:・[{KATAKANA}]{{2,12}})?)"
    r"(?=さん|氏|様(?!子|式|々)|(?:営業|開発|人事|経理|総務|製造"
    r"|品質)?(?:社長|部長|課長|係長|店長|教授|選手|監督|医師|弁護士)|支店"
    r"|工場|営業所|駅|病院|大学|銀行|信用金庫)"
)
INITIALS = re.compile(rf"\b[A-Z]\.\s?(?:[A-Z]\.\s?)?({_CAPITALIZED})")
JAPANESE_FULL_NAME = re.compile(
    rf"(?<![{KANJI}])([{KANJI}]{{1,3}}[ \u3000][{KANJI}]{{1,3}})(?![{KANJI}])"
)
JAPANESE_PLACE = re.compile(
    rf"([{KATAKANA}]{{3,12}})(?:共和国|王国|半島|高原|山脈|諸島|湖|島|山|川|市|州)"
)
JAPANESE_COMPANY = re.compile(
    rf"株式会社([{KANJI}{KATAKANA}A-Za-z]{{2,15}})"
    rf"|([{KATAKANA}A-Za-z]{{2,15}}|[{KANJI}]{{2,6}})株式会社"
)
SPACE = re.compile(r"[ \u3000]")
# Words that are capitalized in any text.
_COMMON = """
january february march april may june july august september october november
december jan feb mar apr jun jul aug sep sept oct nov dec monday tuesday wednesday
thursday friday saturday sunday mon tue wed thu fri sat sun english japanese french
german spanish chinese italian portuguese dutch swedish finnish korean russian arabic
european american british asian african western eastern
northern southern celsius fahrenheit internet excel markdown python dear best
regards thanks note please yes no ok i we you they he she it the a an this that
these those if in on at for from with and or but so as by to of is are was were not
there here your our their its my his her total average sum overall source sources
table summary important however therefore additionally meanwhile compared based
according q1 q2 q3 q4 dr mr ms mrs prof christmas easter new north south east west
central
"""
COMMON = frozenset(_COMMON.split())
# What stands before a title without being a name.
_GENERIC = """
担当 各 皆 お客 お客様 新 同 両 全 前 現 元 副 本 当 他 最寄 最寄り 総合 国立 市立
県立 大 主要 直営 営業 開発 人事 経理 総務 製造 品質 代表 責任者 先 弊 貴 御 上 名
何 仕 模 多 対象 各種 多く 有 無
"""
GENERIC = frozenset(_GENERIC.split())


def has_known_name(sentence: str, known: str, padded: str) -> bool:
    """Whether a sentence has a name that is known; `padded` are all known words."""
    for match in NAME.finditer(sentence):
        words = [word.strip(".'’").lower() for word in match[0].split()]
        is_first = BEGINNING.search(sentence[: match.start()]) is not None
        if is_first and len(words) == 1 and words[0] in STOP_WORDS:
            continue
        known_words = [word for word in words if len(word) > 2 and word not in STOP_WORDS]
        if any(f" {word} " in padded for word in known_words):
            return True
    if sentence.isascii():
        return False
    joined = SPACE.sub("", known)
    return any(
        SPACE.sub("", match[1]).casefold() in joined
        for pattern in (JAPANESE_NAME, JAPANESE_FULL_NAME, JAPANESE_PLACE)
        for match in pattern.finditer(sentence)
    )


def unknown_names(sentence: str, known: str) -> Iterator[tuple[int, int]]:
    """Yield where names are whose words are not in `known`, a folded text."""
    if sentence.isascii() or re.search(r"[A-Z][a-z]", sentence):
        for match in NAME.finditer(sentence):
            yield from _unknown_name(match, sentence, known)
        for match in INITIALS.finditer(sentence):
            if not _is_known(match[1], known):
                yield match.span()
    if sentence.isascii():
        return
    joined = SPACE.sub("", known)
    for pattern in (JAPANESE_NAME, JAPANESE_COMPANY, JAPANESE_FULL_NAME, JAPANESE_PLACE):
        for match in pattern.finditer(sentence):
            name = SPACE.sub("", next(filter(None, match.groups()))).casefold()
            parts = match[0].casefold().split()
            is_known = name in joined or (len(parts) > 1 and all(p in joined for p in parts))
            if name not in GENERIC and not is_known:
                yield match.span()


def _unknown_name(match: re.Match[str], sentence: str, known: str) -> Iterator[tuple[int, int]]:
    words = match[0].split()
    start = match.start()
    is_first = BEGINNING.search(sentence[:start]) is not None
    if (
        is_first
        and len(words) > 1
        and words[0].lower().rstrip(".") not in {"dr", "mr", "ms", "mrs", "prof"}
    ):
        checked_words = words[1:]
    else:
        checked_words = [] if is_first and len(words) == 1 else words
    unknown = [word for word in checked_words if not _is_known(word, known)]
    if not unknown:
        return
    if is_first and len(unknown) < len(words) - 1:
        return
    end = match.end()
    yield (
        start if not is_first or not _is_known(words[0], known) else start + len(words[0]) + 1,
        end,
    )


def _is_known(word: str, known: str) -> bool:
    plain = word.strip(".'’&").lower().removesuffix("'s").removesuffix("’s")
    if len(plain) < 3 or plain in COMMON:
        return True
    return plain in known or (len(plain) > 5 and plain[:-2] in known)
