"""The fields of the filter: what each takes, and which runs have it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import F, Q, QuerySet, TextField
from django.db.models.lookups import Contains
from django.utils.translation import gettext_lazy as _

from agents.models import Agent, AgentStep, Approval, Run
from agents.models.runs import ACTIVE, STEP_COUNT, TRIAL
from agents.review.models import Example, Label, Note, Rating, Review
from agents.runs.projection import mark

from . import filter_values
from .filter_values import Range, Word

LIVE, NONE, ANY = "live", "none", "any"

Which = Callable[[Any], Q]


@TextField.register_lookup
class Says(Contains):
    """Has these words, in capitals or not: of Latin letters only, which is quick everywhere."""

    lookup_name = "says"

    def get_rhs_op(self, connection, rhs):
        return connection.operators["contains"] % rhs

    def as_postgresql(self, compiler, connection):
        lhs, lhs_params = self.process_lhs(compiler, connection)
        rhs, rhs_params = self.process_rhs(compiler, connection)
        lower = 'LOWER({} COLLATE "C")'
        sql = f"{lower.format(lhs)} LIKE {lower.format(f'{rhs}::text')}"
        return sql, (*lhs_params, *rhs_params)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """`read` makes a value of its text, `which` says of which runs that is true."""

    name: str
    about: Any
    example: str
    read: Callable[[str], Any]
    which: Which
    choices: Mapping[str, Any] = field(default_factory=dict)
    refusal: Any = ""  # said to those who are no reviewers, where only they may look for it


def _field(
    name: str, about: Any, example: str, read: filter_values.Read, which: Which
) -> Field:
    return Field(name=name, about=about, example=f"{name}:{example}", read=read, which=which)


def _choice(name: str, about: Any, choices: Mapping[str, Any], which: Which) -> Field:
    made = _field(name, about, next(iter(choices)), filter_values.one_of(choices), which)
    return replace(made, choices=choices)


def _in(column: str) -> Callable[[Range], Q]:
    """A column between two ends."""

    def which(asked: Range) -> Q:
        found = Q()
        if asked.low is not None:
            found &= Q(**{f"{column}__{'gte' if asked.has_low else 'gt'}": asked.low})
        if asked.high is not None:
            found &= Q(**{f"{column}__{'lte' if asked.has_high else 'lt'}": asked.high})
        return found

    return which


def _worked(asked: Range) -> Q:
    """Active time; a run that isn't over has none yet, so "not longer than" is true of it."""
    return Q(seconds__isnull=False) & _in("active")(asked)


def _named(column: str) -> Callable[[Word], Q]:
    def which(asked: Word) -> Q:
        how = "istartswith" if asked.is_beginning else "iexact"
        return Q(**{f"{column}__{how}": asked.text})

    return which


def _of(rows: QuerySet) -> Q:
    """The runs that such rows belong to."""
    return Q(pk__in=rows.filter(run__isnull=False).values("run"))


def _marked(text: str, is_whole: bool = True, **step: Any) -> Q:
    """Runs with such a step: kept with those that are over, looked for in the few others."""
    ended = Q(marks__contains=f"|{text}|" if is_whole else f"|{text}")
    return ended | _of(AgentStep.objects.filter(run__status__in=Run.LIVE, **step))


def _status(name: str) -> Q:
    if name == Run.Status.COMPLETED:
        # Nearly all: said so, SQLite would read them by the index and sort them, which is slow.
        return ~Q(status__in=[each for each in Run.Status if each != name])
    return Q(status__in=Run.LIVE) if name == LIVE else Q(status=name)


def _agent(asked: Word) -> Q:
    """By names as they are spelt, of which a database knows how many there are."""
    spelt = Agent.objects.filter(_named("name")(asked)).values("name")
    there = (
        Q(agent_name__startswith=asked.text) if asked.is_beginning else Q(agent_name=asked.text)
    )
    return there | Q(agent_name__in=spelt)


def _model(text: str) -> Q:
    return Q(model__icontains=text)


def _version(text: str) -> Q:
    """Of its agent, as v3; else of its whole configuration, which has no v in it."""
    if (number := re.fullmatch(r"v(\d{1,9})", text.lower())) is not None:
        return Q(agent_version=int(number[1]))
    return Q(version__startswith=text.lower())


def _before(day: Range) -> Q:
    return Q(started_at__lt=day.low)


def _after(day: Range) -> Q:
    return Q(started_at__gte=day.low)


def _kind(name: str) -> Q:
    return _marked(name, kind=name)


def _tool(asked: Word) -> Q:
    how = "istartswith" if asked.is_beginning else "iexact"
    name = mark(AgentStep.Kind.TOOL, asked.text)
    step = {"kind": AgentStep.Kind.TOOL, f"action__{how}": asked.text}
    return _marked(name, not asked.is_beginning, **step)


def _guardrail(name: str) -> Q:
    kind = AgentStep.Kind.GUARDRAIL
    if name == ANY:
        return _marked(kind, kind=kind)
    return _marked(mark(kind, name), kind=kind, action=name)


def _person(asked: Word) -> Q:
    return Q(user__in=get_user_model().objects.filter(_named("username")(asked)).values("pk"))


def _rating(name: str) -> Q:
    if name == NONE:
        return ~_of(Rating.objects.all())
    return _of(Rating.objects.filter(is_good=name == "up"))


def _label(asked: Word) -> Q:
    return _of(Label.objects.filter(_named("name")(asked)))


def _flag(name: str) -> Q:
    reviews = Review.objects.all()
    match name:
        case "open":
            return _of(reviews.filter(verdict=""))
        case "done":
            return _of(reviews.exclude(verdict=""))
    return _of(reviews) if name == "yes" else ~_of(reviews)


