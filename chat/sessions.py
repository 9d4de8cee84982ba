"""What people do with their sessions: begin, say, stop, rename, delete."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

from django.conf import settings
from django.db import IntegrityError, OperationalError, transaction
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents import (
    allowances,
    assembly,
    database,
    live,
    masking,
    planners,
    runs,
    storage,
    trace,
)
from agents.engine import faults
from agents.engine.errors import AgentError
from agents.engine.state import Message as HistoryMessage
from agents.models import Agent, Run
from agents.models.prepared import prepared
from agents.models.statements import add, update
from agents.sentences import told
from agents.workflows import starting
from chat import queue, sharing
from chat.models import ChatSession, Message

logger = logging.getLogger(__name__)

MOST_BYTES = 200_000
MOST_TITLE = 60
REMEMBERED = 20
A_MINUTE = timedelta(minutes=1)
# What a model is told of a run: to read all of a run takes three times as long.
TOLD_AGAIN = (
    *("query", "answer", "status", "stopped_reason", "detail"),
    *("marks", "tool_calls", "review__correction"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a session stands: what lives in it, what waits, and why that does not go on."""

    live_run: int | None
    is_waiting: bool = False
    queued: tuple[Message, ...] = ()
    hindrance: str = ""

    @property
    def waits(self) -> tuple[Any, ...]:
        """What is shown of the queue."""
        return self.queued, self.hindrance, self.is_waiting


class NotSaid(Exception):
    """A message was not taken; the text says why, to the person who wrote it."""


_being_said: set[asyncio.Task[Message]] = set()


async def said(say: Callable[[], Message]) -> Message:
    """Keep a message and have it answered, even if whoever sent it leaves in the middle."""
    saying = asyncio.create_task(_said(say))
    _being_said.add(saying)
    saying.add_done_callback(_being_said.discard)
    return await asyncio.shield(saying)


async def _said(say: Callable[[], Message]) -> Message:
    message = await database.ask(say)
    if message.is_new:
        await ask(message.session, message)
    return message


async def ask(session: ChatSession, message: Message) -> None:
    """Have it answered, now or in its turn, and tell every page that shows the session."""
    faults.point("P2")
    if message.is_queued:
        await live.publish(session.topic, "queue.changed")
        await _answer_next(session)  # what it waits for may have ended in this very moment
        return
    runs.launch(message.run)
    await live.publish(session.topic, "message.added", message=message.pk, run=message.run_id)


async def go_on(run: Run | None = None) -> None:
    """Have answered what waits: where this run is over, or wherever nothing lives."""
    for session in await database.ask(queue.free, run):
        try:
            await _answer_next(session)
        except Exception:  # whatever it was, the others need not wait for it
            logger.exception("What waits in session %s could not go on.", session.pk)


async def send_now(session: ChatSession, user, pk: int | None) -> bool:
    """Stop what is being answered, and have this answered first of all that waits.

    False where there is no such message.
    """
    is_there, run = await database.ask(_put_first, session, user, pk)
    if not is_there:
        return False
    if run is not None:
        await runs.stop(run)
    await live.publish(session.topic, "queue.changed")
    await _answer_next(session)
    return True


async def withdraw(session: ChatSession, user, pk: int | None) -> str | None:
    """Take out what waits; give its text to its author, or None where it is not there."""
    text = await database.ask(queue.withdraw, session, user, pk)
    if text is not None:
        await live.publish(session.topic, "queue.changed")
    return text


def begin(user, text: str, client_id: str, agent: str = "") -> Message:
    """A new session with its first message; the same client id gives the same one."""
    text = cleaned(text)
    try:
        with storage.refusing(NotSaid), transaction.atomic():
            if (known := _known(user, client_id)) is not None:
                return known
            _check_pace(user)
            wish = _wished(text, user)
            kept = masking.kept(_agent(agent, user), text)
            title = wish.version.workflow.name if wish else title_of(kept)
            session = ChatSession.objects.create(user=user, title=title)
            return _add(session, user, text, client_id, agent)
    except IntegrityError:  # it came twice at once, and the other was quicker
        return Message.objects.get(author=user, client_id=client_id)


def say(session: ChatSession, user, text: str, client_id: str, agent: str = "") -> Message:
    """A message that is answered at once, or waits while another one is being answered."""
    text = cleaned(text)
    with storage.refusing(NotSaid), transaction.atomic():
        if not queue.hold(session):
            raise NotSaid(_("This session is not there any more."))
        if not sharing.may_write(session, user):
            raise NotSaid(str(sharing.READS_ONLY))
        if (known := _known(user, client_id, session)) is not None:
            return known
        _check_pace(user)
        is_busy = live_run(session) or queue.waiting(session)
        message = (_queue if is_busy else _add)(session, user, text, client_id, agent)
        update(ChatSession, {"updated_at": timezone.now()}, id=session.pk)
        return message


