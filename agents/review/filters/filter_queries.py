"""The runs that match a value of a filter field."""

import re
from collections.abc import Callable
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Q, QuerySet, TextField
from django.db.models.lookups import Contains
from django.db.models.sql.compiler import SQLCompiler

from agents.engine.loop import StopReason
from agents.metering.figures.models import ModelSummary, RunSummary
from agents.models import Agent, AgentStep, ApiKey, Approval, Run
from agents.models.runs.runs import (
    ACTIVE_SECONDS,
    DRAFT_TOPIC_PREFIX,
    EXPERIMENT_TOPIC_PREFIX,
    STEP_COUNT,
)
from agents.review.models import Example, Label, Note, Rating, Review
from agents.runs.projection import search_tag

from .filter_values import NamePattern, Range

LIVE = "live"
NONE = "none"
ANY = "any"
DRAFT = "draft"
EXACTLY = "="
HIT_ACTIONS = ("block", "mask", "warn", "observe")  # not a model check that found nothing
ToQuery = Callable[[Any], Q]
FAILED = AgentStep.Status.FAILED.value
RELATED_ROWS: dict[str, QuerySet[Any]] = {
    "note": Note.objects.all(),
    "label": Label.objects.all(),
    "rating": Rating.objects.all(),
    "comment": Rating.objects.exclude(comment=""),
    "review": Review.objects.all(),
    "correction": Review.objects.exclude(correction=""),
    "example": Example.objects.all(),
    "approval": Approval.objects.all(),
    "replan": RunSummary.objects.filter(replanned__gt=0),
    "timeout": RunSummary.objects.filter(timed_out__gt=0),
    "toolerror": RunSummary.objects.filter(tool_errors__gt=0),
    "retry": RunSummary.objects.filter(retries__gt=0),
    "fallback": RunSummary.objects.filter(fallbacks__gt=0),
    "regeneration": RunSummary.objects.filter(regenerated__gt=0),
    "unpriced": RunSummary.objects.filter(unpriced__gt=0),
    "cached": RunSummary.objects.filter(cached__gt=0),
}
# Named expressions that fields use.
QUERY_ALIASES = {
    "tokens": F("prompt_tokens") + F("completion_tokens"),
    "step_count": STEP_COUNT,
    "active": ACTIVE_SECONDS,
}


@TextField.register_lookup
class AsciiIContains(Contains):
    """Contains, ignoring case for Latin letters only, which is fast on all databases."""

    lookup_name = "says"

    def get_rhs_op(self, connection: Any, rhs: str) -> str:
        return str(connection.operators["contains"] % rhs)

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper
    ) -> tuple[str, tuple[Any, ...]]:
        lhs, lhs_params = self.process_lhs(compiler, connection)
        rhs, rhs_params = self.process_rhs(compiler, connection)
        lower = 'LOWER({} COLLATE "C")'
        sql = f"{lower.format(lhs)} LIKE {lower.format(f'{rhs}::text')}"
        return sql, (*lhs_params, *rhs_params)


def in_range(column: str) -> Callable[[Range], Q]:
    """Return a filter of a column by range."""

    def to_query(bounds: Range) -> Q:
        condition = Q()
        if bounds.low is not None:
            condition &= Q(**{f"{column}__{'gte' if bounds.has_low else 'gt'}": bounds.low})
        if bounds.high is not None:
            condition &= Q(**{f"{column}__{'lte' if bounds.has_high else 'lt'}": bounds.high})
        return condition

    return to_query


def by_active_time(bounds: Range) -> Q:
    """Filter by active time; a live run has none yet, so "not longer than" is true of it."""
    return Q(seconds__isnull=False) & in_range("active")(bounds)


def _name_filter(column: str) -> Callable[[NamePattern], Q]:
    def to_query(pattern: NamePattern) -> Q:
        lookup = "istartswith" if pattern.is_beginning else "iexact"
        return Q(**{f"{column}__{lookup}": pattern.text})

    return to_query


def _runs_with(rows: QuerySet) -> Q:
    """Return the runs these rows belong to."""
    return Q(pk__in=rows.filter(run__isnull=False).values("run"))


def _step_filter(text: str, is_whole: bool = True, **step: Any) -> Q:
    """Filter runs by step: by search tags if finished, by steps if live."""
    ended = Q(step_types__contains=f"|{text}|" if is_whole else f"|{text}")
    return ended | _runs_with(AgentStep.objects.filter(run__status__in=Run.LIVE, **step))


def by_status(name: str) -> Q:
    if name == Run.Status.COMPLETED:
        # Nearly all runs: a direct filter would make SQLite use the index and sort, which is
        # slow.
        return ~Q(status__in=[status for status in Run.Status if status != name])
    return Q(status__in=Run.LIVE) if name == LIVE else Q(status=name)


def by_agent(pattern: NamePattern) -> Q:
    """Filter by agent name as spelled, for which the database has statistics."""
    as_spelled = Agent.objects.filter(_name_filter("name")(pattern)).values("name")
    as_typed = (
        Q(agent_name__startswith=pattern.text)
        if pattern.is_beginning
        else Q(agent_name=pattern.text)
    )
    return as_typed | Q(agent_name__in=as_spelled)


