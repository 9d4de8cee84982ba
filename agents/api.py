"""The stream of a run for other programs, as server-sent events."""

import json
from collections.abc import AsyncIterator

from channels.auth import get_user
from channels.db import database_sync_to_async
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import aget_object_or_404
from django.views.decorators.http import require_GET

from agents import live
from agents.models import Run

MOST_ID = 10


@require_GET
async def events(request: HttpRequest, pk: int) -> HttpResponse:
    """Everything after `Last-Event-ID` (or `?after=`), and then what happens, to the end."""
    user = await request.auser()
    mine = await database_sync_to_async(Run.objects.for_user)(user)
    run = await aget_object_or_404(mine, pk=pk)
    after = request.headers.get("Last-Event-ID") or request.GET.get("after", "0")
    seq = int(after) if after.isascii() and after.isdigit() and len(after) < MOST_ID else 0
    response = StreamingHttpResponse(
        _lines(request, run, seq), content_type="text/event-stream"
    )
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    return response


async def _lines(request: HttpRequest, run: Run, after: int) -> AsyncIterator[str]:
    async for row in live.events(run, after):
        if row is None:
            if not await _is_allowed(request, run):
                return
            yield ": still here\n\n"
            continue
        event = row.value
        data = json.dumps(event.to_dict(), ensure_ascii=False)
        yield f"id: {event.seq}\nevent: {event.type}\ndata: {data}\n\n"


async def _is_allowed(request: HttpRequest, run: Run) -> bool:
    """Asked anew from time to time: whoever has logged out hears no more."""
    kept = SessionStore(request.session.session_key)
    user = await get_user({"session": kept})
    if not user.is_authenticated:
        return False
    mine = await database_sync_to_async(Run.objects.for_user)(user)
    return await mine.filter(pk=run.pk).aexists()
