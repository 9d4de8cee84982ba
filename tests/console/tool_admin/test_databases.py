"""Databases in the console: rows, tools, checklist, tests with unsaved values, and queries."""

import json
import sqlite3
from contextlib import closing

import pytest
from asgiref.sync import async_to_sync

from agents.catalog.tools import databases, tool_factory
from agents.models import AuditEntry, DatabaseConnection, ToolRegistration
from agents.tools.database.dialects import DatabaseKind
from agents.tools.database.schema import Column, Schema, Table

BASE = "/admin/agents/databaseconnection/"
ORDERS = {"kind": "sqlite", "file": "shop.sqlite3", "tls": "require", "enabled": "on"}


@pytest.fixture(autouse=True)
def shop(settings, tmp_path):
    settings.DATABASE_FILES = tmp_path
    with closing(sqlite3.connect(tmp_path / "shop.sqlite3")) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER, total REAL, secret TEXT)")
        connection.execute("CREATE TABLE tokens (token TEXT)")
        connection.execute("INSERT INTO orders VALUES (1, 9.5, 'hush')")
        connection.commit()
    return tmp_path


@pytest.fixture
def connection(db):
    return DatabaseConnection.objects.create(name="shop", kind="sqlite", file="shop.sqlite3")


def test_a_new_database_becomes_a_tool(connection):
    tool = ToolRegistration.objects.get(name="query_shop")

    assert (tool.source, tool.connection) == ("database", connection)
    assert "orders(id INTEGER" in tool_factory.build_tools([tool])[0].description


def test_a_disabled_database_has_no_tool(connection):
    connection.enabled = False
    connection.save()

    assert tool_factory.build_tools(ToolRegistration.objects.filter(name="query_shop")) == []


def test_the_sample_shop_is_a_database_of_the_built_in_tool(db):
    ToolRegistration.objects.create(name="database")
    databases.add_sample()
    databases.add_sample()

    row = DatabaseConnection.objects.get()
    assert (row.is_sample, row.tools.get().name) == (True, "database")


@pytest.mark.parametrize("name", ["../secret.sqlite3", "/etc/passwd", "", "a/../../b.db"])
def test_a_file_outside_of_the_folder_is_rejected(name):
    with pytest.raises(databases.InvalidFile, match="isn't in the folder"):
        databases.file_path(DatabaseConnection(kind="sqlite", file=name))


def test_a_checklist_becomes_a_list_of_tables_and_columns(
    admin_client, django_capture_on_commit_callbacks
):
    choice = {
        "tables-mode": "some",
        "tables-listed": "1",
        "tables-table": ["orders"],
        "tables-total": ['["orders", 3]', '["tokens", 1]'],
        "tables-column": ['["orders", "id"]', '["orders", "total"]', '["tokens", "token"]'],
    }

    with django_capture_on_commit_callbacks(execute=True):
        answer = admin_client.post(f"{BASE}add/", {"name": "shop", **ORDERS, **choice})

    assert answer.status_code == 302
    row = DatabaseConnection.objects.get()
    assert row.tables == {"orders": ["id", "total"]}
    assert (row.state, row.version.split()[0]) == ("ready", "SQLite")


def test_an_empty_checklist_is_an_error(admin_client):
    choice = {"tables-mode": "some", "tables-listed": "1"}

    answer = admin_client.post(f"{BASE}add/", {"name": "shop", **ORDERS, **choice})

    assert "Select at least one table" in answer.text
    assert not DatabaseConnection.objects.exists()


def test_a_connection_is_tested_without_saving_it(admin_client):
    values = {"name": "shop", **ORDERS, "tables-mode": "all"}

    answer = admin_client.post(f"{BASE}try/", values)

    assert "2 tables" in answer.text
    assert 'value="orders"' in answer.text
    assert not DatabaseConnection.objects.exists()
    assert AuditEntry.objects.filter(action="server.tested").exists()


def test_an_unreachable_server_is_a_sentence(admin_client):
    server = {"kind": "postgresql", "host": "127.0.0.1", "port": 1, "tls": "off"}
    values = {"name": "far", **server, "database": "a", "username": "b", "tables-mode": "all"}

    answer = admin_client.post(f"{BASE}try/", values)

    assert "Can&#x27;t connect to PostgreSQL" in answer.text


