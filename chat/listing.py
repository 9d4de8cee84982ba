"""Lists and searches a user's chats."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db.models import CharField, Exists, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Coalesce, NullIf
from django.utils import timezone

from agents.access.names import display_name
from agents.db.compiled_queries import compiled_query
from agents.db.sanitize import sanitize_text
from agents.models import Membership, Run
from chat.models import ChatSession, Message

MAX_SESSIONS = 100
MAX_QUERY_CHARS = 200

OWNER_NAME = Coalesce(
    NullIf("user__profile__display_name", Value("")), "user__username", output_field=CharField()
)

Runs = Mapping[str, Run]


def search_sessions(user: User, query: str = "") -> list[ChatSession]:
    """Return a user's own and shared chats that match, newest first."""
    words = sanitize_text(query)[:MAX_QUERY_CHARS].split()[:8]
    chats = (
        list(_matching_sessions(user, words)[:MAX_SESSIONS])
        if words
        else _newest_sessions(user)
    )
    live = live_runs(user)
    for chat in chats:
        chat.live = live.get(chat.topic)
        if chat.user_id != user.pk:
            chat.whose = display_name(chat.user)
    return chats


def _matching_sessions(user: User, words: Iterable[str]) -> QuerySet[ChatSession]:
    chats = ChatSession.objects.for_user(user).select_related("user__profile")
    for word in words:
        messages = Message.objects.filter(
            Q(text__icontains=word) | Q(run__answer__icontains=word), session=OuterRef("pk")
        )
        chats = chats.filter(Q(title__icontains=word) | Exists(messages))
    return chats


def _newest_sessions(user: User) -> list[ChatSession]:
    """Query in two parts: an index sorts the user's own chats, and shared ones are few."""
    both = _own_sessions(user.pk) + _shared_sessions(user.pk)
    return sorted(both, key=lambda chat: (chat.updated_at, chat.pk), reverse=True)[
        :MAX_SESSIONS
    ]


@compiled_query
def _own_sessions(user: int) -> QuerySet[ChatSession]:
    return ChatSession.objects.owned_by(user)[:MAX_SESSIONS]


@compiled_query
def _shared_sessions(user: int) -> QuerySet[ChatSession]:
    return ChatSession.objects.shared_with(user).select_related("user__profile")[:MAX_SESSIONS]


SessionOutline = tuple[datetime, int, str, bool, str]


def outline(user: User) -> list[SessionOutline]:
    """Return last use, id, title, whether shared and by whom, for each listed chat."""
    own = [(*row, "") for row in _own_outline(user.pk)]
    return sorted(own + _shared_outline(user.pk), reverse=True)[:MAX_SESSIONS]


@compiled_query
def _own_outline(user: int) -> QuerySet[ChatSession, tuple[datetime, int, str, bool]]:
    sessions = ChatSession.objects.owned_by(user)
    return sessions.values_list("updated_at", "pk", "title", "is_shared")[:MAX_SESSIONS]


@compiled_query
def _shared_outline(user: int) -> QuerySet[ChatSession, SessionOutline]:
    sessions = ChatSession.objects.shared_with(user)
    about = ("updated_at", "pk", "title", "is_shared", OWNER_NAME)
    return sessions.values_list(*about)[:MAX_SESSIONS]


def day_starts() -> tuple[datetime, datetime]:
    """Return when today and yesterday started, for the headings of the list."""
    today = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    return today, today - timedelta(days=1)


def live_runs(user: User) -> Runs:
    """Return live runs in the user's chats, by topic."""
    return {run.topic: run for run in _live_runs(user.pk)}


@compiled_query
def _live_runs(user: int) -> QuerySet[Run]:
    shared = Membership.objects.filter(user=user).order_by().values("topic")
    here = Run.objects.live().filter(Q(user=user) | Q(topic__in=shared))
    return here.order_by().only("topic", "status")
