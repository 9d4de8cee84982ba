"""Saves an imported chat: its messages, and runs that say where their answers come from."""

from collections.abc import Iterable
from datetime import datetime
from hashlib import sha256
from uuid import uuid4

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from agents.db.sanitize import sanitize_line, sanitize_text
from agents.engine.events import EventType
from agents.engine.loop import StopReason
from agents.models import AgentStep, OutsideTextTopic, Run, RunEvent
from chat.models import BranchPosition, ChatSession, Filing, ImportedChat, Message
from chat.sessions import titles
from chat.transfer.imports.trees import Conversation
from chat.transfer.imports.values import Answer, SourceChat, Turn

from . import export_ids

MAX_ID_CHARS = 200
BATCH_SIZE = 200


class AlreadyImported(Exception):
    """Raised when the user has this chat already; `session` is where."""

    def __init__(self, session: int) -> None:
        super().__init__(session)
        self.session = session


def original_id(chat: SourceChat) -> str:
    """Return the id that identifies the chat in its source, or one made from its messages."""
    source_id = sanitize_text(chat.original_id)
    if source_id and len(source_id) <= MAX_ID_CHARS:
        return source_id
    content = source_id or "\n".join(f"{node.id}\n{node.text}" for node in chat.nodes)
    return sha256(content.encode(errors="replace")).hexdigest()


def find_known(user: User, chat: SourceChat) -> int | None:
    """Return the user's chat that was imported from, or exported as, this one."""
    source_id = original_id(chat)
    if chat.source == "ashiato" and (pk := export_ids.parse_export_id(source_id)) is not None:
        own = ChatSession.objects.owned_by(user).filter(pk=pk)
        if own.exists():
            return pk
    imported = _imports(user, chat).filter(session__deleted_at=None)
    return imported.values_list("session", flat=True).first()


def _imports(user: User, chat: SourceChat) -> QuerySet[ImportedChat]:
    source_id = original_id(chat)
    return ImportedChat.objects.filter(user=user, source=chat.source, original_id=source_id)


def title_of(chat: SourceChat, conversation: Conversation | None = None) -> str:
    """Return the title, or one from the first question."""
    title = sanitize_line(chat.title)[:80]
    if title or conversation is None:
        return title
    first = sanitize_text(conversation.turns[0].text)
    return titles.make_title(first) or titles.generic_title()


def save(user: User, chat: SourceChat, conversation: Conversation) -> ChatSession:
    """Save a chat in one transaction; raise AlreadyImported."""
    if (session := find_known(user, chat)) is not None:
        raise AlreadyImported(session)
    try:
        with transaction.atomic():
            return _save(user, chat, conversation)
    except IntegrityError:  # another import was faster
        if (session := find_known(user, chat)) is None:
            raise
        raise AlreadyImported(session) from None


def _save(user: User, chat: SourceChat, conversation: Conversation) -> ChatSession:
    turns = conversation.turns
    session = ChatSession.objects.create(user=user, title=title_of(chat, conversation))
    OutsideTextTopic.objects.mark(session.topic)
    # A deleted chat isn't the imported one any more, even if it is restored.
    _imports(user, chat).exclude(session__deleted_at=None).delete()
    ImportedChat.objects.create(
        user=user, session=session, source=chat.source, original_id=original_id(chat)
    )
    if chat.is_archived or chat.is_pinned:
        filed_at = timezone.now()
        Filing.objects.create(
            user=user,
            session=session,
            archived_at=filed_at if chat.is_archived else None,
            pinned_at=filed_at if not chat.is_archived else None,
        )
    runs = _save_runs(user, session, chat, turns)
    # A parent is saved before its children, so its id is lower.
    messages = [
        Message(
            session=session,
            author=user,
            run=run,
            text=sanitize_text(turn.text),
            client_id=f"import-{uuid4().hex}",
        )
        for turn, run in zip(turns, runs, strict=True)
    ]
    Message.objects.bulk_create(messages, BATCH_SIZE)
    for message, turn in zip(messages, turns, strict=True):
        message.created_at = turn.created_at
        message.parent = None if turn.parent is None else messages[turn.parent]
    Message.objects.bulk_update(messages, ["created_at", "parent"], BATCH_SIZE)
    if len({turn.parent for turn in turns}) < len(turns):
        leaf = messages[conversation.leaf]
        BranchPosition.objects.create(session=session, user=user, leaf=leaf)
    ChatSession.objects.filter(pk=session.pk).update(
        created_at=min(turn.created_at for turn in turns), updated_at=last_used(conversation)
    )
    return session


