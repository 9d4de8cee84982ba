"""Saves experiences: without duplicates, masked, and reviewed before others use them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.installation import configured
from agents.models import Experience, ExperienceRun, Run
from agents.models.experiences import ExperienceQuerySet

from . import texts
from .errors import ExperienceRejected

UNDO = timedelta(minutes=10)
Scope, Status, OffReason = Experience.Scope, Experience.Status, Experience.OffReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """What a run teaches; with `is_for_everyone`, a reviewer decides whether others get it."""

    run: Run
    kind: Experience.Kind
    source: Experience.Source
    text: str
    question: str = ""  # the run's, if it is empty
    tools: Sequence[str] = ()
    collections: Sequence[int] = ()
    evidence: Sequence[int] = ()  # further runs
    is_for_person: bool = True
    is_for_everyone: bool = False


def save(lesson: Lesson) -> list[Experience]:
    """Save a lesson for its user and, if it is for everyone, as a proposal."""
    scopes = [Scope.PERSON] if lesson.is_for_person else []
    scopes += [Scope.AGENT] if lesson.is_for_everyone else []
    try:
        found = [_save(lesson, scope) for scope in scopes]
    except ExperienceRejected:  # a job can't ask, so nothing is learned from it
        return []
    return [row for row in found if row is not None]


def _save(lesson: Lesson, scope: Experience.Scope) -> Experience | None:
    run, text = lesson.run, texts.lesson(lesson.text)
    if run.agent_id is None:
        return None
    question = texts.gist(lesson.question or run.query)
    texts.check(question)
    row = Experience(
        agent_id=run.agent_id,
        user_id=run.user_id,
        project_id=run.project_id if scope == Scope.PERSON else None,
        scope=scope,
        kind=lesson.kind,
        source=lesson.source,
        status=Status.ACTIVE if scope == Scope.PERSON else Status.REVIEW,
        question=question,
        text=text,
        digest=texts.digest(f"{question} {text}"),
        tools=sorted(set(lesson.tools)),
        collections=sorted(set(lesson.collections)),
        run=run,
        expires_at=expiry(timezone.now()),
    )
    try:
        with transaction.atomic():
            return _insert(row, lesson)
    except IntegrityError:  # another process has just saved it
        return same(row).first()


def _insert(row: Experience, lesson: Lesson) -> Experience | None:
    known = same(row).first()
    if known is None:
        was_deleted = Experience.objects.filter(run=row.run, digest=row.digest, scope=row.scope)
        if was_deleted.exists() or not _make_room(row):
            return None
        row.save(force_insert=True)
    saved = known or row
    for run in {lesson.run.pk, *lesson.evidence}:
        saved.evidence.get_or_create(run_id=run, role=ExperienceRun.Role.ORIGIN)
    return saved


def same(row: Experience) -> ExperienceQuerySet:
    """Return the experience with the same words that the same people use."""
    rows = Experience.objects.present().filter(
        agent=row.agent_id, digest=row.digest, scope=row.scope
    )
    match row.scope:
        case Scope.PERSON:
            return rows.filter(user=row.user_id)
        case Scope.PROJECT:
            return rows.filter(project=row.project_id)
    return rows


def _make_room(row: Experience) -> bool:
    """Delete the least useful experience of a full store; a full review queue waits."""
    most = configured.MAX_EXPERIENCES.value
    rows = Experience.objects.filter(scope=row.scope, agent=row.agent_id, status=row.status)
    if row.scope == Scope.PERSON:
        rows = rows.filter(user=row.user_id)
    if rows.present().count() < most:
        return True
    if row.scope != Scope.PERSON:
        return False
    worst = rows.present().order_by("helpful", "-harmful", "pk").first()
    if worst is not None:
        worst.delete()
    return True


def expiry(now: datetime) -> datetime | None:
    """Return until when an experience is used if it helps no run meanwhile."""
    days = configured.EXPERIENCE_DAYS.value
    return now + timedelta(days=days) if days else None


def edit(row: Experience, question: str, text: str) -> None:
    """Change the words; raise ExperienceRejected."""
    row.question, row.text = texts.gist(question), texts.lesson(text)
    texts.check(row.question)
    if not row.question:
        raise ExperienceRejected(_("Enter a question."))
    row.digest = texts.digest(f"{row.question} {row.text}")
    row.vector, row.vector_model = None, ""
    if same(row).exclude(pk=row.pk).exists():
        raise ExperienceRejected(_("This experience already exists."))


@transaction.atomic
def propose(row: Experience, scope: Experience.Scope) -> Experience:
    """Suggest a user's experience for their project or for everyone; raise ExperienceRejected.

    The user's own stays as it is, whatever the reviewer decides.
    """
    if row.run is None or (scope == Scope.PROJECT and row.project_id is None):
        raise ExperienceRejected(_("This experience can't be suggested to others."))
    proposal = Experience(
        agent_id=row.agent_id,
        user_id=row.user_id,
        project_id=row.project_id if scope == Scope.PROJECT else None,
        scope=scope,
        kind=row.kind,
        source=row.source,
        status=Status.REVIEW,
        question=texts.gist(row.question),
        text=texts.lesson(row.text),
        digest=row.digest,
        tools=row.tools,
        collections=row.collections,
        run=row.run,
        expires_at=expiry(timezone.now()),
    )
    if (known := same(proposal).first()) is not None:
        return known
    if not _make_room(proposal):
        raise ExperienceRejected(_("Too many suggestions await a review. Try again later."))
    proposal.save(force_insert=True)
    for origin in row.evidence.filter(role=ExperienceRun.Role.ORIGIN):
        proposal.evidence.create(run=origin.run, role=origin.role)
    return proposal


def approve(row: Experience, reviewer: User) -> None:
    """Let others use it; raise ExperienceRejected if its words look like instructions."""
    texts.check(row.question)
    texts.check(row.text)
    _decide(row, reviewer, Status.ACTIVE, OffReason.NONE)


def reject(row: Experience, reviewer: User) -> None:
    _decide(row, reviewer, Status.OFF, OffReason.REJECTED)


def _decide(row: Experience, reviewer: User, status: str, reason: str) -> None:
    row.status, row.off_reason = status, reason
    row.reviewed_by, row.reviewed_at = reviewer, timezone.now()
    row.save(update_fields=["status", "off_reason", "reviewed_by", "reviewed_at", "updated_at"])


def switch(row: Experience, *, is_on: bool, reason: str) -> None:
    """Turn an experience on or off."""
    row.status = Status.ACTIVE if is_on else Status.OFF
    row.off_reason = OffReason.NONE if is_on else reason
    row.save(update_fields=["status", "off_reason", "updated_at"])


def delete(row: Experience) -> None:
    """Delete an experience, which can be restored for a while; then it is erased."""
    purge_deleted()
    Experience.objects.filter(pk=row.pk).update(deleted_at=timezone.now())


def restore(row: Experience) -> None:
    """Restore a deleted experience, unless the same has been learned since."""
    if not same(row).exists():
        Experience.objects.filter(pk=row.pk).update(deleted_at=None)


def purge_deleted() -> None:
    """Erase experiences whose deletion can no longer be undone, and those long expired."""
    now = timezone.now()
    gone = Q(deleted_at__lt=now - UNDO) | Q(expires_at__lt=now - timedelta(days=30))
    Experience.objects.filter(gone).delete()


def search(rows: QuerySet[Experience], query: str) -> QuerySet[Experience]:
    """Return the experiences with all of these words."""
    for word in query.split()[:8]:
        rows = rows.filter(Q(text__icontains=word) | Q(question__icontains=word))
    return rows
