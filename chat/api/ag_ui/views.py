"""AG-UI over HTTP: a RunAgentInput comes in, its events go out as server-sent events."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from ag_ui.core import BaseEvent, ResumeEntry
from ag_ui.encoder import EventEncoder
from django.http import Http404
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from agents.db import database
from agents.engine.events import EventType
from agents.models import Approval, Run
from agents.runs import event_store
from agents.web.api import STILL_HERE, EventStream, stream_response
from agents.web.api_access import ApiRequest
from agents.web.api_errors import ApiError
from agents.web.origin import origin_of
from chat.api import calls, client_tools, waiting
from chat.api.calls import Caller
from chat.api.client_tools import FunctionCall, FunctionResult
from chat.api.waiting import WaitingRequest

from . import inputs
from .translation import Translator

logger = logging.getLogger(__name__)

_encoder = EventEncoder()


@require_POST
async def run_agent(request: ApiRequest, agent: str) -> EventStream:
    """Ask an agent, or give its run what it waits for, and stream what follows."""
    caller = Caller(request.api_key)
    # In a thread, because it may contain files.
    run_input = await asyncio.to_thread(inputs.read, request)
    if not await database.run(caller.agents().filter(name=agent).exists):
        raise Http404
    entries = run_input.resume or []
    results = inputs.results_of(run_input)
    if entries or results:
        pause = await database.run(_find_pause, caller, entries, results)
        await _continue(caller, pause.run, entries, results)
        translator = Translator(pause.run, run_input, pause.calls, pause.own_calls)
        events = _events(caller, translator, pause)
    else:
        run = await calls.ask(caller, await inputs.question_of(run_input, agent))
        translator = Translator(run, run_input)
        events = _events(caller, translator)
    path = reverse("trace:run", args=[translator.run.pk])
    return stream_response(_stream(translator, f"{origin_of(request)}{path}", events))


@dataclass(frozen=True, slots=True)
class _Pause:
    """A run that waits, with what it waits for and the calls that the front end knows."""

    run: Run
    last_seq: int
    approvals: Collection[int]
    calls: Collection[str]
    own_calls: Collection[str]

    def is_over(self) -> bool:
        return not Approval.objects.waiting().filter(pk__in=self.approvals).exists()


def _find_pause(
    caller: Caller, entries: Sequence[ResumeEntry], results: Sequence[FunctionResult]
) -> _Pause:
    """Return the run that waits for these answers and results."""
    if entries:
        asked = waiting.find(caller, entries[0].interrupt_id)
        # Experts decide about runs of others, too, which they may not read.
        run = caller.started_runs().filter(pk=asked.run_id).first()
    else:
        run = client_tools.run_of(caller, [result.call for result in results])
    if run is None:
        raise ApiError(404, _("No run waits for these results."), "not_found")
    rows = list(run.approvals.waiting())
    own_calls = {row.call_id for row in rows if row.why == Approval.Why.CLIENT}
    return _Pause(
        run=run,
        last_seq=event_store.last_seq(run),
        approvals={row.pk for row in rows},
        calls={row.call_id.partition("/")[0] for row in rows} - own_calls,
        own_calls=own_calls,
    )


async def _continue(
    caller: Caller,
    run: Run,
    entries: Sequence[ResumeEntry],
    results: Sequence[FunctionResult],
) -> None:
    """Answer what the run waits for."""
    if len({entry.interrupt_id for entry in entries}) < len(entries):
        raise ApiError(422, _("Answer each interrupt once."), "invalid_answer")
    for entry in entries:
        value = None
        if entry.status == "resolved":
            value = waiting.read_value(entry.payload)
        answered = await waiting.answer(caller, entry.interrupt_id, value)
        if answered.pk != run.pk:
            raise ApiError(422, _("Answer the interrupts of one run."), "invalid_answer")
    if results:
        await client_tools.resume(caller, run, results)


async def _stream(
    translator: Translator, trace_url: str, events: AsyncGenerator[BaseEvent | None, None]
) -> AsyncIterator[bytes]:
    for translated in translator.start(trace_url):
        yield _encode(translated)
    try:
        async with aclosing(events):
            async for event in events:
                yield STILL_HERE if event is None else _encode(event)
    except Exception:
        logger.exception("The AG-UI stream of run %s failed.", translator.run.pk)
        for translated in translator.fail(_("Unexpected error."), "internal_error"):
            yield _encode(translated)


def _encode(event: BaseEvent) -> bytes:
    return _encoder.encode(event).encode()


async def _events(
    caller: Caller, translator: Translator, pause: _Pause | None = None
) -> AsyncGenerator[BaseEvent | None, None]:
    """Yield a run's events until it ends or waits for answers; None when there were none."""
    run = translator.run
    if pause is not None and not await database.run(pause.is_over):
        for translated in translator.pause(*await _waiting(run)):
            yield translated
        return
    after = pause.last_seq if pause is not None else 0
    async with aclosing(calls.follow(caller, run, after)) as events:
        async for event in events:
            if event is None:
                yield None
                continue
            is_form = event.data.get("why") == Approval.Why.ELICITATION
            if event.type is EventType.RUN_FINISHED:
                ending = translator.finish(event.data)
            elif event.type is EventType.RUN_PAUSED or (
                is_form and event.type is EventType.APPROVAL_REQUESTED
            ):
                requests, functions = await _waiting(run)
                if not requests and not functions:  # answered elsewhere meanwhile
                    continue
                ending = translator.pause(requests, functions)
            else:
                for translated in translator.translate(event):
                    yield translated
                continue
            for translated in ending:
                yield translated
            return
    for translated in translator.fail(_("This key has lost access to the run."), "access_lost"):
        yield translated


async def _waiting(run: Run) -> tuple[list[WaitingRequest], list[FunctionCall]]:
    requests = await database.run(waiting.requests_of, run)
    return requests, await database.run(client_tools.calls_of, run)
