"""Detects names that look alike, such as “ada” with a Cyrillic а."""

import unicodedata
from hashlib import sha256

from agents.engine.guardrails import fold, normalize

# Japanese characters, which the table omits: in a name カ and 力 look the same.
KANA_CONFUSABLES = str.maketrans("カロニハトエタチへべぺ一", "力口二八卜工夕千ヘベペー")
# A capital I looks like an l, and casefolding makes it a small i.
LATIN_CONFUSABLES = str.maketrans("01i|ıǀ", "olllll")
MAX_CHARS = 180  # of the column it is saved in


def skeleton(name: str) -> str:
    """Return one form for all names that look alike, for comparison only."""
    folded = fold(unicodedata.normalize("NFKC", normalize(name).text)).casefold()
    mapped = folded.translate(KANA_CONFUSABLES).translate(LATIN_CONFUSABLES)
    form = mapped.replace("rn", "m").replace("vv", "w")
    if len(form) <= MAX_CHARS:
        return form
    # One sign can become 18; a shortened form is still different for different names.
    digest = sha256(form.encode(errors="replace")).hexdigest()
    return form[: MAX_CHARS - len(digest)] + digest
