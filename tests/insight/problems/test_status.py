"""Resolve, ignore, open again: by people, by new occurrences and by spikes."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.utils import timezone

from agents.insight.problems import counting, findings, spikes, status
from agents.insight.problems.models import Problem, ProblemChange, ProblemHour
from agents.models import Agent, AuditEntry, Run

pytestmark = pytest.mark.django_db
NOW, LATER = timedelta(0), -timedelta(seconds=5)


@pytest.fixture
def happen(make_run, agent):
    """Let the problem occur in a run with a version, and return the problem."""
    Agent.objects.filter(pk=agent.pk).update(version=3)

    def occur(version=3, age=NOW):
        run = make_run(age, agent_version=version)
        counting.record(findings.find([Run.objects.get(pk=run.pk)]))
        return Problem.objects.get()

    return occur


def test_a_run_that_starts_after_the_resolution_opens_it_again(happen, administrator):
    status.resolve(administrator, happen())
    assert happen(age=timedelta(minutes=1)).status == "resolved"

    assert happen(age=LATER).status == "open"
    change = ProblemChange.objects.get(action="reopened")
    assert (change.version, change.is_announced) == (3, False)


def test_a_run_of_an_earlier_version_does_not_open_it_again(happen, administrator):
    status.resolve(administrator, happen())

    assert happen(version=2, age=LATER).status == "resolved"
    assert happen(version=4, age=LATER).status == "open"


def test_resolved_in_the_next_version_waits_for_that_version(happen, administrator):
    status.resolve_in_next_version(administrator, happen())

    assert happen(version=3, age=LATER).status == "resolved"
    assert happen(version=None, age=LATER).status == "resolved"
    assert happen(version=4, age=LATER).status == "open"


def test_an_ignored_problem_is_counted_and_stays_closed(happen, administrator):
    status.ignore(administrator, happen())
    problem = happen(version=9, age=LATER)

    assert (problem.status, problem.count) == ("ignored", 2)


def test_a_status_changed_meanwhile_is_not_overwritten(happen, administrator):
    seen = happen()
    status.ignore(administrator, Problem.objects.get())

    with pytest.raises(status.ChangeRejected, match="changed in the meantime"):
        status.resolve(administrator, seen)
    assert Problem.objects.get().status == "ignored"


def test_a_change_is_in_the_history_and_in_the_audit_log(happen, administrator):
    status.resolve(administrator, happen())

    assert ProblemChange.objects.filter(action="resolved", by=administrator).exists()
    assert AuditEntry.objects.filter(action="problem.status").exists()


def test_only_people_with_the_right_can_be_assigned(happen, administrator, person):
    problem = happen()
    with pytest.raises(status.ChangeRejected):
        status.assign(administrator, problem, person)
    codes = ("view_problem", "change_problem")
    person.user_permissions.set(Permission.objects.filter(codename__in=codes))
    status.assign(administrator, problem, type(person).objects.get(pk=person.pk))

    assert Problem.objects.get().assignee == person
    assert person in status.assignable_people()


def test_a_merged_problem_counts_in_the_other(happen, make_run, administrator):
    happen()
    other = make_run(detail="Something else")
    counting.record(findings.find([other]))
    source, target = Problem.objects.order_by("pk")
    status.merge(administrator, source, target)
    run = make_run(agent_version=3)
    counting.record(findings.find([run]))

    target.refresh_from_db()
    assert (target.count, target.run_count, target.occurrences.count()) == (3, 3, 3)
    assert sum(row.count for row in target.hours.all()) == 3
    assert Problem.objects.for_user(administrator).get() == target


# Spikes


@pytest.fixture
def problem(happen):
    problem = happen()
    Problem.objects.update(first_seen=timezone.now() - timedelta(days=9))
    ProblemHour.objects.all().delete()
    return problem


def count(problem, hours, number):
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    at = hour - timedelta(hours=hours)
    ProblemHour.objects.create(problem=problem, hour=at, count=number)


@pytest.mark.parametrize(("recent", "usual", "spikes_"), [
    (9, 0.0, False), (10, 0.0, True), (20, 5.0, False), (22, 5.0, True), (300, 90.0, True),
    (280, 90.0, False),
])  # fmt: skip
def test_what_is_a_spike(recent, usual, spikes_):
    assert spikes.is_spike(recent, usual) is spikes_


def test_a_spike_is_noted_once_a_day(problem):
    count(problem, 0, 30)

    assert spikes.detect() == [problem]
    assert spikes.detect() == []
    assert ProblemChange.objects.get(action="spiked").details == {"recent": 30, "usual": 0.0}


def test_what_is_usual_is_no_spike(problem):
    for hours in range(2, 170):
        count(problem, hours, 15)
    count(problem, 0, 20)

    assert not spikes.detect()


def test_a_new_problem_does_not_spike(problem):
    Problem.objects.update(first_seen=timezone.now() - timedelta(hours=3))
    count(problem, 0, 500)

    assert not spikes.detect()


@pytest.mark.parametrize("until_spike", [True, False])
def test_ignored_until_it_spikes(problem, administrator, until_spike):
    status.ignore(administrator, problem, until_spike=until_spike)
    count(problem, 1, 30)
    spikes.detect()

    assert Problem.objects.get().is_open is until_spike
