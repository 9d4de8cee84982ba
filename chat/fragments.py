"""HTML for the live chat page: whole elements, found by id, as they are now."""

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language

from agents.display import RunView
from agents.fragments import Watched
from agents.prose import render_markdown
from chat import sessions
from chat.models import ChatSession, Message

__all__ = [
    "MessageView",
    "composer_state",
    "new_message",
    "notice",
    "render_markdown",
    "session_list",
    "session_rows",
    "surroundings",
]

LISTED = 100


@dataclass(frozen=True)
class MessageView:
    """A question and the run that answers it."""

    message: Message
    view: RunView | None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.message, name)

    @classmethod
    def of(cls, message: Message) -> "MessageView":
        return cls(message, RunView(message.run) if message.run else None)


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session as it is listed."""

    updated_at: datetime
    html: SafeString


def new_message(pk: int, watched: Watched, session: ChatSession) -> SafeString:
    """A message at the end of the conversation, its run as the page watches it."""
    row = Message.objects.get(pk=pk)
    html = _part("message", {"message": MessageView(row, watched.view())})
    added = format_html('<div hx-swap-oob="beforeend:#messages">{}</div>', html)
    return added + surroundings(session)


def surroundings(session: ChatSession) -> SafeString:
    """What stands around the conversation and depends on whether a run is going on."""
    return composer_state(session) + session_list(session)


def composer_state(session: ChatSession, acknowledged: str = "") -> SafeString:
    run = sessions.live_run(session)
    facts = {"live_run": run and run.pk, "is_waiting": run and run.is_waiting}
    return _part("composer_state", {**facts, "acknowledged": acknowledged})


def notice(text: str, level: str = "problem") -> SafeString:
    return _part("notice", {"notice": text, "level": level})


def session_list(session: ChatSession) -> SafeString:
    return _part("sessions", {"sessions": session_rows(session.user, session)})


def session_rows(
    user: Any, current: ChatSession | None = None, query: str = ""
) -> list[SessionRow]:
    """A person's sessions as they are listed, newest first."""
    language, here = get_language(), current and current.pk
    return [
        SessionRow(
            row.updated_at, _row(row.pk, row.title, _state(row), row.pk == here, language)
        )
        for row in sessions.found(user, query)[:LISTED]
    ]


def _state(row: ChatSession) -> str:
    return "waiting" if row.is_waiting else "running" if row.is_running else ""


@lru_cache(maxsize=10_000)
def _row(pk: int, title: str, state: str, is_current: bool, language: str) -> SafeString:
    """Rendered once: a list is shown at every turn of a run, and hardly a row of it is new."""
    facts = {"pk": pk, "title": title, "state": state, "is_current": is_current}
    return _part("session_row", facts)


def _part(name: str, context: dict[str, Any]) -> SafeString:
    return mark_safe(render_to_string(f"chat/session.html#{name}", context))
