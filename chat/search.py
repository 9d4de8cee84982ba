"""Searches a user's chats: titles, questions and answers of every branch.

The newest chats are searched first, and only until enough are found. There is no second copy of
what people wrote: `docs/decisions/chat-search.md` has the figures.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.db.models import F, FilteredRelation, Q, QuerySet
from django.urls import reverse
from django.utils.html import escape
from django.utils.http import urlencode
from django.utils.safestring import SafeString, mark_safe

from agents.access.names import display_name
from agents.db.sanitize import sanitize_text
from chat import listing
from chat.models import ChatSession, Message

MAX_QUERY_CHARS = 200
MAX_WORDS = 8
MAX_FOUND = 50  # chats
MAX_HITS = 3  # displayed per chat
PART_SIZE = 200  # chats searched at once
MAX_ROWS = 400  # messages read per part
EXCERPT_CHARS = 120

# Markup that isn't text; underscores stay, because names have them.
MARKUP = re.compile(r"[*`#>|~]+|\[(?=[^\]]*\]\()|\]\([^)]*\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A message that matches, with the text around the match."""

    message: int
    is_answer: bool
    excerpt: SafeString
    href: str


@dataclass(slots=True, kw_only=True)
class FoundSession:
    """A chat that matches, and where."""

    row: ChatSession
    title: SafeString
    is_archived: bool
    score: int
    hits: list[Hit] = field(default_factory=list)
    more: int = 0  # matching messages that aren't displayed


def parse(query: str) -> list[str]:
    """Return the words to search for; Japanese is written without spaces, so one is enough."""
    return list(dict.fromkeys(sanitize_text(query)[:MAX_QUERY_CHARS].split()))[:MAX_WORDS]


def search(user: User, query: str) -> list[FoundSession]:
    """Return the best matching chats, and in each the newest matching messages."""
    words, found, after = parse(query), list[FoundSession](), 0
    while words and len(found) < MAX_FOUND:
        part, is_last = _search_part(user, words, after)
        found += part
        after += PART_SIZE
        if is_last:
            break
    return sorted(found, key=lambda each: each.score, reverse=True)[:MAX_FOUND]


def _search_part(user: User, words: list[str], at: int) -> tuple[list[FoundSession], bool]:
    """Search some chats; return what matches, and whether they were the last ones."""
    filed = FilteredRelation("filings", condition=Q(filings__user=user))
    chats = ChatSession.objects.for_user(user).saved().select_related("user__profile")
    archived = chats.annotate(filed=filed, archived=F("filed__archived_at"))
    part = {chat.pk: chat for chat in archived[at : at + PART_SIZE]}
    rows: dict[int, list[dict[str, Any]]] = {}
    for row in _matching_messages(list(part), words):
        rows.setdefault(row["session"], []).append(row)
    live = listing.live_runs(user)
    found = []
    for chat in part.values():
        mine = rows.get(chat.pk, [])
        if mine or all(_contains(chat.title, word) for word in words):
            chat.live = live.get(chat.topic)
            chat.whose = "" if chat.user_id == user.pk else display_name(chat.user)
            found.append(_found_session(chat, mine, words))
    return found, len(part) < PART_SIZE


def _matching_messages(chats: list[int], words: list[str]) -> QuerySet[Message, dict[str, Any]]:
    """Return messages with every word that isn't in their chat's title."""
    messages = Message.objects.filter(session__in=chats)
    inside = Q(pk__in=())
    for word in words:
        here = _text_filter("text", word) | _text_filter("run__answer", word)
        messages = messages.filter(here | _text_filter("session__title", word))
        inside |= here
    columns = ("pk", "session", "text", "run__answer")
    return messages.filter(inside).order_by("-pk").values(*columns)[:MAX_ROWS]


def _text_filter(column: str, word: str) -> Q:
    """Match a word as typed, and with full-width letters as half-width ones."""
    forms = {word, unicodedata.normalize("NFKC", word)}
    condition = Q()
    for form in forms:
        condition |= Q(**{f"{column}__icontains": form})
    return condition


def _found_session(
    chat: ChatSession, rows: Sequence[dict[str, Any]], words: list[str]
) -> FoundSession:
    hits = [hit for row in rows for hit in _hits(chat, row, words)]
    return FoundSession(
        row=chat,
        title=mark(chat.title, words),
        is_archived=vars(chat)["archived"] is not None,
        score=_score(chat, rows, words),
        hits=hits[:MAX_HITS],
        more=len(hits[MAX_HITS:]),
    )


def _hits(chat: ChatSession, row: dict[str, Any], words: list[str]) -> list[Hit]:
    """Return the question and the answer of a message, as far as they match."""
    found = []
    for is_answer, text in ((False, row["text"]), (True, row["run__answer"] or "")):
        if any(_contains(text, word) for word in words):
            found.append(
                Hit(
                    message=row["pk"],
                    is_answer=is_answer,
                    excerpt=excerpt(text, words),
                    href=message_url(chat.pk, row["pk"], words),
                )
            )
    return found


def message_url(session: int, message: int, words: list[str]) -> str:
    """Return the address of a message with the words highlighted."""
    about = urlencode({"message": str(message), "q": " ".join(words)})
    return f"{reverse('chat:session', args=[session])}?{about}#message-{message}"


def _score(chat: ChatSession, rows: Sequence[dict[str, Any]], words: list[str]) -> int:
    """Rank a title above texts, and the whole phrase above its words; then the newest."""
    phrase = " ".join(words)
    if _contains(chat.title, phrase):
        return 4
    if all(_contains(chat.title, word) for word in words):
        return 3
    texts = (text or "" for row in rows for text in (row["text"], row["run__answer"]))
    return 2 if any(_contains(text, phrase) for text in texts) else 1


def excerpt(text: str, words: list[str]) -> SafeString:
    """Return the text around the first match, with every match marked."""
    plain = " ".join(MARKUP.sub("", text).split())
    match = _pattern(words).search(plain)
    middle = match.start() if match else 0
    start = max(0, middle - EXCERPT_CHARS // 3)
    if start and " " in plain[start:middle]:
        start += plain[start:middle].index(" ") + 1
    cut = plain[start : start + EXCERPT_CHARS]
    before = "…" if start else ""
    after = "…" if start + EXCERPT_CHARS < len(plain) else ""
    return mark_safe(f"{before}{mark(cut, words)}{after}")


def mark(text: str, words: list[str]) -> SafeString:
    """Escape the text and mark the words in it."""
    pieces, last = [], 0
    for match in _pattern(words).finditer(text):
        pieces += [escape(text[last : match.start()]), f"<mark>{escape(match[0])}</mark>"]
        last = match.end()
    return mark_safe("".join([*map(str, pieces), str(escape(text[last:]))]))


def _pattern(words: list[str]) -> re.Pattern[str]:
    forms = {form for word in words for form in (word, unicodedata.normalize("NFKC", word))}
    longest = sorted(forms, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest)), re.IGNORECASE)


def _contains(text: str, word: str) -> bool:
    return _pattern([word]).search(text) is not None


def as_json(found: Sequence[FoundSession]) -> list[dict[str, Any]]:
    """Return results for a page that displays them itself; excerpts are HTML."""
    return [
        {
            "id": each.row.pk,
            "title": each.row.title,
            "title_html": each.title,
            "url": reverse("chat:session", args=[each.row.pk]),
            "is_archived": each.is_archived,
            "shared_by": each.row.whose,
            "hits": [
                {"message": hit.message, "excerpt_html": hit.excerpt, "url": hit.href}
                for hit in each.hits
            ],
            "more": each.more,
        }
        for each in found
    ]
