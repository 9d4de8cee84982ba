"""What one page has rendered of a conversation: messages, progress of runs, surroundings.

It is read on the database thread. A new or reconnected page is updated in parts, so that others
wait for one part at most.
"""

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from copy import copy, deepcopy
from datetime import datetime
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
from chat import fragments
from chat.fragments import MessageView, page_digest
from chat.models import ChatSession, Message
from chat.sessions import branches, rights
from chat.sessions.branches import Fork, Tree

logger = logging.getLogger(__name__)

MAX_PK = 2**63 - 1
MAX_CORRECTIONS = 50
MAX_COMMENTS = 50
# Messages on a new page; earlier ones are loaded on request.
MAX_MESSAGES = 30
MAX_HTML_BYTES = 320_000  # bytes of message HTML on a page
BATCH_SIZE = 5
CLEARED = '<div id="messages" hx-swap-oob="innerHTML"></div>'


class Conversation:
    place = "chat"
    chrome_class = fragments.SessionChrome

    def __init__(
        self,
        session: ChatSession,
        user: User,
        may_write: bool,
        last: int = 0,
        shown_digest: str = "",
    ) -> None:
        self.session = session
        self.user = user
        self.may_write = may_write
        self.last = last  # the last message on the page
        self.shown_digest = shown_digest  # a digest of the page's messages
        self.first = page_digest.first_message(shown_digest)  # the first without a gap after it
        self.path: list[int] = []  # to the last message on the page
        self.forks: dict[int, Fork] = {}
        self._visible_path: list[int] = []
        self.messages_of: dict[int, int] = {}  # the message of each watched run
        self.hidden_runs: set[int] = set()  # on other branches, or above the page
        self.is_discussed = False
        self.live_views: dict[int, LiveRunView] = {}
        self.chrome = self.chrome_class(user)

    def take(self, source: "Conversation") -> None:
        """Copy another page's state, and continue from there."""
        self.last = source.last
        self.is_discussed = source.is_discussed
        self.first = source.first
        self.path = [*source.path]
        self.forks = source.forks
        self.messages_of = {**source.messages_of}
        self.live_views = deepcopy(source.live_views)
        self.chrome = copy(source.chrome)

    async def catch_up(self, was_away: bool, preferences: Preferences) -> list[str]:
        """Return frames that update the page.

        These are missing messages, oldest first, and its last run.
        """

        async def later(method: Callable[..., Any], *args: Any) -> Any:
            def render() -> Any:
                with preferences.applied():
                    return method(*args)

            return await database.run_deferred(render)

        frames = [await later(self._open)]
        frames.append(await later(self._last_run_frame))
        for run_ids in _batches(await later(self._corrected_runs)):
            frames.append(await later(self._correction_frames, run_ids))
        if was_away and self.is_discussed:
            comments = dict.fromkeys(await later(self._recent_comments))
            for batch in _batches(comments):
                frames.append(await later(self._comment_frames, batch))
        missed = await later(MissedMessages, self, self._visible_path)
        while await later(missed.read_batch):
            pass
        frames += await later(missed.frames)
        frames.append(await later(self.chrome.changes, self.session))
        return [frame for frame in frames if frame]

    def _open(self) -> str:
        """Find the page's place on the visible path; clear a page that is on another one."""
        tree, path = self._read_tree()
        self._visible_path = path
        self.forks = branches.forks(tree, path)
        self.path = [pk for pk in path if pk <= self.last]
        if self.last and self.path[-1:] != [self.last]:
            return self._clear()
        edited = dict(_edited_messages(self.session.pk)) if self.path else {}
        digest = page_digest.digest(
            (pk, self.forks.get(pk), edited.get(pk)) for pk in self.path if pk >= self.first
        )
        return "" if self.shown_digest in {"", digest} else self._clear()

    def _clear(self) -> str:
        self.last = 0
        self.path = []
        self.live_views.clear()
        return CLEARED

    def _read_tree(self) -> tuple[Tree, list[int]]:
        tree = branches.read(self.session.pk)
        return tree, tree.path(branches.visible_leaf(tree, self.session.pk, self.user.pk))

    def _last_run_frame(self) -> str:
        self.is_discussed = rights.has_members(self.session)
        return "".join(self.watch(run).snapshot() for run in self._newest_runs(1))

    def _newest_runs(self, max_runs: int) -> list[int]:
        """Return the last runs on the page."""
        answered = Message.objects.filter(run__isnull=False, pk__in=self.path[-max_runs:])
        message_by_run = dict(answered.order_by("-pk").values_list("run_id", "pk"))
        self.messages_of |= message_by_run
        return list(message_by_run)

    def _corrected_runs(self) -> list[int]:
        on_path = set(self.path)
        return [run for run, message in _corrected_runs(self.session.pk) if message in on_path]

    def _recent_comments(self) -> list[tuple[int, int]]:
        on_path = set(self.path)
        comments = _recent_comments(self.session.pk)
        return [(run, step) for run, step, message in comments if message in on_path]

    def _correction_frames(self, run_ids: Iterable[int]) -> str:
        """Return frames for corrections made while the page was away, regardless of age."""
        return "".join(self.on_page(run).feedback_frames() for run in run_ids)

    def _comment_frames(self, comments: Iterable[tuple[int, int]]) -> str:
        """Return frames for recent comments made while the page was away."""
        return "".join(self.on_page(run).comment_frames(step) for run, step in comments)

    def new_message_frames(self, new_run: int | None = None) -> str:
        """Return frames for missing messages; a run that just started, from its start."""
        frames = self.path_frames(new_run)
        return frames + self.chrome.changes(self.session) if frames else ""

    def path_frames(
        self, new_run: int | None = None, sent_message: Message | None = None
    ) -> str:
        """Return frames that bring the page to the path its user sees now."""
        tree, path = self._read_tree()
        frames = []
        if path[: len(self.path)] != self.path:
            shared = sum(ours == theirs for ours, theirs in zip(self.path, path, strict=False))
            gone = self.path[shared:]
            stays = self.path[:shared]
            self.hidden_runs.clear()
            if not stays or stays[-1] < self.first:  # the fork is above the page
                frames.append(self._clear())
            else:
                self.path = stays
                self.last = stays[-1]
                for run in [
                    run for run in self.live_views if self.messages_of.get(run) in gone
                ]:
                    del self.live_views[run]
                frames += map(fragments.render_removed, gone)
        former_forks = self.forks
        self.forks = branches.forks(tree, path)
        for pk in self.path:
            fork = self.forks.get(pk)
            if fork != former_forks.get(pk):
                frames.append(fragments.render_fork(self.session.pk, pk, fork))
                frames.append(fragments.render_versions(self.session.pk, pk, fork))
        missed = MissedMessages(self, path, new_run, sent_message)
        while missed.read_batch():
            pass
        return "".join([*frames, *missed.frames()])

    def corrected_frames(self, pk: int) -> str:
        """Return the question again, after its text was corrected."""
        if pk not in self.path:
            return ""
        messages = Message.objects.filter(pk=pk).select_related("author__profile")
        return "".join(
            fragments.render_question(MessageView(message, None), self.user)
            for message in messages
        )

    def at_once(self, message: Message) -> str:
        """Return frames for a message sent here, without waiting for its notification."""
        state_before = (self.last, self.path, self.forks)
        try:
            run = _answering_run(message)
            frames = self.path_frames(run.pk, message)
            if run.pk not in self.live_views:
                return frames
            frames += self.chrome.run_started_frames(self.session, run)
        except Exception:  # it is saved, and this page is notified like others
            logger.exception("Can't render message %s right away.", message.pk)
            if message.run_id is not None:
                self.live_views.pop(message.run_id, None)
            self.chrome = self.chrome_class(self.user)
            self.last, self.path, self.forks = state_before
            return ""
        return frames

    def new_message(self, message: Message, is_new: bool) -> str:
        run = _answering_run(message)
        live_view = self.watch(run.pk)
        self.messages_of[run.pk] = message.pk
        view = live_view.begin(run) if is_new else live_view.view()
        message.session = self.session
        message_view = MessageView(message, view, self.may_write, self.forks.get(message.pk))
        return fragments.render_new_message(message_view, self.user)

    def enable_comments(self) -> list[str]:
        """Return the messages on the page again, with comments enabled."""
        self.is_discussed = True
        return [self.watch(run).snapshot() for run in self._newest_runs(MAX_MESSAGES)]

    def on_page(self, run: int) -> LiveRunView:
        """Return the view of a run that may be on the page."""
        return self.live_views.get(run) or self._make_view(run)

    def watch(self, run: int) -> LiveRunView:
        self.live_views[run] = self._make_view(run)
        return self.live_views[run]

    def _make_view(self, run: int) -> LiveRunView:
        return LiveRunView(run, self.place, self.may_write, self.user.pk, self.is_discussed)

    def earlier_link(self, oldest: int) -> str:
        """Return a frame with a link to the messages before this one."""
        return fragments.render_earlier_link(self.session, oldest, self.last)


