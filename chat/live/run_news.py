"""Tells users that a run has ended or waits for them, wherever they are.

Pages with a socket are told at once; others ask while a run is live. The page decides whether
to notify, because it knows what its user is looking at.
"""

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse, JsonResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_GET

from agents.access.requests import UserRequest
from agents.db import database
from agents.db.compiled_queries import compiled_query
from agents.db.sanitize import parse_id
from agents.models import Run
from agents.runs import pubsub
from chat.models import ChatSession, Message
from chat.sessions import titles

MAX_RUNS = 20
FRAME = (
    '<div id="run-news" hidden data-run="{run}" data-status="{status}" data-chat="{chat}"'
    ' data-title="{title}" data-seconds="{seconds}"></div>'
)
SESSION_COLUMNS = tuple(
    f"session__{name}"
    for name in ("user", "title", "title_source", "is_shared", "is_temporary")
)
RUN_COLUMNS = ("run__user", "run__status", "run__seconds")


async def announce(run: Run) -> None:
    """Tell the pages of those whom the run's new status concerns, and have its chat named."""
    news = await database.run(_news, run)
    if news is None:
        return
    for user in news.notified_users:
        await pubsub.publish(pubsub.person_topic(user), "run.news", **news.entry)
    for user in news.list_users:
        await pubsub.publish(pubsub.person_topic(user), "chats.changed")
    if news.unnamed is not None:
        titles.name_chat(news.unnamed)


@dataclass(frozen=True, slots=True)
class _News:
    entry: dict[str, Any]  # what happened
    notified_users: set[int]
    list_users: set[int]  # whose lists of chats change
    unnamed: titles.Unnamed | None  # a chat without a title


def _news(changed_run: Run) -> _News | None:
    """Return what to tell about a run.

    Everybody who can decide is told that a run waits; only its user, that it has ended.
    """
    message = next(iter(_answered_by(changed_run.pk)), None)
    if message is None or message.run is None:
        return None
    chat = message.session
    run = message.run
    rights = dict(chat.members.values_list("user", "may_write")) if chat.is_shared else {}
    users = {chat.user_id, *rights}
    readers = {user for user, may_write in rights.items() if not may_write}
    notified_users = users - readers if run.is_waiting else users & {run.user_id}
    unnamed = titles.find_unnamed(changed_run) if titles.is_unnamed(chat) else None
    return _News(_entry(message, run), notified_users, users - notified_users, unnamed)


@compiled_query
def _answered_by(run: int) -> QuerySet[Message]:
    return _messages().filter(run=run, session__deleted_at__isnull=True)


def _messages() -> QuerySet[Message]:
    messages = Message.objects.select_related("session", "run")
    return messages.only("session", "run", *SESSION_COLUMNS, *RUN_COLUMNS)


def _entry(message: Message, run: Run) -> dict[str, Any]:
    return {
        "run": run.pk,
        "status": run.status,
        "chat": message.session_id,
        "title": message.session.title,
        "seconds": round(run.seconds or 0),
    }


def render(entry: dict[str, Any]) -> SafeString:
    """Render the frame that tells a page."""
    return format_html(FRAME, **entry)


@require_GET
def poll(request: UserRequest) -> HttpResponse:
    """Return the user's live runs, and how those that the page knows have ended."""
    watched_runs = filter(None, map(parse_id, request.GET.getlist("run")[:MAX_RUNS]))
    chats = ChatSession.objects.for_user(request.user)
    own = _messages().filter(run__user=request.user, session__in=chats)
    live = own.filter(run__status__in=Run.LIVE)[:MAX_RUNS]
    watched = own.filter(run__in=list(watched_runs))
    entries = {m.run.pk: _entry(m, m.run) for m in [*live, *watched] if m.run is not None}
    return JsonResponse({"runs": list(entries.values())}, headers={"Cache-Control": "no-store"})
