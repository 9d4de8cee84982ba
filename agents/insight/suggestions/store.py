"""Finds suggestions and saves them; a decision stays, while the figures follow the evidence."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from agents.catalog import agent_spec
from agents.db.periodic import periodic

from . import changes, evidence
from .evidence import Finding
from .models import Suggestion

Kind = Suggestion.Kind
EVIDENCE_PERIOD = timedelta(days=30)


@periodic("suggestions", every=3_600, delay=60, once=True)
def update_suggestions(current_time: datetime | None = None) -> int:
    """Look for suggestions in many runs; return how many are open."""
    current_time = current_time or timezone.now()
    return save(evidence.find(current_time - EVIDENCE_PERIOD), current_time)


def save(findings: Iterable[Finding], current_time: datetime) -> int:
    """Save what was found and delete what no longer holds; return how many are open."""
    saved_pks = {_save(finding, current_time) for finding in findings}
    Suggestion.objects.open().exclude(pk__in=saved_pks).filter(after=None).delete()
    return Suggestion.objects.open().count()


@transaction.atomic
def _save(finding: Finding, current_time: datetime) -> int:
    existing = Suggestion.objects.filter(agent=finding.agent, kind=finding.kind)
    # The suggestion of the same cause: one tool, or feedback on the same runs.
    if finding.kind == Kind.INSTRUCTION:
        suggestion = existing.filter(runs__in=finding.runs).order_by("pk").first()
    else:
        suggestion = existing.filter(subject=finding.subject).first()
    if suggestion is None:
        # Another group of feedback may have the same common words.
        subjects = set(existing.values_list("subject", flat=True))
        free_subject = finding.subject
        number = 2
        while free_subject in subjects:
            free_subject = f"{finding.subject[:110]} ({number})"
            number += 1
        suggestion = Suggestion(
            agent=finding.agent,
            kind=finding.kind,
            subject=free_subject,
            text=finding.text,
            first_seen=current_time,
        )
    if suggestion.is_open:
        suggestion.figures = finding.figures
        suggestion.last_seen = current_time
        if suggestion.after_id is None:  # what was measured stays what was measured
            suggestion.text = finding.text
        suggestion.save()
        suggestion.runs.set(finding.runs)
        if changes.is_contained(agent_spec.describe(finding.agent), suggestion):
            suggestion.delete()
            return 0
    return suggestion.pk
