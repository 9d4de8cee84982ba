"""Responses, by the Open Responses specification: a run is a response with all its steps.

A response's id has its run and the event after which it begins, because a run that waited for a
function's result or for a decision continues in the next response.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents import runs
from agents.access import masking
from agents.db import database
from agents.db.sanitize import parse_id
from agents.engine.events import Event, StatusKind
from agents.models import Agent, ApiKey, Run
from agents.runs import event_store
from agents.web.api import STILL_HERE, stream_response
from agents.web.api_errors import ApiError
from chat.messages.run_options import RunOptions

from .. import calls, client_tools
from ..calls import TOPIC_PREFIX, Caller, Question
from . import agent_models, compaction, response_input, schemas
from .access import caller_of, trace_url
from .answer import AnswerReader, Ending, pieces
from .completions import EFFORTS, NO_RETRY, TRACE_HEADER, output_overrides, stop_unread
from .response_echo import echo_of, functions_of
from .response_input import ResponseInput
from .response_schemas import CompactRequest, ResponseRequest
from .response_writer import ResponseWriter, StreamEvent, encode_events
from .schemas import JsonSchema, ResponseFormat

ECHO = "response"  # the key in `Run.overrides`
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class StartedResponse:
    """A run that answers a request, from this event on."""

    run: Run
    after: int
    echo: Mapping[str, Any]
    is_structured: bool

    def writer(self, caller: Caller) -> ResponseWriter:
        # A key that may decide gets requests at once; others wait for the browser.
        waits = ApiKey.Scope.APPROVE not in caller.key.scopes
        reader = AnswerReader(self.run, is_structured=self.is_structured, waits=waits)
        return ResponseWriter(self.run, self.after, reader, self.echo)


@require_POST
async def create(request: HttpRequest) -> HttpResponseBase:
    """Answer a request, at once, as a stream or in the background."""
    caller = caller_of(request)
    body = await schemas.read(request, ResponseRequest)
    started = await start(caller, body)
    is_unattended = bool(body.background)
    if body.stream:
        stream = _stream(caller, started, is_unattended=is_unattended)
        response: HttpResponseBase = stream_response(stream)
    elif is_unattended:
        response = JsonResponse(started.writer(caller).resource())
    else:
        response = await _whole(caller, started)
    response[TRACE_HEADER] = trace_url(request, started.run)
    return response


@require_http_methods(["GET", "DELETE"])
async def stored_response(request: HttpRequest, id: str) -> HttpResponseBase:
    """Return a stored response, or delete it; its trace stays as long as others."""
    caller = caller_of(request)
    started = await database.run(_stored, caller, id)
    if request.method == "DELETE":
        await database.run(_forget, started.run)
        return JsonResponse({"id": id, "object": "response.deleted", "deleted": True})
    if request.GET.get("stream") == "true":
        last = request.GET.get("starting_after", "")
        number = int(last) if last.isascii() and last.isdigit() and len(last) < 10 else -1
        stream = _stream(caller, started, is_unattended=True, starting_after=number)
        return stream_response(stream)
    return JsonResponse(await _state(caller, started))


@require_GET
async def input_items(request: HttpRequest, id: str) -> JsonResponse:
    """Return what a stored response was asked."""
    caller = caller_of(request)
    started = await database.run(_stored, caller, id)
    items = await database.run(response_input.items_of, started.run, started.after)
    return JsonResponse(
        {
            "object": "list",
            "data": items,
            "first_id": items[0]["id"] if items else None,
            "last_id": items[-1]["id"] if items else None,
            "has_more": False,
        }
    )


@require_POST
async def cancel(request: HttpRequest, id: str) -> JsonResponse:
    """Stop a response and return it."""
    caller = caller_of(request)
    started = await database.run(_stored, caller, id)
    await calls.stop(caller, started.run)
    return JsonResponse(await _state(caller, await database.run(_stored, caller, id)))


@require_POST
async def compact(request: HttpRequest) -> JsonResponse:
    """Return a conversation as one item."""
    caller = caller_of(request)
    body = await schemas.read(request, CompactRequest)
    agent = await database.run(agent_models.find, caller, body.model)
    previous = None
    if body.previous_response_id:
        previous = await database.run(_previous, caller, body.previous_response_id)
    items = response_input.as_items(body.input)
    _instructions, messages = await response_input.read_messages(caller, items, previous)
    sealed, used = await compaction.seal(caller, agent, messages)
    id = secrets.token_hex(12)
    return JsonResponse(
        {
            "id": f"resp_cmp_{id}",
            "object": "response.compaction",
            "created_at": int(time.time()),
            "output": [{"type": "compaction", "id": f"cmp_{id}", "encrypted_content": sealed}],
            "usage": {
                "input_tokens": used.get("prompt_tokens") or 0,
                "output_tokens": used.get("completion_tokens") or 0,
                "total_tokens": used.get("total_tokens") or 0,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": 0},
            },
        }
    )


async def start(
    caller: Caller, body: ResponseRequest, remembered: Collection[str] = ()
) -> StartedResponse:
    """Continue the run that waits for what this request brings, or start one.

    `remembered` are responses of this connection that aren't stored. Raises ApiError.
    """
    previous = None
    if body.previous_response_id:
        previous = await database.run(_previous, caller, body.previous_response_id, remembered)
    said = await response_input.read(caller, body.input, previous)
    agent = await database.run(agent_models.find, caller, body.model)
    echo = echo_of(body, agent)
    format = body.text.format if body.text is not None else None
    is_structured = format is not None and format.type != "text"
    waiting = await _waiting_run(caller, previous, said)
    if waiting is not None:
        after = await _continue(caller, waiting, said)
        return StartedResponse(waiting, after, echo, "output_schema" in waiting.overrides)
    if said.approvals:
        sentence = _("No request with this ID waits for a decision.")
        raise ApiError(400, sentence, "approval_not_found", param="input")
    if previous is not None and previous.is_live:
        await runs.stop(previous)  # it waited for something that doesn't come
    overrides = {ECHO: await database.run(masking.mask_for_storage, agent, echo)}
    run = await calls.ask(caller, _question(body, agent, said, overrides))
    return StartedResponse(run, 0, echo, is_structured)


async def _waiting_run(caller: Caller, previous: Run | None, said: ResponseInput) -> Run | None:
    """Return the run that this request continues, if there is one."""
    if said.approvals:
        run = await database.run(response_input.run_of_approval, caller, said.approvals[0])
        return run if previous is None or run is None or run.pk == previous.pk else None
    # After a further message, the conversation goes on without the run that waits.
    ids = [result.call for result in said.results]
    return await database.run(client_tools.run_of, caller, ids)


async def _continue(caller: Caller, run: Run, said: ResponseInput) -> int:
    if said.approvals:
        return await response_input.decide(caller, run, said.approvals)
    return await client_tools.resume(caller, run, said.results)


def _question(
    body: ResponseRequest, agent: Agent, said: ResponseInput, overrides: dict[str, Any]
) -> Question:
    functions, advice = functions_of(body)
    overrides = overrides | client_tools.overrides(functions)
    format = body.text.format if body.text is not None else None
    if format is not None and format.type != "text":
        schema = JsonSchema(schema=format.schema_ or {"type": "object"})
        overrides |= output_overrides(ResponseFormat(type="json_schema", json_schema=schema))
    if body.max_output_tokens:
        overrides["max_output_tokens"] = body.max_output_tokens
    effort = body.reasoning.effort if body.reasoning is not None else None
    instructions = (body.instructions, *said.instructions, advice)
    return Question(
        text=said.text,
        agent=agent.name,
        history=said.history,
        overrides=overrides,
        options=RunOptions(effort=EFFORTS.get(effort or "", ""), temperature=body.temperature),
        instructions="\n\n".join(filter(None, instructions)),
        files=said.files,
    )


async def events(
    caller: Caller, writer: ResponseWriter, *, has_error_event: bool = True
) -> AsyncGenerator[StreamEvent | None, None]:
    """Yield a response's events to its end; None when there were none for a while."""
    for event in writer.begin():
        yield event
    answer = pieces(caller, writer.run, writer.reader, writer.after)
    async with aclosing(answer) as all_pieces:
        async for piece in all_pieces:
            if piece is None:
                yield None
                continue
            if _is_too_long(writer, piece):
                await calls.stop(caller, writer.run)
                detail = _("The input is longer than the agent’s context. Send less of it.")
                writer.reader.ending = Ending("error", detail, "context_length_exceeded")
                break
            for event in writer.add(piece):
                yield event
    writer.ended_at = timezone.now()
    for event in writer.end(has_error_event=has_error_event):
        yield event