class MissedMessages:
    """Messages missing on a page: the newest ones that fit.

    They are read from the last one back and displayed from the first one on, with a link to
    earlier ones.
    """

    def __init__(
        self,
        conversation: Conversation,
        path: list[int],
        new_run: int | None = None,
        sent_message: Message | None = None,
    ) -> None:
        self.conversation = conversation
        self.path = path
        self.new_run = new_run
        self.sent_message = sent_message  # read already
        self.waiting = [pk for pk in path if pk > conversation.last]
        self.bytes_left = MAX_HTML_BYTES
        self.rendered: list[tuple[int, str]] = []  # newest first
        self.is_all = True

    def read_batch(self) -> bool:
        """Read the last of the messages that are left; return whether there may be more."""
        batch = self.waiting[-BATCH_SIZE:]
        del self.waiting[-BATCH_SIZE:]
        messages: Iterable[Message] = ()
        if self.sent_message is not None and batch == [self.sent_message.pk]:
            messages = [self.sent_message]
        elif batch:
            messages = _messages(*batch, *[0] * (BATCH_SIZE - len(batch)))
        for message in messages:
            # The run may have ended elsewhere, with its notifications lost.
            with suppress(ObjectDoesNotExist):
                run = _answering_run(message)
                is_new = run.pk == self.new_run and run.is_live
                html = self.conversation.new_message(message, is_new)
                self.bytes_left -= len(html.encode())
                if self.rendered and (
                    self.bytes_left < 0 or len(self.rendered) == MAX_MESSAGES
                ):
                    self.is_all = False
                    del self.conversation.live_views[run.pk]
                    return False
                self.rendered.append((message.pk, html))
        return bool(self.waiting)

    def frames(self) -> list[str]:
        """Return one frame per message, and mark them as displayed."""
        if not self.rendered:
            return []
        newest = self.rendered[0][0]
        oldest = self.rendered[-1][0]
        frames = [html for _, html in reversed(self.rendered)]
        if not self.is_all or not self.conversation.last:
            self.conversation.first = oldest
        if not self.is_all:
            frames.insert(0, self.conversation.earlier_link(oldest))
        self.conversation.last = newest
        self.conversation.path = [pk for pk in self.path if pk <= newest]
        return frames


