"""Filters of the list of runs that read summaries: so that every figure has its list."""

from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from agents.review.filter_fields import add_has_choice, add_name_field

from .models import ModelSummary, RunSummary


def register() -> None:
    add_name_field("called", _("model that was called, its whole name"), "demo", _by_called)
    rows = RunSummary.objects
    add_has_choice("replan", _("a changed plan"), rows.filter(replanned__gt=0))
    add_has_choice("timeout", _("a timeout"), rows.filter(timed_out__gt=0))
    add_has_choice("toolerror", _("a failed tool call"), rows.filter(tool_errors__gt=0))
    add_has_choice("retry", _("a retry"), rows.filter(retries__gt=0))
    add_has_choice("fallback", _("a fallback model"), rows.filter(fallbacks__gt=0))
    add_has_choice(
        "regeneration", _("an answer that was regenerated"), rows.filter(regenerated__gt=0)
    )
    add_has_choice("unpriced", _("a call of unknown price"), rows.filter(unpriced__gt=0))
    add_has_choice("cached", _("an answer from a cache"), rows.filter(cached__gt=0))


def _by_called(model: str) -> Q:
    return Q(pk__in=ModelSummary.objects.filter(model=model).values("run_id"))
