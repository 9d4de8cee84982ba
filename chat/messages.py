"""Messages: sent, saved with a run or queued, and answered in turn."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from functools import cache, partial
from typing import Protocol

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, OperationalError, transaction
from django.db.models import QuerySet
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents import runs
from agents.access import masking, quotas
from agents.catalog import agent_factory, planner_factory
from agents.db import database, errors
from agents.db.compiled_queries import compiled_query
from agents.db.fast_writes import update
from agents.engine import fault_injection
from agents.engine.errors import AgentError
from agents.engine.state import Message as HistoryMessage
from agents.models import Agent, Run
from agents.runs import event_store, pubsub
from agents.runs.engine_messages import translate
from agents.workflows import start
from chat import queue, sharing
from chat.models import ChatSession, Message

logger = logging.getLogger(__name__)

RATE_WINDOW = timedelta(minutes=1)
MAX_MESSAGE_BYTES = 200_000
MAX_TITLE_CHARS = 60
HISTORY_RUNS = 20
# Only what the history needs: loading whole runs takes three times as long.
HISTORY_FIELDS = (
    *("query", "answer", "status", "stopped_reason", "detail"),
    *("marks", "tool_calls", "review__correction"),
)


class MessageRejected(Exception):
    """Raised when a message is rejected; the user sees the reason."""


class ClientIdConflict(MessageRejected):
    """Raised when the page's id for this message belongs to another one; it needs a new id."""


class Page(Protocol):
    """The open page that a message was sent from; called on the database thread."""

    language: str | None

    def recheck(self) -> tuple[ChatSession, User]:
        """Return the chat and the user as they are now; raise if access was lost."""

    def on_saved(self, message: Message) -> None: ...


_submitting: set[asyncio.Task[Message]] = set()


def submit(
    session: ChatSession | None,
    user: User,
    text: str,
    client_id: str,
    agent: str = "",
    *,
    page: Page | None = None,
) -> Awaitable[Message]:
    """Save a message and have it answered, even if its sender disconnects meanwhile.

    Without a session a new chat starts with it. Raises MessageRejected.
    """
    saving = partial(save, session, user, text, client_id, agent, page=page)
    task = asyncio.create_task(_save_and_dispatch(saving))
    _submitting.add(task)
    task.add_done_callback(_submitting.discard)
    return asyncio.shield(task)


async def _save_and_dispatch(saving: Callable[[], Message]) -> Message:
    message = await database.run_urgent(saving)
    if message.is_new:
        await dispatch(message.session, message)
    return message


def save(
    session: ChatSession | None,
    user: User,
    text: str,
    client_id: str,
    agent: str = "",
    *,
    page: Page | None = None,
) -> Message:
    """Save a message with its run, or in the queue while another run is live.

    The same client id returns the same message.
    """
    with translation.override(page.language) if page else nullcontext():
        if page is not None:
            session, user = page.recheck()
        text = clean_text(text)
        try:
            with errors.reraise_as(MessageRejected), transaction.atomic():
                if session is not None:
                    _lock(session, user)
                message = _find_duplicate(user, text, client_id, session)
                if message is None:
                    _check_rate(user)
                    message = _build(session, user, text, client_id, agent)
                    message.save(force_insert=True)
                    message.is_new = True
                if message.is_new and session is not None:
                    update(ChatSession, {"updated_at": timezone.now()}, id=session.pk)
        except IntegrityError:  # sent twice, and the other request was faster
            if session is not None:
                raise
            message = _find_duplicate(user, text, client_id)
            if message is None:
                raise
        if page is not None:
            page.on_saved(message)
        return message


async def dispatch(session: ChatSession, message: Message) -> None:
    """Start the message's run, or the queue, and notify every page of the chat."""
    fault_injection.point("after_message_save")
    if message.is_queued:
        await pubsub.publish(session.topic, "queue.changed")
        await answer_next(session)  # the run it waits for may have just ended
        return
    if message.run is not None:
        runs.launch(message.run)
    await pubsub.publish(session.topic, "message.added", message=message.pk, run=message.run_id)


async def answer_waiting(run: Run | None = None) -> None:
    """Start queued messages: in this run's chat, or wherever no run is live."""
    for session in await database.run(queue.ready_sessions, run):
        try:
            await answer_next(session)
        except Exception:  # others must not wait for a failure
            logger.exception("Can't start the next message of chat %s.", session.pk)


async def answer_next(session: ChatSession) -> None:
    """Start the chat's next queued message, if no run is live."""
    message = await database.run(_claim_next, session)
    if message is not None:
        await dispatch(session, message)


