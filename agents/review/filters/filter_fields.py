"""The filter's fields: names, accepted values and examples."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from agents.models import AgentStep, Run
from agents.review.models import Review

from .filter_queries import (
    ANY,
    LIVE,
    NONE,
    ToQuery,
    by_active_time,
    by_agent,
    by_called,
    by_flag,
    by_group,
    by_guardrail,
    by_key,
    by_kind,
    by_label,
    by_model,
    by_outcome,
    by_queue,
    by_rating,
    by_related_rows,
    by_source,
    by_status,
    by_tool,
    by_user,
    by_verdict,
    by_version,
    contains,
    in_range,
    started_after,
    started_before,
)
from .filter_values import (
    ValueParser,
    choice_parser,
    parse_cost,
    parse_day,
    parse_duration,
    parse_name,
    parse_number,
    parse_text,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterField:
    """A field; `parse` reads a value, `to_query` returns the matching runs."""

    name: str
    about: Any
    example: str
    parse: ValueParser
    to_query: ToQuery
    choices: Mapping[str, Any] = field(default_factory=dict)
    refusal: Any = ""  # message for users who aren't reviewers, if only those can use it


def _make_field(
    name: str, description: Any, example: str, parse: ValueParser, to_query: ToQuery
) -> FilterField:
    return FilterField(
        name=name,
        about=description,
        example=f"{name}:{example}",
        parse=parse,
        to_query=to_query,
    )


def _choice_field(
    name: str, description: Any, choices: Mapping[str, Any], to_query: ToQuery
) -> FilterField:
    example = next(iter(choices))
    filter_field = _make_field(name, description, example, choice_parser(choices), to_query)
    return replace(filter_field, choices=choices)


STATUSES = dict(Run.Status.choices) | {LIVE: _("running or waiting")}
OUTCOMES = {
    "completed": _("completed"),
    "failed": _("failed"),
    "blocked": _("blocked by a guardrail"),
    "cancelled": _("stopped by a user"),
    "budget": _("stopped by a time, token or cost limit"),
    "limit": _("stopped by another limit"),
    "interrupted": _("interrupted"),
}
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
VERDICTS = dict(Review.Verdict.choices) | {NONE: _("no verdict yet")}
ROUTES = {
    "direct": _("direct"),
    "litellm": _("via LiteLLM"),
    Run.IMPORTED: _("imported"),
}
SOURCES = {
    Run.IMPORTED: _("imported from another product"),
    "here": _("answered here"),
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
    "experiment": _("is part of an experiment"),
    "replan": _("a changed plan"),
    "timeout": _("a timeout"),
    "toolerror": _("a failed tool call"),
    "retry": _("a retry"),
    "fallback": _("a fallback model"),
    "regeneration": _("an answer that was regenerated"),
    "unpriced": _("a call with an unknown price"),
    "cached": _("an answer from a cache"),
}
ALL_FIELDS = [
    _choice_field("status", _("run status"), STATUSES, by_status),
    _choice_field("outcome", _("how the run ended"), OUTCOMES, by_outcome),
    _make_field("agent", _("agent that answered"), "helper", parse_name, by_agent),
    _make_field("model", _("part of the model name"), "claude", parse_text, by_model),
    _make_field("tool", _("tool that was called"), "database", parse_name, by_tool),
    _choice_field("kind", _("kind of step in the run"), dict(AgentStep.Kind.choices), by_kind),
    _make_field(
        "steps",
        _("number of turns, or of a plan's tasks"),
        ">5",
        parse_number,
        in_range("step_count"),
    ),
    _make_field(
        "tools", _("number of tool calls"), "2..8", parse_number, in_range("tool_calls")
    ),
    _make_field(
        "duration",
        _("active time, excluding time waiting for users"),
        ">5s",
        parse_duration,
        by_active_time,
    ),
    _make_field(
        "waited", _("time waiting for users"), ">1m", parse_duration, in_range("waited")
    ),
    _make_field(
        "tokens", _("input and output tokens"), ">4000", parse_number, in_range("tokens")
    ),
    _make_field("cost", _("run cost in USD"), ">0.01", parse_cost, in_range("cost")),
    _choice_field("guardrail", _("guardrail action"), GUARDRAILS, by_guardrail),
    replace(
        _make_field("user", _("user who started the run"), "ada", parse_name, by_user),
        refusal=_("Only reviewers can filter by user."),
    ),
    replace(
        _make_field(
            "group", _("group of the user who started the run"), "sales", parse_name, by_group
        ),
        refusal=_("Only reviewers can filter by group."),
    ),
    _make_field("key", _("API key that started the run"), "ci", parse_name, by_key),
    _make_field(
        "before", _("started before this date"), "2026-11-01", parse_day, started_before
    ),
    _make_field("after", _("started on or after this date"), "-7d", parse_day, started_after),
    _make_field("on", _("started on this date"), "today", parse_day, in_range("started_at")),
    _choice_field("rating", _("user rating"), RATINGS, by_rating),
    replace(
        _make_field("label", _("label on the run or a step"), "refund", parse_name, by_label),
        refusal=_("Only reviewers can filter by label."),
    ),
    _choice_field("flag", _("review status"), FLAGS, by_flag),
    replace(
        _make_field(
            "queue", _("review queue that the run is in"), "safety", parse_name, by_queue
        ),
        refusal=_("Only reviewers can filter by review queue."),
    ),
    _choice_field("verdict", _("reviewer's verdict"), VERDICTS, by_verdict),
    _make_field(
        "version", _("agent version or configuration ID"), "v3", parse_text, by_version
    ),
    _make_field(
        "error", _("text of the error message"), "timeout", parse_text, contains("detail")
    ),
    _choice_field("route", _("how the model was called"), ROUTES, lambda route: Q(route=route)),
    _choice_field("source", _("where the answer comes from"), SOURCES, by_source),
    _choice_field("has", _("what the run has"), HAS_CHOICES, by_related_rows),
    _make_field("id", _("run number"), "12", parse_number, in_range("pk")),
    _make_field(
        "called", _("full name of the model that was called"), "demo", parse_text, by_called
    ),
]
FIELDS = {filter_field.name: filter_field for filter_field in ALL_FIELDS}
# Reviewers' notes aren't visible to the user.
REVIEWER_ONLY = {"note", "label"}
PUBLIC_CHOICES = {
    name: label for name, label in HAS_CHOICES.items() if name not in REVIEWER_ONLY
}
PUBLIC_FIELDS = {
    name: filter_field for name, filter_field in FIELDS.items() if not filter_field.refusal
}
PUBLIC_FIELDS["has"] = _choice_field(
    "has", FIELDS["has"].about, PUBLIC_CHOICES, by_related_rows
)
FIELD_ALIASES = {"flagged": "flag", "turns": "steps"}


def allowed_fields(*, is_reviewer: bool) -> dict[str, FilterField]:
    """Return the fields this user can use."""
    return FIELDS if is_reviewer else PUBLIC_FIELDS