def _is_too_long(writer: ResponseWriter, piece: Any) -> bool:
    """Whether earlier messages were left out, which the request doesn't allow."""
    is_note = isinstance(piece, Event) and piece.data.get("kind") == StatusKind.COMPACTION
    return is_note and writer.echo["truncation"] == "disabled"


async def _stream(
    caller: Caller,
    started: StartedResponse,
    *,
    is_unattended: bool = False,
    starting_after: int = -1,
) -> AsyncIterator[bytes]:
    """Yield a response as server-sent events; an attended run ends with its reader."""
    writer = started.writer(caller)
    try:
        async with aclosing(events(caller, writer)) as all_events:
            async for event in all_events:
                if event is None:
                    yield STILL_HERE
                elif event["sequence_number"] > starting_after:
                    yield encode_events(event)
    except (asyncio.CancelledError, GeneratorExit):
        if not is_unattended:
            await stop_unread(caller, started.run)
        raise
    yield DONE


async def _whole(caller: Caller, started: StartedResponse) -> JsonResponse:
    writer = started.writer(caller)
    try:
        async for _event in events(caller, writer):
            pass
    except asyncio.CancelledError:
        await stop_unread(caller, started.run)
        raise
    response = JsonResponse(writer.resource())
    if writer.status == "failed":
        response[NO_RETRY] = "false"
    return response


