"""Who did what to whose: entries that are written once and never changed."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.utils import timezone

from agents import masking, storage
from agents.models import AuditEntry, Run

VIEWED = "run.viewed"
EXPORTED = "run.exported"
UNMASKED = "run.unmasked"
RERUN = "run.rerun"
SHARED = "run.shared"
SHARE_REVOKED = "share.revoked"
SHARE_OPENED = "share.opened"
MEMBER_ADDED = "session.member_added"
MEMBER_REMOVED = "session.member_removed"
INVITED = "session.invited"
INVITATION_WITHDRAWN = "session.invitation_withdrawn"
HIT_JUDGED = "guardrail.hit_judged"
ONCE_IN = timedelta(hours=1)


class NotRecorded(Exception):
    """It could not be kept, and so must not be done; the text says why."""


def record(actor: Any, action: str, subject: Run | str, **detail: Any) -> AuditEntry:
    """Keep that somebody did this; nobody, where it was done without an account."""
    entry = _entry(actor, action, _name(subject), detail)
    with storage.refusing(NotRecorded):
        entry.save()
    return entry


def record_hourly(actor: Any, action: str, subject: Run | str, **detail: Any) -> None:
    """The same, kept once an hour however often the same person does the same."""
    known = actor if actor is not None and actor.is_authenticated else None
    same = AuditEntry.objects.filter(
        actor=known, action=action, subject=_name(subject), at__gte=timezone.now() - ONCE_IN
    )
    if not same.filter(**{f"detail__{name}": value for name, value in detail.items()}).exists():
        record(actor, action, subject, **detail)


def viewed(actor: Any, run: Run, door: str) -> None:
    """Somebody looks at another's run: kept once an hour, however often they look."""
    viewed_all(actor, [run], door)


def viewed_all(actor: Any, runs: Iterable[Run], door: str) -> None:
    """The same of several at once."""
    others = {_name(run) for run in runs if not masking.is_own(run, actor)}
    if not others:
        return
    lately = AuditEntry.objects.filter(
        actor=actor,
        action=VIEWED,
        subject__in=others,
        detail__door=door,
        at__gte=timezone.now() - ONCE_IN,
    )
    new = sorted(others - set(lately.values_list("subject", flat=True)))
    with storage.refusing(NotRecorded):
        AuditEntry.objects.bulk_create(
            _entry(actor, VIEWED, run, {"door": door}) for run in new
        )


def _entry(actor: Any, action: str, subject: str, detail: dict[str, Any]) -> AuditEntry:
    known = actor if actor is not None and actor.is_authenticated else None
    return AuditEntry(
        actor=known,
        actor_name=known.get_username() if known else "",
        action=action,
        subject=subject,
        detail=detail,
    )


def _name(subject: Run | str) -> str:
    return subject if isinstance(subject, str) else f"run:{subject.pk}"