@pytest.mark.parametrize(
    ("sql", "seen"),
    [
        ("SELECT * FROM orders", "9.5"),
        ("SELECT secret FROM orders", "no such column: secret"),
        ("SELECT * FROM tokens", "There is no table &#x27;tokens&#x27;"),
        ("DELETE FROM orders", "Only SELECT"),
    ],
)
def test_a_query_runs_with_the_unsaved_tables(admin_client, connection, sql, seen):
    tables = json.dumps({"orders": ["id", "total"]})
    values = {**ORDERS, "tables": tables, "tables-mode": "some", "sql": sql}

    answer = admin_client.post(f"{BASE}{connection.pk}/query/", values)

    assert seen in answer.text
    assert "hush" not in answer.text


def test_a_moved_server_needs_its_password_again(admin_client):
    row = DatabaseConnection.objects.create(
        name="far", host="127.0.0.1", database="a", username="b", password="hush"
    )
    values = {"kind": "postgresql", "host": "127.0.0.2", "tls": "require", "database": "a"}

    answer = admin_client.post(f"{BASE}{row.pk}/try/", {**values, "username": "b"})

    assert "Enter the password again" in answer.text
    assert "hush" not in answer.text


def test_a_failed_check_keeps_the_known_tables(connection):
    schema = Schema(
        kind=DatabaseKind.SQLITE, tables=(Table(name="a", columns=(Column(name="b"),)),)
    )
    databases.save_check(connection.pk, databases.Check(schema=schema, version="SQLite 3"))
    databases.save_check(connection.pk, databases.Check(error="Gone."))

    connection.refresh_from_db()
    assert (connection.state, connection.last_error) == ("failed", "Gone.")
    assert Schema.from_dict(connection.schema) == schema


def test_a_name_of_another_tool_is_taken(admin_client):
    ToolRegistration.objects.create(name="query_shop", source="http")

    answer = admin_client.post(f"{BASE}add/", {"name": "shop", **ORDERS, "tables-mode": "all"})

    assert "A tool named query_shop already exists" in answer.text


def test_selected_databases_are_disabled_at_once(admin_client, connection):
    chosen = {"action": "disable", "_selected_action": [connection.pk]}

    admin_client.post(BASE, chosen)

    connection.refresh_from_db()
    assert not connection.enabled


def test_tools_of_a_source_are_listed_by_tab(admin_client, connection):
    page = admin_client.get("/admin/agents/toolregistration/?source__exact=database").text

    assert "query_shop" in page
    assert 'aria-current="page">Databases' in page


def test_selected_tools_are_disabled_at_once(admin_client, connection):
    tool = connection.tools.get()

    chosen = {"action": "disable", "_selected_action": [tool.pk]}
    admin_client.post("/admin/agents/toolregistration/", chosen)

    tool.refresh_from_db()
    assert not tool.enabled


def test_a_tool_has_its_own_number_of_retries(connection):
    tool = connection.tools.get()
    tool.max_retries = 0
    built = tool_factory.build_tools([tool])

    registry = async_to_sync(tool_factory.build_registry)([tool], built)

    assert registry.get("query_shop").max_retries == 0


@pytest.mark.parametrize("pair", ["{", "1", '[["a"], "b"]'])
def test_a_checklist_that_isnt_ours_is_refused_with_a_sentence(admin_client, connection, pair):
    choice = {"tables-mode": "some", "tables-listed": "1", "tables-table": ["orders"]}

    page = admin_client.post(
        f"{BASE}{connection.pk}/change/", {**ORDERS, **choice, "tables-column": [pair]}
    )

    assert page.context["adminform"].form.errors["tables"]


def test_a_table_without_any_column_isnt_read_at_all(admin_client, connection):
    choice = {"tables-mode": "some", "tables-listed": "1", "tables-table": ["orders", "tokens"]}
    choice |= {
        "tables-total": ['["orders", 3]', '["tokens", 1]'],
        "tables-column": ['["tokens", "token"]'],
    }

    admin_client.post(f"{BASE}{connection.pk}/change/", {**ORDERS, **choice})

    connection.refresh_from_db()
    assert connection.tables == {"tokens": None}


def test_a_list_of_hosts_doesnt_pass_for_a_socket(admin_client):
    server = {"kind": "postgresql", "host": "/run,169.254.169.254", "tls": "off"}
    values = {"name": "far", **server, "database": "a", "username": "b", "tables-mode": "all"}

    page = admin_client.post(f"{BASE}add/", values)

    assert page.context["adminform"].form.errors["host"]
    row = DatabaseConnection(**server)
    assert "valid host" in databases.check(row).error
