"""Finds what a user asks to remember: “Remember that …”, 「…を覚えておいて」."""

import re
import unicodedata

from agents.models import Memory

# A longer message may contain a document, whose words aren't the user's.
MAX_MESSAGE_CHARS = 1_000
ENGLISH = re.compile(
    r"\s*(?:(?:ok(?:ay)?|hey|hi|and|also|so)[,!.]?\s+)?(?:please\s+)?"
    r"(?:(?:can|could|would|will)\s+you\s+)?(?:please\s+)?"
    r"(?:remember|don['’]?t\s+forget|keep\s+in\s+mind|save\s+to\s+(?:your\s+)?memory)"
    r"(?P<how>\s+that\s+|\s*:\s*|,\s*|\s+)(?P<text>.+)",
    re.IGNORECASE | re.DOTALL,
)
# “Remember when we met?” and “remember the name of …?” ask something.
NOT_STATED = re.compile(r"\s*(?:when|what|where|who|why|how|which|if|whether)\b", re.IGNORECASE)
JAPANESE_FIRST = re.compile(
    r"\s*(?:これを|次を|以下を)?(?:覚えて(?:おいて)?|記憶して(?:おいて)?)(?:ください|ね|くれ)?\s*[:：、,]\s*(?P<text>.+)",
    re.DOTALL,
)
JAPANESE_LAST = re.compile(
    r"\s*(?P<text>.+?)(?:ということ|こと|の)?(?:を|は|と|って|、|。|，)?\s*"
    r"(?:覚えて(?:おいて)?|記憶して(?:おいて)?|メモリに保存して|忘れないで)"
    r"(?:ください|下さい|ね|くださいね|もらえますか|くれる|ほしい(?:です)?)?[。！!\s]*",
    re.DOTALL,
)
# What follows one of these may be somebody else's.
QUOTATION = re.compile(
    '[\n\r\v\f\x85\u2028\u2029:："＂“”„«»‹›「『【《〈`>＞]'
    r"|(?<![^\W_])['‘’‚]"  # but not an apostrophe
)
PREFERENCE = re.compile(
    r"\b(?:prefer|always|never|from now on|call me|answer|reply|respond|write|speak|use|avoid|"
    r"likes?|hates?|dislikes?)\b|してください|して下さい|答えて|返信して|呼んで|好き|嫌い|苦手|で話して|使って",
    re.IGNORECASE,
)


def stated(message: str) -> str:
    """Return what the message asks to remember, in the user's words, or an empty text."""
    if len(message) > MAX_MESSAGE_CHARS:
        return ""
    text = unicodedata.normalize("NFC", message)
    first, _, _rest = text.strip().partition("\n\n")
    if first.rstrip().endswith(("?", "？")):
        return ""
    if found := JAPANESE_FIRST.fullmatch(first) or JAPANESE_LAST.fullmatch(first):
        return found["text"].strip(" 　、。")
    found = ENGLISH.fullmatch(first)
    if found is None or (found["how"].isspace() and NOT_STATED.match(found["text"])):
        return ""
    return found["text"].strip()


def may_be_quoted(message: str) -> bool:
    """Whether a request at the end of a message may belong to text that the message quotes."""
    first, _, _rest = message.strip().partition("\n\n")
    found = None if JAPANESE_FIRST.fullmatch(first) else JAPANESE_LAST.fullmatch(first)
    return found is not None and QUOTATION.search(found["text"]) is not None


def kind_of(text: str) -> Memory.Kind:
    """Return whether it reads like a preference, which agents always get."""
    return Memory.Kind.PREFERENCE if PREFERENCE.search(text) else Memory.Kind.FACT
