"""Rows that agents are built from come from memory until one of them changes."""

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.utils import timezone

from agents.db.configuration_rows import (
    KEPT_CHANGES,
    TABLES,
    configuration_query,
    forget_old_changes,
    one_configuration,
)
from agents.models import Agent, ConfigurationChange, LanguageModel, Run, ToolRegistration

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
        lambda: LanguageModel.objects.create(label="model", model="demo"),
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
    sql = {
        "sqlite": "SELECT tbl_name FROM sqlite_master WHERE name LIKE 'configuration_%%'"
        " AND type = 'trigger'",
        "postgresql": "SELECT relname FROM pg_trigger JOIN pg_class ON tgrelid = pg_class.oid"
        " WHERE tgname = 'configuration_changed'",
    }
    with connection.cursor() as cursor:
        cursor.execute(sql[connection.vendor])
        tables = {table for (table,) in cursor.fetchall()}

    assert tables == TABLES.keys()


def test_a_query_of_another_table_is_an_error(db):
    with pytest.raises(ValueError, match=r"Changes of agents_run aren't noticed\."):
        enabled_runs("running")


def test_old_changes_are_deleted_but_not_the_newest(db):
    ConfigurationChange.objects.all().delete()
    long_ago = timezone.now() - 2 * KEPT_CHANGES
    for value in ("a", "b"):
        ConfigurationChange.objects.create(value=value, changed_at=long_ago)

    forget_old_changes()

    assert changes() == {"b"}
