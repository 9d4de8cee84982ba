"""Experiences: without duplicates, masked, and reviewed before others use them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.db.installation import configured
from agents.models import Experience, ExperienceRun, Run

from . import store, texts
from .errors import NoteRejected

Scope = Experience.Scope
Status = Experience.Status
OffReason = Experience.OffReason
COPIED_COLUMNS = (
    "agent_id",
    "user_id",
    "kind",
    "source",
    "question",
    "text",
    "digest",
    "tools",
    "collections",
    "run_id",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """What a run teaches, and whom; a reviewer decides whether others get it."""

    run: Run
    kind: Experience.Kind
    source: Experience.Source
    text: str
    tools: Sequence[str] = ()
    collections: Sequence[int] = ()
    evidence: Sequence[int] = ()  # further runs
    scopes: Sequence[Experience.Scope] = (Scope.PERSON,)


def save(lesson: Lesson) -> list[Experience]:
    """Save a lesson for its user and, if it is for everyone, as a proposal."""
    run = lesson.run
    if run.agent_id is None:
        return []
    try:
        text = texts.lesson(lesson.text)
        question = texts.gist(run.query)
        texts.check_lesson(question)
    except NoteRejected:  # a job can't ask, so nothing is learned from it
        return []
    saved: list[Experience] = []
    for scope in lesson.scopes:
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
        with transaction.atomic():
            existing = row.same().first()
            if existing is None:
                deleted = Experience.objects.filter(run=run, digest=row.digest, scope=scope)
                if deleted.exists() or not _make_room(row):
                    continue
                existing = store.insert(row)
            for run_id in {run.pk, *lesson.evidence}:
                existing.evidence.get_or_create(run_id=run_id, role=ExperienceRun.Role.ORIGIN)
        saved.append(existing)
    return saved


def _make_room(row: Experience) -> bool:
    """Delete the least useful experience of a full store; a full review queue waits."""
    rows = Experience.objects.present().filter(
        scope=row.scope, agent=row.agent_id, status=row.status
    )
    if row.scope == Scope.PERSON:
        rows = rows.filter(user=row.user_id)
    if rows.count() < configured.MAX_EXPERIENCES.value:
        return True
    if row.scope != Scope.PERSON:
        return False
    if (worst := rows.order_by("helpful", "-harmful", "pk").first()) is not None:
        worst.delete()
    return True


def expiry(start: datetime) -> datetime | None:
    """Return until when an experience is used if it helps no run meanwhile."""
    days = configured.EXPERIENCE_DAYS.value
    return start + timedelta(days=days) if days else None


def edit(row: Experience, question: str, text: str) -> None:
    """Change the words; raise NoteRejected."""
    row.question = texts.gist(question)
    row.text = texts.lesson(text)
    texts.check_lesson(row.question)
    if not row.question:
        raise NoteRejected(_("Enter a question."))
    row.digest = texts.digest(f"{row.question} {row.text}")
    row.vector = None
    row.vector_model = ""
    if row.same().exists():
        raise NoteRejected(_("This lesson already exists."))


@transaction.atomic
def propose(row: Experience, scope: Experience.Scope) -> Experience:
    """Suggest a user's experience for their project or for everyone; raise NoteRejected.

    The user's own stays as it is, whatever the reviewer decides.
    """
    if row.run is None or (scope == Scope.PROJECT and row.project_id is None):
        raise NoteRejected(_("This lesson can't be suggested to other users."))
    proposal = Experience(
        **{name: getattr(row, name) for name in COPIED_COLUMNS},
        project_id=row.project_id if scope == Scope.PROJECT else None,
        scope=scope,
        status=Status.REVIEW,
        expires_at=expiry(timezone.now()),
    )
    if (existing := proposal.same().first()) is not None:
        return existing
    texts.check_lesson(proposal.text)
    if not _make_room(proposal):
        raise NoteRejected(_("Too many suggestions are pending review. Try again later."))
    proposal.save(force_insert=True)
    for origin in row.evidence.filter(role=ExperienceRun.Role.ORIGIN):
        proposal.evidence.create(run=origin.run, role=origin.role)
    return proposal


def approve(row: Experience, reviewer: User) -> None:
    """Let others use it; raise NoteRejected if its words look like instructions."""
    texts.check_lesson(row.question)
    texts.check_lesson(row.text)
    _decide(row, reviewer, Status.ACTIVE, OffReason.NONE)


def reject(row: Experience, reviewer: User) -> None:
    _decide(row, reviewer, Status.OFF, OffReason.REJECTED)


def _decide(row: Experience, reviewer: User, status: str, reason: str) -> None:
    row.reviewed_by = reviewer
    row.reviewed_at = timezone.now()
    row.status = status
    row.off_reason = reason
    row.save(update_fields=["status", "off_reason", "reviewed_by", "reviewed_at", "updated_at"])


def switch(row: Experience, *, is_on: bool, reason: str) -> None:
    """Turn an experience on or off."""
    row.status = Status.ACTIVE if is_on else Status.OFF
    row.off_reason = OffReason.NONE if is_on else reason
    row.save(update_fields=["status", "off_reason", "updated_at"])
