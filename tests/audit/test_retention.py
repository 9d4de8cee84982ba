"""Expired data is deleted, and protected data stays."""

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.utils import timezone

from agents.access import audit
from agents.access.audit import hash_chain
from agents.models import AgentStep, AuditEntry, Run, RunEvent, Upkeep
from agents.review.models import Example, Review
from chat.models import ChatSession
from chat.people_data import erasure, retention
from chat.sessions import batched_delete
from tests.audit.rows import conversation, create_ended_run, create_question
from tests.review.conftest import client_of

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def thirty_days(settings):
    settings.KEEP_RUNS_DAYS = 30


def test_an_old_session_goes_with_all_that_came_of_it(person):
    old, young = conversation(person, "old?", days=31), conversation(person, "young?", days=29)

    done = retention.prune()

    assert (done.sessions, done.runs) == (1, 1)
    assert list(ChatSession.objects.all()) == [young]
    for model in (AgentStep, RunEvent):
        assert not model.objects.filter(run__topic=old.topic).exists()


def test_without_a_limit_everything_stays(person, settings):
    settings.KEEP_RUNS_DAYS = None
    conversation(person, "old?", days=9999)

    assert retention.prune().is_empty
    assert ChatSession.objects.exists()


def test_what_somebody_still_needs_stays_however_old(person):
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


def test_what_a_young_run_goes_back_to_stays_with_it(person, stranger):
    chat = conversation(person, "old?", days=99)
    origin = Run.objects.get()
    again = create_ended_run(stranger, "old?", "rerun.1", origin=origin, origin_step=1)

    retention.prune()

    assert set(Run.objects.all()) == {origin, again}
    assert ChatSession.objects.get() == chat


def test_runs_that_nobody_asked_in_a_session_go_too(person):
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


def test_long_sessions_go_bit_by_bit(person, monkeypatch):
    monkeypatch.setattr(batched_delete, "EVENT_BATCH", 3)
    monkeypatch.setattr(batched_delete, "RUN_BATCH", 2)
    chat = conversation(person, *(f"{number}?" for number in range(5)), days=31)

    bits = 0
    while batched_delete.delete_session_batch(chat):
        bits += 1

    assert bits > 2
    assert not Run.objects.exists()
    assert not ChatSession.objects.exists()


def test_a_session_that_is_used_meanwhile_stays(person):
    chat = conversation(person, "old?", days=31)
    before = timezone.now() - timedelta(days=30)
    create_question(chat, person, "and now?")
    ChatSession.objects.filter(pk=chat.pk).update(updated_at=timezone.now())

    assert not batched_delete.delete_session_batch(chat, before)
    assert Run.objects.count() == 2


def test_the_log_is_cut_where_it_is_too_old_and_still_holds(settings, person, monkeypatch):
    settings.KEEP_AUDIT_DAYS = 1
    audit.record(person, "run.viewed", "run:1")
    later = timezone.now() + timedelta(days=2)
    monkeypatch.setattr(timezone, "now", lambda: later)

    done = retention.prune()

    told = AuditEntry.objects.order_by("number").values_list("action", flat=True)
    assert list(told) == ["audit.cut", "retention.pruned"]
    assert done.entries == 2
    assert hash_chain.verify().holds


def test_signins_that_are_over_go(person):
    client_of(person)
    Session.objects.update(expire_date=timezone.now() - timedelta(days=1))

    assert retention.prune().signins == 1
    assert not Session.objects.exists()


def test_once_a_day_whichever_process_comes_first(person):
    now = timezone.now()

    assert retention._claim_turn(now) == (True, False)
    assert retention._claim_turn(now) == (False, False)
    assert retention._claim_turn(now + timedelta(hours=25)) == (True, False)


def test_the_server_says_what_it_did(person, administrator):
    conversation(person, "old?", days=31)

    retention.prune()

    assert Upkeep.objects.get(name="prune").report["sessions"] == 1
    shown = client_of(administrator).get("/admin/health/").content.decode()
    assert "1 chats, 1 runs and 0 audit log entries" in shown


def test_an_erasure_that_was_cut_off_is_finished(person):
    conversation(person, "mine?")
    erasure.begin(person, None)
    later = timezone.now() + timedelta(minutes=6)

    assert retention._claim_turn(later)[1]
    [left] = retention._unfinished_erasures(later)
    erasure.finish(left.user)

    assert retention._claim_turn(later)[1] is False
    assert not ChatSession.objects.exists()