def rename(session: ChatSession, title: str) -> None:
    title = " ".join(storable(title).split())[:80]
    if title:
        ChatSession.objects.filter(pk=session.pk).update(title=title)


def delete(session: ChatSession) -> None:
    """Messages, runs and traces: nothing of it stays."""
    with transaction.atomic():
        queue.hold(session)
        Run.objects.filter(message__session=session).delete()
        session.delete()


def live_run(session: ChatSession) -> Run | None:
    return next(iter(_live_on(session.topic)), None)


@prepared
def _live_on(topic):
    return Run.objects.live().filter(topic=topic).defer("history").order_by()


def standing(session: ChatSession, run: Run | None) -> Standing:
    """Where it stands while this run lives in it, or none."""
    queued = tuple(queue.waiting(session))
    return Standing(
        live_run=run and run.pk,
        is_waiting=run is not None and run.is_waiting,
        queued=queued,
        hindrance=_hindrance(queued[0]) if queued and run is None else "",
    )


def history(session: ChatSession) -> list[HistoryMessage]:
    """What was said so far, as a model is told of it."""
    return [m for run in reversed(_recent_runs(session.pk)) for m in trace.transcript(run)]


@prepared
def _recent_runs(session):
    runs = Run.objects.filter(message__session=session).select_related("review")
    return runs.only(*TOLD_AGAIN).order_by("-message__pk")[:REMEMBERED]


