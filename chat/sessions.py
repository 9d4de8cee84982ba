"""What people do with their sessions: begin, say, stop, rename, delete, find."""

from collections.abc import Mapping

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from agents import live, runs, storage, trace
from agents.engine import faults
from agents.engine.errors import AgentError
from agents.engine.state import Message as HistoryMessage
from agents.models import Agent, Run
from agents.sentences import told
from chat.models import ChatSession, Message

MOST_BYTES = 200_000
MOST_TITLE = 60
MOST_QUERY = 200
REMEMBERED = 20
LISTED = 100


class NotSaid(Exception):
    """A message was not taken; the text says why, to the person who wrote it."""


async def ask(session: ChatSession, message: Message) -> None:
    """Have the message answered, and tell every page that shows the session."""
    faults.point("P2")
    runs.launch(message.run)
    await live.publish(session.topic, "message.added", message=message.pk, run=message.run_id)


def begin(user, text: str, client_id: str, agent: str = "") -> Message:
    """A new session with its first message; the same client id gives the same one."""
    text = cleaned(text)
    with storage.refusing(NotSaid), transaction.atomic():
        if (known := _known(user, client_id)) is not None:
            return known
        session = ChatSession.objects.create(user=user, title=title_of(text))
        return _add(session, user, text, client_id, agent)


def say(session: ChatSession, user, text: str, client_id: str, agent: str = "") -> Message:
    text = cleaned(text)
    try:
        with storage.refusing(NotSaid), transaction.atomic():
            if (known := _known(user, client_id, session)) is not None:
                return known
            message = _add(session, user, text, client_id, agent)
            ChatSession.objects.filter(pk=session.pk).update(updated_at=timezone.now())
            return message
    except runs.StillAnswering:
        raise NotSaid(_still_answering(session)) from None


def rename(session: ChatSession, title: str) -> None:
    title = " ".join(_storable(title).split())[:80]
    if title:
        ChatSession.objects.filter(pk=session.pk).update(title=title)


def delete(session: ChatSession) -> None:
    """Messages, runs and traces: nothing of it stays."""
    with transaction.atomic():
        Run.objects.filter(message__session=session).delete()
        session.delete()


def found(user, query: str = "", live: Mapping[str, Run] | None = None) -> list[ChatSession]:
    """A person's sessions, newest first; with a query, those that hold its words."""
    chats = ChatSession.objects.for_user(user)
    for word in _storable(query)[:MOST_QUERY].split()[:8]:
        said = Message.objects.filter(
            Q(text__icontains=word) | Q(run__answer__icontains=word), session=OuterRef("pk")
        )
        chats = chats.filter(Q(title__icontains=word) | Exists(said))
    live = live_runs(user) if live is None else live
    listed = list(chats[:LISTED])
    for chat in listed:
        chat.live = live.get(chat.topic)
    return listed


def live_runs(user) -> dict[str, Run]:
    """What goes on in the sessions of this person, by their topics."""
    runs = Run.objects.live().filter(user=user).order_by().only("topic", "status")
    return {run.topic: run for run in runs}


def live_run(session: ChatSession) -> Run | None:
    return Run.objects.live().filter(topic=session.topic).first()


def history(session: ChatSession) -> list[HistoryMessage]:
    """What was said so far, as a model is told of it."""
    recent = (
        session.messages.filter(run__isnull=False)
        .select_related("run")
        .order_by("-pk")[:REMEMBERED]
    )
    return [m for message in reversed(recent) for m in trace.transcript(message.run)]


def cleaned(text: str) -> str:
    """The text as it can be kept; raises NotSaid where it is nothing, or too much."""
    text = _storable(text).strip()
    if not any(c.isprintable() and not c.isspace() for c in text):
        raise NotSaid(_("Type a question first."))
    if len(text.encode()) > MOST_BYTES:
        raise NotSaid(
            _("This message is too long: %(size)d kB, and at most %(most)d kB can be sent.")
            % {"size": len(text.encode()) // 1000, "most": MOST_BYTES // 1000}
        )
    return text


def title_of(text: str) -> str:
    line = " ".join(text[: MOST_TITLE * 4].split())
    if len(line) <= MOST_TITLE:
        return line
    cut = line[:MOST_TITLE].rsplit(" ", 1)[0]
    return f"{cut if len(cut) > MOST_TITLE // 2 else line[:MOST_TITLE]}…"


def _still_answering(session: ChatSession) -> str:
    run = live_run(session)
    if run is not None and run.is_waiting:
        return _("The agent waits for your decision. Give it, or stop the run, and send again.")
    return _("The agent is still answering. Wait for it, or stop it, and send again.")


def _add(session: ChatSession, user, text: str, client_id: str, agent: str) -> Message:
    faults.point("P1")
    try:
        run = runs.prepare(
            query=text,
            history=history(session),
            topic=session.topic,
            user=user,
            agent=_agent(agent),
        )
    except AgentError as error:
        raise NotSaid(f"{told(str(error))} {told(error.advice)}") from error
    message = Message.objects.create(
        session=session, author=user, run=run, text=text, client_id=client_id
    )
    message.is_new = True
    return message


def _agent(name: str) -> Agent | None:
    if not name:
        return None
    agent = Agent.objects.filter(name=_storable(name), enabled=True).first()
    if agent is None:
        raise NotSaid(_("This agent is not available any more. Choose another one."))
    return agent


def _known(user, client_id: str, session: ChatSession | None = None) -> Message | None:
    """The message that was sent under this id before: a double click, or a lost reply."""
    known = None
    is_id = 0 < len(client_id) <= 64 and client_id == _storable(client_id)
    if is_id:
        known = Message.objects.filter(author=user, client_id=client_id).first()
    # Said in another session it is no double, and to take it for one would lose the text.
    if not is_id or (known and session and known.session_id != session.pk):
        raise NotSaid(_("The page sent something that cannot be read."))
    return known


def _storable(text: str) -> str:
    """Without what a database refuses: NUL, and halves of characters."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()
