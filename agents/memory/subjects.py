"""What a statement is about, by how it is written: a new one replaces the old one."""

import re

HOME, NAME, WORK, JOB = "home city", "name", "employer", "job"
PATTERNS = [
    (
        re.compile(
            r"\b(?:i(?:['’]m| am)?|user|they|she|he)\s+(?:now\s+|currently\s+)?"
            r"(?:lives?|living|moved|relocated|based|reside[sd]?)\s+(?:in|to|near)\b",
            re.I,
        ),
        HOME,
    ),
    (re.compile(r"(?:に|へ)(?:住んで|引っ越し|移住し|転居し)"), HOME),
    (re.compile(r"\b(?:my name is|call me|i am called|i['’]m called)\b", re.I), NAME),
    (re.compile(r"(?:名前は|と呼んで)"), NAME),
    (re.compile(r"\b(?:i|user|they)\s+(?:now\s+)?works?\s+(?:at|for)\b", re.I), WORK),
    (re.compile(r"(?:で働いて|に勤めて|に勤務)"), WORK),
    (re.compile(r"\b(?:i|user|they)\s+works?\s+as\b", re.I), JOB),
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


def subject_of(text: str) -> str:
    """Return a subject such as “home city” or “favorite tea”, or an empty text."""
    for pattern, subject in PATTERNS:
        if pattern.search(text):
            return subject
    found = OWNED.search(text) or OWNED_JAPANESE.search(text) or TOPIC_JAPANESE.search(text)
    return found["subject"].strip() if found else ""
