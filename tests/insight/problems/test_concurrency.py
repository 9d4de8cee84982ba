"""Several processes count the same runs, and people change what is being counted."""

import threading
from datetime import timedelta

import pytest
from django.db import connections

from agents.insight.problems import collector, counting, findings, status
from agents.insight.problems.models import Problem, ProblemHour
from agents.models import Run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


def at_once(*steps):
    """Run these at the same time, each in its own thread and connection."""
    start, errors = threading.Barrier(len(steps)), []

    def work(step):
        try:
            start.wait()
            step()
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work, args=[step]) for step in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_each_run_is_counted_once_by_several_collectors(make_run):
    collector.collect()
    for number in range(12):
        make_run(timedelta(0), detail=f"Order {number} not found")
    at_once(*[collector.collect] * 4)

    problem = Problem.objects.get()
    assert (problem.count, problem.run_count) == (12, 12)
    assert sum(ProblemHour.objects.values_list("count", flat=True)) == 12


def test_the_same_findings_recorded_at_once_are_counted_once(make_run):
    runs = [Run.objects.get(pk=make_run(detail=f"Order {n} not found").pk) for n in range(5)]
    found = findings.find(runs)
    at_once(*[lambda: counting.record(found)] * 4)

    assert Problem.objects.get().count == 5


def test_resolving_while_it_occurs_again_loses_neither(make_run, administrator):
    first = Run.objects.get(pk=make_run().pk)
    counting.record(findings.find([first]))
    problem = Problem.objects.get()
    again = Run.objects.get(pk=make_run().pk)  # started before it is resolved
    found = findings.find([again])
    at_once(lambda: status.resolve(administrator, problem), lambda: counting.record(found))

    problem.refresh_from_db()
    assert (problem.status, problem.count) == ("resolved", 2)
