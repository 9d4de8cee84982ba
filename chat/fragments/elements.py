"""HTML for the live chat page: whole elements, identified by id."""

from collections.abc import Collection, Set
from typing import Any

from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from agents.models import Run
from agents.models.types import LazyText
from agents.web.presentation.markdown import render_markdown
from chat.fragments.templatetags.composer import composer_state
from chat.fragments.templatetags.session_list import render_changed_rows
from chat.messages import session_status
from chat.models import ChatSession
from chat.sessions import deletion, session_state
from chat.sessions.listing import session_list
from chat.sessions.presence import Person

__all__ = [
    "ComposerChrome",
    "SessionChrome",
    "render_composer",
    "render_edit_problem",
    "render_earlier_link",
    "render_notice",
    "render_people",
    "render_markdown",
]


class SessionChrome:
    """The elements around a conversation, as one page has rendered them."""

    def __init__(self, user: User) -> None:
        self.user = user
        self._status: session_status.SessionStatus | None = None
        self._list = session_list.SessionList()
        self._layout: list[object] | None = None
        self._live: session_list.Runs = {}
        self._statuses: dict[str, str] = {}

    def changes(self, session: ChatSession) -> SafeString:
        """Return frames for elements that depend on live runs, here or in the list."""
        live = session_list.live_runs(self.user)
        listed = session_list.read(self.user)
        return self._session_frames(session, live.get(session.topic)) + self._list_frames(
            session, live, listed
        )

    def list_changes(self, session: ChatSession) -> SafeString:
        """Return frames for a list that its user has changed."""
        live = session_list.live_runs(self.user)
        listed = session_list.read(self.user)
        return self._list_frames(session, live, listed)

    def renamed_frames(self, session: ChatSession, pk: int, title: str) -> SafeString:
        """Return the row of a chat with its new title."""
        self._list = self._list.renamed(pk, title)
        return self._row_frames(session, self._live, {pk})

    def run_started_frames(self, session: ChatSession, run: Run) -> SafeString:
        """Return frames for a run that just started here, so nothing is queued before it.

        The list isn't read again if this chat is in it. The status of other chats is updated
        when this run ends.
        """
        status_frames = self._status_frames(
            session, session_status.SessionStatus(live_run=run.pk)
        )
        listed = self._list.used_now(session.pk) or session_list.read(self.user)
        return status_frames + self._list_frames(
            session, {**self._live, session.topic: run}, listed
        )

    def run_status_frames(self, session: ChatSession) -> SafeString:
        """Return frames for a changed run status, without reordering the list."""
        live = session_list.live_runs(self.user)
        return self._session_frames(session, live.get(session.topic)) + self._row_frames(
            session, live
        )

    def is_behind(self, session: ChatSession) -> bool:
        return (
            session_status.get_status(session, session_state.live_run(session)) != self._status
        )

    def _session_frames(self, session: ChatSession, run: Run | None) -> SafeString:
        return self._status_frames(session, session_status.get_status(session, run))

    def _status_frames(
        self, session: ChatSession, status: session_status.SessionStatus
    ) -> SafeString:
        """Return the composer, and the queue if it has changed."""
        previous = self._status
        self._status = status
        composer_frame = composer_state(status.live_run, status.is_waiting)
        if previous is not None and previous.queue_state == status.queue_state:
            return composer_frame
        context = {"standing": status, "session": session, "user": self.user}
        return _render("messages/_queue.html", context) + composer_frame

    def _list_frames(
        self, session: ChatSession, live: session_list.Runs, listed: session_list.SessionList
    ) -> SafeString:
        """Return the whole list only if the order has changed."""
        layout = listed.layout()
        previous_rows = {row[1:] for row in self._list.every}
        is_moved = layout != self._layout
        self._list = listed
        self._layout = layout
        if is_moved:
            self._live = live
            self._statuses = _run_statuses(live)
            context = {
                "sections": session_list.sections(listed, live),
                "cursor": listed.cursor,
                "session": session,
                # A template takes long to notice that a name is missing.
                "query": "",
                "is_archive": False,
            }
            return _render("listing/_sessions.html#sessions", context)
        renamed = {row.pk for row in listed.every if row[1:] not in previous_rows}
        return self._row_frames(session, live, renamed)

    def _row_frames(
        self, session: ChatSession, live: session_list.Runs, renamed: Set[int] = frozenset()
    ) -> SafeString:
        """Return rows of chats with a new title or status."""
        previous_statuses = self._statuses
        self._live = live
        self._statuses = _run_statuses(live)
        changed_topics = {
            topic for topic, _ in previous_statuses.items() ^ self._statuses.items()
        }
        rows = [
            session_list.session_row(row, live)
            for row in self._list.every
            if row.pk in renamed or f"chat.{row.pk}" in changed_topics
        ]
        if not rows:
            return SafeString()
        return render_changed_rows(rows, session.pk)


class ComposerChrome(SessionChrome):
    """Only the composer: a chat that is embedded in another site has nothing else around it."""

    def changes(self, session: ChatSession) -> SafeString:
        return self._session_frames(session, session_state.live_run(session))

    def list_changes(self, session: ChatSession) -> SafeString:
        return SafeString()

    def renamed_frames(self, session: ChatSession, pk: int, title: str) -> SafeString:
        return SafeString()

    def run_started_frames(self, session: ChatSession, run: Run) -> SafeString:
        return self._status_frames(session, session_status.SessionStatus(live_run=run.pk))

    def run_status_frames(self, session: ChatSession) -> SafeString:
        return self.changes(session)

    def _status_frames(
        self, session: ChatSession, status: session_status.SessionStatus
    ) -> SafeString:
        self._status = status
        return composer_state(status.live_run, status.is_waiting)


def _run_statuses(live: session_list.Runs) -> dict[str, str]:
    return {topic: run.status for topic, run in live.items()}


def render_earlier_link(session: ChatSession, oldest: int, missed_after: int) -> SafeString:
    """Render a link to earlier messages, between those on the page and the new ones."""
    context = {"session": session, "earlier": oldest, "missed_after": missed_after or None}
    html = _render("session.html#earlier", context)
    return format_html('<div hx-swap-oob="beforeend:#messages">{}</div>', html)


def render_edit_problem(reason: LazyText) -> SafeString:
    """Render why an edited message wasn't sent; the editor stays open."""
    return _render("messages/_message_editor.html#problem", {"problem": reason})


def render_composer(session: ChatSession, **outcome: Any) -> SafeString:
    """Render the composer, with what was acknowledged, rejected or returned."""
    run = session_state.live_run(session)
    live_run = None if run is None else run.pk
    return composer_state(live_run, run is not None and run.is_waiting, **outcome)


def render_people(people: Collection[Person]) -> SafeString:
    """Render who else is here now."""
    return _render("session.html#present", {"people": people})


def render_notice(text: str, level: str = "problem", *, percent: int = 0) -> SafeString:
    """Render a notice; `percent` of a message that is too long would fit."""
    context = {"notice": text, "level": level, "percent": percent}
    return _render("messages/_composer.html#notice", context)


def render_deleted(count: int, removal: int) -> SafeString:
    """Render what a page says after messages were deleted, with what undoes it."""
    context = {"count": count, "place": removal, "seconds": deletion.UNDO_SECONDS}
    return _render("messages/_message_dialogs.html#deleted", context)


def _render(name: str, context: dict[str, Any]) -> SafeString:
    return mark_safe(render_to_string(f"chat/{name}", context))
