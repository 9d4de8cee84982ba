"""A digest of the messages on a page, so that a returning page learns of changes above its end.

`static/js/connection.js` computes it from the elements, and `page_state` from the rows: the ids
with each message's place at its fork and the time of its last correction. A page with another
digest is rendered again.
"""

from collections.abc import Iterable
from datetime import datetime

from agents.db.sanitize import parse_id
from chat.sessions.branches import Fork

FNV_OFFSET = 2_166_136_261
FNV_PRIME = 16_777_619

Shown = tuple[int, Fork | None, datetime | None]


def digest(messages: Iterable[Shown]) -> str:
    """Return the first id and a hash of all, or nothing for an empty page."""
    lines = [f"{pk}|{fork or ''}|{edit_mark(edited)}" for pk, fork, edited in messages]
    if not lines:
        return ""
    fnv1a = FNV_OFFSET
    for byte in ",".join(lines).encode():
        fnv1a = ((fnv1a ^ byte) * FNV_PRIME) & 0xFFFFFFFF
    return f"{lines[0].partition('|')[0]}.{fnv1a:x}"


def edit_mark(edited: datetime | None) -> str:
    """Return when a text was corrected, as its element has it."""
    return "" if edited is None else str(int(edited.timestamp() * 1000))


def first_message(digest_text: str) -> int:
    """Return the id of the first message on a page."""
    return parse_id(digest_text.partition(".")[0]) or 0
