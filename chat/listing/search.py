"""Searches a user's chats: titles, questions and answers of every branch.

The newest chats are searched first, and only until enough are found. There is no second copy of
what people wrote: `docs/decisions/chat-search.md` has the figures.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from django.contrib.auth.models import User
from django.db.models import F, FilteredRelation, Q, QuerySet
from django.urls import reverse
from django.utils.html import escape
from django.utils.http import urlencode
from django.utils.safestring import SafeString, mark_safe

from agents.access.names import display_name
from agents.db.sanitize import sanitize_text
from chat.models import ChatSession, Message

from . import session_list

Row = dict[str, Any]  # a matching message

MAX_QUERY_CHARS = 200
MAX_WORDS = 8
MAX_FOUND = 50  # chats
MAX_HITS = 3  # displayed per chat
PART_SIZE = 500  # chats searched at once
MAX_ROWS = 400  # messages read per part
CHUNK_ROWS = 10  # in memory at once: an imported message can have megabytes
EXCERPT_CHARS = 120
NEAR_CHARS = 2_000  # read around a match, markup included

# Markup that isn't text; underscores stay, because names have them, and so do "6 * 7" and "C#".
MARKUP = re.compile(
    r"^\s*(?:#{1,6}|>+|\*)\s+|\[[ xX]\]\s|[`|]+|~~+"
    r"|(?<!\w)\*{1,3}(?=\S)|(?<=\S)\*{1,3}(?!\w)"
    r"|\[(?=[^\[\]]{0,300}\]\()|\]\([^()]{0,300}\)",
    re.MULTILINE,
)
RULES = re.compile(r"^[ \t|:-]{2,}$", re.MULTILINE)  # lines between parts and in tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A message that matches, with the text around the match."""

    message: int
    is_answer: bool
    excerpt: SafeString
    href: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """What is left of a matching message once its text was read."""

    hits: tuple[Hit, ...] = ()
    has_phrase: bool = False


@dataclass(slots=True, kw_only=True)
class FoundSession:
    """A chat that matches, and where."""

    row: ChatSession
    title: SafeString
    is_archived: bool
    hits: list[Hit] = field(default_factory=list)
    more: int = 0  # matching messages that aren't displayed


def parse(query: str) -> list[str]:
    """Return the words to search for; Japanese is written without spaces, so one is enough."""
    return list(dict.fromkeys(sanitize_text(query)[:MAX_QUERY_CHARS].split()))[:MAX_WORDS]


def search(user: User, query: str) -> list[FoundSession]:
    """Return the best matching chats, and in each the newest matching messages."""
    words = parse(query)
    if not words:
        return []
    titles = dict(ChatSession.objects.for_user(user).saved().values_list("pk", "title"))
    chats = list(titles)
    found = dict[int, list[Match]]()
    for start in range(0, len(chats), PART_SIZE):
        batch = chats[start : start + PART_SIZE]
        titled_pks = [pk for pk in batch if all(_contains(titles[pk], word) for word in words)]
        found |= {pk: [] for pk in titled_pks}
        for row in _matching_messages(batch, words).iterator(CHUNK_ROWS):
            matches = found.setdefault(row["session"], [])
            matches.append(_match(row, words) if len(matches) < MAX_HITS else Match())
        if len(found) >= MAX_FOUND:
            break
    ranked = sorted(
        found, key=lambda pk: (_score(titles[pk], found[pk], words), -chats.index(pk))
    )
    return _load(user, ranked[: -MAX_FOUND - 1 : -1], found, words)


def _load(
    user: User, best: list[int], found: dict[int, list[Match]], words: list[str]
) -> list[FoundSession]:
    """Return these chats in this order, with what the list shows of them."""
    filed = FilteredRelation("filings", condition=Q(filings__user=user))
    chats = ChatSession.objects.for_user(user).select_related("user__profile")
    rows = chats.annotate(filed=filed, archived=F("filed__archived_at")).in_bulk(best)
    live = session_list.live_runs(user)
    for chat in rows.values():
        chat.live = live.get(chat.topic)
        chat.whose = "" if chat.user_id == user.pk else display_name(chat.user)
    return [_found_session(rows[pk], found[pk], words) for pk in best if pk in rows]


def _matching_messages(chats: list[int], words: list[str]) -> QuerySet[Message, Row]:
    """Return messages with every word that isn't in their chat's title."""
    messages = Message.objects.filter(session__in=chats)
    inside = Q(pk__in=())
    for word in words:
        here = _text_filter("text", word) | _text_filter("run__answer", word)
        inside |= here
        if len(words) > 1:
            messages = messages.filter(here | _text_filter("session__title", word))
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
    chat: ChatSession, matches: Sequence[Match], words: list[str]
) -> FoundSession:
    hits = [hit for match in matches for hit in match.hits]
    return FoundSession(
        row=chat,
        title=mark(chat.title, words),
        is_archived=vars(chat)["archived"] is not None,
        hits=hits[:MAX_HITS],
        more=len(hits[MAX_HITS:]) + len(matches[MAX_HITS:]),
    )


def _match(row: Row, words: list[str]) -> Match:
    """Return the question and the answer of a message, as far as they match."""
    texts = ((False, row["text"]), (True, row["run__answer"] or ""))
    hits = tuple(
        Hit(
            message=row["pk"],
            is_answer=is_answer,
            excerpt=excerpt(text, words),
            href=message_url(row["session"], row["pk"], words),
        )
        for is_answer, text in texts
        if any(_contains(text, word) for word in words)
    )
    phrase = " ".join(words)
    return Match(hits=hits, has_phrase=any(_contains(text, phrase) for _is, text in texts))


def message_url(session: int, message: int, words: list[str]) -> str:
    """Return the address of a message with the words highlighted."""
    about = urlencode({"message": str(message), "q": " ".join(words)})
    return f"{reverse('chat:session', args=[session])}?{about}#message-{message}"


def _score(title: str, matches: Sequence[Match], words: list[str]) -> int:
    """Rank a title above texts, and the whole phrase above its words; then the newest."""
    phrase = " ".join(words)
    if _contains(title, phrase):
        return 4
    if all(_contains(title, word) for word in words):
        return 3
    return 2 if any(match.has_phrase for match in matches) else 1


def excerpt(text: str, words: list[str]) -> SafeString:
    """Return the text around the first match, with every match marked."""
    found = _pattern(words).search(text)
    near = max(0, found.start() - NEAR_CHARS) if found else 0
    rest = near + 2 * NEAR_CHARS
    plain = " ".join(MARKUP.sub("", RULES.sub("", text[near:rest])).split())
    match = _pattern(words).search(plain)
    middle = match.start() if match else 0
    start = max(0, middle - EXCERPT_CHARS // 3)
    if start and " " in plain[start:middle]:
        start += plain[start:middle].index(" ") + 1
    cut = plain[start : start + EXCERPT_CHARS]
    before = "…" if start or near else ""
    after = "…" if start + EXCERPT_CHARS < len(plain) or rest < len(text) else ""
    return mark_safe(f"{before}{mark(cut, words)}{after}")


def mark(text: str, words: list[str]) -> SafeString:
    """Escape the text and mark the words in it."""
    pieces, last = [], 0
    for match in _pattern(words).finditer(text):
        pieces += [escape(text[last : match.start()]), f"<mark>{escape(match[0])}</mark>"]
        last = match.end()
    return mark_safe("".join([*map(str, pieces), str(escape(text[last:]))]))


def _pattern(words: list[str]) -> re.Pattern[str]:
    return _compile(tuple(words))


@lru_cache(64)
def _compile(words: tuple[str, ...]) -> re.Pattern[str]:
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
