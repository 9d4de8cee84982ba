"""The SDK's request handler over runs: there is no other state of tasks than theirs."""

import asyncio
import functools
import json
import logging
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from a2a.server.context import ServerCallContext
from a2a.server.events import Event as StreamEvent
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.types import (
    AgentCard,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    Part,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.constants import DEFAULT_LIST_TASKS_PAGE_SIZE
from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    InternalError,
    InvalidParamsError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a.utils.proto_utils import validate_proto_required_fields
from a2a.utils.task import (
    ListTasksCursor,
    apply_history_length,
    decode_list_tasks_cursor,
    encode_list_tasks_cursor,
    validate_history_length,
    validate_page_size,
)
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _
from google.protobuf.json_format import MessageToDict

from agents.db import database
from agents.engine.state import Message as HistoryMessage
from agents.models import Approval, Run
from agents.runs import event_store
from agents.web.api_errors import ApiError
from chat.api import calls, files, waiting
from chat.api.calls import Caller, Question
from chat.api.files import SentFile
from chat.messages import run_factory

from . import cards, push, tasks, updates

logger = logging.getLogger(__name__)

# A request that waits for a task's end gets it as it is after this time.
WAIT_SECONDS = 600.0
CONTEXT_ID = re.compile(r"[A-Za-z0-9_.-]{1,48}", re.ASCII)
FILES = ("raw", "url")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
YES = {"approve", "approved", "yes", "ok", "承認", "はい"}
NO = {"reject", "rejected", "no", "decline", "cancel", "却下", "いいえ"}


@dataclass(frozen=True, slots=True)
class _Content:
    """What a message has in its parts."""

    text: str = ""
    values: list[Any] = field(default_factory=list)
    files: list[SentFile] = field(default_factory=list)


def _answers(method: Callable[..., Any]) -> Callable[..., Any]:
    """Check a call's parameters, and raise what the protocol has for our errors."""

    @functools.wraps(method)
    async def call(self: Any, params: Any, context: ServerCallContext) -> Any:
        try:
            validate_proto_required_fields(params)
            return await method(self, params, context)
        except Exception as error:
            raise _as_protocol_error(error, context) from error

    return call


def _streams(method: Callable[..., Any]) -> Callable[..., Any]:
    """Do the same for a call that is answered by a stream."""

    @functools.wraps(method)
    async def call(self: Any, params: Any, context: ServerCallContext) -> Any:
        try:
            validate_proto_required_fields(params)
            async with aclosing(method(self, params, context)) as events:
                async for event in events:
                    yield event
        except Exception as error:
            raise _as_protocol_error(error, context) from error

    return call


def _as_protocol_error(error: Exception, context: ServerCallContext) -> A2AError:
    if isinstance(error, A2AError):
        return error
    if isinstance(error, PermissionDenied):
        context.state["refusals"].append(error)
        return UnsupportedOperationError(str(error))
    if isinstance(error, ApiError):
        if error.status == 404:
            return InvalidParamsError(str(error))
        is_conflict = error.status in (403, 409)
        return (UnsupportedOperationError if is_conflict else InvalidParamsError)(str(error))
    logger.error("An A2A call failed.", exc_info=error)
    return InternalError()


class RunRequestHandler(RequestHandler):
    """Starts, continues, reads and stops runs as tasks; works in any process."""

    @_answers
    async def on_message_send(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> Task:
        caller: Caller = context.state["caller"]
        configuration = params.configuration
        validate_history_length(configuration)
        run, after = await _receive(caller, params, context)
        if not configuration.return_immediately:
            try:
                async with asyncio.timeout(WAIT_SECONDS):
                    async for _event in updates.until_pause(caller, run, after):
                        pass
            except TimeoutError:
                pass  # the client asks again
        return apply_history_length(await updates.read_task(run), configuration)

    @_streams
    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[StreamEvent, None]:
        caller: Caller = context.state["caller"]
        validate_history_length(params.configuration)
        run, after = await _receive(caller, params, context)
        task = await updates.read_task(run, has_artifacts=False)
        # What has happened meanwhile follows as updates.
        state = TaskState.TASK_STATE_WORKING if after else TaskState.TASK_STATE_SUBMITTED
        task.status.CopyFrom(tasks.working(run, state=state))
        yield apply_history_length(task, params.configuration)
        async with aclosing(
            updates.of_run(run, updates.until_pause(caller, run, after))
        ) as stream:
            async for update in stream:
                yield update

    @_streams
    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[StreamEvent, None]:
        caller: Caller = context.state["caller"]
        run = await _find(caller, params.id)
        if not run.is_live:
            raise UnsupportedOperationError(_("This task has ended."))
        seq, text = await database.run(updates.progress, run)
        yield await updates.read_task(run, text=text)
        events = calls.follow(caller, run, seq)
        async with aclosing(updates.of_run(run, events, text)) as stream:
            async for update in stream:
                yield update

    @_answers
    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task:
        validate_history_length(params)
        run = await _find(context.state["caller"], params.id)
        return apply_history_length(await updates.read_task(run), params)

    @_answers
    async def on_list_tasks(
        self, params: ListTasksRequest, context: ServerCallContext
    ) -> ListTasksResponse:
        validate_history_length(params)
        if params.HasField("page_size"):
            validate_page_size(params.page_size)
        return await database.run(_list, context.state["caller"], params)

    @_answers
    async def on_cancel_task(
        self, params: CancelTaskRequest, context: ServerCallContext
    ) -> Task:
        caller: Caller = context.state["caller"]
        run = await _find(caller, params.id)
        if not run.is_live:
            raise TaskNotCancelableError(_("This task has ended."))
        await calls.stop(caller, run)
        return await updates.read_task(run)

    @_answers
    async def on_create_task_push_notification_config(
        self, params: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        run = await _find(context.state["caller"], params.task_id)
        return await database.run(push.save, run, params)

    @_answers
    async def on_get_task_push_notification_config(
        self, params: GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        run = await _find(context.state["caller"], params.task_id)
        for config in await database.run(push.configs_of, run):
            if config.id == params.id or not params.id:
                return config
        raise TaskNotFoundError(_("There is no such push notification."))

    @_answers
    async def on_list_task_push_notification_configs(
        self, params: ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> ListTaskPushNotificationConfigsResponse:
        run = await _find(context.state["caller"], params.task_id)
        configs = await database.run(push.configs_of, run)
        return ListTaskPushNotificationConfigsResponse(configs=configs)

    @_answers
    async def on_delete_task_push_notification_config(
        self, params: DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        run = await _find(context.state["caller"], params.task_id)
        await database.run(run.push_targets.filter(name=params.id).delete)

    @_answers
    async def on_get_extended_agent_card(
        self, params: GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> AgentCard:
        caller: Caller = context.state["caller"]
        agents = await database.run(list, caller.agents().order_by("name"))
        return await database.run(cards.extended_card, context.state["request"], agents)


async def _receive(
    caller: Caller, params: SendMessageRequest, context: ServerCallContext
) -> tuple[Run, int]:
    """Start a run, or give a waiting one its answer; return it with its last event before."""
    message = params.message
    content = await _read_content(message)
    if message.task_id:
        run, after = await _continue(caller, message, content)
    else:
        context_id = message.context_id or uuid4().hex
        if not CONTEXT_ID.fullmatch(context_id):
            raise InvalidParamsError(
                _("A contextId has up to 48 letters, digits, “-” and “_”.")
            )
        topic = tasks.context_topic(caller, context_id)
        values = [json.dumps(value, ensure_ascii=False, indent=2) for value in content.values]
        question = Question(
            text="\n\n".join(filter(None, [content.text, *values])),
            agent=context.state["agent"] or context.tenant,
            history=await database.run(_history, caller, topic),
            topic=topic,
            files=content.files,
        )
        run, after = await calls.ask(caller, question), 0
    target = params.configuration.task_push_notification_config
    if target.url:
        await database.run(push.save, run, target)
    return run, after


async def _read_content(message: Message) -> _Content:
    texts: list[str] = []
    content = _Content()
    files.check_count(sum(part.WhichOneof("content") in FILES for part in message.parts))
    for part in message.parts:
        match part.WhichOneof("content"):
            case "text":
                texts.append(part.text)
            case "data":
                content.values.append(_read_data(part))
            case "raw":
                content.files.append(SentFile(part.filename or "file", part.raw))
            case "url":
                content.files.append(await files.fetch(part.url, part.filename))
            case _:
                raise ContentTypeNotSupportedError(_("A part of the message is empty."))
    return _Content("\n\n".join(texts), content.values, content.files)


def _read_data(part: Part) -> Any:
    try:
        return MessageToDict(part.data)
    except ValueError as error:  # a number that is too large is an infinite one by now
        raise InvalidParamsError(_("The body isn’t valid JSON.")) from error


def _history(caller: Caller, topic: str) -> list[HistoryMessage]:
    """Return what was asked and answered in this context, as far as the key may know it."""
    ended = caller.started_runs().filter(topic=topic).exclude(status__in=Run.LIVE)
    newest = ended.select_related("review").order_by("-pk")[: run_factory.HISTORY_RUNS]
    return [message for run in reversed(newest) for message in event_store.transcript(run)]


async def _continue(caller: Caller, message: Message, content: _Content) -> tuple[Run, int]:
    """Answer what a task waits for."""
    run = await _find(caller, message.task_id)
    if message.context_id and message.context_id != tasks.context_of(run):
        raise InvalidParamsError(_("The contextId isn’t that of the task."))
    if content.files:
        raise ContentTypeNotSupportedError(_("Files can’t be sent as an answer."))
    requests = await database.run(waiting.requests_of, run)
    if not run.is_live or not requests:
        sentence = _("This task has ended. Send a message without its taskId.")
        if run.is_live:
            sentence = _("This task is working and waits for no input.")
        raise UnsupportedOperationError(sentence)
    after = await database.run(event_store.last_seq, run)
    for request, value in _match(requests, content):
        await waiting.answer(caller, request.id, value)
    return run, after


def _match(
    requests: list[waiting.WaitingRequest], content: _Content
) -> list[tuple[waiting.WaitingRequest, dict[str, Any] | None]]:
    """Return which request each part of a message answers; None rejects it."""
    by_id = {request.id: request for request in requests}
    pairs: list[tuple[waiting.WaitingRequest, dict[str, Any] | None]] = []
    for value in content.values:
        answer = dict(value) if isinstance(value, dict) else {}
        id = answer.pop("id", requests[0].id if len(requests) == 1 else "")
        if id not in by_id or not answer:
            sentence = _("Send the id of what the task asks with your answer to it.")
            raise InvalidParamsError(sentence)
        pairs.append((by_id[id], answer))
    if pairs:
        return pairs
    if len(requests) > 1:
        raise InvalidParamsError(_("The task asks several things. Answer each as data."))
    return [(requests[0], _read_answer(requests[0], content.text))]


def _read_answer(request: waiting.WaitingRequest, text: str) -> dict[str, Any] | None:
    """Return a text as an answer; None if it rejects."""
    if request.why == Approval.Why.QUESTION:
        return {"answer": text}
    word = text.strip().strip(".!。！").lower()
    if word in NO:
        return None
    properties = list(request.schema.get("properties", ()))
    if request.why == Approval.Why.ELICITATION and len(properties) == 1:
        return {properties[0]: text.strip()}
    if word in YES:
        return {} if request.why == Approval.Why.ELICITATION else {"approved": True}
    raise InvalidParamsError(_("Answer “approve” or “reject”, or send the answer as data."))


async def _find(caller: Caller, task_id: str) -> Run:
    run = await database.run(tasks.find_run, caller, task_id)
    if run is None:
        raise TaskNotFoundError
    return run


def _list(caller: Caller, params: ListTasksRequest) -> ListTasksResponse:
    rows = tasks.runs_of(caller).annotate(changed=Coalesce("ended_at", "started_at"))
    if params.context_id:
        rows = rows.filter(topic=tasks.context_topic(caller, params.context_id))
    if params.status:
        rows = rows.filter(tasks.QUERIES.get(params.status, Q(pk=None)))
    if params.HasField("status_timestamp_after"):
        after = params.status_timestamp_after.ToDatetime(tzinfo=UTC)
        rows = rows.filter(changed__gte=after)
    total = rows.count()
    size = params.page_size or DEFAULT_LIST_TASKS_PAGE_SIZE
    if params.page_token:
        rows = rows.filter(_after_cursor(params.page_token))
    page = list(rows.order_by("-changed", "-pk")[: size + 1])
    token = ""
    if len(page) > size:
        page.pop()
        last = page[-1]
        microseconds = (last.changed - EPOCH) // timedelta(microseconds=1)
        cursor = ListTasksCursor(timestamp_ns=microseconds * 1_000, task_id=str(last.pk))
        token = encode_list_tasks_cursor(cursor)
    listed = [tasks.task_of(run, has_artifacts=params.include_artifacts) for run in page]
    if params.HasField("history_length"):
        listed = [apply_history_length(task, params) for task in listed]
    return ListTasksResponse(
        tasks=listed, next_page_token=token, page_size=size, total_size=total
    )


def _after_cursor(token: str) -> Q:
    cursor = decode_list_tasks_cursor(token)
    if cursor is None or cursor.timestamp_ns is None or not cursor.task_id.isdigit():
        raise InvalidParamsError(_("This pageToken isn’t one of ours."))
    try:
        changed = EPOCH + timedelta(microseconds=cursor.timestamp_ns // 1_000)
    except OverflowError as error:
        raise InvalidParamsError(_("This pageToken isn’t one of ours.")) from error
    return Q(changed__lt=changed) | Q(changed=changed, pk__lt=int(cursor.task_id))
