"""Tasks of A2A: runs as the protocol displays them."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from a2a.helpers import proto_helpers
from a2a.types import (
    Artifact,
    Message,
    Part,
    Role,
    StreamResponse,
    Task,
    TaskState,
    TaskStatus,
)
from django.db.models import Q, QuerySet
from google.protobuf.json_format import MessageToDict

from agents.db.sentences import translate
from agents.engine.loop import StopReason
from agents.models import Approval, Run
from chat.api import files, waiting
from chat.api.calls import TOPIC_PREFIX, Caller
from chat.api.waiting import WaitingRequest

# A context is a topic of its user, so contexts of others have other names.
CONTEXT_PREFIX = f"{TOPIC_PREFIX}a2a."
ANSWER_ID = "answer"
MAX_ID_DIGITS = 19

Status = Run.Status
_CANCELED = Q(status=Status.STOPPED, stopped_reason=StopReason.CANCELLED)
# At a limit, a run has ended with what it had until then.
_LIMITED = Q(status=Status.STOPPED) & ~Q(stopped_reason=StopReason.CANCELLED)
QUERIES: Mapping[int, Q] = {
    TaskState.TASK_STATE_SUBMITTED: Q(status=Status.RUNNING, owner="", heartbeat_at=None),
    TaskState.TASK_STATE_WORKING: Q(status=Status.RUNNING) & ~Q(owner="", heartbeat_at=None),
    TaskState.TASK_STATE_INPUT_REQUIRED: Q(status=Status.WAITING),
    TaskState.TASK_STATE_COMPLETED: Q(status=Status.COMPLETED) | (_LIMITED & ~Q(answer="")),
    TaskState.TASK_STATE_CANCELED: _CANCELED,
    TaskState.TASK_STATE_REJECTED: Q(status=Status.BLOCKED),
    TaskState.TASK_STATE_FAILED: Q(status__in=[Status.FAILED, Status.INTERRUPTED])
    | (_LIMITED & Q(answer="")),
}


def context_topic(caller: Caller, context_id: str) -> str:
    return f"{CONTEXT_PREFIX}{caller.key.user_id}.{context_id}"


def context_of(run: Run) -> str:
    return run.topic.removeprefix(f"{CONTEXT_PREFIX}{run.user_id}.")


def find_run(caller: Caller, task_id: str) -> Run | None:
    """Return the run that a task is, if it is one of this user's tasks."""
    if not (task_id.isascii() and task_id.isdigit() and len(task_id) < MAX_ID_DIGITS):
        return None
    return runs_of(caller).filter(pk=int(task_id)).first()


def _own(caller: Caller) -> Q:
    return Q(user=caller.user, topic__startswith=context_topic(caller, ""))


def runs_of(caller: Caller) -> QuerySet[Run]:
    """Return the runs that are tasks of this user."""
    return caller.runs().filter(_own(caller))


def state_of(run: Run, requests: list[WaitingRequest]) -> int:
    match run.status:
        case Status.RUNNING if requests:  # a running tool asks
            return TaskState.TASK_STATE_INPUT_REQUIRED
        case Status.RUNNING if not run.owner and run.heartbeat_at is None:
            return TaskState.TASK_STATE_SUBMITTED
        case Status.RUNNING:
            return TaskState.TASK_STATE_WORKING
        case Status.WAITING:
            return TaskState.TASK_STATE_INPUT_REQUIRED
        case Status.COMPLETED:
            return TaskState.TASK_STATE_COMPLETED
        case Status.BLOCKED:
            return TaskState.TASK_STATE_REJECTED
        case Status.STOPPED if run.stopped_reason == StopReason.CANCELLED:
            return TaskState.TASK_STATE_CANCELED
        case Status.STOPPED if run.answer:
            return TaskState.TASK_STATE_COMPLETED
    return TaskState.TASK_STATE_FAILED


