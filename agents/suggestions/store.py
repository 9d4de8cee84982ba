"""Saves findings as suggestions; a decision stays, while the figures follow the evidence."""

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction

from agents.catalog import agent_spec

from . import changes
from .evidence import Finding
from .models import Suggestion

Kind, Status = Suggestion.Kind, Suggestion.Status


def save(findings: Iterable[Finding], now: datetime) -> int:
    """Save what was found and delete what no longer holds; return how many are open."""
    kept = {_save(finding, now) for finding in findings}
    Suggestion.objects.open().exclude(pk__in=kept).filter(after=None).delete()
    return Suggestion.objects.open().count()


@transaction.atomic
def _save(finding: Finding, now: datetime) -> int:
    suggestion = _same(finding)
    if suggestion is None:
        suggestion = Suggestion(
            agent=finding.agent,
            kind=finding.kind,
            subject=_free_subject(finding),
            text=finding.text,
            first_seen=now,
        )
    if suggestion.is_open:
        suggestion.figures, suggestion.last_seen = finding.figures, now
        if suggestion.after_id is None:  # what was measured stays what was measured
            suggestion.text = finding.text
        suggestion.save()
        suggestion.runs.set(finding.runs)
        if changes.is_contained(agent_spec.describe(finding.agent), suggestion):
            suggestion.delete()
            return 0
    return suggestion.pk


def _same(finding: Finding) -> Suggestion | None:
    """Return the suggestion of the same cause: one tool, or feedback on the same runs."""
    rows = Suggestion.objects.filter(agent=finding.agent, kind=finding.kind)
    if finding.kind == Kind.INSTRUCTION:
        return rows.filter(runs__in=finding.runs).order_by("pk").first()
    return rows.filter(subject=finding.subject).first()


def _free_subject(finding: Finding) -> str:
    """Return the subject; another group of feedback may have the same common words."""
    taken = set(
        Suggestion.objects.filter(agent=finding.agent, kind=finding.kind).values_list(
            "subject", flat=True
        )
    )
    subject, number = finding.subject, 2
    while subject in taken:
        subject, number = f"{finding.subject[:110]} ({number})", number + 1
    return subject
