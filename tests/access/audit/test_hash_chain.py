"""Tampering with the log is detected, and mostly prevented."""

import json
from threading import Thread

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from agents.access import audit
from agents.access.audit import hash_chain
from agents.models import AuditEntry, AuditHead
from agents.models.audit import AuditLogImmutable

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]


@pytest.fixture
def log(db):
    """Five entries; the third is the one tested."""
    for number in range(1, 6):
        audit.record(None, "run.viewed", f"run:{number}", door="page", seconds=number / 2)
    return AuditEntry.objects.order_by("number")


def test_an_untouched_log_is_intact(log):
    verdict = hash_chain.verify()

    assert (verdict.holds, verdict.checked) == (True, 5)
    assert [entry.number for entry in log] == [1, 2, 3, 4, 5]
    assert log[2].previous == log[1].seal


@pytest.mark.parametrize(
    ("sql", "flaw", "number"),
    [
        ("UPDATE agents_auditentry SET subject = 'run:9' WHERE number = 3", "changed", 3),
        ("UPDATE agents_auditentry SET seal = previous WHERE number = 3", "inserted", 3),
        ("DELETE FROM agents_auditentry WHERE number = 3", "removed", 3),
        ("DELETE FROM agents_auditentry WHERE number = 1", "removed", 1),
        ("DELETE FROM agents_auditentry WHERE number > 3", "tail cut", 4),
        ("UPDATE agents_auditentry SET key = 'deadbeef' WHERE number = 3", "key gone", 3),
    ],
)
def test_tampering_is_found_at_its_entry(log, tamper, sql, flaw, number):
    tamper(sql)

    verdict = hash_chain.verify()

    assert (verdict.flaw, verdict.number) == (flaw, number)


def test_changing_the_user_of_an_entry_is_found(log, person, tamper):
    tamper(
        "UPDATE agents_auditentry SET person_id = %s WHERE number = 2", audit.person(person).pk
    )

    assert hash_chain.verify().flaw == "changed"


def test_an_entry_forged_without_the_key_is_found(log, tamper):
    last = log[4]
    tamper(
        "INSERT INTO agents_auditentry (number, at, person_id, action, subject, detail, place,"
        " key, previous, seal) SELECT 6, at, person_id, action, 'run:9', detail, place, key,"
        " %s, %s FROM agents_auditentry WHERE number = 5",
        last.seal,
        "a" * 64,
    )

    assert (hash_chain.verify().flaw, hash_chain.verify().number) == ("inserted", 6)


def test_entries_cannot_be_changed_or_deleted_through_the_orm(log):
    entry = log[0]

    for act in (entry.save, entry.delete, log.delete, lambda: log.update(action="nothing")):
        with pytest.raises(AuditLogImmutable):
            act()


@pytest.mark.parametrize(
    "sql", ["UPDATE agents_auditentry SET action = 'x'", "DELETE FROM agents_auditentry"]
)
def test_entries_cannot_be_changed_or_deleted_in_the_database(log, sql):
    with pytest.raises(DatabaseError, match="only added to"), transaction.atomic():
        connection.cursor().execute(sql)

    assert hash_chain.verify().checked == 5


def test_a_new_key_continues_the_chain_of_the_old_one(log, settings):
    settings.ENCRYPTION_KEYS = ["a new key", *settings.ENCRYPTION_KEYS]
    audit.record(None, "run.viewed", "run:6")
    assert hash_chain.verify().checked == 6

    settings.ENCRYPTION_KEYS = ["a new key"]

    assert (hash_chain.verify().flaw, hash_chain.verify().number) == ("key gone", 1)


@pytest.mark.parametrize("value", [1e22, 0.1, 1.0, 1e-7, "half \ud800", "nul \0", float("nan")])
def test_unusual_values_are_verified(value, db):
    audit.record(None, "run.viewed", "run:1", value=value, more={"値": [value] * 3})

    assert hash_chain.verify().holds


@pytest.mark.django_db(transaction=True)
def test_concurrent_writes_are_serialized():
    def write():
        for _ in range(10):
            audit.record(None, "run.viewed", "run:1")
        connection.close()

    threads = [Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (hash_chain.verify().holds, hash_chain.verify().checked) == (True, 40)


def test_rolled_back_entries_leave_no_gap(log):
    with transaction.atomic():
        audit.record(None, "run.viewed", "run:6")
        transaction.set_rollback(True)

    audit.record(None, "run.viewed", "run:7")
    assert (hash_chain.verify().holds, hash_chain.verify().checked) == (True, 6)


def test_a_missing_head_is_rebuilt(log):
    AuditHead.objects.all().delete()

    audit.record(None, "run.viewed", "run:6")

    assert hash_chain.verify().checked == 6


def test_verification_can_be_limited_to_the_newest_entries(log, tamper):
    tamper("UPDATE agents_auditentry SET subject = 'run:9' WHERE number = 1")

    verdict = hash_chain.verify(newest=3)

    assert (verdict.holds, verdict.checked, verdict.since) == (True, 3, 3)


# The command


def verify_output(capsys, *arguments):
    try:
        call_command("verify_audit", *arguments)
    except CommandError as error:
        return str(error)
    return capsys.readouterr().out


def test_the_command_reports_an_intact_log(log, capsys):
    assert verify_output(capsys).startswith("The audit log is intact: 5 entries")


def test_the_command_names_the_first_changed_entry(log, tamper, capsys):
    tamper("UPDATE agents_auditentry SET subject = 'run:9' WHERE number = 3")

    assert verify_output(capsys).startswith("Entry 3 was changed")


def test_an_anchor_detects_a_truncated_log(log, tamper, tmp_path, capsys):
    anchor = tmp_path / "anchor.json"
    assert "intact" in verify_output(capsys, "--anchor", str(anchor))
    assert json.loads(anchor.read_text())["number"] == 5

    tamper("DELETE FROM agents_auditentry WHERE number > 3")
    tamper("UPDATE agents_audithead SET number = 3, seal = %s", log[2].seal)

    assert hash_chain.verify().holds
    assert "starting with entry 4" in verify_output(capsys, "--anchor", str(anchor))
    assert json.loads(anchor.read_text())["number"] == 5


def test_an_unreadable_anchor_is_an_error(log, tmp_path, capsys):
    (tmp_path / "anchor.json").write_text("{")

    assert "Can't read the anchor" in verify_output(
        capsys, "--anchor", str(tmp_path / "anchor.json")
    )


# Cutting


def test_retention_leaves_an_intact_chain(log, capsys, tmp_path):
    anchor = str(tmp_path / "anchor.json")
    verify_output(capsys, "--anchor", anchor)

    assert audit.truncate(before=timezone.now()) == 5

    verdict = hash_chain.verify()
    assert (verdict.holds, verdict.since, verdict.checked) == (True, 6, 1)
    assert AuditEntry.objects.get().detail["entries"] == 5
    assert "intact" in verify_output(capsys, "--anchor", anchor)


def test_deleting_more_than_retention_did_is_found(log, tamper):
    audit.truncate(before=log[2].at)
    assert hash_chain.verify().holds

    tamper("DELETE FROM agents_auditentry WHERE number = 3")

    assert (hash_chain.verify().flaw, hash_chain.verify().number) == ("removed", 3)