def task_of(run: Run, *, has_artifacts: bool = True, text: str = "") -> Task:
    """Return a run as a task; `text` is what it has streamed so far."""
    task = Task(
        id=str(run.pk),
        context_id=context_of(run),
        status=status_of(run),
        history=list(_history(run)),
    )
    if has_artifacts:
        if text:
            task.artifacts.append(text_artifact(text))
        elif not run.is_live:
            task.artifacts.extend(artifacts_of(run))
    return task


def notification_of(run: Run) -> dict[str, Any]:
    """Return the task as a push notification has it."""
    return MessageToDict(StreamResponse(task=task_of(run)))


def status_of(run: Run) -> TaskStatus:
    requests = waiting.requests_of(run) if run.is_live else []
    message = None
    if requests:
        message = _message(run, "input", _request_parts(requests))
    elif not run.is_live and run.detail:
        sentences = filter(None, [translate(run.detail), translate(run.advice)])
        message = _message(run, "status", [Part(text=" ".join(sentences))])
    status = TaskStatus(state=TaskState.Name(state_of(run, requests)), message=message)
    status.timestamp.FromDatetime(status_time(run).astimezone(UTC))
    return status


def status_time(run: Run) -> datetime:
    return run.ended_at or run.started_at


def working(run: Run, text: str = "", state: int = TaskState.TASK_STATE_WORKING) -> TaskStatus:
    """Return the status of a run that works, with what it does."""
    message = _message(run, "progress", [Part(text=text)]) if text else None
    status = TaskStatus(state=TaskState.Name(state), message=message)
    status.timestamp.GetCurrentTime()
    return status


def artifacts_of(run: Run) -> Iterator[Artifact]:
    """Yield the answer of a run that has ended, then the files that its tools returned."""
    parts = [Part(text=run.answer)] if run.answer else []
    if run.output is not None:
        parts.append(proto_helpers.new_data_part(run.output))
    if parts:
        yield Artifact(artifact_id=ANSWER_ID, name=ANSWER_ID, parts=parts)
    for row, content in files.returned_files(run):
        name = row.name or f"file.{row.extension}"
        part = Part(raw=content, filename=name, media_type=row.mime_type)
        yield Artifact(artifact_id=row.digest[:16], name=name, parts=[part])


def text_artifact(text: str) -> Artifact:
    return Artifact(artifact_id=ANSWER_ID, name=ANSWER_ID, parts=[Part(text=text)])


def _history(run: Run) -> Iterator[Message]:
    """Yield the question, and what the run has asked since with its answers."""
    yield _message(run, "question", [Part(text=run.query)], Role.ROLE_USER)
    decided = run.approvals.exclude(why=Approval.Why.CLIENT).order_by("pk")
    for approval in decided:
        if approval.is_waiting:
            continue
        request = waiting.request_of(approval)
        asked = [Part(text=request.text)]
        yield _message(run, f"{approval.pk}-asked", asked)
        is_answer = approval.is_question and approval.verdict == Approval.Verdict.APPROVED
        reason = translate(approval.reason)
        text = reason if is_answer else f"{approval.verdict} {reason}".strip()
        yield _message(run, f"{approval.pk}-answered", [Part(text=text)], Role.ROLE_USER)


def _message(run: Run, name: str, parts: list[Part], role: Role = Role.ROLE_AGENT) -> Message:
    return Message(
        message_id=f"{run.pk}-{name}",
        role=role,
        parts=parts,
        task_id=str(run.pk),
        context_id=context_of(run),
    )


def _request_parts(requests: list[WaitingRequest]) -> list[Part]:
    """Return what is asked: as text for people, as data for programs."""
    parts = []
    for request in requests:
        parts.append(Part(text=request.text))
        data = {
            "id": request.id,
            "reason": request.why,
            "tool": request.tool,
            "arguments": request.arguments,
            "schema": dict(request.schema),
        }
        parts.append(proto_helpers.new_data_part(data))
    return parts
