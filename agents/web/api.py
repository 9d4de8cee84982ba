"""A run's events for other programs, as server-sent events."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from functools import partial

from django.http import HttpRequest, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_GET

from agents.access import audit, authentication, masking
from agents.access.authentication import SessionStore
from agents.access.masking import Masker
from agents.access.requests import UserRequest
from agents.db import database
from agents.models import Run, RunEvent
from agents.runs import pubsub

MAX_SEQ_DIGITS = 10
RECHECK_SECONDS = 5.0  # seconds
EventFilter = Callable[[RunEvent], RunEvent]


@require_GET
async def events(request: UserRequest, pk: int) -> StreamingHttpResponse:
    """Stream everything after `Last-Event-ID` (or `?after=`), then live events to the end.

    Another user's run is masked: text is slightly delayed, and its end comes with the event
    that ends its step.
    """
    run, masker, visible_event = await database.run(_find, request, pk)
    text = request.headers.get("Last-Event-ID") or request.GET.get("after", "0")
    is_number = text.isascii() and text.isdigit() and len(text) < MAX_SEQ_DIGITS
    seq = int(text) if is_number else 0
    response = StreamingHttpResponse(
        _stream(request, run, seq, masker, visible_event), content_type="text/event-stream"
    )
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    return response


def _find(request: UserRequest, pk: int) -> tuple[Run, Masker | None, EventFilter]:
    run = get_object_or_404(Run.objects.for_user(request.user), pk=pk)
    audit.record_view(request.user, run, "api")
    is_masked = masking.is_masked_for(run, request.user, request.session)
    visible_event = partial(
        masking.visible_row,
        hides_private=masking.hides_private_parts(run, request.user),
        hides_rules=not masking.sees_rules(request.user),
    )
    return run, Masker() if is_masked else None, visible_event


async def _stream(
    request: HttpRequest,
    run: Run,
    seq: int,
    masker: Masker | None,
    visible_event: EventFilter,
) -> AsyncIterator[str]:
    # Earlier text decides whether the new text is part of personal data.
    checked_at = time.monotonic()
    async for row in pubsub.events(run, seq if masker is None else 0):
        if row is None or time.monotonic() - checked_at > RECHECK_SECONDS:
            if not await database.run(_can_still_view, request, run, masker):
                return
            checked_at = time.monotonic()
        if row is None:
            yield ": still here\n\n"
            continue
        masked = row if masker is None else await asyncio.to_thread(masker.event, row)
        visible = visible_event(masked)
        if visible.seq <= seq:
            continue
        event = visible.value
        data = json.dumps(event.to_dict(), ensure_ascii=False)
        yield f"id: {event.seq}\nevent: {event.type}\ndata: {data}\n\n"


def _can_still_view(request: HttpRequest, run: Run, masker: Masker | None) -> bool:
    """Check again from time to time, because the user may have signed out."""
    session = SessionStore(request.session.session_key)
    user = authentication.session_user(session)
    if not user.is_authenticated:
        return False
    is_right = masker is not None or not masking.is_masked_for(run, user, session)
    return is_right and Run.objects.for_user(user).filter(pk=run.pk).exists()
