"""The filled database of an earlier version is upgraded to this version without loss."""

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
APPS = {
    "agents",
    "alerts",
    "chat",
    "dashboard",
    "experiments",
    "people",
    "problems",
    "review",
    "suggestions",
}
BASELINE = {(app, "0001_tables") for app in APPS} | {("agents", "0002_search_index")}
FILLED_MODELS = (
    *(Run, AgentStep, RunEvent, Approval, AuditEntry, LanguageModel, Schedule),
    *(Rating, Note, Label, ShareLink, ChatSession, Message, get_user_model()),
)


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    """The database as an earlier version left it."""
    file = tmp_path_factory.mktemp("baseline") / "ashiato.sqlite3"
    with closing(sqlite3.connect(file)) as database:
        database.executescript((FOLDER / "baseline.sql").read_text())
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

    assert {known for known in migrations if known[0] in APPS} == BASELINE


def test_migrations_of_the_baseline_are_still_there_and_others_come_after():
    graph = MigrationLoader(None).graph
    ours = {node for node in graph.nodes if node[0] in APPS}

    assert ours >= BASELINE
    for node in ours - BASELINE:
        assert BASELINE & set(graph.forwards_plan(node))


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
    connection = LanguageModel.objects.get().connection

    assert connection.api_key.reveal() == "a secret of this installation"


def test_passages_are_found(upgraded):
    assert knowledge.search("agent")
