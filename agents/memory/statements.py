"""Finds what a user asks to remember, and what that is about.

E.g. “Remember that …”, 「…を覚えておいて」.
"""

import re
import unicodedata

from agents.models import Memory

from .texts import normalize_subject, words

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
# Not a name: “a small house”, “the countryside”.
UNNAMED = r"(?!\s+(?:an?|the|my|our|this|that|one|some|home)\b)"
UNNAMED_BEFORE = (
    "(?<!近く)(?<!ちかく)(?<!そば)(?<!隣)(?<!沿い)"
    "(?<!家)(?<!マンション)(?<!アパート)(?<!寮)(?<!田舎)(?<!都会)(?<!郊外)"
)
# How a statement is written tells what it is about.
SUBJECTS = [
    (
        re.compile(
            r"\b(?:i(?:['’]m| am)?|user|they|she|he)\s+(?:now\s+|currently\s+)?"
            r"(?:lives?|living|moved|relocated|based|reside[sd]?)\s+(?:in|to)\b" + UNNAMED,
            re.I,
        ),
        "home city",
    ),
    (re.compile(r"\b(?:my|user['’]s) home is (?:now )?in\b" + UNNAMED, re.I), "home city"),
    (re.compile(UNNAMED_BEFORE + r"(?:に|へ)(?:住んで|引っ越し|移住し|転居し)"), "home city"),
    (re.compile(r"\b(?:my name is|call me|i am called|i['’]m called)\b", re.I), "name"),
    (re.compile(r"(?:名前は|と呼んで)"), "name"),
    (
        re.compile(r"\b(?:i|user|they)\s+(?:now\s+)?works?\s+(?:at|for)\b" + UNNAMED, re.I),
        "employer",
    ),
    (re.compile(r"(?:で働いて|に勤めて|に勤務)"), "employer"),
    (re.compile(r"\b(?:i|user|they)\s+works?\s+as\b", re.I), "job"),
]
OWNED = re.compile(
    r"\b(?:my|(?:the )?user['’]s|our)\s+(?P<subject>\w[\w\s-]{0,40}?)\s+"
    r"(?:is|are|was|will be)\b",
    re.I,
)
OWNED_JAPANESE = re.compile(
    r"(?:私|わたし|僕|俺|自分|うち)の(?P<subject>[^、。はがを]{1,20}?)[はが]"
)
TOPIC_JAPANESE = re.compile(
    r"^(?P<subject>好きな[^、。はがを]{1,12}|好物|趣味|誕生日|職業|会社|住所|出身)[はが]"
)
# Of these there is one at a time; of others, such as hobbies, there can be several.
SINGLE = re.compile(
    r"home(?: ?town| city)?|(?:home )?address|city|country|(?:first |last |full )?name|"
    r"nickname|birthday|birth date|age|job|occupation|profession|employer|company|"
    r"(?:native|first) language|time ?zone|e ?mail(?: address)?|phone(?: number)?|"
    r"(?:wife|husband|spouse|partner)|blood type|favou?rite .+|"
    r"住所|出身(?:地)?|名前|あだ名|誕生日|生年月日|年齢|職業|仕事|会社|勤務先|母語|"
    r"メールアドレス|電話番号|血液型|一番好きな.+",
    re.IGNORECASE,
)
CHANGE = re.compile(
    r"\b(?:now|nowadays|currently|no longer|any ?more|instead|changed|switched|from now on)\b|"
    r"今は|いまは|現在は|これからは|変わ|変え|やめ",
    re.IGNORECASE,
)
ADDITION = re.compile(
    r"\b(?:also|too|as well|another|other|second|sometimes|part[- ]time|weekends?)\b|"
    r"にも|もう一つ|もうひとつ|ほかに|他に|別の|時々|ときどき|週末",
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
    if match := JAPANESE_FIRST.fullmatch(first) or JAPANESE_LAST.fullmatch(first):
        return match["text"].strip(" 　、。")
    match = ENGLISH.fullmatch(first)
    if match is None or (match["how"].isspace() and NOT_STATED.match(match["text"])):
        return ""
    return match["text"].strip()


def may_be_quoted(message: str) -> bool:
    """Whether a request at the end of a message may belong to text that the message quotes."""
    first, _, _rest = message.strip().partition("\n\n")
    match = None if JAPANESE_FIRST.fullmatch(first) else JAPANESE_LAST.fullmatch(first)
    return match is not None and QUOTATION.search(match["text"]) is not None


def kind_of(text: str) -> Memory.Kind:
    """Return whether it reads like a preference, which agents always get."""
    return Memory.Kind.PREFERENCE if PREFERENCE.search(text) else Memory.Kind.FACT


def subject_of(text: str) -> str:
    """Return a subject such as “home city” or “favorite tea”, or an empty text."""
    for pattern, subject in SUBJECTS:
        if pattern.search(text):
            return subject
    match = OWNED.search(text) or OWNED_JAPANESE.search(text) or TOPIC_JAPANESE.search(text)
    return match["subject"].strip() if match else ""


def replaces(new: str, old: str, subject: str) -> bool:
    """Whether a new memory about this subject makes the old one wrong.

    Both must be about it in their own words: the subject may be a model's guess. If in doubt,
    both are true.
    """
    if ADDITION.search(new) or not (_is_about(new, subject) and _is_about(old, subject)):
        return False
    return SINGLE.fullmatch(subject) is not None or CHANGE.search(new) is not None


def _is_about(text: str, subject: str) -> bool:
    if normalize_subject(subject_of(text)) == subject:
        return True
    subject_words = words(subject)
    return bool(subject_words) and subject_words <= words(text)
