"""What one page has rendered of a conversation: messages, progress of runs, surroundings.

It is read on the database thread. A new or reconnected page is updated in parts, so that others
wait for one part at most.
"""

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from copy import copy, deepcopy
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ObjectDoesNotExist
from django.db.models import QuerySet

from agents.db import database
from agents.db.compiled_queries import compiled_query
from agents.models import Run
from agents.review.models import Comment
from agents.web.preferences import Preferences
from agents.web.presentation.live_run import LiveRunView
from chat import fragments, sharing
from chat.models import ChatSession, Message

logger = logging.getLogger(__name__)

PLACE = "chat"
MAX_PK = 2**63 - 1
MAX_CORRECTIONS = 50
MAX_COMMENTS = 50
# Messages on a new page; earlier ones are loaded on request.
MAX_MESSAGES = 30
MAX_HTML_BYTES = 320_000  # bytes of message HTML on a page
BATCH_SIZE = 5


class Conversation:
    def __init__(
        self, session: ChatSession, user: User, may_write: bool, last: int = 0
    ) -> None:
        self.session = session
        self.user = user
        self.may_write = may_write
        self.last = last  # the last message on the page
        self.is_discussed = False
        self.live_views: dict[int, LiveRunView] = {}
        self.around = fragments.SessionChrome(user)

    def take(self, other: "Conversation") -> None:
        """Copy another page's state, and continue from there."""
        self.last, self.is_discussed = other.last, other.is_discussed
        self.live_views, self.around = deepcopy(other.live_views), copy(other.around)

    async def catch_up(self, was_away: bool, preferences: Preferences) -> list[str]:
        """Return frames that update the page.

        These are missing messages, oldest first, and its last run.
        """

        async def later(part: Callable[..., Any], *subject: Any) -> Any:
            return await database.run_deferred(_apply, preferences, part, *subject)

        frames = [await later(self._last_run_frame)]
        for runs in _batches(await later(_corrected_runs, self.session.pk)):
            frames.append(await later(self._correction_frames, runs))
        if was_away and self.is_discussed:
            comments = dict.fromkeys(await later(_recent_comments, self.session.pk))
            for steps in _batches(comments):
                frames.append(await later(self._comment_frames, steps))
        missed = MissedMessages(self)
        while await later(missed.read_batch):
            pass
        frames += await later(missed.frames)
        frames.append(await later(self.around.changes, self.session))
        return [frame for frame in frames if frame]

    def _last_run_frame(self) -> str:
        self.is_discussed = sharing.has_members(self.session)
        answered = self.session.messages.filter(run__isnull=False, pk__lte=self.last)
        last_run = answered.order_by("-pk").values_list("run_id", flat=True).first()
        return "" if last_run is None else self.watch(last_run).snapshot()

    def _correction_frames(self, runs: Iterable[int]) -> str:
        """Return frames for corrections made while the page was away, regardless of age."""
        return "".join(self.on_page(run).feedback_frames() for run in runs)

    def _comment_frames(self, comments: Iterable[tuple[int, int]]) -> str:
        """Return frames for recent comments made while the page was away."""
        return "".join(self.on_page(run).comment_frames(step) for run, step in comments)

    def new_message_frames(self, new_run: int | None = None) -> str:
        """Return frames for missing messages; a run that just started, from its start."""
        missed = MissedMessages(self, new_run)
        while missed.read_batch():
            pass
        frames = missed.frames()
        return "".join([*frames, self.around.changes(self.session)]) if frames else ""

    def at_once(self, message: Message) -> str:
        """Return frames for a message sent here, without waiting for its notification."""
        try:
            if _first_after(self.session.pk, self.last) != [message.pk]:
                return ""  # others' earlier messages come first
            run = _answering_run(message)
            frames = self.new_message(message, is_new=True)
            frames += self.around.run_started_frames(self.session, run)
        except Exception:  # it is saved, and this page is notified like others
            logger.exception("Can't render message %s right away.", message.pk)
            if message.run_id is not None:
                self.live_views.pop(message.run_id, None)
            self.around = fragments.SessionChrome(self.user)
            return ""
        self.last = message.pk
        return frames

    def new_message(self, message: Message, is_new: bool) -> str:
        run = _answering_run(message)
        live_view = self.watch(run.pk)
        view = live_view.begin(run) if is_new else live_view.view()
        return fragments.render_new_message(message, view, self.user)

    def enable_comments(self) -> list[str]:
        """Return the messages on the page again, with comments enabled."""
        self.is_discussed = True
        answered = self.session.messages.filter(run__isnull=False, pk__lte=self.last)
        newest = answered.order_by("-pk").values_list("run_id", flat=True)[:MAX_MESSAGES]
        return [self.watch(run).snapshot() for run in newest]

    def on_page(self, run: int) -> LiveRunView:
        """Return the view of a run that may be on the page."""
        return self.live_views.get(run) or self._make_view(run)

    def watch(self, run: int) -> LiveRunView:
        self.live_views[run] = self._make_view(run)
        return self.live_views[run]

    def _make_view(self, run: int) -> LiveRunView:
        return LiveRunView(run, PLACE, self.may_write, self.user.pk, self.is_discussed)


