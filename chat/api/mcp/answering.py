"""One tool call from its question to its result: progress, forms, the answer, cancellation."""

import asyncio
import base64
import json
from contextlib import aclosing
from typing import Any
from uuid import uuid4

import anyio
import mcp_types as wire
from django.core.exceptions import PermissionDenied
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _
from mcp.server.context import ServerRequestContext

from agents.access import api_keys
from agents.db.sentences import translate
from agents.engine.events import Event, EventType
from agents.models import Run, RunAttachment
from agents.review.replays.replay_timeline import describe_event
from agents.runs import pubsub
from agents.web.api_errors import ApiError
from agents.web.presentation import RunView, trace_url
from agents.web.presentation.evidence_fragments import source_names
from agents.web.presentation.formats import status_text
from agents.web.presentation.formats.formatting import one_line
from agents.web.presentation.formats.links import chat_url
from chat.api import calls, files
from chat.models import Message

from . import approval_forms, handshake, tools
from .context import McpCall, of_request

START_SECONDS = 60.0
START_POLL_SECONDS = 0.2
STOP_SECONDS = 10.0
ELICITATION = "elicitation"
MAX_TEXT_BYTES = 100_000  # of a file that a client's model reads as a whole

CallResult = wire.CallToolResult | wire.InputRequiredResult
Context = ServerRequestContext[Any, Any]


async def call_tool(context: Context, params: wire.CallToolRequestParams) -> CallResult:
    """Ask an agent or start a workflow, and return its answer, or what it needs first."""
    call = of_request(context.request)
    client_id = uuid4().hex
    if call.session is not None and call.session.token:
        client_id = handshake.message_id(call.session, context.request_id)
    try:
        if params.request_state is None:
            arguments = params.arguments or {}
            message = await tools.send(call, params.name, arguments, client_id)
            run = await _run_of(message)
            after = 0
        else:
            # What the client's user answered, to what the run waits for.
            state = json.loads(params.request_state)
            client_id, after = state["message"], state["after"]
            run = await call.query(_find_run, call, state["run"])
            for key, answer in (params.input_responses or {}).items():
                if not (
                    isinstance(answer, wire.ElicitResult)
                    and await approval_forms.apply(call, key, answer)
                ):
                    return await call.query(_waiting_result, call, run)
        return await _follow(context, call, run, after, client_id)
    except (ApiError, PermissionDenied) as error:
        return failure(str(error))
    except asyncio.CancelledError:
        # The client closed the response, which is how it cancels; unless it has a session, and
        # says so, or this server is shutting down.
        if call.session is None and call.has_left.is_set():
            with anyio.move_on_after(STOP_SECONDS, shield=True):
                await handshake.stop_question(call, client_id)
        raise


def failure(text: str) -> wire.CallToolResult:
    """Return an error that the model reads."""
    return wire.CallToolResult(content=[wire.TextContent(text=text)], is_error=True)


async def _run_of(message: Message) -> Run:
    """Wait until a message has its run: in a busy chat it may have to wait for another."""
    try:
        async with asyncio.timeout(START_SECONDS):
            while True:
                run = await Run.objects.filter(message=message.pk).afirst()
                if run is not None:
                    return run
                await asyncio.sleep(START_POLL_SECONDS)
    except TimeoutError:
        raise ApiError(
            503, _("The question is in the queue. Open the conversation in the browser.")
        ) from None


def _find_run(call: McpCall, pk: int) -> Run:
    run = Run.objects.own_or_shared(call.caller.user).filter(pk=pk).first()
    if run is None:
        raise ApiError(404, _("This run no longer exists."))
    return run


async def _follow(
    context: Context, call: McpCall, run: Run, after: int, client_id: str
) -> CallResult:
    """Report a run's steps until it ends, or waits for what the client can't ask here."""
    asked: set[str] = set()
    is_dismissed = asyncio.Event()
    topic = handshake.dismissal_topic(run.pk)
    async with (
        pubsub.subscribe(topic, lambda kind, facts: is_dismissed.set()),
        aclosing(calls.follow(call.caller, run, after)) as events,
    ):
        async for event in events:
            if is_dismissed.is_set():
                return await call.query(_waiting_result, call, run)
            if event is None:
                continue
            await _report(context, event)
            if not _asks_now(event):
                continue
            if not await run.approvals.waiting().aexists():
                continue  # decided meanwhile
            forms = await call.query(approval_forms.pending, call, run)
            if not forms or not _can_ask(context, call):
                return await call.query(_waiting_result, call, run)
            if call.session is None:
                # What remains to be decided then is asked again.
                state = {"run": run.pk, "after": event.seq - 1, "message": client_id}
                return wire.InputRequiredResult(
                    input_requests={form.id: form.request for form in forms},
                    request_state=json.dumps(state),
                )
            for form in forms:
                if form.id not in asked:
                    asked.add(form.id)
                    await handshake.ask(call, form)
    if not await call.query(api_keys.is_still_usable, call.caller.key):
        raise ApiError(401, _("This API key no longer works."))
    return await call.query(_result, call, run.pk)


