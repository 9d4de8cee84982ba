"""Fast updates change the same rows as the ORM."""

import pytest

from agents.db.fast_writes import Increment, update
from agents.models import Run

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]


@pytest.fixture
def run():
    return Run.objects.create(topic="chat.1", query="6 * 7", prompt_tokens=5)


def test_only_named_columns_are_changed(run):
    other = Run.objects.create(topic="chat.2", query="1 + 1")
    update(Run, {"answer": "42", "output": {"is": 42}, "ended_at": run.started_at}, id=run.pk)

    run.refresh_from_db()
    other.refresh_from_db()
    assert (run.answer, run.output, run.ended_at) == ("42", {"is": 42}, run.started_at)
    assert (run.query, other.answer) == ("6 * 7", "")


def test_increments_are_added_to_the_current_value(run):
    for _ in range(2):
        update(
            Run,
            {"prompt_tokens": Increment(2) + Increment(1), "cost": Increment(0.5)},
            id=run.pk,
        )

    run.refresh_from_db()
    assert (run.prompt_tokens, run.cost) == (11, 1.0)
