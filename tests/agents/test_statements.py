"""Rows written the short way are the rows that the ORM would have written."""

import pytest
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.utils import timezone

from agents.models import AgentStep, Run
from agents.models.statements import More, add, insert, update

pytestmark = pytest.mark.django_db


@pytest.fixture
def run():
    return Run.objects.create(topic="chat.1", query="6 * 7", prompt_tokens=5)


def test_a_row_is_written_with_all_that_it_has(run):
    step = AgentStep(run=run, number=1, kind="tool", started_at=timezone.now())
    step.action_input, step.notes = {"input": "足跡 'x'"}, [{"kind": "retry"}]
    insert(AgentStep, [step])

    kept = AgentStep.objects.get()
    for field in AgentStep._meta.concrete_fields[1:]:
        assert getattr(kept, field.attname) == getattr(step, field.attname), field


def test_a_new_row_is_what_the_orm_would_have_made_of_it(person):
    given = {"query": "足跡 'x'", "history": [{"a": 1}], "user": person, "marks": ""}
    ours = Run(topic="chat.1", heartbeat_at=Now(), **given)
    add(ours)
    Run.objects.create(topic="chat.2", heartbeat_at=Now(), **given)

    kept, other = Run.objects.order_by("pk")
    times = {"heartbeat_at", "started_at"}
    for field in {f.attname for f in Run._meta.concrete_fields} - {"id", "topic", *times}:
        assert getattr(kept, field) == getattr(other, field), field
    assert all(abs(getattr(kept, t) - getattr(other, t)).seconds < 60 for t in times)
    assert (kept, kept.started_at) == (ours, ours.started_at)


def test_a_new_row_can_be_changed_and_is_not_made_twice(run):
    added = Run(topic="chat.2", query="1 + 1", marks="")
    add(added)
    added.answer = "2"
    added.save()

    assert [row.answer for row in Run.objects.order_by("pk")] == ["", "2"]


def test_what_may_be_there_only_once_is_refused(run):
    with pytest.raises(IntegrityError), transaction.atomic():
        add(Run(topic=run.topic, query="1 + 1", marks=""))


def test_only_what_is_named_is_changed(run):
    other = Run.objects.create(topic="chat.2", query="1 + 1")
    update(Run, {"answer": "42", "output": {"is": 42}, "ended_at": run.started_at}, id=run.pk)

    run.refresh_from_db()
    other.refresh_from_db()
    assert (run.answer, run.output, run.ended_at) == ("42", {"is": 42}, run.started_at)
    assert (run.query, other.answer) == ("6 * 7", "")


def test_amounts_are_added_to_what_is_there(run):
    for _ in range(2):
        update(Run, {"prompt_tokens": More(2) + More(1), "cost": More(0.5)}, id=run.pk)

    run.refresh_from_db()
    assert (run.prompt_tokens, run.cost) == (11, 1.0)
