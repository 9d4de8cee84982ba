"""From what somebody types to the run that answers it, or to why it is not answered."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext as _

from agents import runs
from agents.access import quotas
from agents.catalog import agent_factory, planner_factory
from agents.db.compiled_queries import prepared
from agents.engine.errors import AgentError
from agents.engine.state import Message as HistoryMessage
from agents.models import Agent, Run
from agents.runs import event_store
from agents.runs.engine_messages import told
from agents.workflows import start
from chat.models import ChatSession, Message

logger = logging.getLogger(__name__)

MOST_BYTES = 200_000
MOST_TITLE = 60
REMEMBERED = 20
# What a model is told of a run: to read all of a run takes three times as long.
TOLD_AGAIN = (
    *("query", "answer", "status", "stopped_reason", "detail"),
    *("marks", "tool_calls", "review__correction"),
)


class NotSaid(Exception):
    """A message was not taken; the text says why, to the person who wrote it."""


class IdTaken(NotSaid):
    """The page's id for this message belongs to another message: it needs a new one."""


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


def storable(text: str) -> str:
    """Without what a database refuses: NUL, and halves of characters."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def title_of(text: str) -> str:
    line = " ".join(text[: MOST_TITLE * 4].split())
    if len(line) <= MOST_TITLE:
        return line
    cut = line[:MOST_TITLE].rsplit(" ", 1)[0]
    return f"{cut if len(cut) > MOST_TITLE // 2 else line[:MOST_TITLE]}…"


def history(session: ChatSession) -> list[HistoryMessage]:
    """What was said so far, as a model is told of it."""
    return [
        m for run in reversed(_recent_runs(session.pk)) for m in event_store.transcript(run)
    ]


@prepared
def _recent_runs(session):
    runs = Run.objects.filter(message__session=session).select_related("review")
    return runs.only(*TOLD_AGAIN).order_by("-message__pk")[:REMEMBERED]


def agent_for(name: str, user) -> Agent:
    """The agent of this name, or the one that answers this person where none was chosen."""
    with _in_words():
        agent = named(name, user) if name else agent_factory.default_agent(user.pk)
    if agent is None:
        raise NotSaid(_("This agent is not available any more. Choose another one."))
    return agent


def named(name: str, user) -> Agent | None:
    return next(iter(_agents(user.pk, storable(name))), None)


@prepared
def _agents(user, name):
    return Agent.objects.open_to(user).filter(name=name, enabled=True)


def wished(text: str, user) -> start.Wish | None:
    """The workflow that a message asks for, if it does."""
    try:
        return start.wished(text, user)
    except start.NotStarted as reason:
        raise NotSaid(str(reason)) from reason


def prepare(session: ChatSession, user, text: str, agent: Agent) -> Run:
    """The run that answers a text: of an agent, of a workflow, or what is left of a plan."""
    if (stopped := _stopped_plan(session, text)) is not None:
        return _rest_of(stopped, session, user)
    wish = wished(text, user)
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


def hindrance(message: Message) -> str:
    """Why nobody would answer this if it were its turn now, in words; mostly nothing."""
    try:
        agent = agent_for(message.agent_name, message.author)
        wished(message.text, message.author)
        with _in_words():
            planner_factory.check(agent, planner_factory.model_name(agent), message.author)
            quotas.check(message.author)
    except NotSaid as reason:
        return str(reason)
    except Exception:  # the page has to be shown, or nobody could withdraw it
        logger.exception("Message %s cannot be begun.", message.pk)
        return _("This message cannot be answered. Withdraw it.")
    return ""


@contextmanager
def _in_words() -> Iterator[None]:
    """What stands in the way of a run, told to the person who wrote."""
    try:
        yield
    except AgentError as error:
        raise NotSaid(f"{told(str(error))} {told(error.advice)}") from error
