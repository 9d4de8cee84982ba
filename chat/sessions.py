"""What users do with chats: start, send, stop, rename, delete."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, OperationalError, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents import runs
from agents.access import masking, quotas
from agents.catalog import agent_factory
from agents.db import database, errors
from agents.db.compiled_queries import compiled_query
from agents.db.fast_writes import update
from agents.engine import fault_injection
from agents.models import Run
from agents.runs import pubsub
from chat import messages, queue, sharing
from chat.models import ChatSession, Message

logger = logging.getLogger(__name__)

RATE_WINDOW = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatus:
    """A chat's status: its live run, its queue, and why that is blocked."""

    live_run: int | None
    is_waiting: bool = False
    queued: tuple[Message, ...] = ()
    hindrance: str = ""

    @property
    def waits(self) -> tuple[Any, ...]:
        """The visible state of the queue."""
        return self.queued, self.hindrance, self.is_waiting


_being_said: set[asyncio.Task[Message]] = set()


async def submit(say: Callable[[], Message]) -> Message:
    """Save a message and have it answered, even if the sender disconnects meanwhile."""
    saying = asyncio.create_task(_submit(say))
    _being_said.add(saying)
    saying.add_done_callback(_being_said.discard)
    return await asyncio.shield(saying)


async def _submit(say: Callable[[], Message]) -> Message:
    message = await database.run_urgent(say)
    if message.is_new:
        await dispatch(message.session, message)
    return message


async def dispatch(session: ChatSession, message: Message) -> None:
    """Start the message's run, or the queue, and notify every page of the chat."""
    fault_injection.point("P2")
    if message.is_queued:
        await pubsub.publish(session.topic, "queue.changed")
        await _answer_next(session)  # the run it waits for may have just ended
        return
    if message.run is not None:
        runs.launch(message.run)
    await pubsub.publish(session.topic, "message.added", message=message.pk, run=message.run_id)


async def answer_waiting(run: Run | None = None) -> None:
    """Start queued messages: in this run's chat, or wherever no run is live."""
    for session in await database.run(queue.ready_sessions, run):
        try:
            await _answer_next(session)
        except Exception:  # others must not wait for a failure
            logger.exception("Can't start the next message of chat %s.", session.pk)


async def send_now(session: ChatSession, user: User, pk: int | None) -> bool:
    """Stop the live run and answer this message next.

    Returns False if there is no such message.
    """
    is_there, run = await database.run(_move_to_front, session, user, pk)
    if not is_there:
        return False
    if run is not None:
        await runs.stop(run)
    await pubsub.publish(session.topic, "queue.changed")
    await _answer_next(session)
    return True


async def withdraw(session: ChatSession, user: User, pk: int | None) -> str | None:
    """Withdraw a queued message; return its text to its author, or None if there is none."""
    text = await database.run(queue.withdraw, session, user, pk)
    if text is not None:
        await pubsub.publish(session.topic, "queue.changed")
    return text


def start(user: User, text: str, client_id: str, agent: str = "") -> Message:
    """Create a chat with its first message; the same client id returns the same one."""
    text = messages.clean_text(text)
    try:
        with errors.reraise_as(messages.MessageRejected), transaction.atomic():
            if (known := _find_duplicate(user, text, client_id)) is not None:
                return known
            _check_rate(user)
            wish = messages.requested_workflow(text, user)
            kept = masking.mask_for_storage(messages.select_agent(agent, user), text)
            title = wish.version.workflow.name if wish else messages.make_title(kept)
            session = ChatSession.objects.create(user=user, title=title)
            return _create_message(session, user, text, client_id, agent)
    except IntegrityError:  # sent twice, and the other request was faster
        if (known := _find_duplicate(user, text, client_id)) is None:
            raise
        return known


def add_message(
    session: ChatSession, user: User, text: str, client_id: str, agent: str = ""
) -> Message:
    """Add a message that is answered at once, or queued while a run is live."""
    text = messages.clean_text(text)
    with errors.reraise_as(messages.MessageRejected), transaction.atomic():
        if not queue.lock(session):
            raise messages.MessageRejected(_("This chat no longer exists."))
        if not sharing.may_write(session, user):
            raise messages.MessageRejected(str(sharing.READ_ONLY_MESSAGE))
        if (known := _find_duplicate(user, text, client_id, session)) is not None:
            return known
        _check_rate(user)
        is_busy = live_run(session) or queue.waiting(session)
        message = (_queue_message if is_busy else _create_message)(
            session, user, text, client_id, agent
        )
        update(ChatSession, {"updated_at": timezone.now()}, id=session.pk)
        return message


def rename(session: ChatSession, title: str) -> None:
    title = " ".join(messages.storable(title).split())[:80]
    if title:
        ChatSession.objects.filter(pk=session.pk).update(title=title)


def delete(session: ChatSession) -> None:
    """Delete a chat with its messages, runs and traces."""
    with transaction.atomic():
        queue.lock(session)
        Run.objects.filter(message__session=session).delete()
        session.delete()


