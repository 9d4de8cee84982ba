"""Who did what to whose: entries that are written once and never changed."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from agents.models import AuditEntry, Run

VIEWED = "run.viewed"
EXPORTED = "run.exported"
UNMASKED = "run.unmasked"
RERUN = "run.rerun"
SHARED = "run.shared"
RERUN = "run.rerun"
SHARE_REVOKED = "share.revoked"
SHARE_OPENED = "share.opened"
ONCE_IN = timedelta(hours=1)


def record(actor: Any, action: str, subject: Run | str, **detail: Any) -> AuditEntry:
    """Keep that somebody did this; nobody, where it was done without an account."""
    known = actor if actor is not None and actor.is_authenticated else None
    return AuditEntry.objects.create(
        actor=known,
        actor_name=known.get_username() if known else "",
        action=action,
        subject=_name(subject),
        detail=detail,
    )


def viewed(actor: Any, run: Run, door: str) -> None:
    """Somebody looks at another's run: kept once an hour, however often they look."""
    if run.is_of(actor):
        return
    lately = AuditEntry.objects.filter(
        actor=actor,
        action=VIEWED,
        subject=_name(run),
        detail__door=door,
        at__gte=timezone.now() - ONCE_IN,
    )
    if not lately.exists():
        record(actor, VIEWED, run, door=door)


def _name(subject: Run | str) -> str:
    return subject if isinstance(subject, str) else f"run:{subject.pk}"