def by_model(text: str) -> Q:
    """Filter by a part of the name or, after =, by the whole."""
    if text.startswith(EXACTLY):
        return Q(model=text.removeprefix(EXACTLY))
    return Q(model__icontains=text)


def by_outcome(name: str) -> Q:
    """Filter by how a run ended; a stop is told apart by its reason."""
    match name:
        case "cancelled":
            return Q(status=Run.Status.STOPPED, stopped_reason=StopReason.CANCELLED)
        case "budget":
            return Q(status=Run.Status.STOPPED, stopped_reason=StopReason.BUDGET)
        case "limit":
            has_own_outcome = Q(stopped_reason__in=[StopReason.CANCELLED, StopReason.BUDGET])
            return Q(status=Run.Status.STOPPED) & ~has_own_outcome
    return by_status(name)


def by_version(text: str) -> Q:
    """Filter by agent version (v3), by none (draft), or by the hash of the whole setup."""
    if text.lower() == DRAFT:
        return Q(agent_version=None)
    if (match := re.fullmatch(r"v(\d{1,9})", text.lower())) is not None:
        return Q(agent_version=int(match[1]))
    return Q(version__startswith=text.lower())


def started_before(days: Range) -> Q:
    return Q(started_at__lt=days.low)


def started_after(days: Range) -> Q:
    return Q(started_at__gte=days.low)


def by_kind(name: str) -> Q:
    return _step_filter(name, kind=name)


def by_tool(pattern: NamePattern) -> Q:
    lookup = "istartswith" if pattern.is_beginning else "iexact"
    name = search_tag(AgentStep.Kind.TOOL, pattern.text)
    step = {"kind": AgentStep.Kind.TOOL, f"action__{lookup}": pattern.text}
    return _step_filter(name, not pattern.is_beginning, **step)


def by_guardrail(name: str) -> Q:
    kind = AgentStep.Kind.GUARDRAIL
    if name == ANY:
        return _step_filter(kind, kind=kind, action__in=HIT_ACTIONS)
    return _step_filter(search_tag(kind, name), kind=kind, action=name)


def by_group(pattern: NamePattern) -> Q:
    groups = Group.objects.filter(_name_filter("name")(pattern)).values("pk")
    return Q(user__in=get_user_model().objects.filter(groups__in=groups).values("pk"))


def by_user(pattern: NamePattern) -> Q:
    """Filter by user name or display name or, after =, by the user name alone."""
    if pattern.text.startswith(EXACTLY):
        name = pattern.text.removeprefix(EXACTLY)
        return Q(user__in=get_user_model().objects.filter(username=name).values("pk"))
    by_name = _name_filter("username")(pattern) | _name_filter("profile__display_name")(pattern)
    return Q(user__in=get_user_model().objects.filter(by_name).values("pk"))


def by_key(pattern: NamePattern) -> Q:
    """Filter by the name of the API key with which a program started the run."""
    return Q(api_key__in=ApiKey.objects.filter(_name_filter("name")(pattern)).values("pk"))


def by_rating(name: str) -> Q:
    if name == NONE:
        return ~_runs_with(Rating.objects.all())
    return _runs_with(Rating.objects.filter(is_good=name == "up"))


def by_label(pattern: NamePattern) -> Q:
    return _runs_with(Label.objects.filter(_name_filter("name")(pattern)))


def by_queue(pattern: NamePattern) -> Q:
    return _runs_with(Review.objects.filter(_name_filter("queue__name")(pattern)))


def by_flag(name: str) -> Q:
    reviews = Review.objects.all()
    match name:
        case "open":
            return _runs_with(reviews.filter(verdict=""))
        case "done":
            return _runs_with(reviews.exclude(verdict=""))
    return _runs_with(reviews) if name == "yes" else ~_runs_with(reviews)


def by_verdict(name: str) -> Q:
    return _runs_with(Review.objects.filter(verdict="" if name == NONE else name))


def by_source(name: str) -> Q:
    imported = Q(route=Run.IMPORTED)
    return imported if name == Run.IMPORTED else ~imported


def by_related_rows(name: str) -> Q:
    match name:
        case "error":
            return _step_filter(FAILED, status=FAILED)
        case "answer":
            return ~Q(answer="")
        case "rerun":
            return Q(origin_step__isnull=False)
        case "trial":
            return Q(topic__startswith=DRAFT_TOPIC_PREFIX)
        case "experiment":
            return Q(topic__startswith=EXPERIMENT_TOPIC_PREFIX)
    return _runs_with(RELATED_ROWS[name])


def by_called(model: str) -> Q:
    return Q(pk__in=ModelSummary.objects.filter(model=model).values("run_id"))


def contains(column: str) -> Callable[[str], Q]:
    return lambda text: Q(**{f"{column}__says": text})


def text_filter(text: str) -> Q:
    """Return runs whose question or answer contains this text."""
    return Q(query__says=text) | Q(answer__says=text)
