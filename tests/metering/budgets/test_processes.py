"""Fifty runs in four processes race for the last cent."""

import json
import subprocess
import sys

import pytest
from django.db import connection

from agents.models import BudgetCounter, BudgetHold, Quota
from tests.metering.budgets.racer import CENT

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.both_databases,
    pytest.mark.django_db(transaction=True),
]
LIMIT = 100 * CENT


def test_four_processes_with_fifty_runs_do_not_overspend_by_more_than_a_call(person):
    Quota.objects.create(user=person, measure="cost", window="month", limit=LIMIT)
    Quota.objects.create(is_shared=True, measure="calls", window="day", limit=100_000)
    command = [
        sys.executable,
        "-m",
        "tests.metering.budgets.racer",
        connection.settings_dict["NAME"],
    ]
    racers = [
        subprocess.Popen(
            [*map(str, command), str(person.pk), str(runs), str(seed)], stdout=subprocess.PIPE
        )
        for seed, runs in enumerate((13, 13, 12, 12))
    ]
    told = [json.loads(racer.communicate(timeout=300)[0]) for racer in racers]

    spent, calls = (sum(one[name] for one in told) for name in ("spent", "calls"))
    assert LIMIT - 2 * CENT <= spent <= LIMIT + 2 * CENT
    assert BudgetCounter.objects.get(scope=f"user:{person.pk}").cost == spent
    assert BudgetCounter.objects.get(scope="all").calls == calls
    assert not BudgetHold.objects.exists()