def _verdict(name: str) -> Q:
    return _of(Review.objects.filter(verdict="" if name == NONE else name))


def _has(name: str) -> Q:
    match name:
        case "error":
            return _marked(FAILED, status=FAILED)
        case "answer":
            return ~Q(answer="")
        case "rerun":
            return Q(origin_step__isnull=False)
        case "trial":
            return Q(topic__startswith=TRIAL)
    return _of(HAD[name])


def _said(column: str) -> Callable[[str], Q]:
    return lambda text: Q(**{f"{column}__says": text})


FAILED = AgentStep.Status.FAILED.value
STATUSES = dict(Run.Status.choices) | {LIVE: _("running or waiting")}
RATINGS = {"up": _("thumb up"), "down": _("thumb down"), NONE: _("not rated")}
GUARDRAILS = {
    "block": _("blocked something"),
    "mask": _("masked something"),
    "warn": _("warned"),
    "observe": _("was only observed"),
    ANY: _("said anything"),
}
FLAGS = {
    "open": _("waiting for review"),
    "done": _("reviewed"),
    "yes": _("in the review queue"),
    "no": _("not in the review queue"),
}
ROADS = {"direct": _("asked directly"), "litellm": _("by LiteLLM")}
HAD = {
    "note": Note.objects.all(),
    "label": Label.objects.all(),
    "rating": Rating.objects.all(),
    "comment": Rating.objects.exclude(comment=""),
    "review": Review.objects.all(),
    "correction": Review.objects.exclude(correction=""),
    "example": Example.objects.all(),
    "approval": Approval.objects.all(),
}
HAS = {
    "error": _("a step that failed"),
    "answer": _("an answer"),
    "note": _("a note"),
    "label": _("a label"),
    "rating": _("a rating"),
    "comment": _("a rating with a comment"),
    "review": _("a place in the review queue"),
    "correction": _("a corrected answer"),
    "example": _("been kept as an example"),
    "approval": _("a call that a person was asked about"),
    "rerun": _("been run again from another"),
    "trial": _("been a trial of a draft"),
}


def _fields() -> list[Field]:
    amount, name, words, day = (
        filter_values.number,
        filter_values.word,
        filter_values.words,
        filter_values.day,
    )
    kinds, verdicts = dict(AgentStep.Kind.choices), dict(Review.Verdict.choices)
    return [
        _choice("status", _("how it stands"), STATUSES, _status),
        _field("agent", _("who answered"), "helper", name, _agent),
        _field("model", _("a part of the model's name"), "claude", words, _model),
        _field("tool", _("a tool that was called"), "database", name, _tool),
        _choice("kind", _("a kind of step that it has"), kinds, _kind),
        _field("steps", _("how many steps"), ">5", amount, _in("step_count")),
        _field("tools", _("how many calls of tools"), "2..8", amount, _in("tool_calls")),
        _field(
            "duration",
            _("active time, excluding waiting for people"),
            ">5s",
            filter_values.duration,
            _worked,
        ),
        _field(
            "waited",
            _("time spent waiting for people"),
            ">1m",
            filter_values.duration,
            _in("waited"),
        ),
        _field("tokens", _("tokens read and written"), ">4000", amount, _in("tokens")),
        _field("cost", _("dollars"), ">0.01", filter_values.money, _in("cost")),
        _choice("guardrail", _("what a guardrail did"), GUARDRAILS, _guardrail),
        replace(
            _field("user", _("who asked"), "ada", name, _person),
            refusal=_("Only reviewers can look for the runs of one person."),
        ),
        _field("before", _("asked before that day"), "2026-11-01", day, _before),
        _field("after", _("asked on that day or later"), "-7d", day, _after),
        _field("on", _("asked on that day"), "today", day, _in("started_at")),
        _choice("rating", _("what the person said of it"), RATINGS, _rating),
        replace(
            _field("label", _("a label on it"), "refund", name, _label),
            refusal=_("Only reviewers can look for labels."),
        ),
        _choice("flag", _("whether it is in the review queue"), FLAGS, _flag),
        _choice(
            "verdict", _("what a reviewer found"), verdicts | {NONE: _("nothing yet")}, _verdict
        ),
        _field(
            "version", _("its configuration's version, or its agent's"), "v3", words, _version
        ),
        _field("error", _("words of what went wrong"), "timeout", words, _said("detail")),
        _choice("road", _("how the model was asked"), ROADS, lambda road: Q(road=road)),
        _choice("has", _("what there is of it"), HAS, _has),
        _field("id", _("its number"), "12", amount, _in("pk")),
    ]


FIELDS = {each.name: each for each in _fields()}
# What reviewers write for each other is not for whoever asked.
AMONG_REVIEWERS = {"note", "label"}


def known(*, is_reviewer: bool) -> dict[str, Field]:
    """The fields that somebody may use, each with what they may ask of it."""
    return FIELDS if is_reviewer else PLAIN


def _plain() -> dict[str, Field]:
    had = {name: about for name, about in HAS.items() if name not in AMONG_REVIEWERS}
    shown = {name: each for name, each in FIELDS.items() if not each.refusal}
    return shown | {"has": _choice("has", FIELDS["has"].about, had, _has)}


PLAIN = _plain()
OTHER_NAMES = {"flagged": "flag"}
# Expressions that fields ask for by a name.
ALIASES = {
    "tokens": F("prompt_tokens") + F("completion_tokens"),
    "step_count": STEP_COUNT,
    "active": ACTIVE,
}


def text(words: str) -> Q:
    """Runs whose question or answer has these words."""
    return Q(query__says=words) | Q(answer__says=words)
