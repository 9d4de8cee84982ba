"""Runs: the filter language, questions without a chat, stop, wait and steps."""

import asyncio
from contextlib import aclosing, suppress
from typing import Annotated, Any, Literal

from django.db.models import Max
from django.shortcuts import get_object_or_404
from ninja import Query, Router, Schema
from pydantic import Field

from agents.access import api_keys
from agents.db import database
from agents.engine.events import EventType
from agents.llm import tuning
from agents.models import ApiKey, Run
from agents.review.exports import step_dict
from agents.review.filters.filter_language import MAX_CHARS, parse
from agents.review.run_list import listing
from agents.review.run_list.listing import RunSearch
from agents.web.api_errors import ApiError
from chat.api import calls
from chat.api.calls import Caller, Question
from chat.messages import run_factory, run_options

from .access import ASK, READ, RestRequest
from .idempotency import creates
from .pages import Page, PageQuery, make_cursor, to_page
from .reading import (
    RunDetails,
    RunItem,
    details_of,
    open_run,
    own_run_details,
    run_details,
    run_items,
)
from .schemas import Input, Text, example

router = Router(tags=["Runs"], exclude_none=True)

MAX_WAIT_SECONDS = 60
MAX_HISTORY = 200
# A run that waits for a person is as far as it gets by itself.
STOPPING = {EventType.RUN_FINISHED, EventType.RUN_PAUSED, EventType.APPROVAL_REQUESTED}

FilterText = Annotated[
    Text,
    Field(
        max_length=MAX_CHARS,
        description="The filter language of the list of traces.",
        examples=['status:failed agent:helper cost:>0.01 "exact words"'],
    ),
]


class RunQuery(PageQuery):
    filter: FilterText = ""


class Options(Input):
    """What is chosen instead of the agent's own settings, if the agent allows it."""

    model: Text = Field("", max_length=200)
    effort: Literal["", "low", "medium", "high"] = ""
    temperature: float | None = Field(None, ge=0, le=tuning.MAX_TEMPERATURE, strict=True)

    @property
    def chosen(self) -> dict[str, Any] | None:
        """What was sent; None if nothing was."""
        return self.model_dump(exclude_unset=True, include=set(run_options.FIELDS)) or None


class HistoryEntry(Input):
    role: Literal["user", "assistant"]
    content: Text


class NewRun(Input):
    """A question without a chat; the program keeps the conversation itself."""

    model_config = example(text="What is 6 * 7?", agent="helper")

    text: Text = Field(min_length=1, examples=["What is 6 * 7?"])
    agent: Text = Field("", max_length=64, description="By default, the user's default agent.")
    history: list[HistoryEntry] = Field(
        default_factory=list,
        max_length=MAX_HISTORY,
        description="Earlier messages, oldest first.",
    )
    options: Options = Field(default_factory=Options.model_construct)


class WaitQuery(Schema):
    seconds: int = Field(30, ge=1, le=MAX_WAIT_SECONDS, description="At most this long.")


class StepItem(Schema):
    """A step, as in docs/trace-schema.md."""

    number: int
    parent: int | None = None
    depth: int
    turn: int
    kind: str
    status: str
    agent: str
    call_id: str
    thought: str
    action: str
    action_input: Any = None
    observation: str
    attachments: list[Any]
    sources: list[Any]
    request: Any = None
    attempts: int
    notes: list[Any]
    usage: dict[str, Any]
    started_at: str
    ended_at: str | None = None


def find_runs(caller: Caller, query: RunQuery) -> tuple[list[int], str | None]:
    """Return the matching runs that the key may read, and the cursor of the next page."""
    caller.require(ApiKey.Scope.READ)
    user = caller.user
    may_review = ApiKey.Scope.READ_ALL in caller.key.scopes and listing.is_reviewer(user)
    run_filter = parse(query.filter, is_reviewer=may_review)
    if run_filter.problems:
        sentences = [problem.sentence for problem in run_filter.problems]
        raise ApiError(422, " ".join(sentences), "invalid_filter")
    search = RunSearch(user, run_filter)
    if not may_review:
        own = api_keys.visible_runs(caller.key).order_by().values("pk")
        search.runs = search.runs.filter(pk__in=own)
    pks, last = search.page(query.last, query.limit)
    return pks, None if last is None else make_cursor(last)