async def _report(context: Context, event: Event) -> None:
    """Report what happened as progress, numbered like the run's events."""
    call = of_request(context.request)
    with translation.override(call.language):
        described = describe_event(event)
    if described is not None:
        _kind, sentence = described
        await context.session.report_progress(event.seq, None, one_line(sentence))


def _asks_now(event: Event) -> bool:
    """Whether the run waits for a person since this event."""
    is_form = event.data.get("why") == ELICITATION
    return event.type is EventType.RUN_PAUSED or (
        event.type is EventType.APPROVAL_REQUESTED and is_form
    )


def _can_ask(context: Context, call: McpCall) -> bool:
    """Whether the client can display a form to its user."""
    if call.session is not None:
        return call.session.has_forms
    capabilities = context.session.client_capabilities
    if capabilities is None or capabilities.elicitation is None:
        return False
    # Without a mode it is the form, the only one at first.
    modes = capabilities.elicitation
    return modes.form is not None or modes.url is None


def _waiting_result(call: McpCall, run: Run) -> wire.CallToolResult:
    questions = "\n\n".join(approval_forms.describe(call, run))
    page = call.url(chat_url(run) or trace_url(run.pk))
    text = _("The run waits for a decision. Decide here, and it continues: %(url)s") % {
        "url": page
    }
    run.refresh_from_db()
    return _as_result(call, run, f"{text}\n\n{questions}".strip(), [])


def _result(call: McpCall, pk: int) -> wire.CallToolResult:
    run = Run.objects.get(pk=pk)
    view = RunView(run, place="trace")
    sources = [name for names in source_names(view).values() for name in names]
    answer = run.answer if run.output is None else json.dumps(run.output, ensure_ascii=False)
    if run.status == Run.Status.COMPLETED and answer:
        return _as_result(call, run, answer, sources)
    ending = " ".join(filter(None, [status_text.ending_sentence(run), translate(run.advice)]))
    text = "\n\n".join(filter(None, [answer, ending])) or _("No answer.")
    return _as_result(call, run, text, sources, is_error=not answer)


def _as_result(
    call: McpCall, run: Run, text: str, sources: list[str], *, is_error: bool = False
) -> wire.CallToolResult:
    data: dict[str, Any] = {
        "run": run.pk,
        "conversation": int(run.topic.rpartition(".")[2]),
        "status": run.status,
        "url": call.url(trace_url(run.pk)),
        "sources": sources,
    }
    if run.output is not None:
        data["output"] = run.output
    blocks: list[wire.ContentBlock] = [wire.TextContent(text=text)]
    for row, content in files.returned_files(run):
        address = call.url(reverse("trace:attachment", args=[run.pk, row.digest]))
        blocks.append(_as_block(row, content, address))
    return wire.CallToolResult(content=blocks, structured_content=data, is_error=is_error)


def _as_block(row: RunAttachment, content: bytes, address: str) -> wire.ContentBlock:
    """Return a file that a tool returned as clients display it or give it to their model."""
    kind = row.mime_type.partition("/")[0]
    if kind == "image":
        data = base64.b64encode(content).decode()
        return wire.ImageContent(data=data, mime_type=row.mime_type)
    if kind == "audio":
        data = base64.b64encode(content).decode()
        return wire.AudioContent(data=data, mime_type=row.mime_type)
    is_text = kind == "text" or row.mime_type == "application/json"
    if is_text and len(content) <= MAX_TEXT_BYTES:
        text = content.decode(errors="replace")
        resource = wire.TextResourceContents(uri=address, mime_type=row.mime_type, text=text)
        return wire.EmbeddedResource(resource=resource)
    return wire.ResourceLink(
        uri=address,
        name=row.name or f"file.{row.extension}",
        mime_type=row.mime_type,
        size=row.size,
    )
