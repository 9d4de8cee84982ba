"""What people do with a problem: resolve, ignore, open again, assign and merge.

Each is one statement on the problem's row that has the expected state as its condition, so that
neither a new occurrence nor another person is overwritten.
"""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Subquery
from django.db.models.functions import Greatest, Least
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.access import audit
from agents.models import Agent

from .models import (
    CHANGE_PERMISSION,
    Problem,
    ProblemChange,
    ProblemHour,
    ProblemRun,
    ProblemTag,
)

Action = ProblemChange.Action
Status = Problem.Status
CHANGED = "problem.status"
ASSIGNED = "problem.assigned"
MERGED = "problem.merged"


class ChangeRejected(Exception):
    """Raised when a row can't be changed as chosen; the user sees the reason."""


def resolve(user: User, problem: Problem) -> None:
    """Resolve it now: a run that starts later opens it again."""
    values = {"resolved_version": _version(problem), "awaits_version": False}
    _set_status(user, problem, Action.RESOLVED, Status.RESOLVED, **values)


def resolve_in_next_version(user: User, problem: Problem) -> None:
    """Resolve it in the agent's next version: only runs of that one open it again."""
    version = _version(problem)
    if version is None:
        raise ChangeRejected(_("This agent has no versions. Resolve the problem now instead."))
    values = {"resolved_version": version + 1, "awaits_version": True}
    _set_status(user, problem, Action.RESOLVED_NEXT, Status.RESOLVED, **values)


def ignore(user: User, problem: Problem, *, until_spike: bool = False) -> None:
    """Ignore it for good, or until it spikes; it is still counted."""
    action = Action.IGNORED_UNTIL_SPIKE if until_spike else Action.IGNORED
    _set_status(user, problem, action, Status.IGNORED, returns_on_spike=until_spike)


def reopen(user: User, problem: Problem) -> None:
    _set_status(user, problem, Action.OPENED, Status.OPEN)


def assignable_people() -> Iterable[User]:
    """Return the people who can work on problems."""
    people = get_user_model().objects.with_perm(
        CHANGE_PERMISSION, backend="django.contrib.auth.backends.ModelBackend"
    )
    return people.filter(is_active=True).order_by("username")


@transaction.atomic
def assign(user: User, problem: Problem, person: User | None) -> None:
    if person is not None and not Problem.objects.changeable_by(person).filter(pk=problem.pk):
        raise ChangeRejected(_("This user can't work on this problem."))
    Problem.objects.filter(pk=problem.pk).update(assignee=person)
    problem.assignee = person
    _log(user, problem, Action.ASSIGNED, to=person.pk if person else None)
    audit.record(user, ASSIGNED, problem, to=audit.person(person) if person else "")


@transaction.atomic
def merge(user: User, problem: Problem, into: Problem) -> None:
    """Move all occurrences, also future ones, into another problem."""
    if problem.pk == into.pk:
        raise ChangeRejected(_("Choose another problem to merge into."))
    locked = Problem.objects.select_for_update().filter(pk__in=[problem.pk, into.pk])
    rows = {row.pk: row for row in locked.order_by("pk")}
    if len(rows) < 2 or any(row.merged_into_id for row in rows.values()):
        raise ChangeRejected(_("One of these problems was already merged."))
    source = rows[problem.pk]
    target = rows[into.pk]
    target_runs = ProblemRun.objects.filter(problem=target).values("run")
    duplicates = ProblemRun.objects.filter(problem=source, run__in=target_runs).delete()[0]
    ProblemRun.objects.filter(problem=source).update(problem=target)
    _move_counts(ProblemHour, ["hour"], source, target)
    _move_counts(ProblemTag, ["kind", "value"], source, target)
    Problem.objects.filter(pk=target.pk).update(
        count=F("count") + source.count,
        run_count=F("run_count") + source.run_count - duplicates,
        first_seen=Least("first_seen", source.first_seen),
        last_seen=Greatest("last_seen", source.last_seen),
    )
    Problem.objects.filter(merged_into=source).update(merged_into=target)
    Problem.objects.filter(pk=source.pk).update(merged_into=target, status=Status.IGNORED)
    _log(user, target, Action.MERGED, title=str(source))
    audit.record(user, MERGED, target, problem=source.pk)


def _move_counts(
    counts: type[ProblemHour] | type[ProblemTag],
    columns: Iterable[str],
    source: Problem,
    target: Problem,
) -> None:
    """Add a problem's counts to another's, in as many statements for any number of rows."""
    rows: Any = counts._default_manager
    same = {column: OuterRef(column) for column in columns}
    added = rows.filter(problem=source, **same).values("count")[:1]
    existing = rows.filter(problem=target)
    existing.filter(Exists(added)).update(count=F("count") + Subquery(added))
    moved = rows.filter(problem=source)
    moved.exclude(Exists(existing.filter(**same))).update(problem=target)
    moved.delete()


def save_status(row: Any, status: str, **values: Any) -> None:
    """Change a row's status if it is still what the user saw; raise ChangeRejected."""
    rows = type(row)._default_manager.filter(pk=row.pk, status=row.status)
    if not rows.update(status=status, **values):
        raise ChangeRejected(_("This was changed in the meantime. Review it and try again."))
    row.status = status


@transaction.atomic
def _set_status(
    user: User,
    problem: Problem,
    action: ProblemChange.Action,
    status: Problem.Status,
    **values: Any,
) -> None:
    defaults: dict[str, Any] = {
        "resolved_at": timezone.now() if status == Status.RESOLVED else None,
        "resolved_version": None,
        "awaits_version": False,
        "returns_on_spike": False,
    }
    old_status = problem.status
    save_status(problem, status, **defaults | values)
    _log(user, problem, action)
    audit.record(user, CHANGED, problem, before=old_status, state=action.value)


def _log(user: User, problem: Problem, action: ProblemChange.Action, **details: Any) -> None:
    ProblemChange.objects.create(
        problem=problem,
        action=action,
        by=user,
        at=timezone.now(),
        version=_version(problem),
        details=details,
    )


def _version(problem: Problem) -> int | None:
    """Return the agent's current version."""
    agent = Agent.objects.filter(problems=problem).only("version").first()
    return agent.version or None if agent else None