def last_used(conversation: Conversation) -> datetime:
    return max(
        turn.answer.created_at if turn.answer else turn.created_at
        for turn in conversation.turns
    )


def _save_runs(
    user: User, session: ChatSession, chat: SourceChat, turns: list[Turn]
) -> list[Run | None]:
    """Save a finished run for each answer; unknown figures stay empty."""
    rows = [
        _build_run(user, session, chat, turn, turn.answer) if turn.answer else None
        for turn in turns
    ]
    runs = [run for run in rows if run is not None]
    start_times = [run.started_at for run in runs]
    Run.objects.bulk_create(runs, BATCH_SIZE)
    for run, started_at in zip(runs, start_times, strict=True):
        run.started_at = started_at  # replaced by the time of creation
    Run.objects.bulk_update(runs, ["started_at"], BATCH_SIZE)
    pairs = [
        (run, turn.answer)
        for run, turn in zip(rows, turns, strict=True)
        if run is not None and turn.answer is not None
    ]
    # Thoughts and tool use, as the source recorded them.
    steps = [
        AgentStep(
            run=run,
            number=number,
            turn=1,
            kind=AgentStep.Kind.THOUGHT,
            status=AgentStep.Status.DONE,
            agent_name=run.agent_name,
            thought=sanitize_text(note),
            first_seq=number + 1,
            started_at=answer.created_at,
            ended_at=answer.created_at,
        )
        for run, answer in pairs
        for number, note in enumerate(answer.notes, start=1)
    ]
    AgentStep.objects.bulk_create(steps, BATCH_SIZE)
    events = [event for run, answer in pairs for event in _build_events(run, answer)]
    RunEvent.objects.bulk_create(events, BATCH_SIZE)
    return rows


def _build_run(
    user: User, session: ChatSession, chat: SourceChat, turn: Turn, answer: Answer
) -> Run:
    is_failed = bool(answer.error) and not answer.text
    reason = StopReason.ERROR if is_failed else StopReason.COMPLETED
    return Run(
        user=user,
        topic=session.topic,
        agent_name=chat.agent[:64],
        model=sanitize_text(answer.model)[:200],
        route=Run.IMPORTED,
        query=sanitize_text(turn.text),
        answer=sanitize_text(answer.text),
        status=Run.Status.FAILED if is_failed else Run.Status.COMPLETED,
        stopped_reason=reason.value,
        detail=sanitize_text(answer.error) if is_failed else "",
        max_steps=0,
        step_types=f"|{AgentStep.Kind.THOUGHT}|" if answer.notes else "",
        started_at=turn.created_at,
        ended_at=answer.created_at,
    )


def _build_events(run: Run, answer: Answer) -> Iterable[RunEvent]:
    """Yield the events that a run's pages need: its start, its notes and its end."""
    start = {
        "query": run.query,
        "path": [run.agent_name],
        "model": run.model,
        "route": run.route,
        "dialect": run.dialect,
        "instructions": "",
        "tools": [],
        "max_steps": 0,
    }
    entries: list[tuple[EventType, dict[str, object], datetime]] = [
        (EventType.RUN_STARTED, start, run.started_at)
    ]
    for number, note in enumerate(answer.notes, start=1):
        step = {"step": number, "turn": 1, "kind": "thought", "status": "done"}
        entries.append(
            (EventType.STEP, step | {"thought": sanitize_text(note)}, answer.created_at)
        )
    ending = {
        "answer": run.answer,
        "stopped_reason": run.stopped_reason,
        "detail": run.detail,
        "advice": "",
        "turns": 0,
        "tool_calls": 0,
    }
    entries.append((EventType.RUN_FINISHED, ending, answer.created_at))
    for seq, (type, data, time) in enumerate(entries, start=1):
        yield RunEvent(
            run=run, seq=seq, type=type.value, agent=run.agent_name, time=time, data=data
        )