def _claim_next(session: ChatSession) -> Message | None:
    """Return the next message with its new run, claimed once across processes.

    A message that can't be answered waits, along with later ones of the same author.
    """
    with transaction.atomic():
        if not queue.lock(session) or queue.live_run(session):
            return None
        queue.drop_inactive(session)
        hindered: set[int] = set()
        for message in queue.waiting(session):
            if message.author_id in hindered:
                continue
            if (begun := _start_message(session, message)) is not None:
                return begun
            hindered.add(message.author_id)
    return None


def _start_message(session: ChatSession, message: Message) -> Message | None:
    """Return the message with its run, or None if it can't have one."""
    try:
        with transaction.atomic():
            agent = select_agent(message.agent_name, message.author)
            run = prepare(session, message.author, message.text, agent)
            message.text = masking.mask_for_storage(agent, message.text)
            return queue.attach_run(message, run)
    except MessageRejected:
        return None  # the page says why, and a later attempt may succeed
    except OperationalError:
        raise  # not the message's fault
    except Exception:  # others must not wait for a failure
        logger.exception("Can't start a run for message %s.", message.pk)
        return None


def _lock(session: ChatSession, user: User) -> None:
    """Lock the chat for this transaction; raise MessageRejected without write access."""
    if not queue.lock(session):
        raise MessageRejected(_("This chat no longer exists."))
    if not sharing.may_write(session, user):
        raise MessageRejected(str(sharing.READ_ONLY_MESSAGE))


def _find_duplicate(
    user: User, text: str, client_id: str, session: ChatSession | None = None
) -> Message | None:
    """Return the message already sent with this id: a double click, or a lost reply."""
    known = None
    is_id = 0 < len(client_id) <= 64 and client_id == storable(client_id)
    if is_id:
        known = next(iter(_by_client_id(user.pk, client_id)), None)
    # In another chat it isn't a duplicate, and treating it as one would lose the text.
    if not is_id or (known and session and known.session_id != session.pk):
        raise MessageRejected(_("The page sent an invalid request. Reload it and try again."))
    # Neither is different text; but an agent may save it masked, so that counts as equal.
    if known and known.text != text and known.text != masking.mask_value(text):
        raise ClientIdConflict(
            _("Not sent: a different message was sent with the same ID. Send it again.")
        )
    return known


@compiled_query
def _by_client_id(author: int, client_id: str) -> QuerySet[Message]:
    return Message.objects.filter(author=author, client_id=client_id)


def _check_rate(user: User) -> None:
    """Raise MessageRejected if the user has reached the rate limit."""
    if not (most := settings.PERSON_MESSAGES):
        return
    quotas.lock_user(user)
    since = timezone.now() - RATE_WINDOW
    if Message.objects.filter(author=user, created_at__gt=since).count() >= most:
        sentence = ngettext(
            "You've sent %(most)d message in the last minute. Wait a moment, "
            "then send it again.",
            "You've sent %(most)d messages in the last minute. Wait a moment, "
            "then send it again.",
            most,
        )
        raise MessageRejected(sentence % {"most": most})


def _build(
    session: ChatSession | None, user: User, text: str, client_id: str, agent: str
) -> Message:
    """Return the message, unsaved: with its run, or with its place in the queue."""
    if session is not None and (queue.live_run(session) or queue.waiting(session)):
        return _build_queued(session, user, text, client_id, agent)
    session = session or _create_session(user, text, agent)
    fault_injection.point("before_message_save")
    answers = select_agent(agent, user)
    run = prepare(session, user, text, answers)
    kept = masking.mask_for_storage(answers, text)
    about = {"text": kept, "client_id": client_id, "agent_name": ""}
    return Message(session=session, author=user, run=run, **about)


def _create_session(user: User, text: str, agent: str) -> ChatSession:
    """Create a chat named after its first message, or after the workflow it starts."""
    wish = requested_workflow(text, user)
    kept = masking.mask_for_storage(select_agent(agent, user), text)
    title = wish.version.workflow.name if wish else make_title(kept)
    return ChatSession.objects.create(user=user, title=title)


def _build_queued(
    session: ChatSession, user: User, text: str, client_id: str, agent: str
) -> Message:
    fault_injection.point("before_message_save")
    name = agent and select_agent(agent, user).name
    requested_workflow(text, user)
    try:
        place = queue.next_place(session)
    except queue.QueueFull:
        raise MessageRejected(
            _("%(most)d messages are already queued. Remove one or wait for an answer.")
            % {"most": queue.MAX_QUEUED}
        ) from None
    kept = _masked_text(user, text, name)
    about = {"text": kept, "client_id": client_id, "agent_name": name, "place": place}
    return Message(session=session, author=user, **about)


def _masked_text(user: User, text: str, agent: str) -> str:
    """Mask the text as the agent that would answer it requires."""
    first = agent_factory.default_candidates_for(user.pk)
    answers = find_agent(agent, user) if agent else next(iter(first), None)
    return masking.mask_for_storage(answers, text) if answers else text