async def _state(caller: Caller, started: StartedResponse) -> dict[str, Any]:
    """Return a stored response as it is now, without waiting."""
    writer = started.writer(caller)
    list(writer.begin())
    last = await database.run(event_store.last_seq, started.run)
    follower = calls.follow(caller, started.run, started.after)
    async with aclosing(follower) as all_events:
        async for event in all_events:
            if event is None:
                break
            for piece in writer.reader.read(event):
                list(writer.add(piece))
            if event.seq >= last or writer.reader.ending is not None:
                break
    if writer.reader.ending is not None:
        list(writer.end())
    return writer.resource()


def _stored(caller: Caller, id: str) -> StartedResponse:
    """Return a stored response of this caller's. Raises ApiError."""
    run, after = _find(caller, id)
    if run is None or not run.overrides[ECHO].get("store"):
        sentence = _("There is no response with the ID %(id)s.")
        raise ApiError(404, sentence % {"id": id[:100]}, "response_not_found")
    return StartedResponse(run, after, run.overrides[ECHO], "output_schema" in run.overrides)


def _previous(caller: Caller, id: str, remembered: Collection[str] = ()) -> Run:
    """Return the run of the response that a request continues. Raises ApiError."""
    run, _after = _find(caller, id)
    if run is None or not (run.overrides[ECHO].get("store") or id in remembered):
        sentence = _("There is no previous response with the ID %(id)s.")
        raise ApiError(
            400,
            sentence % {"id": id[:100]},
            "previous_response_not_found",
            param="previous_response_id",
        )
    if run.status == Run.Status.RUNNING:
        sentence = _("The previous response isn’t complete. Wait for it, or cancel it.")
        raise ApiError(409, sentence, "response_in_progress", param="previous_response_id")
    return run


def _find(caller: Caller, id: str) -> tuple[Run | None, int]:
    """Return the caller's own run with this response id, and where the response begins."""
    prefix, run_text, after_text = [*id.split("_"), "", "", ""][:3]
    run_pk = parse_id(run_text)
    after = parse_id(after_text)
    if prefix != "resp" or run_pk is None or after is None:
        return None, 0
    own = Run.objects.filter(user=caller.user, topic__startswith=TOPIC_PREFIX)
    if ApiKey.Scope.READ not in caller.key.scopes:
        own = own.filter(api_key=caller.key)
    run = own.filter(pk=run_pk, overrides__has_key=ECHO).first()
    return run, after


def _forget(run: Run) -> None:
    run.overrides[ECHO]["store"] = False
    run.save(update_fields=["overrides"])
