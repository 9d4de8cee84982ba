"""HTML for the live chat page: whole elements, identified by id."""

from base64 import b64encode
from collections.abc import Collection, Set
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from agents.engine.text import truncate
from agents.models import Run
from agents.models.types import LazyText
from agents.web.presentation import RunView, text_url
from agents.web.presentation.formatting import MAX_QUESTION_CHARS
from agents.web.presentation.markdown import render_markdown
from agents.web.presentation.template_cache import RUN_PLACEHOLDER
from chat import attachments
from chat.attachments.presentation import FileView
from chat.listing import session_list
from chat.messages import session_status
from chat.models import ChatSession, Message
from chat.sessions import deletion, session_state
from chat.sessions.branches import Fork
from chat.sessions.presence import Person

from . import new_message, page_digest

__all__ = [
    "MessageView",
    "SessionChrome",
    "render_composer",
    "render_edit_problem",
    "render_fork",
    "render_question",
    "render_removed",
    "render_message",
    "render_earlier_link",
    "render_new_message",
    "render_notice",
    "render_people",
    "render_markdown",
]


@dataclass(frozen=True)
class MessageView:
    """A question and the run that answers it."""

    message: Message
    view: RunView | None
    may_write: bool = False
    fork: Fork | None = None
    html: SafeString = SafeString()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.message, name)

    @property
    def shown_text(self) -> str:
        """The text, shortened if it is long."""
        return truncate(self.message.text, MAX_QUESTION_CHARS)

    @property
    def text_left_out(self) -> bool:
        return len(self.message.text) > MAX_QUESTION_CHARS

    @property
    def text_href(self) -> str:
        """The address of the whole text; the run has it as it was before a correction."""
        run = self.message.run_id
        if run is None or self.message.edited_at is not None:
            return reverse("chat:text", args=[self.message.session_id, self.message.pk])
        return text_url(run, "question")

    @property
    def files(self) -> list[FileView]:
        """The attached files; most messages have none, and ask for none."""
        if not self.message.has_files:
            return []
        return [FileView(row) for row in attachments.sent_with(self.message.pk)]

    @property
    def edit_mark(self) -> str:
        return page_digest.edit_mark(self.message.edited_at)

    @classmethod
    def of(
        cls,
        message: Message,
        user: User,
        *,
        may_write: bool,
        is_discussed: bool,
        fork: Fork | None = None,
    ) -> "MessageView":
        """Return the view of a message for this user."""
        run = message.run
        if run is None:
            return cls(message, None, may_write, fork)
        view = RunView(run, viewer=user.pk, may_decide=may_write, is_discussed=is_discussed)
        return cls(message, view, may_write, fork)


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
        live, listed = session_list.live_runs(self.user), session_list.read(self.user)
        return self._list_frames(session, live, listed)

    def renamed_frames(self, session: ChatSession, pk: int, title: str) -> SafeString:
        """Return the row of a chat with its new title."""
        self._list = self._list.renamed(pk, title)
        return self._row_frames(session, self._live, {pk})

    def run_started_frames(self, session: ChatSession, run: Run) -> SafeString:
        """Return frames for a run that just started here, so nothing is queued before it.

        The status of other chats is updated when this run ends.
        """
        status_frames = self._status_frames(
            session, session_status.SessionStatus(live_run=run.pk)
        )
        is_known = self._layout is not None
        is_filed = any(row.pk == session.pk for row in self._list.filed)
        listed = (
            session_list.read_recent(self.user, self._list)
            if is_known and not is_filed
            else session_list.read(self.user)
        )
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
        is_same = previous is not None and previous.queue_state == status.queue_state
        queue_frame = SafeString() if is_same else self._queue_frame(session)
        return queue_frame + _render_composer(status)

    def _queue_frame(self, session: ChatSession) -> SafeString:
        context = {"standing": self._status, "session": session, "user": self.user}
        return _render("messages/_queue.html", context)

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
            context = {"sections": session_list.sections(listed, live), "cursor": listed.cursor}
            return _render("listing/_sessions.html#sessions", {**context, "session": session})
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
        context = {"rows": rows, "session": session}
        return (
            _render("listing/_sessions.html#session_changes", context) if rows else SafeString()
        )


def _run_statuses(live: session_list.Runs) -> dict[str, str]:
    return {topic: run.status for topic, run in live.items()}


def render_new_message(message: MessageView, user: User) -> SafeString:
    """Render a message at the end of the conversation, with its live run."""
    is_new = message.view is not None and message.view.is_unstarted
    is_usual = not (
        message.text_left_out or message.fork or message.edited_at or message.has_files
    )
    if message.view and is_new and is_usual and message.author_id == user.pk:
        html = new_message.render(message.message, message.view)
    else:
        html = render_message(message, user)
    return format_html('<div hx-swap-oob="beforeend:#messages">{}</div>', html)


def render_earlier_link(session: ChatSession, oldest: int, after: int) -> SafeString:
    """Render a link to earlier messages, between those on the page and the new ones."""
    about = {"session": session, "earlier": oldest, "missed_after": after or None}
    html = _render("session.html#earlier", about)
    return format_html('<div hx-swap-oob="beforeend:#messages">{}</div>', html)


def render_message(message: MessageView, user: User) -> SafeString:
    return _render("messages/_message.html", {"message": message, "user": user})


def render_question(message: MessageView, user: User) -> SafeString:
    return _render("messages/_question.html", {"message": message, "user": user})


def render_fork(session: ChatSession, message: int, fork: Fork | None) -> SafeString:
    """Render where a message is among its siblings."""
    about = {"pk": message, "session": session.pk, "fork": fork}
    return _render("messages/_fork.html", about)


def render_removed(message: int) -> SafeString:
    """Render the removal of a message that isn't on the visible branch."""
    return format_html('<article id="message-{}" hx-swap-oob="delete"></article>', message)


def render_edit_problem(reason: LazyText) -> SafeString:
    """Render why an edited message wasn't sent; the editor stays open."""
    return _render("messages/_message_editor.html#problem", {"problem": reason})


def render_composer(session: ChatSession, **about: Any) -> SafeString:
    """Render the composer, with what was acknowledged, rejected or returned."""
    return _render_composer(
        session_status.get_status(session, session_state.live_run(session)), **about
    )


def _render_composer(
    status: session_status.SessionStatus,
    acknowledged: str = "",
    returned: str = "",
    refused: str = "",
    returned_files: Collection[int] = (),
) -> SafeString:
    if not (acknowledged or returned or refused or returned_files):
        return format_html(_state_format(status.is_waiting), status.live_run or "")
    context = {
        "standing": status,
        "acknowledged": acknowledged,
        # Long text as base64, because a quotation mark in an attribute takes six characters.
        "returned": returned if len(returned) <= MAX_QUESTION_CHARS else "",
        "returned_base64": b64encode(returned.encode()).decode()
        if len(returned) > MAX_QUESTION_CHARS
        else "",
        "refused": refused,
        "returned_files": ",".join(map(str, returned_files)),
    }
    return _render("messages/_composer.html#state", context)


@cache
def _state_format(is_waiting: bool) -> str:
    """Return the usual state, which differs only in the run's number."""
    status = session_status.SessionStatus(live_run=RUN_PLACEHOLDER, is_waiting=is_waiting)
    html = _render("messages/_composer.html#state", {"standing": status, "acknowledged": ""})
    return html.replace(str(RUN_PLACEHOLDER), "{}")


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
