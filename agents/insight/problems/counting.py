"""Saves findings: problems are inserted or incremented, and opened again if they come back."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import models, transaction
from django.db.models import F, Q, Value
from django.db.models.functions import Greatest, Least

from .findings import Finding
from .fingerprints import ALGORITHM
from .models import Problem, ProblemChange, ProblemHour, ProblemRun, ProblemTag

Action = ProblemChange.Action
Status = Problem.Status


@transaction.atomic
def record(findings: Sequence[Finding], *, is_live: bool = True) -> int:
    """Count these findings, each once per run; return how many were new.

    Every row is inserted or incremented under a unique key, so that it can run in several
    processes and again after an interruption. What happened before an upgrade isn't announced.
    """
    problems = _load_or_create(findings, is_live=is_live)
    by_problem: dict[Problem, list[Finding]] = defaultdict(list)
    for finding in findings:
        problem = problems[finding.fingerprint]
        by_problem[problem.merged_into or problem].append(finding)
    count = 0
    for problem in sorted(by_problem, key=lambda row: row.pk):
        # Other writers of this problem wait here, so that a run is counted by one of them.
        Problem.objects.filter(pk=problem.pk).update(count=F("count"))
        by_run = {finding.run.pk: finding for finding in by_problem[problem]}
        affected_runs = ProblemRun.objects.filter(problem=problem, run__in=list(by_run))
        counted = set(affected_runs.values_list("run", flat=True))
        new = [finding for pk, finding in sorted(by_run.items()) if pk not in counted]
        ProblemRun.objects.bulk_create(
            ProblemRun(
                problem=problem,
                run_id=finding.run.pk,
                times=finding.times,
                at=finding.occurred_at,
            )
            for finding in new
        )
        if new:
            _count(problem, new)
            _reopen(problem, new)
            count += len(new)
    return count


def _load_or_create(findings: Sequence[Finding], *, is_live: bool) -> dict[str, Problem]:
    """Return the problem of each fingerprint."""
    by_fingerprint = {finding.fingerprint: finding for finding in findings}
    problems = _load(by_fingerprint)
    missing = [by_fingerprint[key] for key in sorted(by_fingerprint.keys() - problems.keys())]
    if missing:
        Problem.objects.bulk_create(
            (
                Problem(
                    fingerprint=finding.fingerprint,
                    algorithm=ALGORITHM,
                    kind=finding.cause.kind,
                    stage=finding.cause.stage,
                    subject=finding.cause.subject,
                    message=finding.cause.title,
                    agent_id=finding.run.agent_id,
                    agent_name=finding.run.agent_name,
                    first_seen=finding.occurred_at,
                    last_seen=finding.occurred_at,
                )
                for finding in missing
            ),
            ignore_conflicts=True,
        )
        added = _load(finding.fingerprint for finding in missing)
        ProblemChange.objects.bulk_create(
            ProblemChange(
                problem=problem,
                action=Action.FOUND,
                at=problem.first_seen,
                version=by_fingerprint[key].run.agent_version,
                is_announced=not is_live,
            )
            for key, problem in added.items()
        )
        problems |= added
    return problems


def _load(fingerprints: Iterable[str]) -> dict[str, Problem]:
    rows = Problem.objects.filter(fingerprint__in=list(fingerprints), algorithm=ALGORITHM)
    return {row.fingerprint: row for row in rows.select_related("merged_into")}


def _count(problem: Problem, findings: Sequence[Finding]) -> None:
    times = [finding.occurred_at for finding in findings]
    Problem.objects.filter(pk=problem.pk).update(
        count=F("count") + sum(finding.times for finding in findings),
        run_count=F("run_count") + len(findings),
        first_seen=Least("first_seen", Value(min(times), models.DateTimeField())),
        last_seen=Greatest("last_seen", Value(max(times), models.DateTimeField())),
    )
    # Not those of problems that were merged into this one.
    own = [finding for finding in findings if finding.fingerprint == problem.fingerprint]
    latest = max(own, key=lambda finding: finding.occurred_at, default=None)
    if latest is not None and latest.cause.title != problem.message:
        Problem.objects.filter(pk=problem.pk).update(message=latest.cause.title)
    hours: Counter[datetime] = Counter()
    tags: Counter[tuple[str, str]] = Counter()
    for finding in findings:
        hours[finding.occurred_at.replace(minute=0, second=0, microsecond=0)] += finding.times
        tags[ProblemTag.Kind.MODEL, finding.run.model] += finding.times
        if finding.run.agent_version is not None:
            tags[ProblemTag.Kind.VERSION, str(finding.run.agent_version)] += finding.times
    _add_counts(ProblemHour, problem, {(("hour", hour),): n for hour, n in hours.items()})
    _add_counts(
        ProblemTag,
        problem,
        {(("kind", kind), ("value", value)): n for (kind, value), n in tags.items()},
    )


def _add_counts(
    model: type[ProblemHour] | type[ProblemTag],
    problem: Problem,
    counts: Mapping[tuple[tuple[str, Any], ...], int],
) -> None:
    """Insert or increment the rows with these keys."""
    keys = sorted(counts)
    rows: Any = model._default_manager
    rows.bulk_create(
        (model(problem=problem, **dict(key)) for key in keys), ignore_conflicts=True
    )
    for key in keys:
        rows.filter(problem=problem, **dict(key)).update(count=F("count") + counts[key])


def _reopen(problem: Problem, findings: Sequence[Finding]) -> None:
    """Open a resolved problem that came back, in one statement with its conditions.

    A run of a version before the resolved one doesn't; nor, without a version to wait for,
    does one that started before.
    """
    latest: dict[int | None, datetime] = {}
    for finding in findings:
        run = finding.run
        latest[run.agent_version] = max(
            latest.get(run.agent_version, run.started_at), run.started_at
        )
    for version, started in sorted(latest.items(), key=lambda item: item[0] or 0, reverse=True):
        is_later = Q(awaits_version=False, resolved_at__lt=started)
        is_fixed = Q(awaits_version=True)
        if version is not None:
            is_later &= Q(resolved_version=None) | Q(resolved_version__lte=version)
            is_fixed &= Q(resolved_version__lte=version)
        comes_back = is_later | is_fixed if version is not None else is_later
        rows = Problem.objects.filter(comes_back, pk=problem.pk, status=Status.RESOLVED)
        if rows.update(status=Status.OPEN, resolved_at=None, awaits_version=False):
            ProblemChange.objects.create(
                problem=problem,
                action=Action.REOPENED,
                at=max(finding.occurred_at for finding in findings),
                version=version,
                is_announced=False,
            )
            return
