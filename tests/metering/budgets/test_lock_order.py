"""A message and a call on two connections never wait for each other (PostgreSQL)."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from django.db import OperationalError, connection, connections, transaction

from agents.db import conflicts
from agents.metering.budgets import Payer, counters, holds, starts
from agents.metering.budgets.measures import Estimate
from agents.models import BudgetCounter, Quota

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def on_postgresql(monkeypatch):
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one writer at a time")
    monkeypatch.setattr(counters, "_known", set())


def limit(measure, window="day", **owner):
    Quota.objects.create(measure=measure, window=window, limit=1_000, **owner)


def in_thread(do):
    def closed():
        try:
            return do()
        finally:
            connections.close_all()

    return closed


def wait_for_a_lock():
    """Wait until another connection waits for a lock."""
    asked = "SELECT 1 FROM pg_locks WHERE NOT granted"
    until = time.monotonic() + 5
    while time.monotonic() < until:
        with connection.cursor() as cursor:
            cursor.execute(asked)
            if cursor.fetchone():
                return
        time.sleep(0.02)
    raise AssertionError("The call doesn't wait.")


def race(person, agent, caplog, other):
    """Save a message with its run while something else of the same user begins."""
    is_counted = threading.Event()

    @in_thread
    def message():
        with transaction.atomic():
            starts.count_message(person)
            is_counted.set()
            wait_for_a_lock()
            starts.start_run(person, agent)

    @in_thread
    def begin():
        is_counted.wait(10)
        other()

    with ThreadPoolExecutor(2) as threads:
        for started in (threads.submit(message), threads.submit(begin)):
            started.result(20)
    assert "deadlock" not in caplog.text


def call(person, agent):
    payer = Payer(user=person.pk, agent=agent.pk)
    assert holds.reserve(payer, Estimate(tokens=1)) is not None


def rerun(person, agent):
    with transaction.atomic():
        starts.start_run(person, agent)


@pytest.mark.usefixtures("on_postgresql")
def test_the_first_call_of_a_window_races_with_a_message(person, agent, caplog, monkeypatch):
    """The agent has a counter already, and the message creates the user's."""
    limit("calls", agent=agent)
    limit("runs", agent=agent)
    holds.reserve(Payer(agent=agent.pk), Estimate())
    for measure in ("messages", "calls"):
        limit(measure, user=person)
    monkeypatch.setattr(counters, "_known", set())

    race(person, agent, caplog, partial(call, person, agent))

    assert BudgetCounter.objects.get(scope=f"user:{person.pk}").messages == 1


@pytest.mark.usefixtures("on_postgresql")
def test_a_message_that_counts_for_all_locks_its_user_first(person, agent, caplog):
    for measure in ("messages", "calls"):
        limit(measure, is_shared=True)
    limit("runs", user=person)
    limit("calls", user=person)
    holds.reserve(Payer(user=person.pk, agent=agent.pk), Estimate())

    race(person, agent, caplog, partial(call, person, agent))

    assert BudgetCounter.objects.get(scope="all").messages == 1


@pytest.mark.usefixtures("on_postgresql")
def test_a_message_and_a_rerun_lock_their_user_before_counters(person, agent, settings, caplog):
    for measure in ("messages", "runs"):
        limit(measure, user=person)
    settings.USER_RUNS = 5

    race(person, agent, caplog, partial(rerun, person, agent))

    assert BudgetCounter.objects.get(scope=f"user:{person.pk}").runs == 2


class Deadlock(Exception):
    sqlstate = "40P01"


@pytest.mark.parametrize(("failures", "is_done"), [(0, True), (2, True), (3, False)])
def test_a_transaction_that_the_database_aborted_is_retried_within_bounds(
    failures, is_done, monkeypatch
):
    monkeypatch.setattr(conflicts, "PAUSE_SECONDS", 0)
    tries = []

    @conflicts.retry_on_conflict
    def save():
        tries.append(1)
        if len(tries) <= failures:
            raise OperationalError from Deadlock()
        return "saved"

    if is_done:
        assert save() == "saved"
    else:
        with pytest.raises(OperationalError):
            save()
    assert len(tries) == min(failures + 1, 3)


def test_inside_a_transaction_nothing_is_retried():
    tries = []

    @conflicts.retry_on_conflict
    def save():
        tries.append(1)
        raise OperationalError from Deadlock()

    with pytest.raises(OperationalError), transaction.atomic():
        save()
    assert len(tries) == 1
