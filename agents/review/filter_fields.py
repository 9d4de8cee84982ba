"""The filter's fields: accepted values, and the matching runs."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib.auth import get_user_model
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Q, QuerySet, TextField
from django.db.models.lookups import Contains
from django.db.models.sql.compiler import SQLCompiler
from django.utils.translation import gettext_lazy as _

from agents.models import Agent, AgentStep, Approval, Run
from agents.models.runs import ACTIVE_SECONDS, DRAFT_TOPIC_PREFIX, STEP_COUNT
from agents.review.models import Example, Label, Note, Rating, Review
from agents.runs.projection import search_tag

from . import filter_values
from .filter_values import NamePattern, Range

LIVE, NONE, ANY = "live", "none", "any"

ToQuery = Callable[[Any], Q]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterField:
    """A field; `read` parses a value, `which` returns the matching runs."""

    name: str
    about: Any
    example: str
    read: Callable[[str], Any]
    which: ToQuery
    choices: Mapping[str, Any] = field(default_factory=dict)
    refusal: Any = ""  # message for users who aren't reviewers, if only those can use it


def _make_field(
    name: str, about: Any, example: str, read: filter_values.ValueParser, which: ToQuery
) -> FilterField:
    return FilterField(
        name=name, about=about, example=f"{name}:{example}", read=read, which=which
    )


def _choice_field(
    name: str, about: Any, choices: Mapping[str, Any], which: ToQuery
) -> FilterField:
    field = _make_field(
        name, about, next(iter(choices)), filter_values.choice_parser(choices), which
    )
    return replace(field, choices=choices)


def _range_filter(column: str) -> Callable[[Range], Q]:
    """Return a filter of a column by range."""

    def which(range: Range) -> Q:
        found = Q()
        if range.low is not None:
            found &= Q(**{f"{column}__{'gte' if range.has_low else 'gt'}": range.low})
        if range.high is not None:
            found &= Q(**{f"{column}__{'lte' if range.has_high else 'lt'}": range.high})
        return found

    return which


def _active_time(range: Range) -> Q:
    """Filter by active time; a live run has none yet, so "not longer than" is true of it."""
    return Q(seconds__isnull=False) & _range_filter("active")(range)


def _name_filter(column: str) -> Callable[[NamePattern], Q]:
    def which(pattern: NamePattern) -> Q:
        how = "istartswith" if pattern.is_beginning else "iexact"
        return Q(**{f"{column}__{how}": pattern.text})

    return which


def _runs_with(rows: QuerySet) -> Q:
    """Return the runs these rows belong to."""
    return Q(pk__in=rows.filter(run__isnull=False).values("run"))


def _step_filter(text: str, is_whole: bool = True, **step: Any) -> Q:
    """Filter runs by step: by search tags if finished, by steps if live."""
    ended = Q(marks__contains=f"|{text}|" if is_whole else f"|{text}")
    return ended | _runs_with(AgentStep.objects.filter(run__status__in=Run.LIVE, **step))


def _status(name: str) -> Q:
    if name == Run.Status.COMPLETED:
        # Nearly all runs: a direct filter would make SQLite use the index and sort, which is
        # slow.
        return ~Q(status__in=[each for each in Run.Status if each != name])
    return Q(status__in=Run.LIVE) if name == LIVE else Q(status=name)


def _agent(pattern: NamePattern) -> Q:
    """Filter by agent name as spelled, for which the database has statistics."""
    spelt = Agent.objects.filter(_name_filter("name")(pattern)).values("name")
    there = (
        Q(agent_name__startswith=pattern.text)
        if pattern.is_beginning
        else Q(agent_name=pattern.text)
    )
    return there | Q(agent_name__in=spelt)


def _model(text: str) -> Q:
    return Q(model__icontains=text)


def _version(text: str) -> Q:
    """Filter by agent version (v3), or by the hash of the whole setup, which has no v."""
    if (number := re.fullmatch(r"v(\d{1,9})", text.lower())) is not None:
        return Q(agent_version=int(number[1]))
    return Q(version__startswith=text.lower())


def _before(day: Range) -> Q:
    return Q(started_at__lt=day.low)


def _after(day: Range) -> Q:
    return Q(started_at__gte=day.low)


def _kind(name: str) -> Q:
    return _step_filter(name, kind=name)


def _tool(pattern: NamePattern) -> Q:
    how = "istartswith" if pattern.is_beginning else "iexact"
    name = search_tag(AgentStep.Kind.TOOL, pattern.text)
    step = {"kind": AgentStep.Kind.TOOL, f"action__{how}": pattern.text}
    return _step_filter(name, not pattern.is_beginning, **step)


def _guardrail(name: str) -> Q:
    kind = AgentStep.Kind.GUARDRAIL
    if name == ANY:
        return _step_filter(kind, kind=kind)
    return _step_filter(search_tag(kind, name), kind=kind, action=name)


def _user(pattern: NamePattern) -> Q:
    by_name = _name_filter("username")(pattern) | _name_filter("profile__display_name")(pattern)
    return Q(user__in=get_user_model().objects.filter(by_name).values("pk"))


def _rating(name: str) -> Q:
    if name == NONE:
        return ~_runs_with(Rating.objects.all())
    return _runs_with(Rating.objects.filter(is_good=name == "up"))


def _label(pattern: NamePattern) -> Q:
    return _runs_with(Label.objects.filter(_name_filter("name")(pattern)))


def _flag(name: str) -> Q:
    reviews = Review.objects.all()
    match name:
        case "open":
            return _runs_with(reviews.filter(verdict=""))
        case "done":
            return _runs_with(reviews.exclude(verdict=""))
    return _runs_with(reviews) if name == "yes" else ~_runs_with(reviews)


def _verdict(name: str) -> Q:
    return _runs_with(Review.objects.filter(verdict="" if name == NONE else name))


def _has(name: str) -> Q:
    match name:
        case "error":
            return _step_filter(FAILED, status=FAILED)
        case "answer":
            return ~Q(answer="")
        case "rerun":
            return Q(origin_step__isnull=False)
        case "trial":
            return Q(topic__startswith=DRAFT_TOPIC_PREFIX)
    return _runs_with(RELATED_ROWS[name])


def _text_filter(column: str) -> Callable[[str], Q]:
    return lambda text: Q(**{f"{column}__says": text})


FAILED = AgentStep.Status.FAILED.value
STATUSES = dict(Run.Status.choices) | {LIVE: _("running or waiting")}
RATINGS = {"up": _("thumbs up"), "down": _("thumbs down"), NONE: _("not rated")}
GUARDRAILS = {
    "block": _("blocked content"),
    "mask": _("masked content"),
    "warn": _("warned"),
    "observe": _("observed only"),
    ANY: _("any guardrail hit"),
}
FLAGS = {
    "open": _("waiting for review"),
    "done": _("reviewed"),
    "yes": _("in the review queue"),
    "no": _("not in the review queue"),
}
ROUTES = {
    "direct": _("direct"),
    "litellm": _("via LiteLLM"),
    Run.IMPORTED: _("imported"),
}
RELATED_ROWS = {
    "note": Note.objects.all(),
    "label": Label.objects.all(),
    "rating": Rating.objects.all(),
    "comment": Rating.objects.exclude(comment=""),
    "review": Review.objects.all(),
    "correction": Review.objects.exclude(correction=""),
    "example": Example.objects.all(),
    "approval": Approval.objects.all(),
}
HAS_CHOICES = {
    "error": _("a failed step"),
    "answer": _("an answer"),
    "note": _("a note"),
    "label": _("a label"),
    "rating": _("a rating"),
    "comment": _("a rating with a comment"),
    "review": _("a review request"),
    "correction": _("a corrected answer"),
    "example": _("a saved example"),
    "approval": _("an approval request"),
    "rerun": _("is a rerun of another run"),
    "trial": _("is a draft test run"),
}


def _make_fields() -> list[FilterField]:
    amount, name, words, day = (
        filter_values.parse_number,
        filter_values.parse_name,
        filter_values.parse_text,
        filter_values.parse_day,
    )
    kinds, verdicts = dict(AgentStep.Kind.choices), dict(Review.Verdict.choices)
    return [
        _choice_field("status", _("run status"), STATUSES, _status),
        _make_field("agent", _("agent that answered"), "helper", name, _agent),
        _make_field("model", _("part of the model name"), "claude", words, _model),
        _make_field("tool", _("tool that was called"), "database", name, _tool),
        _choice_field("kind", _("kind of step in the run"), kinds, _kind),
        _make_field(
            "steps",
            _("number of turns, or of a plan's tasks"),
            ">5",
            amount,
            _range_filter("step_count"),
        ),
        _make_field(
            "tools", _("number of tool calls"), "2..8", amount, _range_filter("tool_calls")
        ),
        _make_field(
            "duration",
            _("active time, excluding time waiting for users"),
            ">5s",
            filter_values.parse_duration,
            _active_time,
        ),
        _make_field(
            "waited",
            _("time waiting for users"),
            ">1m",
            filter_values.parse_duration,
            _range_filter("waited"),
        ),
        _make_field(
            "tokens", _("input and output tokens"), ">4000", amount, _range_filter("tokens")
        ),
        _make_field(
            "cost",
            _("run cost in USD"),
            ">0.01",
            filter_values.parse_cost,
            _range_filter("cost"),
        ),
        _choice_field("guardrail", _("guardrail action"), GUARDRAILS, _guardrail),
        replace(
            _make_field("user", _("user who asked"), "ada", name, _user),
            refusal=_("Only reviewers can filter by user."),
        ),
        _make_field("before", _("started before this date"), "2026-11-01", day, _before),
        _make_field("after", _("started on or after this date"), "-7d", day, _after),
        _make_field("on", _("started on this date"), "today", day, _range_filter("started_at")),
        _choice_field("rating", _("user rating"), RATINGS, _rating),
        replace(
            _make_field("label", _("label on the run or a step"), "refund", name, _label),
            refusal=_("Only reviewers can filter by label."),
        ),
        _choice_field("flag", _("review status"), FLAGS, _flag),
        _choice_field(
            "verdict", _("reviewer's verdict"), verdicts | {NONE: _("no verdict yet")}, _verdict
        ),
        _make_field("version", _("agent version or configuration ID"), "v3", words, _version),
        _make_field(
            "error", _("text of the error message"), "timeout", words, _text_filter("detail")
        ),
        _choice_field(
            "road", _("how the model was called"), ROUTES, lambda route: Q(road=route)
        ),
        _choice_field("has", _("what the run has"), HAS_CHOICES, _has),
        _make_field("id", _("run number"), "12", amount, _range_filter("pk")),
    ]


FIELDS = {each.name: each for each in _make_fields()}
# Reviewers' notes aren't visible to the user.
REVIEWER_ONLY = {"note", "label"}


def allowed_fields(*, is_reviewer: bool) -> dict[str, FilterField]:
    """Return the fields this user can use."""
    return FIELDS if is_reviewer else PUBLIC_FIELDS


def _public_fields() -> dict[str, FilterField]:
    had = {name: about for name, about in HAS_CHOICES.items() if name not in REVIEWER_ONLY}
    public = {name: each for name, each in FIELDS.items() if not each.refusal}
    return public | {"has": _choice_field("has", FIELDS["has"].about, had, _has)}


PUBLIC_FIELDS = _public_fields()
FIELD_ALIASES = {"flagged": "flag", "turns": "steps"}
# Named expressions that fields use.
QUERY_ALIASES = {
    "tokens": F("prompt_tokens") + F("completion_tokens"),
    "step_count": STEP_COUNT,
    "active": ACTIVE_SECONDS,
}


def text_filter(words: str) -> Q:
    """Return runs whose question or answer contains this text."""
    return Q(query__says=words) | Q(answer__says=words)
