"""Example sets, their examples, and experiments on them."""

from datetime import datetime
from typing import Annotated, Any

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from ninja import Query, Router, Schema
from pydantic import Field

from agents.db import database
from agents.db.sentences import translate
from agents.models import Agent
from agents.review.experiments import reading, service
from agents.review.experiments.errors import ExperimentRejected
from agents.review.experiments.models import Experiment, ExperimentResult
from agents.review.experiments.pages.set_admin import ADD_PERMISSION
from agents.review.experiments.presentation import ExperimentView
from agents.review.experiments.scoring import targets
from agents.review.models import REVIEW_PERMISSION, Example, ExampleSet
from chat.api.calls import Caller

from .access import CONFIGURE, READ, RestRequest
from .idempotency import creates
from .pages import Page, PageQuery, page_of, to_page
from .schemas import Input, SentId, Switch, Text, one_of

sets = Router(tags=["Examples and experiments"], exclude_none=True)
experiments = Router(tags=["Examples and experiments"], exclude_none=True)

Target = Experiment.Target


class ExampleSetItem(Schema):
    id: int
    name: str
    description: str
    agent: str | None = None
    created_at: datetime


class ExampleItem(Schema):
    id: int
    name: str
    question: str
    expected: str
    checks: list[Any]
    tags: list[str]
    agent: str | None = None
    run: int | None = Field(None, description="The run that it was made from, if any.")
    score: float | None = Field(None, description="The last one.")
    scored_at: datetime | None = None
    saved_at: datetime


class NewExperiment(Input):
    """A pass over an example set."""

    example_set: SentId
    agent: Text = Field("", max_length=64, description="By default, the set’s.")
    target: Target = Field(
        Target.PUBLISHED, description="What is tested; `version` needs the number."
    )
    version: int | None = Field(None, ge=1, le=2**31 - 1, strict=True)
    is_live: Switch = Field(False, description="Whether tools run instead of their recordings.")
    allows_side_effects: Switch = Field(
        False, description="Needed for live tools that change something."
    )
    judge_model: Text = Field("", max_length=200, description="For checks with a rubric.")
    timeout: int = Field(
        service.DEADLINE_SECONDS,
        ge=1,
        le=service.MAX_DEADLINE_SECONDS,
        strict=True,
        description="Seconds per example.",
    )


class ExperimentItem(Schema):
    id: int
    kind: Annotated[str, one_of(Experiment.Kind)]
    state: Annotated[str, one_of(Experiment.State)]
    example_set: int | None = None
    agent: str
    target: str
    version: int | None = None
    is_live: bool
    count: int
    passed: int
    score: float | None = Field(None, description="The mean, from 0 to 1.")
    cost_usd: float | None = None
    problem: str | None = None
    started_at: datetime
    ended_at: datetime | None = None


class ResultItem(Schema):
    number: int
    name: str
    state: Annotated[str, one_of(ExperimentResult.State)]
    verdict: str | None = None
    score: float | None = None
    problem: str | None = None
    reasons: list[str] | None = Field(None, description="Why it didn’t pass.")
    run: int | None = None


def _visible_sets(caller: Caller) -> QuerySet[ExampleSet]:
    """Return the sets that the user reads in the console: all, or as a reviewer."""
    user = caller.user
    rows = ExampleSet.objects.select_related("agent")
    if user.is_staff and user.has_perm("review.view_exampleset"):
        return rows
    return (
        reading.sets_in_scope(rows, user) if user.has_perm(REVIEW_PERMISSION) else rows.none()
    )


def _visible_examples(caller: Caller) -> QuerySet[Example]:
    user = caller.user
    rows = Example.objects.select_related("run")
    if user.is_staff and user.has_perm("review.view_example"):
        return rows
    if not user.has_perm(REVIEW_PERMISSION):
        return rows.none()
    return reading.examples_in_scope(rows, user)


def _visible_experiments(caller: Caller) -> QuerySet[Experiment]:
    rows = Experiment.objects.for_user(caller.user).exclude(kind=Experiment.Kind.GUARDRAIL)
    return rows.select_related("agent", "example_set")


def _set_item(row: ExampleSet) -> ExampleSetItem:
    return ExampleSetItem(
        id=row.pk,
        name=row.name,
        description=row.description,
        agent=row.agent.name if row.agent else None,
        created_at=row.created_at,
    )


def _example_item(row: Example) -> ExampleItem:
    return ExampleItem(
        id=row.pk,
        name=row.name,
        question=row.question,
        expected=row.expected,
        checks=row.checks,
        tags=[tag.strip() for tag in row.tags.split(",") if tag.strip()],
        agent=row.agent_name or None,
        run=row.run_id,
        score=row.score,
        scored_at=row.scored_at,
        saved_at=row.saved_at,
    )


def _experiment_item(row: Experiment) -> ExperimentItem:
    return ExperimentItem(
        id=row.pk,
        kind=row.kind,
        state=row.state,
        example_set=row.example_set_id,
        agent=row.agent_name,
        target=row.target,
        version=row.version,
        is_live=row.is_live,
        count=row.count,
        passed=row.passed,
        score=row.score,
        cost_usd=row.cost,
        problem=translate(row.problem) or None,
        started_at=row.started_at,
        ended_at=row.ended_at,
    )


def _read_experiment(request: RestRequest, pk: int) -> ExperimentItem:
    return _experiment_item(get_object_or_404(_visible_experiments(request.auth), pk=pk))


