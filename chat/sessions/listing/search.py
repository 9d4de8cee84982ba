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
    """Return the terms to search for; Japanese is written without spaces, so one is enough."""
    return list(dict.fromkeys(sanitize_text(query)[:MAX_QUERY_CHARS].split()))[:MAX_WORDS]


def search(user: User, query: str) -> list[FoundSession]:
    """Return the best matching chats, and in each the newest matching messages."""
    terms = parse(query)
    if not terms:
        return []
    titles = dict(ChatSession.objects.for_user(user).saved().values_list("pk", "title"))
    chats = list(titles)
    matches_by_chat = dict[int, list[Match]]()
    for start in range(0, len(chats), PART_SIZE):
        batch = chats[start : start + PART_SIZE]
        titled_pks = [pk for pk in batch if all(_contains(titles[pk], term) for term in terms)]
        matches_by_chat |= {pk: [] for pk in titled_pks}
        for row in _matching_messages(batch, terms).iterator(CHUNK_ROWS):
            matches = matches_by_chat.setdefault(row["session"], [])
            matches.append(_match(row, terms) if len(matches) < MAX_HITS else Match())
        if len(matches_by_chat) >= MAX_FOUND:
            break

    def rank(pk: int) -> tuple[int, int]:
        """Rank a title above texts, and the whole phrase above its terms; then the newest."""
        if _contains(titles[pk], " ".join(terms)):
            score = 4
        elif all(_contains(titles[pk], term) for term in terms):
            score = 3
        else:
            score = 2 if any(match.has_phrase for match in matches_by_chat[pk]) else 1
        return -score, chats.index(pk)

    best = sorted(matches_by_chat, key=rank)[:MAX_FOUND]
    filed = FilteredRelation("filings", condition=Q(filings__user=user))
    sessions = ChatSession.objects.for_user(user).select_related("user__profile")
    rows = sessions.annotate(filed=filed, archived=F("filed__archived_at")).in_bulk(best)
    live = session_list.live_runs(user)
    results = []
    for chat in (rows[pk] for pk in best if pk in rows):
        chat.live = live.get(chat.topic)
        chat.whose = "" if chat.user_id == user.pk else display_name(chat.user)
        matches = matches_by_chat[chat.pk]
        hits = [hit for match in matches for hit in match.hits]
        results.append(
            FoundSession(
                row=chat,
                title=mark(chat.title, terms),
                is_archived=vars(chat)["archived"] is not None,
                hits=hits[:MAX_HITS],
                more=len(hits[MAX_HITS:]) + len(matches[MAX_HITS:]),
            )
        )
    return results


def _matching_messages(chats: list[int], terms: list[str]) -> QuerySet[Message, Row]:
    """Return messages with every term that isn't in their chat's title."""
    messages = Message.objects.filter(session__in=chats)
    has_any_term = Q(pk__in=())
    for term in terms:
        has_term = _text_filter("text", term) | _text_filter("run__answer", term)
        has_any_term |= has_term
        if len(terms) > 1:
            messages = messages.filter(has_term | _text_filter("session__title", term))
    columns = ("pk", "session", "text", "run__answer")
    return messages.filter(has_any_term).order_by("-pk").values(*columns)[:MAX_ROWS]


def _text_filter(column: str, term: str) -> Q:
    """Match a term as typed, and with full-width letters as half-width ones."""
    forms = {term, unicodedata.normalize("NFKC", term)}
    condition = Q()
    for form in forms:
        condition |= Q(**{f"{column}__icontains": form})
    return condition


def _match(row: Row, terms: list[str]) -> Match:
    """Return the question and the answer of a message, as far as they match."""
    texts = ((False, row["text"]), (True, row["run__answer"] or ""))
    hits = tuple(
        Hit(
            message=row["pk"],
            is_answer=is_answer,
            excerpt=excerpt(text, terms),
            href=message_url(row["session"], row["pk"], terms),
        )
        for is_answer, text in texts
        if any(_contains(text, term) for term in terms)
    )
    phrase = " ".join(terms)
    return Match(hits=hits, has_phrase=any(_contains(text, phrase) for _is, text in texts))


def message_url(session: int, message: int, terms: list[str]) -> str:
    """Return the address of a message with the terms highlighted."""
    parameters = urlencode({"message": str(message), "q": " ".join(terms)})
    return f"{reverse('chat:session', args=[session])}?{parameters}#message-{message}"


def excerpt(text: str, terms: list[str]) -> SafeString:
    """Return the text around the first match, with every match marked."""
    pattern = _pattern(tuple(terms))
    match = pattern.search(text)
    window_start = max(0, match.start() - NEAR_CHARS) if match else 0
    window_end = window_start + 2 * NEAR_CHARS
    plain = " ".join(MARKUP.sub("", RULES.sub("", text[window_start:window_end])).split())
    match = pattern.search(plain)
    middle = match.start() if match else 0
    start = max(0, middle - EXCERPT_CHARS // 3)
    if start and " " in plain[start:middle]:
        start += plain[start:middle].index(" ") + 1
    marked = mark(plain[start : start + EXCERPT_CHARS], terms)
    prefix = "…" if start or window_start else ""
    suffix = "…" if start + EXCERPT_CHARS < len(plain) or window_end < len(text) else ""
    return mark_safe(f"{prefix}{marked}{suffix}")


def mark(text: str, terms: list[str]) -> SafeString:
    """Escape the text and mark the terms in it."""
    pieces: list[str] = []
    last = 0
    for match in _pattern(tuple(terms)).finditer(text):
        pieces += [escape(text[last : match.start()]), f"<mark>{escape(match[0])}</mark>"]
        last = match.end()
    return mark_safe("".join([*pieces, escape(text[last:])]))


@lru_cache(64)
def _pattern(terms: tuple[str, ...]) -> re.Pattern[str]:
    forms = {form for term in terms for form in (term, unicodedata.normalize("NFKC", term))}
    longest = sorted(forms, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest)), re.IGNORECASE)


def _contains(text: str, term: str) -> bool:
    return _pattern((term,)).search(text) is not None


def as_json(results: Sequence[FoundSession]) -> list[dict[str, Any]]:
    """Return results for a page that displays them itself; excerpts are HTML."""
    return [
        {
            "id": result.row.pk,
            "title": result.row.title,
            "title_html": result.title,
            "url": reverse("chat:session", args=[result.row.pk]),
            "is_archived": result.is_archived,
            "shared_by": result.row.whose,
            "hits": [
                {"message": hit.message, "excerpt_html": hit.excerpt, "url": hit.href}
                for hit in result.hits
            ],
            "more": result.more,
        }
        for result in results
    ]
