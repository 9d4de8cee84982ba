"""Names that a reader takes for each other, such as “ada” with a Cyrillic а."""

import unicodedata

from agents.engine.guardrails import fold, normalize

# Of Japanese signs, which the table leaves alone: in a name カ and 力 are told apart by nobody.
KANA_CONFUSABLES = str.maketrans("カロニハトエタチへべぺ一", "力口二八卜工夕千ヘベペー")
# A capital I is an l to the eye, and a small i to whoever folds cases.
LATIN_CONFUSABLES = str.maketrans("01i|ıǀ", "olllll")


def skeleton(name: str) -> str:
    """Return one form for all names that look alike; it is for comparing, not for reading."""
    seen = fold(unicodedata.normalize("NFKC", normalize(name).text)).casefold()
    alike = seen.translate(KANA_CONFUSABLES).translate(LATIN_CONFUSABLES)
    return alike.replace("rn", "m").replace("vv", "w")