@sets.get(
    "",
    auth=READ,
    response=Page[ExampleSetItem],
    operation_id="listExampleSets",
    summary="List example sets",
)
def list_sets(request: RestRequest, query: Query[PageQuery]) -> Page[ExampleSetItem]:
    """The example sets that the key’s user can read in the console."""
    return page_of(_visible_sets(request.auth), query, _set_item)


@sets.get(
    "/{int:set_id}",
    auth=READ,
    response=ExampleSetItem,
    operation_id="getExampleSet",
    summary="Read about an example set",
)
def get_set(request: RestRequest, set_id: int) -> ExampleSetItem:
    return _set_item(get_object_or_404(_visible_sets(request.auth), pk=set_id))


@sets.get(
    "/{int:set_id}/examples",
    auth=READ,
    response=Page[ExampleItem],
    operation_id="listExamples",
    summary="List a set’s examples",
)
def list_examples(
    request: RestRequest, set_id: int, query: Query[PageQuery]
) -> Page[ExampleItem]:
    """Examples made from runs of others are masked."""
    example_set = get_object_or_404(_visible_sets(request.auth), pk=set_id)
    rows = _visible_examples(request.auth).filter(example_set=example_set).order_by("-pk")
    if query.last is not None:
        rows = rows.filter(pk__lt=query.last)
    found = reading.mask_examples(rows[: query.limit + 1], request.auth.user, {})
    return to_page(found, query, _example_item, lambda row: row.pk)


@experiments.get(
    "",
    auth=READ,
    response=Page[ExperimentItem],
    operation_id="listExperiments",
    summary="List experiments",
)
def list_experiments(request: RestRequest, query: Query[PageQuery]) -> Page[ExperimentItem]:
    """What the key’s user started and what they can review, newest first."""
    return page_of(_visible_experiments(request.auth), query, _experiment_item)


@experiments.post(
    "",
    auth=CONFIGURE,
    response={201: ExperimentItem},
    operation_id="startExperiment",
    summary="Run an example set",
)
@creates(_read_experiment)
async def start_experiment(request: RestRequest, data: NewExperiment) -> int:
    """Run every example of a set. The response doesn’t wait for the results."""
    experiment = await database.run(_start, request.auth, data)
    await service.advance(experiment.pk)
    return experiment.pk


def _start(caller: Caller, data: NewExperiment) -> Experiment:
    user = caller.user
    example_set = get_object_or_404(_visible_sets(caller), pk=data.example_set)
    if not (user.is_staff and user.has_perm(ADD_PERMISSION)):
        raise PermissionDenied(_("You don’t have permission to run examples."))
    agent = (
        Agent.objects.filter(enabled=True, name=data.agent).first()
        if data.agent
        else example_set.agent
    )
    if agent is None:
        raise ExperimentRejected(_("Choose an agent."))
    version: int | None = None
    if data.target == Target.DRAFT:
        spec = targets.draft(agent)
    elif data.target == Target.VERSION:
        spec, version = targets.version(agent, data.version or 0)
    else:
        spec, version = targets.published(agent)
    writing = service.writing_tools(spec) if data.is_live else []
    if writing and not data.allows_side_effects:
        sentence = _("These tools change something: %(names)s. Allow side effects to run them.")
        raise ExperimentRejected(sentence % {"names": ", ".join(writing)})
    options = service.Options(
        target=data.target,
        version=version,
        is_live=data.is_live,
        judge_model=data.judge_model,
        deadline=data.timeout,
    )
    return service.start_examples(example_set, agent, spec, user, options)


@experiments.get(
    "/{int:experiment_id}",
    auth=READ,
    response=ExperimentItem,
    operation_id="getExperiment",
    summary="Read an experiment",
)
def get_experiment(request: RestRequest, experiment_id: int) -> ExperimentItem:
    return _read_experiment(request, experiment_id)


@experiments.get(
    "/{int:experiment_id}/results",
    auth=READ,
    response=Page[ResultItem],
    operation_id="listResults",
    summary="List an experiment’s results",
)
def list_results(
    request: RestRequest, experiment_id: int, query: Query[PageQuery]
) -> Page[ResultItem]:
    """One result per example or recorded run, in order."""
    experiment = get_object_or_404(_visible_experiments(request.auth), pk=experiment_id)
    rows = ExperimentView(experiment, request.auth.user, {}).rows
    found = [row for row in rows if row.result.number > (query.last or 0)]
    found.sort(key=lambda row: row.result.number)
    return to_page(
        found,
        query,
        lambda row: ResultItem(
            number=row.result.number,
            name=row.name,
            state=row.result.state,
            verdict=row.result.verdict or None,
            score=row.result.score,
            problem=row.problem or None,
            reasons=row.reasons or None,
            run=row.result.run_id,
        ),
        lambda row: row.result.number,
    )


@experiments.post(
    "/{int:experiment_id}/cancel",
    auth=CONFIGURE,
    response=ExperimentItem,
    operation_id="cancelExperiment",
    summary="Cancel an experiment",
)
async def cancel_experiment(request: RestRequest, experiment_id: int) -> ExperimentItem:
    """Stop what is in progress. The results so far are saved."""
    await database.run(_cancel, request.auth, experiment_id)
    await service.advance(experiment_id)
    return await database.run(_read_experiment, request, experiment_id)


def _cancel(caller: Caller, pk: int) -> None:
    experiment = get_object_or_404(_visible_experiments(caller), pk=pk)
    is_own = experiment.started_by_id == caller.user.pk
    if not (is_own or caller.user.has_perm("experiments.change_experiment")):
        raise PermissionDenied(_("Only who started it can cancel an experiment."))
    service.request_cancel(experiment)