def live_run(session: ChatSession) -> Run | None:
    return next(iter(_live_runs(session.topic)), None)


@compiled_query
def _live_runs(topic: str) -> QuerySet[Run]:
    return Run.objects.live().filter(topic=topic).defer("history").order_by()


def get_status(session: ChatSession, run: Run | None) -> SessionStatus:
    """Return the chat's status with this live run, or none."""
    queued = tuple(queue.waiting(session))
    return SessionStatus(
        live_run=None if run is None else run.pk,
        is_waiting=run is not None and run.is_waiting,
        queued=queued,
        hindrance=messages.blocked_reason(queued[0]) if queued and run is None else "",
    )


def _check_rate(user: User) -> None:
    """Raise MessageRejected if the user has reached the rate limit."""
    if not (most := settings.PERSON_MESSAGES):
        return
    quotas.lock_user(user)
    lately = timezone.now() - RATE_WINDOW
    if Message.objects.filter(author=user, created_at__gt=lately).count() >= most:
        sentence = ngettext(
            "You've sent %(most)d message in the last minute. Wait a moment, "
            "then send it again.",
            "You've sent %(most)d messages in the last minute. Wait a moment, "
            "then send it again.",
            most,
        )
        raise messages.MessageRejected(sentence % {"most": most})


def _create_message(
    session: ChatSession, user: User, text: str, client_id: str, agent: str
) -> Message:
    fault_injection.point("P1")
    answers = messages.select_agent(agent, user)
    run, kept = (
        messages.prepare(session, user, text, answers),
        masking.mask_for_storage(answers, text),
    )
    message = Message(
        session=session, author=user, run=run, text=kept, client_id=client_id, agent_name=""
    )
    message.save(force_insert=True)
    message.is_new = True
    return message


def _queue_message(
    session: ChatSession, user: User, text: str, client_id: str, agent: str
) -> Message:
    fault_injection.point("P1")
    name = agent and messages.select_agent(agent, user).name
    messages.requested_workflow(text, user)
    try:
        message = queue.add(
            session,
            author=user,
            text=_masked_text(user, text, name),
            client_id=client_id,
            agent_name=name,
        )
    except queue.QueueFull:
        raise messages.MessageRejected(
            _("%(most)d messages are already queued. Remove one or wait for an answer.")
            % {"most": queue.MAX_QUEUED}
        ) from None
    message.is_new = True
    return message


def _masked_text(user: User, text: str, agent: str) -> str:
    """Mask the text as the agent that would answer it requires."""
    first = agent_factory.default_candidates_for(user.pk)
    answers = messages.find_agent(agent, user) if agent else next(iter(first), None)
    return masking.mask_for_storage(answers, text) if answers else text


def _move_to_front(session: ChatSession, user: User, pk: int | None) -> tuple[bool, Run | None]:
    """Move a message to the front; return whether it exists, and the live run before it."""
    with transaction.atomic():
        return queue.move_to_front(session, user, pk), live_run(session)


async def _answer_next(session: ChatSession) -> None:
    message = await database.run(_claim_next, session)
    if message is not None:
        await dispatch(session, message)


def _claim_next(session: ChatSession) -> Message | None:
    """Return the next message with its new run, claimed once across processes.

    A message that can't be answered waits, along with later ones of the same author.
    """
    with transaction.atomic():
        if not queue.lock(session) or live_run(session):
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
            agent = messages.select_agent(message.agent_name, message.author)
            run = messages.prepare(session, message.author, message.text, agent)
            message.text = masking.mask_for_storage(agent, message.text)
            return queue.attach_run(message, run)
    except messages.MessageRejected:
        return None  # the page says why, and a later attempt may succeed
    except OperationalError:
        raise  # not the message's fault
    except Exception:  # others must not wait for a failure
        logger.exception("Can't start a run for message %s.", message.pk)
        return None


def _find_duplicate(
    user: User, text: str, client_id: str, session: ChatSession | None = None
) -> Message | None:
    """Return the message already sent with this id: a double click, or a lost reply."""
    known = None
    is_id = 0 < len(client_id) <= 64 and client_id == messages.storable(client_id)
    if is_id:
        known = next(iter(_by_client_id(user.pk, client_id)), None)
    # In another chat it isn't a duplicate, and treating it as one would lose the text.
    if not is_id or (known and session and known.session_id != session.pk):
        raise messages.MessageRejected(
            _("The page sent an invalid request. Reload it and try again.")
        )
    # Neither is different text; but an agent may save it masked, so that counts as equal.
    if known and known.text != text and known.text != masking.mask_value(text):
        raise messages.ClientIdConflict(
            _("Not sent: a different message was sent with the same ID. Send it again.")
        )
    return known


@compiled_query
def _by_client_id(author: int, client_id: str) -> QuerySet[Message]:
    return Message.objects.filter(author=author, client_id=client_id)
