"""A run's events: as pages, and as a stream that continues where it was interrupted."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

from ninja import Query, Router, Schema
from pydantic import Field

from agents.db import database
from agents.models import Run
from agents.web.api import EventStream, first_seq, sse_frames, stream_response
from chat.api import calls

from .access import READ, RestRequest
from .pages import MAX_ITEMS
from .reading import open_run

router = Router(tags=["Runs"], exclude_none=True)

STREAM = "text/event-stream"


class EventItem(Schema):
    """Something that happened in a run; see the events table in ARCHITECTURE.md."""

    seq: int = Field(description="Its number in the run, from 1 without gaps.")
    time: datetime
    type: str = Field(examples=["tool_call"])
    agent: str
    data: dict[str, Any]


class EventPage(Schema):
    items: list[EventItem]
    last: int = Field(description="The `after` of the next page.")
    is_live: bool = Field(description="Whether more events will come.")


class EventQuery(Schema):
    after: int = Field(0, ge=0, le=2**31 - 1, description="The number of the last known event.")
    limit: int = Field(MAX_ITEMS, ge=1, le=MAX_ITEMS)


@router.get(
    "/{int:run_id}/events",
    auth=READ,
    response=EventPage,
    operation_id="listEvents",
    summary="Read or follow a run’s events",
    openapi_extra={
        "responses": {
            200: {
                "content": {
                    STREAM: {
                        "schema": {"type": "string"},
                        "example": 'id: 1\nevent: run_started\ndata: {"seq": 1, …}\n\n',
                    }
                }
            }
        }
    },
)
async def list_events(
    request: RestRequest, run_id: int, query: Query[EventQuery]
) -> EventPage | EventStream:
    """With `Accept: text/event-stream`, the response is a stream that ends with the run.

    It begins after `Last-Event-ID` or `after`: a client that was disconnected continues there
    and misses nothing. Otherwise it is a page of events as JSON.
    """
    if STREAM in request.headers.get("Accept", ""):
        run, _reader = await database.run(open_run, request.auth, run_id)
        calls.check_streams(request.auth)
        return stream_response(_frames(request, run))
    return await database.run(_event_page, request, run_id, query)


def _frames(request: RestRequest, run: Run) -> AsyncIterator[bytes]:
    return sse_frames(calls.follow(request.auth, run, first_seq(request)))


def _event_page(request: RestRequest, run_id: int, query: EventQuery) -> EventPage:
    # Read first: an event that comes now is on the next page.
    run, reader = open_run(request.auth, run_id)
    rows = run.events.filter(seq__gt=query.after).order_by("seq")[: query.limit]
    items = [EventItem(**reader.visible(row).value.to_dict()) for row in rows]
    last = items[-1].seq if items else query.after
    has_more = run.events.filter(seq__gt=last).exists()
    return EventPage(items=items, last=last, is_live=run.is_live or has_more)