class MissedMessages:
    """Messages missing on a page: the newest ones that fit.

    They are read from the last one back and displayed from the first one on, with a link to
    earlier ones.
    """

    def __init__(self, page: Conversation, new_run: int | None = None) -> None:
        self.page = page
        self.new_run = new_run
        self.before = MAX_PK
        self.room = MAX_HTML_BYTES
        self.rendered: list[tuple[int, str]] = []  # newest first
        self.is_all = True

    def read_batch(self) -> bool:
        """Read a batch; return whether there may be more."""
        messages = _newest_between(self.page.session.pk, self.page.last, self.before)
        for message in messages:
            self.before = message.pk
            # The run may have ended elsewhere, with its notifications lost.
            with suppress(ObjectDoesNotExist):
                run = _answering_run(message)
                is_new = run.pk == self.new_run and run.is_live
                html = self.page.new_message(message, is_new)
                self.room -= len(html.encode())
                if self.rendered and (self.room < 0 or len(self.rendered) == MAX_MESSAGES):
                    self.is_all = False
                    del self.page.live_views[run.pk]
                    return False
                self.rendered.append((message.pk, html))
        return len(messages) == BATCH_SIZE

    def frames(self) -> list[str]:
        """Return one frame per message, and mark them as displayed."""
        if not self.rendered:
            return []
        (newest, _), (oldest, _) = self.rendered[0], self.rendered[-1]
        frames = [html for _, html in reversed(self.rendered)]
        if not self.is_all:
            frames.insert(
                0, fragments.render_earlier_link(self.page.session, oldest, self.page.last)
            )
        self.page.last = newest
        return frames


def _answering_run(message: Message) -> Run:
    """Return the message's run; raise Run.DoesNotExist if it was deleted."""
    if message.run is None:
        raise Run.DoesNotExist
    return message.run


def _apply(preferences: Preferences, part: Callable[..., Any], *subject: Any) -> Any:
    with preferences.applied():
        return part(*subject)


def _batches(rows: Iterable[Any]) -> Iterable[list[Any]]:
    """Split rows into small batches."""
    every = list(rows)
    return [every[at : at + BATCH_SIZE] for at in range(0, len(every), BATCH_SIZE)]


@compiled_query
def _newest_between(session: int, after: int, before: int) -> QuerySet[Message]:
    messages = (
        _messages_after(session, after)
        .filter(pk__lt=before)
        .select_related("run", "author__profile")
    )
    return messages.defer("run__history", "run__answer").order_by("-pk")[:BATCH_SIZE]


@compiled_query
def _first_after(session: int, pk: int) -> QuerySet[Message, int]:
    return _messages_after(session, pk).order_by("pk").values_list("pk", flat=True)[:1]


def _messages_after(session: int, pk: int) -> QuerySet[Message]:
    return Message.objects.filter(session=session, pk__gt=pk, run__isnull=False)


@compiled_query
def _recent_comments(session: int) -> QuerySet[Comment, tuple[int, int]]:
    comments = Comment.objects.filter(run__message__session=session).order_by("-pk")
    return comments.values_list("run", "step")[:MAX_COMMENTS]


@compiled_query
def _corrected_runs(session: int) -> QuerySet[Run, int]:
    runs = Run.objects.filter(message__session=session, review__corrected_at__isnull=False)
    return runs.order_by("-pk").values_list("pk", flat=True)[:MAX_CORRECTIONS]
