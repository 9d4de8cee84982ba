"""An import is prepared without the database's write lock, which other users wait for."""

import sqlite3

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.console.system.config_files.exporter import ExportSelection, export
from agents.console.system.config_files.importer import apply_file, preview_file
from agents.db import shadow_tables
from agents.models import Agent, AgentVersion, AuditEntry

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="SQLite has one writer."),
]

WRITES = {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE}


def file_of(count):
    agents = [f"  agent-{n}:\n    instructions: Be brief.\n" for n in range(count)]
    return "ashiato: 1\nagents:\n" + "".join(agents)


@pytest.fixture
def locked_statements():
    """Run something; return the statements between the begin and end of write transactions."""

    def run(work):
        found = []

        def log(execute, sql, params, many, context):
            if sql.startswith("BEGIN IMMEDIATE"):
                log.is_locked = True
            elif connection.in_atomic_block and log.is_locked:
                found.append(sql)
            return execute(sql, params, many, context)

        log.is_locked = False
        with connection.execute_wrapper(log):
            work()
        return found

    return run


def test_a_preview_writes_nothing_and_takes_no_lock(agent, administrator, locked_statements):
    written = set()

    def authorize(action, table, _column, database, _trigger):
        if action in WRITES and database == "main":
            written.add(table)
        return sqlite3.SQLITE_OK

    connection.ensure_connection()
    connection.connection.set_authorizer(authorize)
    try:
        locked = locked_statements(lambda: preview_file(file_of(3), administrator))
    finally:
        connection.connection.set_authorizer(None)

    assert locked == []
    assert written <= {"sqlite_master"}
    assert Agent.objects.count() == 1


def test_an_import_locks_for_as_many_statements_whatever_its_size(
    agent, administrator, locked_statements
):
    few = locked_statements(lambda: apply_file(file_of(2), administrator))
    many = locked_statements(lambda: apply_file(file_of(12), administrator))

    assert Agent.objects.count() == 13
    assert AgentVersion.objects.filter(agent__name="agent-11").count() == 1
    assert AuditEntry.objects.filter(action="configuration.imported").count() == 2
    assert 0 < len(many) <= len(few)  # the first one also adds its user to the audit log


def test_what_somebody_else_saved_meanwhile_is_not_overwritten(
    agent, administrator, monkeypatch
):
    prepare = shadow_tables.prepare

    def interrupted(*given):
        found = prepare(*given)
        with connection.cursor() as cursor:
            cursor.execute("UPDATE main.agents_agent SET description = 'Mine'")
        return found

    monkeypatch.setattr(shadow_tables, "prepare", interrupted)

    result = apply_file(file_of(2), administrator)

    assert result.is_done  # prepared again with the change
    assert Agent.objects.get(pk=agent.pk).description == "Mine"


def test_each_agent_of_a_preview_takes_one_query(agent, administrator):
    counts = []
    for size in (5, 15):
        with CaptureQueriesContext(connection) as queries:
            preview_file(file_of(size), administrator)
        counts.append(len(queries))

    assert counts[1] - counts[0] == 10


def test_an_export_is_described_before_it_locks(agent, administrator, locked_statements):
    few = locked_statements(lambda: export(administrator, ExportSelection(kinds=["agents"])))

    assert few
    assert not [sql for sql in few if Agent._meta.db_table in sql]
