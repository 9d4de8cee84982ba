"""A run's events for pages and for scripts with a session, as server-sent events."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from functools import partial

from django.http import HttpRequest, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_GET

from agents.access import authentication, masking
from agents.access.authentication import SessionStore
from agents.access.requests import UserRequest
from agents.db import database
from agents.engine.events import Event
from agents.llm.wire.json_codec import encode
from agents.models import Run

from . import event_feed
from .event_feed import Reader

MAX_SEQ_DIGITS = 10
STILL_HERE = b": still here\n\n"  # a comment


class EventStream(StreamingHttpResponse):
    """A streamed response whose pieces go to the server as they are.

    Django would pass each through two more generators, and leave the first one open when a
    client disconnects.
    """

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._iterator  # type: ignore[attr-defined]


@require_GET
async def events(request: UserRequest, pk: int) -> EventStream:
    """Stream everything after `Last-Event-ID` (or `?after=`), then live events to the end."""
    run, reader = await database.run(_find, request, pk)
    return stream_response(sse_frames(event_feed.events(run, reader, first_seq(request))))


def first_seq(request: HttpRequest) -> int:
    """Return the number after which the client wants events; 0 if it is none."""
    text = request.headers.get("Last-Event-ID") or request.GET.get("after", "0")
    is_number = text.isascii() and text.isdigit() and len(text) < MAX_SEQ_DIGITS
    return int(text) if is_number else 0


def stream_response(stream: AsyncIterator[bytes]) -> EventStream:
    """Return server-sent events that no proxy holds back."""
    response = EventStream(stream, content_type="text/event-stream")
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    return response


async def sse_frames(stream: AsyncGenerator[Event | None, None]) -> AsyncIterator[bytes]:
    """Yield events as server-sent events, and a comment when none came for a while."""
    async with aclosing(stream) as open_stream:
        async for event in open_stream:
            if event is None:
                yield STILL_HERE
            else:
                head = f"id: {event.seq}\nevent: {event.type}\n"
                yield b"%bdata: %b\n\n" % (head.encode(), encode(event.to_dict()))


def _find(request: UserRequest, pk: int) -> tuple[Run, Reader]:
    run = get_object_or_404(Run.objects.for_user(request.user), pk=pk)
    is_masked = masking.is_masked_for(run, request.user, request.session)

    def may_still_read() -> bool:
        """Check again from time to time, because the user may have signed out."""
        session = SessionStore(request.session.session_key)
        user = authentication.session_user(session)
        if not user.is_authenticated:
            return False
        is_right = is_masked or not masking.is_masked_for(run, user, session)
        return is_right and Run.objects.for_user(user).filter(pk=run.pk).exists()

    check = partial(database.run, may_still_read)
    return run, event_feed.open_run(run, request.user, request.session, "api", check)