@router.get("", auth=READ, response=Page[RunItem], operation_id="listRuns", summary="List runs")
def list_runs(request: RestRequest, query: Query[RunQuery]) -> Page[RunItem]:
    """Runs of the key's user, newest first; with the scope `read_all`, all they can review.

    A page can have fewer items than its limit, or none, and still be followed by others.
    """
    pks, cursor = find_runs(request.auth, query)
    return Page(items=run_items(request, pks), next_cursor=cursor)


@router.post(
    "", auth=ASK, response={201: RunDetails}, operation_id="startRun", summary="Start a run"
)
@creates(own_run_details)
async def start_run(request: RestRequest, data: NewRun) -> int:
    """Ask an agent without a chat. The response doesn't wait for the answer."""
    overrides = await database.run(_allowed_options, request.auth, data)
    history: Any = [entry.model_dump() for entry in data.history]
    question = Question(text=data.text, agent=data.agent, history=history, overrides=overrides)
    return (await calls.ask(request.auth, question)).pk


def _allowed_options(caller: Caller, data: NewRun) -> dict[str, Any]:
    options = run_options.parse(data.options.chosen)
    if options is None:
        return {}
    agent = run_factory.select_agent(data.agent, caller.user)
    return run_options.overrides(agent, options, caller.user)


@router.get(
    "/{int:run_id}",
    auth=READ,
    response=RunDetails,
    operation_id="getRun",
    summary="Read a run",
)
def get_run(request: RestRequest, run_id: int) -> RunDetails:
    """A run's status, and its answer once it has one."""
    return run_details(request, run_id)


@router.get(
    "/{int:run_id}/wait",
    auth=READ,
    response=RunDetails,
    operation_id="waitForRun",
    summary="Wait for a run",
)
async def wait_for_run(
    request: RestRequest,
    run_id: int,
    query: Query[WaitQuery],
) -> RunDetails:
    """Answer when the run has ended or waits for a person, or when the time is over."""
    run, reader = await database.run(open_run, request.auth, run_id)
    if run.status == Run.Status.RUNNING:
        with suppress(TimeoutError):
            async with asyncio.timeout(query.seconds):
                await _follow_to_stop(request.auth, run)
        await database.run(run.refresh_from_db)
    return await database.run(details_of, request, run, reader)


async def _follow_to_stop(caller: Caller, run: Run) -> None:
    last = await database.run(_last_seq, run)
    events: Any = calls.follow(caller, run, last)
    async with aclosing(events):
        async for event in events:
            if event is not None and event.type in STOPPING:
                return


def _last_seq(run: Run) -> int:
    return run.events.aggregate(last=Max("seq"))["last"] or 0


@router.post(
    "/{int:run_id}/stop",
    auth=ASK,
    response={204: None},
    operation_id="stopRun",
    summary="Stop a run",
)
async def stop_run(request: RestRequest, run_id: int) -> None:
    """Stop a run of the user's, or of a chat in which they can write. Ended runs stay so."""
    run = await database.run(_visible_run, request, run_id)
    await calls.stop(request.auth, run)


def _visible_run(request: RestRequest, pk: int) -> Run:
    return get_object_or_404(api_keys.visible_runs(request.api_key), pk=pk)


@router.get(
    "/{int:run_id}/steps",
    auth=READ,
    response=Page[StepItem],
    operation_id="listSteps",
    summary="List a run’s steps",
)
def list_steps(request: RestRequest, run_id: int, query: Query[PageQuery]) -> Page[StepItem]:
    """What the agent did, in order."""
    run, reader = open_run(request.auth, run_id)
    steps = run.steps.filter(number__gt=query.last or 0).order_by("number")
    found = [reader.visible(step) for step in steps[: query.limit + 1]]
    return to_page(found, query, lambda step: StepItem(**step_dict(step)), lambda s: s.number)
