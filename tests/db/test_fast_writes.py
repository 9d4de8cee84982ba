"""Fast writes leave the same rows as the ORM."""

import pytest
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.utils import timezone

from agents.db.fast_writes import Increment, insert, insert_many, update
from agents.models import AgentStep, Run

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


@pytest.mark.parametrize("value", [5, 1.5, True, None, "text", [5], {"a": 5}])
def test_any_json_is_saved_as_it_is(run, value):
    first, second = (
        AgentStep(
            run=run,
            number=number,
            turn=1,
            kind="tool",
            action_input=value,
            started_at=run.started_at,
        )
        for number in (1, 2)
    )
    insert_many(AgentStep, [first])
    second.save()

    ours, orms = run.steps.order_by("number")
    assert ours.action_input == orms.action_input == value
    update(AgentStep, {"action_input": value}, id=orms.pk)
    orms.refresh_from_db()
    assert orms.action_input == value


def test_increments_are_added_to_the_current_value(run):
    for _ in range(2):
        update(
            Run,
            {"prompt_tokens": Increment(2) + Increment(1), "cost": Increment(0.5)},
            id=run.pk,
        )

    run.refresh_from_db()
    assert (run.prompt_tokens, run.cost) == (11, 1.0)


def test_an_inserted_row_equals_one_that_the_orm_saved(person):
    given = {"query": "足跡 'x'", "history": [{"a": 1}], "user": person, "step_types": ""}
    ours = Run(topic="chat.1", heartbeat_at=Now(), **given)
    insert(ours)
    Run.objects.create(topic="chat.2", heartbeat_at=Now(), **given)

    saved, other = Run.objects.order_by("pk")
    times = {"heartbeat_at", "started_at"}
    for name in {f.attname for f in Run._meta.concrete_fields} - {"id", "topic", *times}:
        assert getattr(saved, name) == getattr(other, name), name
    assert all(abs(getattr(saved, t) - getattr(other, t)).seconds < 60 for t in times)
    assert (saved, saved.started_at) == (ours, ours.started_at)


def test_an_inserted_row_can_be_saved_again(run):
    added = Run(topic="chat.2", query="1 + 1", step_types="")
    insert(added)
    added.answer = "2"
    added.save()

    assert [row.answer for row in Run.objects.order_by("pk")] == ["", "2"]


def test_a_row_that_breaks_a_constraint_is_rejected(run):
    with pytest.raises(IntegrityError), transaction.atomic():
        insert(Run(topic=run.topic, query="1 + 1", step_types=""))


def test_a_column_with_a_database_default_needs_a_value():
    with pytest.raises(ValueError, match="step_types has no value"):
        insert(Run(topic="chat.1", query="1 + 1"))


def test_inserted_steps_have_all_their_values(run):
    step = AgentStep(run=run, number=1, kind="tool", started_at=timezone.now())
    step.action_input, step.notes = {"input": "足跡 'x'"}, [{"kind": "retry"}]
    insert_many(AgentStep, [step])

    saved = AgentStep.objects.get()
    for field in AgentStep._meta.concrete_fields[1:]:
        assert getattr(saved, field.attname) == getattr(step, field.attname), field
