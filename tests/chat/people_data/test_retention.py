"""Expired data is deleted, and protected data stays."""

from contextlib import suppress
from datetime import timedelta
from unittest.mock import Mock

import pytest
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.utils import timezone

from agents.access import audit
from agents.access.audit import hash_chain
from agents.models import AgentStep, AuditEntry, AuditPerson, PeriodicJob, Run, RunEvent
from agents.review.models import Example, Review
from chat.models import ChatSession
from chat.people_data import erasure, free_space, retention
from chat.sessions import batched_delete
from tests.access.audit.rows import conversation, create_ended_run, create_question
from tests.conftest import as_user

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def thirty_days(settings):
    settings.RUN_RETENTION_DAYS = 30


def test_an_old_chat_is_deleted_with_everything_derived_from_it(person):
    old, young = conversation(person, "old?", days=31), conversation(person, "young?", days=29)

    done = retention.prune()

    assert (done.sessions, done.runs) == (1, 1)
    assert list(ChatSession.objects.all()) == [young]
    for model in (AgentStep, RunEvent):
        assert not model.objects.filter(run__topic=old.topic).exists()


def test_without_retention_everything_stays(person, settings):
    settings.RUN_RETENTION_DAYS = None
    conversation(person, "old?", days=9999)

    assert retention.prune().is_empty
    assert ChatSession.objects.exists()


def test_old_data_in_use_is_kept(person):
    live, flagged, example, judged = (
        conversation(person, f"{what}?", days=99)
        for what in ("live", "flag", "example", "done")
    )
    first = {chat: Run.objects.get(topic=chat.topic) for chat in (flagged, example, judged)}
    Run.objects.filter(topic=live.topic).update(status="waiting")
    Review.objects.create(run=first[flagged])
    Review.objects.create(run=first[judged], verdict="correct")
    Example.objects.create(name="e", run=first[example], agent_name="helper", question="?")

    done = retention.prune()

    assert set(ChatSession.objects.all()) == {live, flagged, example}
    assert (done.sessions, done.spared) == (1, 3)


def test_the_origin_of_a_recent_rerun_is_kept(person, stranger):
    chat = conversation(person, "old?", days=99)
    origin = Run.objects.get()
    again = create_ended_run(stranger, "old?", "rerun.1", origin=origin, origin_step=1)

    retention.prune()

    assert set(Run.objects.all()) == {origin, again}
    assert ChatSession.objects.get() == chat


def test_old_runs_outside_chats_are_deleted(person):
    old = create_ended_run(person, "scheduled?", "schedule.1")
    Run.objects.filter(pk=old.pk).update(started_at=timezone.now() - timedelta(days=31))

    assert retention.prune().runs == 1
    assert not Run.objects.exists()


def test_a_dry_run_counts_and_deletes_nothing(person, capsys):
    conversation(person, "old?", days=31)

    call_command("prune", "--dry-run")

    assert "Would delete 1 chats, 1 runs" in capsys.readouterr().out
    assert ChatSession.objects.exists()
    assert not AuditEntry.objects.filter(action="retention.pruned").exists()


def test_long_chats_are_deleted_in_batches(person, monkeypatch):
    monkeypatch.setattr(batched_delete, "EVENT_BATCH", 3)
    monkeypatch.setattr(batched_delete, "RUN_BATCH", 2)
    chat = conversation(person, *(f"{number}?" for number in range(5)), days=31)

    bits = 0
    while batched_delete.delete_session_batch(chat):
        bits += 1

    assert bits > 2
    assert not Run.objects.exists()
    assert not ChatSession.objects.exists()


def test_a_chat_used_meanwhile_is_kept(person):
    chat = conversation(person, "old?", days=31)
    before = timezone.now() - timedelta(days=30)
    create_question(chat, person, "and now?")
    ChatSession.objects.filter(pk=chat.pk).update(updated_at=timezone.now())

    assert not batched_delete.delete_session_batch(chat, before)
    assert Run.objects.count() == 2


def test_the_audit_log_is_truncated_and_stays_intact(settings, person, monkeypatch):
    settings.AUDIT_RETENTION_DAYS = 1
    audit.record(person, "run.viewed", "run:1")
    later = timezone.now() + timedelta(days=2)
    monkeypatch.setattr(timezone, "now", lambda: later)

    done = retention.prune()

    told = AuditEntry.objects.order_by("number").values_list("action", flat=True)
    assert list(told) == ["audit.cut", "retention.pruned"]
    assert done.entries == 1
    assert hash_chain.verify().holds


def test_expired_sign_ins_are_deleted(person):
    as_user(person)
    Session.objects.update(expire_date=timezone.now() - timedelta(days=1))

    assert retention.prune().signins == 1
    assert not Session.objects.exists()


def test_retention_is_logged(person, administrator):
    conversation(person, "old?", days=31)

    retention.prune()

    assert PeriodicJob.objects.get(name="prune").result["sessions"] == 1
    shown = as_user(administrator).get("/admin/health/").text
    assert "1 chats, 1 runs and 0 audit log entries" in shown


def test_an_interrupted_erasure_is_finished(person):
    conversation(person, "mine?")
    erasure.begin(person, None)
    assert not retention.has_unfinished_erasures()
    AuditPerson.objects.update(leaves_at=timezone.now() - timedelta(minutes=6))

    retention.finish_erasures()

    assert not retention.has_unfinished_erasures()
    assert not ChatSession.objects.exists()


@pytest.mark.parametrize("outcome", [RuntimeError("killed"), free_space.LATER])
def test_deleted_data_that_was_not_overwritten_is_overwritten_later(
    person, monkeypatch, outcome
):
    wipe = Mock(side_effect=[outcome, free_space.OVERWRITTEN])
    monkeypatch.setattr(free_space, "wipe", wipe)
    erasure.begin(person, None)
    with suppress(RuntimeError):
        erasure.finish(person)
    AuditPerson.objects.update(leaves_at=timezone.now() - timedelta(minutes=6))
    assert retention.has_unfinished_erasures()

    retention.finish_erasures()

    assert wipe.call_count == 2
    assert not retention.has_unfinished_erasures()
