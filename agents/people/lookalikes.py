"""Names that a reader takes for each other, such as “ada” with a Cyrillic а."""

import unicodedata

from agents.engine.plain import plain

# Letters that look like Latin ones in most typefaces, as small or as capital letters.
CYRILLIC = dict(zip("авесһіјкмнорԛѕтуԝхѵԁӏгь", "abechijkmhopqstywxvdlrb", strict=True))
GREEK = dict(zip("αβγεζηικμνορτυχω", "abyezhikuvoptuxw", strict=True))
ARMENIAN = dict(zip("ազհոսցօ", "wqhnugo", strict=True))
KANA = dict(zip("カロニハトエタチへべぺ一", "力口二八卜工夕千ヘベペー", strict=True))
LETTERS = str.maketrans(CYRILLIC | GREEK | ARMENIAN | KANA)
# A capital I is an l to the eye, and a small i to whoever folds cases.
DIGITS = str.maketrans("01i|ıǀ", "olllll")


def skeleton(name: str) -> str:
    """Return one form for all names that look alike; it is for comparing, not for reading."""
    folded = unicodedata.normalize("NFKC", plain(name).text).casefold()
    seen = folded.translate(LETTERS).translate(DIGITS)
    return seen.replace("rn", "m").replace("vv", "w")
