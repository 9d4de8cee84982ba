"""Detects names that look alike, such as “ada” with a Cyrillic а."""

import unicodedata

from agents.engine.guardrails import fold, normalize

# Japanese characters, which the table omits: in a name カ and 力 look the same.
KANA_CONFUSABLES = str.maketrans("カロニハトエタチへべぺ一", "力口二八卜工夕千ヘベペー")
# A capital I looks like an l, and casefolding makes it a small i.
LATIN_CONFUSABLES = str.maketrans("01i|ıǀ", "olllll")


def skeleton(name: str) -> str:
    """Return one form for all names that look alike, for comparison only."""
    seen = fold(unicodedata.normalize("NFKC", normalize(name).text)).casefold()
    alike = seen.translate(KANA_CONFUSABLES).translate(LATIN_CONFUSABLES)
    return alike.replace("rn", "m").replace("vv", "w")
