"""SQL sent directly to the driver behaves as through Django's cursors."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.core.exceptions import SynchronousOnlyOperation
from django.db import DEFAULT_DB_ALIAS, DatabaseError, IntegrityError, connections, transaction
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext

from agents.db.raw_cursor import adapt_datetime, adapt_json, execute, execute_many, fetch
from agents.models import Run, RunEvent

pytestmark = pytest.mark.both_databases

COUNT = "SELECT COUNT(*) FROM agents_run WHERE topic LIKE %s AND topic NOT LIKE 'x%%'"
RENAME = "UPDATE agents_run SET topic = %s WHERE topic = %s"


@pytest.fixture
def ours(db):
    for topic in ("chat.1", "chat.2"):
        Run.objects.create(topic=topic, query="6 * 7")
    return connections[DEFAULT_DB_ALIAS]


def test_placeholders_and_percent_signs_work_as_in_django(ours):
    execute(ours, RENAME, ["chat.3", "chat.1"])
    execute_many(ours, RENAME, [["chat.4", "chat.3"], ["x", "chat.2"]])

    assert [tuple(row) for row in fetch(ours, COUNT, ["chat%"])] == [(1,)]


def test_errors_are_djangos_own(ours):
    with pytest.raises(IntegrityError), transaction.atomic():
        execute(ours, RENAME, ["chat.2", "chat.1"])
    with pytest.raises(DatabaseError, match="nothing"), transaction.atomic():
        fetch(ours, "SELECT * FROM nothing WHERE a = %s", [1])


def test_a_broken_transaction_rejects_queries(ours):
    with transaction.atomic():
        with pytest.raises(IntegrityError), transaction.atomic(savepoint=False):
            execute(ours, RENAME, ["chat.2", "chat.1"])

        with pytest.raises(TransactionManagementError):
            fetch(ours, COUNT, ["chat%"])


def test_queries_are_captured_like_djangos(ours):
    with CaptureQueriesContext(ours) as heard:
        fetch(ours, COUNT, ["chat%"])
        execute(ours, RENAME, ["chat.3", "chat.1"])
        execute_many(ours, RENAME, [["chat.4", "chat.3"]])

    assert ["chat%" in heard[0]["sql"], len(heard)] == [True, 3]


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=9))])
@pytest.mark.parametrize("number", [7, 2**80])
def test_times_and_json_are_saved_like_djangos(ours, zone, number):
    time = datetime(2026, 11, 16, 1, 2, 3, 456, zone)
    text = "足跡\u2028<i>'\"\\"
    data = {"content": text, "n": [number, 0.1, None, True], "": {}}
    run = Run.objects.first()
    columns = "run_id, seq, type, agent, time, data"
    values = [run.pk, 1, "delta", "a", adapt_datetime(ours, time), adapt_json(ours, data)]
    blanks = ", ".join(["%s"] * len(values))

    execute(ours, f"INSERT INTO agents_runevent ({columns}) VALUES ({blanks})", values)

    same = RunEvent.objects.filter(run=run, time=time, data__content=text)
    assert [(event.time, event.data) for event in same] == [(time, data)]


async def test_queries_in_an_event_loop_are_rejected(ours):
    with pytest.raises(SynchronousOnlyOperation):
        fetch(connections[DEFAULT_DB_ALIAS], COUNT, ["chat%"])


@pytest.mark.django_db(transaction=True)
def test_a_lost_connection_is_detected_and_reopened():
    ours = connections[DEFAULT_DB_ALIAS]
    ours.ensure_connection()
    ours.connection.close()
    with pytest.raises(DatabaseError, match="closed"):
        fetch(ours, COUNT, ["chat%"])

    assert ours.errors_occurred
    ours.close()
    assert [tuple(row) for row in fetch(ours, COUNT, ["chat%"])] == [(0,)]