def _answering_run(message: Message) -> Run:
    """Return the message's run; raise Run.DoesNotExist if it was deleted."""
    if message.run is None:
        raise Run.DoesNotExist
    return message.run


def _batches(rows: Iterable[Any]) -> Iterable[list[Any]]:
    """Split rows into small batches."""
    items = list(rows)
    return [items[start : start + BATCH_SIZE] for start in range(0, len(items), BATCH_SIZE)]


@compiled_query
def _messages(a: int, b: int, c: int, d: int, e: int) -> QuerySet[Message]:
    """Return BATCH_SIZE messages that have a run, the newest first."""
    messages = Message.objects.filter(pk__in=[a, b, c, d, e], run__isnull=False)
    messages = messages.select_related("run", "author__profile")
    return messages.defer("run__history", "run__answer").order_by("-pk")


@compiled_query
def _edited_messages(session: int) -> QuerySet[Message, tuple[int, datetime | None]]:
    edited = Message.objects.filter(session=session, edited_at__isnull=False)
    return edited.order_by().values_list("pk", "edited_at")


@compiled_query
def _recent_comments(session: int) -> QuerySet[Comment, tuple[int, int, int]]:
    comments = Comment.objects.filter(run__message__session=session).order_by("-pk")
    return comments.values_list("run", "step", "run__message__pk")[:MAX_COMMENTS]


@compiled_query
def _corrected_runs(session: int) -> QuerySet[Run, tuple[int, int]]:
    runs = Run.objects.filter(message__session=session, review__corrected_at__isnull=False)
    return runs.order_by("-pk").values_list("pk", "message__pk")[:MAX_CORRECTIONS]
