"""A run's events as updates of its task."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from a2a.server.events import Event as StreamEvent
from a2a.types import Task, TaskArtifactUpdateEvent, TaskStatus, TaskStatusUpdateEvent
from a2a.utils.errors import TaskNotFoundError

from agents.db import database
from agents.engine.events import Event, EventType, StatusKind
from agents.models import Approval, Run
from agents.runs import event_store
from chat.api import calls, waiting
from chat.api.calls import Caller

from . import tasks


async def read_task(run: Run, *, has_artifacts: bool = True, text: str = "") -> Task:
    """Return the run as a task, as it is now."""
    return await database.run(_task_now, run, has_artifacts, text)


def _task_now(run: Run, has_artifacts: bool, text: str) -> Task:
    # Read anew, because the executor works with the row of a run that was started here.
    row = Run.objects.filter(pk=run.pk).first()
    if row is None:
        raise TaskNotFoundError
    return tasks.task_of(row, has_artifacts=has_artifacts, text=text)


def progress(run: Run) -> tuple[int, str]:
    """Return the number of the run's last event, and its answer up to there."""
    seq = event_store.last_seq(run)
    return seq, event_store.streamed_answer(run, until=seq)


async def until_pause(
    caller: Caller, run: Run, after: int
) -> AsyncGenerator[Event | None, None]:
    """Yield a run's events until it ends or waits for an answer."""
    async with aclosing(calls.follow(caller, run, after)) as events:
        async for event in events:
            yield event
            if event is None or not _asks(event):
                continue
            if await database.run(waiting.requests_of, run):
                return


def _asks(event: Event) -> bool:
    if event.type is EventType.APPROVAL_REQUESTED:
        return event.data["why"] == Approval.Why.ELICITATION
    return event.type is EventType.RUN_PAUSED


async def of_run(
    run: Run, events: AsyncGenerator[Event | None, None], text: str = ""
) -> AsyncGenerator[StreamEvent, None]:
    """Yield a run's events as updates of its task; `text` is what the client has of it."""
    ids: dict[str, Any] = {"task_id": str(run.pk), "context_id": tasks.context_of(run)}
    is_new = not text
    async with aclosing(events):
        async for event in events:
            if event is None or event.is_replayed:
                continue
            data = event.data
            if event.type is EventType.DELTA and "parent" not in data:
                text = data["content"] if is_new else text + data["content"]
                artifact = tasks.text_artifact(data["content"])
                yield TaskArtifactUpdateEvent(artifact=artifact, append=not is_new, **ids)
                is_new = False
            elif event.type is EventType.THOUGHT and "parent" not in data:
                is_new = True  # it wasn't the answer, which starts over
            elif event.type is EventType.RUN_FINISHED:
                task = await read_task(run)
                for artifact in task.artifacts:
                    if is_new or artifact != tasks.text_artifact(text):
                        yield TaskArtifactUpdateEvent(artifact=artifact, last_chunk=True, **ids)
                yield TaskStatusUpdateEvent(status=task.status, **ids)
            elif (status := await _status(run, event)) is not None:
                yield TaskStatusUpdateEvent(status=status, **ids)


async def _status(run: Run, event: Event) -> TaskStatus | None:
    """Return the status that a run has with this event, if it is worth telling."""
    match event.type:
        case EventType.RUN_STARTED | EventType.APPROVAL_RESOLVED:
            return tasks.working(run)
        case EventType.TOOL_CALL:
            return tasks.working(run, event.data["function"]["name"])
        case EventType.STATUS if event.data.get("kind") == StatusKind.TOOL_PROGRESS:
            return tasks.working(run, event.data.get("message", ""))
    if _asks(event):
        return (await read_task(run, has_artifacts=False)).status
    return None