def cleaned(text: str) -> str:
    """The text as it can be kept; raises NotSaid where it is nothing, or too much."""
    text = storable(text).strip()
    if not any(c.isprintable() and not c.isspace() for c in text):
        raise NotSaid(_("Type a question first."))
    if len(text.encode()) > MOST_BYTES:
        raise NotSaid(
            _("This message is too long: %(size)d kB, and at most %(most)d kB can be sent.")
            % {"size": len(text.encode()) // 1000, "most": MOST_BYTES // 1000}
        )
    return text


def _check_pace(user) -> None:
    """Raises NotSaid where this person has said as much in the last minute as they may."""
    if not (most := settings.PERSON_MESSAGES):
        return
    allowances.hold(user)
    lately = timezone.now() - A_MINUTE
    if Message.objects.filter(author=user, created_at__gt=lately).count() >= most:
        sentence = ngettext(
            "You have sent %(most)d message in a minute. Wait a moment, then send it again.",
            "You have sent %(most)d messages in a minute. Wait a moment, then send it again.",
            most,
        )
        raise NotSaid(sentence % {"most": most})


def title_of(text: str) -> str:
    line = " ".join(text[: MOST_TITLE * 4].split())
    if len(line) <= MOST_TITLE:
        return line
    cut = line[:MOST_TITLE].rsplit(" ", 1)[0]
    return f"{cut if len(cut) > MOST_TITLE // 2 else line[:MOST_TITLE]}…"


def _add(session: ChatSession, user, text: str, client_id: str, agent: str) -> Message:
    faults.point("P1")
    answers = _agent(agent, user)
    run, kept = _prepare(session, user, text, answers), masking.kept(answers, text)
    message = Message(
        session=session, author=user, run=run, text=kept, client_id=client_id, agent_name=""
    )
    add(message)
    message.is_new = True
    return message


def _queue(session: ChatSession, user, text: str, client_id: str, agent: str) -> Message:
    faults.point("P1")
    name = agent and _agent(agent, user).name
    _wished(text, user)
    try:
        message = queue.add(
            session,
            author=user,
            text=_queueable(user, text, name),
            client_id=client_id,
            agent_name=name,
        )
    except queue.Full:
        raise NotSaid(
            _("%(most)d messages are waiting already. Withdraw one, or wait for an answer.")
            % {"most": queue.MOST}
        ) from None
    message.is_new = True
    return message


def _queueable(user, text: str, agent: str) -> str:
    """The text as whoever would answer it now lets it be kept; maybe nobody would."""
    first = assembly.first_agents_for(user.pk)
    answers = _named(agent, user) if agent else next(iter(first), None)
    return masking.kept(answers, text) if answers else text


def _put_first(session: ChatSession, user, pk: int | None) -> tuple[bool, Run | None]:
    """Whether it is there, and what lives before it: asked later, that might be its own run."""
    with transaction.atomic():
        return queue.put_first(session, user, pk), live_run(session)


async def _answer_next(session: ChatSession) -> None:
    message = await database.ask(_next, session)
    if message is not None:
        await ask(session, message)


def _next(session: ChatSession) -> Message | None:
    """The message whose turn it is, with a run of its own; once, whoever else asks.

    One that cannot be answered waits, and with it what the same person said after it.
    """
    with transaction.atomic():
        if not queue.hold(session) or live_run(session):
            return None
        queue.drop_inactive(session)
        hindered: set[int] = set()
        for message in queue.waiting(session):
            if message.author_id in hindered:
                continue
            if (begun := _begun(session, message)) is not None:
                return begun
            hindered.add(message.author_id)
    return None


def _begun(session: ChatSession, message: Message) -> Message | None:
    """The message with its run; None where it cannot have one."""
    try:
        with transaction.atomic():
            agent = _agent(message.agent_name, message.author)
            run = _prepare(session, message.author, message.text, agent)
            message.text = masking.kept(agent, message.text)
            return queue.take_up(message, run)
    except NotSaid:
        return None  # the page says why, and the next look may find it mended
    except OperationalError:
        raise  # it is not the message
    except Exception:  # whatever it was, the others need not wait for it
        logger.exception("Message %s could not be begun.", message.pk)
        return None


def _hindrance(message: Message) -> str:
    """Why nobody would answer this if it were its turn now, in words; mostly nothing."""
    try:
        agent = _agent(message.agent_name, message.author)
        _wished(message.text, message.author)
        with _in_words():
            planners.check(agent, planners.model_name(agent), message.author)
            allowances.check(message.author)
    except NotSaid as reason:
        return str(reason)
    except Exception:  # the page has to be shown, or nobody could withdraw it
        logger.exception("Message %s cannot be begun.", message.pk)
        return _("This message cannot be answered. Withdraw it.")
    return ""


def _prepare(session: ChatSession, user, text: str, agent: Agent) -> Run:
    if (stopped := _stopped_plan(session, text)) is not None:
        return _rest_of(stopped, session, user)
    wish = _wished(text, user)
    wanted = {"workflow": wish.version, "parameters": dict(wish.parameters)} if wish else {}
    asked = {"query": text, "history": history(session), "topic": session.topic}
    with _in_words():
        return runs.prepare(**asked, **wanted, user=user, agent=agent)


def _stopped_plan(session: ChatSession, text: str) -> Run | None:
    """The plan that was stopped last in here, where this asks to go on with it."""
    if text not in _asking_to_go_on():
        return None
    last = Run.objects.filter(message__session=session).order_by("-message__pk").first()
    return last if last is not None and last.can_go_on else None


@cache
def _asking_to_go_on() -> set[str]:
    """What the button says, in each language."""
    said = set()
    for language, _name in settings.LANGUAGES:
        with translation.override(language):
            said.add(_("Continue where you stopped."))
    return said


def _rest_of(stopped: Run, session: ChatSession, user) -> Run:
    with _in_words():
        return runs.prepare_rest(stopped, topic=session.topic, user=user)


@contextmanager
def _in_words() -> Iterator[None]:
    """What stands in the way of a run, told to the person who wrote."""
    try:
        yield
    except AgentError as error:
        raise NotSaid(f"{told(str(error))} {told(error.advice)}") from error


def _wished(text: str, user) -> starting.Wish | None:
    """The workflow that a message asks for, if it does."""
    try:
        return starting.wished(text, user)
    except starting.NotStarted as reason:
        raise NotSaid(str(reason)) from reason


def _agent(name: str, user) -> Agent:
    """The agent of this name, or the one that answers this person where none was chosen."""
    with _in_words():
        agent = _named(name, user) if name else assembly.default_agent(user.pk)
    if agent is None:
        raise NotSaid(_("This agent is not available any more. Choose another one."))
    return agent


def _named(name: str, user) -> Agent | None:
    return next(iter(_agents(user.pk, storable(name))), None)


@prepared
def _agents(user, name):
    return Agent.objects.open_to(user).filter(name=name, enabled=True)


def _known(user, client_id: str, session: ChatSession | None = None) -> Message | None:
    """The message that was sent under this id before: a double click, or a lost reply."""
    known = None
    is_id = 0 < len(client_id) <= 64 and client_id == storable(client_id)
    if is_id:
        known = next(iter(_sent(user.pk, client_id)), None)
    # Said in another session it is no double, and to take it for one would lose the text.
    if not is_id or (known and session and known.session_id != session.pk):
        raise NotSaid(_("The page sent something that cannot be read."))
    return known


@prepared
def _sent(author, client_id):
    return Message.objects.filter(author=author, client_id=client_id)


def storable(text: str) -> str:
    """Without what a database refuses: NUL, and halves of characters."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()
