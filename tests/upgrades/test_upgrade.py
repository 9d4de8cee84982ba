"""Filled databases of earlier versions are upgraded to this version without loss.

`make test` upgrades the one that had all squashed migrations, so it makes those that came
later. `make test-all` also upgrades the baseline, by every migration there ever was.
"""

import json
import sqlite3
from contextlib import closing
from io import StringIO
from pathlib import Path

import jsonschema
import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.test import AsyncClient

from agents import knowledge
from agents.models import (
    Agent,
    AgentStep,
    Approval,
    AuditEntry,
    LanguageModel,
    Run,
    RunEvent,
    Schedule,
)
from agents.review.models import Label, Note, Rating, ShareLink
from chat.models import ChatSession, Message
from tests import tables
from tests.upgrades import databases

pytestmark = pytest.mark.both_databases

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).parent
SCHEMA = json.loads((ROOT / "docs/trace-schema.json").read_text())
# The migrations that every upgrade starts from. They stay as they are; new ones come after.
BASELINE = {
    ("agents", "0001_baseline"),
    ("agents", "0002_chunk_index"),
    ("chat", "0001_baseline"),
    ("people", "0001_baseline"),
    ("review", "0001_baseline"),
}
OURS = {app for app, _ in BASELINE}
# What a database had when migrations were squashed for the first time.
BEFORE_SQUASHING = [
    ("agents", "0038_model_defaults"),
    ("chat", "0011_attached_files"),
    ("people", "0005_invitations"),
    ("review", "0004_default_example_set"),
    ("experiments", "0001_baseline"),
]
FILLED_MODELS = (
    *(Run, AgentStep, RunEvent, Approval, AuditEntry, LanguageModel, Schedule),
    *(Rating, Note, Label, ShareLink, ChatSession, Message, get_user_model()),
)


@pytest.fixture(
    scope="module",
    params=["squashed", pytest.param("baseline", marks=pytest.mark.thorough)],
)
def earlier(request, tmp_path_factory):
    """The database as an earlier version left it."""
    file = tmp_path_factory.mktemp(request.param) / "ashiato.sqlite3"
    with closing(sqlite3.connect(file)) as database:
        database.executescript((FOLDER / f"{request.param}.sql").read_text())
    return file


@pytest.fixture(scope="module")
def before(earlier):
    """Its content: the rows of each table, and its migrations."""
    with closing(sqlite3.connect(earlier)) as database:
        tables = [model._meta.db_table for model in FILLED_MODELS]
        counts = {
            t: database.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in tables
        }
        migrations = set(database.execute("SELECT app, name FROM django_migrations"))
    return counts, migrations


@pytest.fixture(scope="module")
def fresh(django_db_setup, django_db_blocker):
    """The schema of a database that this version created."""
    with django_db_blocker.unblock():
        return databases.schema()


@pytest.fixture(scope="module")
def upgraded(fresh, before, earlier, django_db_blocker):
    """Connect to the upgraded database; return the row counts."""
    _, migrations = before
    with (
        django_db_blocker.unblock(),
        tables.connected_to(databases.load(earlier, migrations)),
    ):
        ContentType.objects.clear_cache()
        call_command("migrate", verbosity=0)
        yield {model._meta.db_table: model.objects.count() for model in FILLED_MODELS}
        ContentType.objects.clear_cache()


async def fetch(path):
    client = AsyncClient()
    user = await get_user_model().objects.aget(username="ada")
    await sync_to_async(client.force_login)(user)
    answer = await client.get(path)
    assert answer.status_code == 200
    if answer.streaming:
        return b"".join([piece async for piece in answer.streaming_content]).decode()
    return answer.text


def test_the_filled_database_has_the_baseline_schema():
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript((FOLDER / "baseline.sql").read_text())
        migrations = set(database.execute("SELECT app, name FROM django_migrations"))

    assert {known for known in migrations if known[0] in OURS} == BASELINE


def test_migrations_of_the_baseline_are_still_there_and_others_come_after(upgraded):
    graph = databases.executor_one_by_one().loader.graph
    squashed = {node for node in graph.nodes if graph.nodes[node].replaces}
    ours = {node for node in graph.nodes if node[0] in OURS} - squashed

    assert ours >= BASELINE
    for node in ours - BASELINE:
        assert BASELINE & set(graph.forwards_plan(node))


def test_squashed_migrations_need_no_more_than_those_they_replace():
    """Otherwise a database that has all of those, but not more, couldn't be upgraded."""
    found = MigrationLoader(None).disk_migrations
    squashed = [migration for migration in found.values() if migration.replaces]

    assert {migration.app_label for migration in squashed} >= OURS
    for migration in squashed:
        replaced = [found[key] for key in migration.replaces]
        needed = {tuple(one) for old in replaced for one in old.dependencies}
        assert {tuple(one) for one in migration.dependencies} <= needed


@pytest.mark.thorough
def test_a_database_of_single_migrations_is_upgraded(fresh, tmp_path, django_db_blocker):
    if connection.vendor != "sqlite":
        pytest.skip("It is the same order on every database.")
    with django_db_blocker.unblock(), tables.connected_to(tmp_path / "between.sqlite3"):
        databases.executor_one_by_one().migrate(BEFORE_SQUASHING)
        call_command("migrate", verbosity=0)
        executor = MigrationExecutor(connection)

        assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []


def test_nothing_is_left_to_migrate(upgraded):
    executor = MigrationExecutor(connection)

    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []


def test_an_upgraded_database_has_the_schema_of_a_new_one(upgraded, fresh):
    assert databases.schema() == fresh


def test_every_row_is_still_there(upgraded, before):
    counts, _ = before

    assert all(counts.values())
    assert upgraded == counts


async def test_runs_are_read_and_exported(upgraded):
    runs = [run async for run in Run.objects.order_by("pk")]

    assert [run.status for run in runs] == ["completed"] * 3
    for run in runs:
        page = await fetch(f"/traces/{run.pk}/")
        trace = json.loads(await fetch(f"/traces/{run.pk}/export.json"))
        text = await fetch(f"/traces/{run.pk}/export.md")
        jsonschema.validate(trace, SCHEMA, jsonschema.Draft202012Validator)
        assert [step["kind"] for step in trace["steps"]].count("tool") == 1
        assert trace["events"][-1]["type"] == "run_finished"
        assert run.query in page
        assert run.query in text
    assert "435" in runs[0].answer


async def test_chats_are_read(upgraded):
    async for chat in ChatSession.objects.all():
        assert chat.title in await fetch(f"/chat/{chat.pk}/")


def test_the_audit_log_is_intact_and_still_read_only(upgraded):
    out = StringIO()

    call_command("verify_audit", stdout=out)

    assert f"{AuditEntry.objects.count()}" in out.getvalue()
    with pytest.raises(DatabaseError, match="only added to"), connection.cursor() as cursor:
        cursor.execute("UPDATE agents_auditentry SET action = 'other'")


def test_secrets_are_read_with_the_same_key(upgraded):
    assert LanguageModel.objects.get().api_key.reveal() == "a secret of this installation"


def test_passages_are_found(upgraded):
    assert knowledge.search("agent")


def test_agents_with_the_old_default_have_no_text_limits(upgraded):
    assert {*Agent.objects.values_list("max_input_tokens", "max_output_tokens")} == {
        (None, None)
    }