def clean_text(text: str) -> str:
    """Return the text for storage; raise MessageRejected if it is empty or too long."""
    text = storable(text).strip()
    if not any(c.isprintable() and not c.isspace() for c in text):
        raise MessageRejected(_("Enter a message first."))
    if len(text.encode()) > MAX_MESSAGE_BYTES:
        raise MessageRejected(
            _("This message is too long (%(size)d kB). The limit is %(most)d kB.")
            % {"size": len(text.encode()) // 1000, "most": MAX_MESSAGE_BYTES // 1000}
        )
    return text


def storable(text: str) -> str:
    """Remove what a database rejects: NUL and lone surrogates."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def make_title(text: str) -> str:
    line = " ".join(text[: MAX_TITLE_CHARS * 4].split())
    if len(line) <= MAX_TITLE_CHARS:
        return line
    cut = line[:MAX_TITLE_CHARS].rsplit(" ", 1)[0]
    return f"{cut if len(cut) > MAX_TITLE_CHARS // 2 else line[:MAX_TITLE_CHARS]}…"


def history(session: ChatSession) -> list[HistoryMessage]:
    """Return the chat's history as a model gets it."""
    return [
        m for run in reversed(_recent_runs(session.pk)) for m in event_store.transcript(run)
    ]


@compiled_query
def _recent_runs(session: int) -> QuerySet[Run]:
    runs = Run.objects.filter(message__session=session).select_related("review")
    return runs.only(*HISTORY_FIELDS).order_by("-message__pk")[:HISTORY_RUNS]


def select_agent(name: str, user: User) -> Agent:
    """Return the agent with this name, or the user's default."""
    with _reject_agent_errors():
        agent = find_agent(name, user) if name else agent_factory.default_agent(user.pk)
    if agent is None:
        raise MessageRejected(_("This agent is no longer available. Choose another one."))
    return agent


def find_agent(name: str, user: User) -> Agent | None:
    return next(iter(_agents_by_name(user.pk, storable(name))), None)


@compiled_query
def _agents_by_name(user: int, name: str) -> QuerySet[Agent]:
    return Agent.objects.open_to(user).filter(name=name, enabled=True)


def requested_workflow(text: str, user: User) -> start.StartRequest | None:
    """Return the workflow that a message starts, if any."""
    try:
        return start.parse_command(text, user)
    except start.WorkflowNotStarted as reason:
        raise MessageRejected(str(reason)) from reason


def prepare(session: ChatSession, user: User, text: str, agent: Agent) -> Run:
    """Create the run for a text: of an agent, a workflow, or a stopped plan."""
    if (stopped := _stopped_plan(session, text)) is not None:
        return _prepare_continuation(stopped, session, user)
    wish = requested_workflow(text, user)
    with _reject_agent_errors():
        return runs.prepare(
            query=text,
            history=history(session),
            topic=session.topic,
            user=user,
            agent=agent,
            workflow=wish.version if wish else None,
            parameters=dict(wish.parameters) if wish else None,
        )


def _stopped_plan(session: ChatSession, text: str) -> Run | None:
    """Return the chat's last stopped plan, if this text continues it."""
    if text not in _continue_phrases():
        return None
    last = Run.objects.filter(message__session=session).order_by("-message__pk").first()
    return last if last is not None and last.can_continue else None


@cache
def _continue_phrases() -> set[str]:
    """Return the button's text in each language."""
    phrases = set()
    for language, _name in settings.LANGUAGES:
        with translation.override(language):
            phrases.add(_("Continue where you left off."))
    return phrases


def _prepare_continuation(stopped: Run, session: ChatSession, user: User) -> Run:
    with _reject_agent_errors():
        return runs.prepare_continuation(stopped, topic=session.topic, user=user)


def blocked_reason(message: Message) -> str:
    """Return why a queued message couldn't be answered now; usually empty."""
    try:
        agent = select_agent(message.agent_name, message.author)
        requested_workflow(message.text, message.author)
        with _reject_agent_errors():
            planner_factory.ensure_usable(
                agent, planner_factory.model_name(agent), message.author
            )
            quotas.check(message.author)
    except MessageRejected as reason:
        return str(reason)
    except Exception:  # the page must render, or the message couldn't be withdrawn
        logger.exception("Can't check whether message %s can be answered.", message.pk)
        return _("This message can't be answered. Remove it from the queue.")
    return ""


@contextmanager
def _reject_agent_errors() -> Iterator[None]:
    """Turn agent errors into a rejection with its reason."""
    try:
        yield
    except AgentError as error:
        raise MessageRejected(f"{translate(str(error))} {translate(error.advice)}") from error
