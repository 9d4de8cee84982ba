"""HTML for the live chat page: whole elements, found by id, as they are now."""

from base64 import b64encode
from collections.abc import Collection, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from agents.models import Run
from agents.web.presentation import RunView, text_url
from agents.web.presentation.formatting import MOST_QUESTION
from agents.web.presentation.markdown import cut, render_markdown
from chat import listing, sessions
from chat import new_message as asked
from chat.models import ChatSession, Message
from chat.presence import Person

__all__ = [
    "MessageView",
    "Surroundings",
    "composer_state",
    "drawn",
    "missed",
    "new_message",
    "notice",
    "present",
    "render_markdown",
]


@dataclass(frozen=True)
class MessageView:
    """A question and the run that answers it."""

    message: Message
    view: RunView | None
    html: SafeString = SafeString()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.message, name)

    @property
    def shown_text(self) -> str:
        """Of a long one the beginning."""
        return cut(self.message.text, MOST_QUESTION)

    @property
    def text_left_out(self) -> bool:
        return len(self.message.text) > MOST_QUESTION

    @property
    def text_href(self) -> str:
        return text_url(self.message.run_id, "question")

    @classmethod
    def of(cls, message: Message, user: Any, **about: bool) -> "MessageView":
        """As this person is shown it; what they can do is known to whoever asks."""
        run = message.run
        if run is None:
            return cls(message, None)
        return cls(message, RunView(run, viewer=user.pk, **about))


class Surroundings:
    """What stands around a conversation, as one page was shown it."""

    def __init__(self, user: Any) -> None:
        self.user = user
        self._standing: sessions.Standing | None = None
        self._outline: list[listing.Outline] = []
        self._places: list[tuple[int, int]] = []
        self._live: listing.Runs = {}
        self._statuses: dict[str, str] = {}

    def changes(self, session: ChatSession) -> SafeString:
        """Frames for what depends on what goes on: here, or in the list."""
        live = listing.live_runs(self.user)
        return self._here(session, live.get(session.topic)) + self._list(session, live)

    def begun(self, session: ChatSession, run: Run) -> SafeString:
        """Frames where this run was begun here just now: so nothing waits before it.

        What goes on elsewhere is as it was; it is looked at when this run ends.
        """
        here = self._stands(session, sessions.Standing(live_run=run.pk))
        return here + self._list(session, {**self._live, session.topic: run})

    def turned(self, session: ChatSession) -> SafeString:
        """Frames where a run goes on, waits or is over by now, and no session was used."""
        live = listing.live_runs(self.user)
        return self._here(session, live.get(session.topic)) + self._rows(session, live)

    def is_behind(self, session: ChatSession) -> bool:
        return sessions.standing(session, sessions.live_run(session)) != self._standing

    def _here(self, session: ChatSession, run: Run | None) -> SafeString:
        return self._stands(session, sessions.standing(session, run))

    def _stands(self, session: ChatSession, standing: sessions.Standing) -> SafeString:
        """The composer, and what waits to be sent, where that has changed."""
        shown, self._standing = self._standing, standing
        is_same = shown is not None and shown.waits == standing.waits
        queue = SafeString() if is_same else self._queue(session)
        return queue + _composer(standing)

    def _queue(self, session: ChatSession) -> SafeString:
        about = {"standing": self._standing, "session": session, "user": self.user}
        return _part("queue", about)

    def _list(self, session: ChatSession, live: listing.Runs) -> SafeString:
        """The whole list only where something in it has another place."""
        outline, (today, yesterday) = listing.outline(self.user), listing.midnights()
        places = [(pk, (used < today) + (used < yesterday)) for used, pk, *_ in outline]
        named, is_moved = {about[1:] for about in self._outline}, places != self._places
        self._outline, self._places = outline, places
        if is_moved:
            self._live, self._statuses = live, _statuses(live)
            listed = [_row(*about, live) for about in outline]
            return _part("sessions", {"sessions": listed, "session": session})
        renamed = {about[1] for about in outline if about[1:] not in named}
        return self._rows(session, live, renamed)

    def _rows(
        self, session: ChatSession, live: listing.Runs, renamed: Set[int] = frozenset()
    ) -> SafeString:
        """Those of sessions that have another name, or in which something else goes on."""
        shown = self._statuses
        self._live, self._statuses = live, _statuses(live)
        turned = {topic for topic, _ in shown.items() ^ self._statuses.items()}
        rows = [
            _row(*about, live)
            for about in self._outline
            if about[1] in renamed or f"chat.{about[1]}" in turned
        ]
        about = {"rows": rows, "session": session}
        return _part("session_changes", about) if rows else SafeString()


def _statuses(live: listing.Runs) -> dict[str, str]:
    return {topic: run.status for topic, run in live.items()}


def _row(
    used: datetime, pk: int, title: str, is_shared: bool, whose: str, live: listing.Runs
) -> ChatSession:
    row = ChatSession(pk=pk, title=title, updated_at=used, is_shared=is_shared)
    row.live, row.whose = live.get(row.topic), whose
    return row


def new_message(message: Message, view: RunView, user: Any) -> SafeString:
    """A message at the end of the conversation, its run as the page watches it."""
    is_long = len(message.text) > MOST_QUESTION
    if view.is_untold and message.author_id == user.pk and not is_long:
        html = asked.drawn(message, view)
    else:
        html = drawn(MessageView(message, view), user)
    return format_html('<div hx-swap-oob="beforeend:#messages">{}</div>', html)


def missed(session: ChatSession, oldest: int, after: int) -> SafeString:
    """A link to earlier messages, between what a page has and what it is shown now."""
    about = {"session": session, "earlier": oldest, "missed_after": after or None}
    html = _part("earlier", about)
    return format_html('<div hx-swap-oob="beforeend:#messages">{}</div>', html)


def drawn(message: MessageView, user: Any) -> SafeString:
    return _part("message", {"message": message, "user": user})


def composer_state(session: ChatSession, **about: str) -> SafeString:
    """Whether a run lives; what of what was sent is acknowledged, refused or returned."""
    return _composer(sessions.standing(session, sessions.live_run(session)), **about)


def _composer(
    standing: sessions.Standing, acknowledged: str = "", returned: str = "", refused: str = ""
) -> SafeString:
    about = {
        "standing": standing,
        "acknowledged": acknowledged,
        # As base64 where it is long: in an attribute, a quotation mark takes six characters.
        "returned": returned if len(returned) <= MOST_QUESTION else "",
        "returned_base64": b64encode(returned.encode()).decode()
        if len(returned) > MOST_QUESTION
        else "",
        "refused": refused,
    }
    return _part("composer_state", about)


def present(people: Collection[Person]) -> SafeString:
    """Who else is here now."""
    return _part("present", {"people": people})


def notice(text: str, level: str = "problem") -> SafeString:
    return _part("notice", {"notice": text, "level": level})


def _part(name: str, context: dict[str, Any]) -> SafeString:
    return mark_safe(render_to_string(f"chat/session.html#{name}", context))
