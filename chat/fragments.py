"""HTML for the live chat page: whole elements, found by id, as they are now."""

from dataclasses import dataclass
from typing import Any

from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from agents.display import RunView
from agents.fragments import Watched
from agents.prose import render_markdown
from chat import sessions
from chat.models import ChatSession, Message

__all__ = [
    "Around",
    "MessageView",
    "composer_state",
    "new_message",
    "notice",
    "render_markdown",
    "session_list",
]


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


@dataclass
class Around:
    """What one page was shown of what stands around its conversation."""

    session: ChatSession
    standing: sessions.Standing | None = None

    def html(self) -> SafeString:
        self.standing = sessions.standing(self.session)
        queue = _part("queue", {"standing": self.standing})
        return queue + _composer_state(self.standing) + session_list(self.session)

    def is_behind(self) -> bool:
        return sessions.standing(self.session) != self.standing


def new_message(pk: int, watched: Watched, around: Around) -> SafeString:
    """A message at the end of the conversation, its run as the page watches it."""
    row = Message.objects.get(pk=pk)
    html = _part("message", {"message": MessageView(row, watched.view())})
    added = format_html('<div hx-swap-oob="beforeend:#messages">{}</div>', html)
    return added + around.html()


def composer_state(
    session: ChatSession, acknowledged: str = "", returned: str = ""
) -> SafeString:
    """Whether a run lives; what was taken, and what was taken back, of what the page sent."""
    facts = {"acknowledged": acknowledged, "returned": returned}
    return _composer_state(sessions.standing(session), **facts)


def notice(text: str, level: str = "problem") -> SafeString:
    return _part("notice", {"notice": text, "level": level})


def session_list(session: ChatSession) -> SafeString:
    found = sessions.found(session.user)[:100]
    return _part("sessions", {"sessions": found, "session": session})


def _composer_state(standing: sessions.Standing, **facts: str) -> SafeString:
    return _part("composer_state", {"standing": standing, **facts})


def _part(name: str, context: dict[str, Any]) -> SafeString:
    return mark_safe(render_to_string(f"chat/session.html#{name}", context))
