"""Rows that agents are built from come from memory until one of them changes."""

import re

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.db import configuration_rows
from agents.db.configuration_rows import (
    KEPT_CHANGES,
    TABLES,
    configuration_query,
    forget_old_changes,
    one_configuration,
)
from agents.models import (
    Agent,
    ConfigurationChange,
    McpServer,
    Run,
    ToolRegistration,
)
from tests.language_models import make_model

pytestmark = pytest.mark.both_databases


@configuration_query
def enabled_agents(is_enabled):
    return Agent.objects.filter(enabled=is_enabled).order_by("name")


@configuration_query
def enabled_runs(status):
    return Run.objects.filter(status=status)


def names():
    with one_configuration():
        return [agent.name for agent in enabled_agents(True)]


@pytest.fixture
def agent(db):
    return Agent.objects.create(name="known")


def test_unchanged_rows_are_read_once(agent, django_assert_num_queries):
    before = names()

    with django_assert_num_queries(1):  # whether something has changed
        assert names() == before


def test_without_a_block_rows_are_read_each_time(agent, django_assert_num_queries):
    names()
    with django_assert_num_queries(2):
        assert enabled_agents(True) == enabled_agents(True)


def test_every_caller_gets_objects_of_its_own(agent):
    with one_configuration():
        [first] = enabled_agents(True)
        first.name = "changed"
        [second] = enabled_agents(True)

    assert second.name == "known"


def change_by_save(agent):
    Agent.objects.create(name="second")


def change_in_bulk(agent):
    Agent.objects.filter(pk=agent.pk).update(name="renamed")


def change_by_sql(agent):
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM agents_agent WHERE id = %s", [agent.pk])


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (change_by_save, ["known", "second"]),
        (change_in_bulk, ["renamed"]),
        (change_by_sql, []),
    ],
)
def test_a_change_is_visible_at_once_however_it_is_made(agent, change, expected):
    assert names() == ["known"]

    change(agent)

    assert names() == expected


def test_what_was_read_in_a_transaction_that_failed_is_forgotten(agent):
    names()
    with transaction.atomic():
        agent.name = "undone"
        agent.save()
        assert names() == ["undone"]
        transaction.set_rollback(True)
    assert names() == ["known"]

    agent.name = "done"
    agent.save()

    assert names() == ["done"]


def changes():
    return set(ConfigurationChange.objects.values_list("value", flat=True))


def test_memberships_and_superusers_count_and_sign_ins_do_not(person, agent):
    steps = [
        lambda: person.groups.add(Group.objects.create(name="staff")),
        lambda: agent.groups.set(Group.objects.all()),
        lambda: agent.tools.add(ToolRegistration.objects.create(name="tool")),
        lambda: make_model("model", "demo"),
        lambda: type(person).objects.filter(pk=person.pk).update(is_superuser=True),
    ]
    for step in steps:
        before = changes()
        step()
        assert changes() - before

    before = changes()
    person.last_login = timezone.now()
    person.save(update_fields=["last_login"])
    assert changes() == before


def test_every_table_has_its_triggers(db):
    assert {table for table, _name in triggers()} == TABLES.keys()


def triggers():
    with connection.cursor() as cursor:
        return configuration_rows._existing_triggers(cursor, connection.vendor)


def test_existing_triggers_are_not_created_again(db):
    """Creating one would wait for everyone who uses its table."""
    before = changes()
    with CaptureQueriesContext(connection) as queries:
        configuration_rows.create_triggers(connection.alias)

    assert not [sql for sql in queries if re.search("(CREATE|DROP) TRIGGER", sql["sql"])]
    assert changes() != before  # a migration may have changed any row


def test_a_trigger_of_another_version_is_replaced(db):
    before = triggers()
    [(table, name), *_others] = sorted(before)
    on_table = f" ON {table}" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER {name}{on_table}")
        [definition] = [
            definition
            for known, definition in configuration_rows._triggers(connection.vendor, table)
            if known == name
        ]
        cursor.execute(f"CREATE TRIGGER configuration_old {definition}")

    configuration_rows.create_triggers(connection.alias)

    assert triggers() == before


def test_nothing_is_kept_while_changes_are_not_noticed(agent):
    """A migration drops the triggers, may take minutes, and may fail."""
    assert names() == ["known"]
    try:
        configuration_rows.drop_triggers(connection.alias)
        assert names() == ["known"]
        change_in_bulk(agent)
        assert names() == ["renamed"]
    finally:
        configuration_rows.create_triggers(connection.alias)
    change_by_save(agent)
    assert names() == ["renamed", "second"]


def test_the_health_of_a_server_is_not_a_change(db):
    server = McpServer.objects.create(name="files", command="x")
    before = changes()

    server.latency_ms = 12.5
    server.save(update_fields=["state", "state_since", "last_error", "latency_ms", "restarts"])
    assert changes() == before

    server.enabled = False
    server.save(update_fields=["enabled"])
    assert changes() != before


def test_a_query_of_another_table_is_an_error(db):
    with pytest.raises(ValueError, match=r"Changes of agents_run aren't noticed\."):
        enabled_runs("running")


def test_old_changes_are_replaced_by_a_new_one(db):
    ConfigurationChange.objects.all().delete()
    long_ago = timezone.now() - 2 * KEPT_CHANGES
    for value in ("a", "b"):
        ConfigurationChange.objects.create(value=value, changed_at=long_ago)

    forget_old_changes()
    [left] = changes()
    forget_old_changes()

    assert left not in {"a", "b"}
    assert changes() == {left}
