"""No action of the console locks SQLite's only writer for longer the more rows it changes."""

from datetime import timedelta
from functools import partial

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from agents.access import recently_deleted
from agents.catalog import agent_spec
from agents.console.agent_admin import agent_tools
from agents.console.tool_admin import openapi_import
from agents.insight.problems import status
from agents.insight.problems.models import Problem
from agents.knowledge import ingestion
from agents.knowledge.ingestion import documents
from agents.management.commands import rotate_keys
from agents.metering import caches
from agents.metering.caches import pruning
from agents.models import (
    Agent,
    AuditEntry,
    CacheEntry,
    Chunk,
    Collection,
    Deletion,
    Document,
    GuardrailPattern,
    McpServer,
    Run,
    ToolRegistration,
)
from agents.review.experiments import service
from agents.review.experiments.models import Experiment
from agents.review.models import Example, ExampleSet
from agents.web.library import deletion
from chat.models import ChatSession, Message
from tests.console.forms import agent_form
from tests.console.tool_admin.test_openapi_import import imported

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="SQLite has one writer."),
]


def longest_transaction(work):
    """Return how many statements the longest write transaction has."""
    counts = [0]

    def count(execute, sql, params, many, context):
        if sql.startswith("BEGIN IMMEDIATE"):
            counts.append(0)
        elif connection.in_atomic_block:
            counts[-1] += 1
        return execute(sql, params, many, context)

    with connection.execute_wrapper(count):
        work()
    return max(counts)


def most_rows(work):
    """Return how many rows the largest write transaction changes."""
    sizes = [0]

    def count(execute, sql, params, many, context):
        if sql.startswith("BEGIN IMMEDIATE") or not connection.in_atomic_block:
            sizes.append(0)
        before = connection.connection.total_changes
        result = execute(sql, params, many, context)
        sizes[-1] += connection.connection.total_changes - before
        return result

    with connection.execute_wrapper(count):
        work()
    return max(sizes)


def post_action(client, model, action, rows):
    url = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    selected = [row.pk for row in rows]
    data = {"action": action, "_selected_action": selected, "post": "yes", "index": 0}
    assert client.post(url, data).status_code == 302


@pytest.mark.parametrize(
    ("model", "values", "action"),
    [
        (
            ToolRegistration,
            {"source": "http", "endpoint": "https://x.test"},
            "disable",
        ),
        (GuardrailPattern, {"pattern": "secret"}, "disable"),
    ],
)
def test_an_action_on_a_list_releases_the_lock_after_each_row(
    admin_client, model, values, action
):
    rows = [model.objects.create(name=f"row_{number}", **values) for number in range(12)]

    few = longest_transaction(lambda: post_action(admin_client, model, action, rows[:2]))
    many = longest_transaction(lambda: post_action(admin_client, model, action, rows[2:]))

    assert not model.objects.filter(name__startswith="row_", enabled=True).exists()
    assert 0 < many <= few


def test_the_switches_of_a_list_are_saved_one_by_one(admin_client):
    about = {"source": "http", "endpoint": "https://x.test"}
    url = reverse("admin:agents_toolregistration_changelist")
    sizes = []
    for count in (2, 12):
        sent = {"_save": "Save", "form-TOTAL_FORMS": count, "form-INITIAL_FORMS": count}
        for number in range(count):
            tool = ToolRegistration.objects.create(name=f"tool_{count}_{number}", **about)
            sent |= {f"form-{number}-id": tool.pk, f"initial-form-{number}-enabled": "True"}
        sizes.append(longest_transaction(partial(admin_client.post, url, sent)))

    assert (
        ToolRegistration.objects.filter(name__startswith="tool_", enabled=False).count() == 14
    )
    assert AuditEntry.objects.filter(subject__startswith="toolregistration:").count() == 14
    assert 0 < sizes[1] <= sizes[0]


@pytest.mark.thorough
def test_many_agents_are_deleted_in_batches(admin_client):
    agents = [Agent.objects.create(name=f"agent-{number}") for number in range(45)]

    few = longest_transaction(
        lambda: post_action(admin_client, Agent, "delete_selected", agents[:20])
    )
    many = longest_transaction(
        lambda: post_action(admin_client, Agent, "delete_selected", agents[20:])
    )

    assert not Agent.objects.filter(name__startswith="agent-").exists()
    assert Deletion.objects.count() == 45
    assert 0 < many <= few


def test_a_long_chat_is_deleted_in_batches(admin_client, agent, person):
    sizes = []
    for count in (10, 30):
        chat = ChatSession.objects.create(user=person, title="Long")
        about = {"agent": agent, "agent_name": agent.name, "model": "demo", "query": "Why?"}
        for number in range(count):
            run = Run.objects.create(user=person, topic=chat.topic, status="done", **about)
            client_id = f"{count}-{number}"
            Message.objects.create(
                session=chat, author=person, run=run, text="Why?", client_id=client_id
            )
        url = reverse("admin:chat_chatsession_delete", args=[chat.pk])
        sizes.append(longest_transaction(partial(admin_client.post, url, {"post": "yes"})))

    assert not ChatSession.objects.exists()
    assert not Run.objects.exists()
    assert 0 < sizes[1] <= sizes[0]


def test_a_server_is_restored_in_as_many_statements_with_any_number_of_tools(admin_client):
    sizes = []
    for count in (2, 12):
        server = McpServer.objects.create(name=f"files{count}", url="https://x.test/mcp")
        for number in range(count):
            server.tools.create(name=f"files{count}__{number}", source="mcp")
        admin_client.post(
            reverse("admin:agents_mcpserver_delete", args=[server.pk]), {"post": "yes"}
        )
        deletion = Deletion.objects.get(name=server.name)
        url = f"{reverse('admin:restore_deleted')}?items=agents.McpServer:{deletion.pk}"
        sizes.append(longest_transaction(partial(admin_client.post, url)))

    assert ToolRegistration.objects.filter(name__startswith="files").count() == 14
    assert 0 < sizes[1] <= sizes[0]


def test_the_questions_of_an_experiment_are_loaded_before_it_locks(agent, administrator):
    spec = agent_spec.describe(agent) | {"model": "demo"}
    sizes = []
    for count in (2, 12):
        example_set = ExampleSet.objects.create(name=f"Set {count}", agent=agent)
        for number in range(count):
            about = {"agent": agent, "agent_name": agent.name, "question": "Why?"}
            run = Run.objects.create(topic="chat.1", model="demo", query="Why?", status="done")
            name = f"{count}/{number}"
            Example.objects.create(example_set=example_set, name=name, run=run, **about)
        start = partial(service.start_examples, example_set, agent, spec, administrator)
        sizes.append(longest_transaction(partial(start, service.Options())))

    assert Experiment.objects.count() == 2
    assert 0 < sizes[1] <= sizes[0]


def test_an_experiment_ends_in_as_many_statements_with_any_number_of_results(agent):
    sizes = []
    for count in (2, 12):
        experiment = Experiment.objects.create(agent=agent, spec={}, target="published")
        for number in range(count):
            example = Example.objects.create(name=f"{count}/{number}", question="Why?")
            score = number / 20
            experiment.results.create(
                number=number, example=example, state="passed", score=score
            )
        sizes.append(longest_transaction(partial(service._advance, experiment.pk)))

    assert Example.objects.get(name="12/4").score == 0.2
    assert Experiment.objects.filter(state="done", passed=12).exists()
    assert 0 < sizes[1] <= sizes[0]


def test_a_long_document_is_deleted_in_batches(monkeypatch):
    monkeypatch.setattr(documents, "PASSAGE_BATCH", 5)
    document = Document.objects.create(collection=Collection.objects.create(name="Tea"))
    Chunk.objects.bulk_create(
        Chunk(document=document, ordinal=number, text="Sencha") for number in range(50)
    )

    # A deleted passage leaves the index in a statement of its own.
    assert longest_transaction(partial(ingestion.delete, document)) < 20
    assert not Chunk.objects.exists()
    assert not Document.objects.exists()


def test_an_openapi_document_is_imported_in_batches(admin_client, monkeypatch):
    monkeypatch.setattr(openapi_import, "IMPORTED_AT_ONCE", 5)
    sizes = []
    for count in (5, 20):
        paths = {
            f"/{number}": {"get": {"operationId": f"{count}_{number}"}}
            for number in range(count)
        }
        about = {"info": {"title": f"API {count}", "version": "1"}, "paths": paths}
        servers = {"openapi": "3.0.0", "servers": [{"url": "https://x.test"}]}
        sizes.append(longest_transaction(partial(imported, admin_client, servers | about)))

    assert ToolRegistration.objects.filter(endpoint__startswith="https://x.test").count() == 25
    assert 0 < sizes[1] <= sizes[0]


def test_an_agent_is_published_in_as_many_statements_with_any_number_of_tools(
    admin_client, agent
):
    about = {"source": "http", "endpoint": "https://x.test"}
    tools = [ToolRegistration.objects.create(name=f"t{n}", **about) for n in range(12)]
    sizes = []
    for given in (tools[:2], tools):
        form = agent_form(name="helper", is_default="on", note=f"{len(given)} tools")
        form |= {f"tool-{tool.pk}-is_given": "on" for tool in given}
        url = reverse("admin:agents_agent_change", args=[agent.pk])
        sizes.append(longest_transaction(partial(admin_client.post, url, form)))
        assert agent.links.count() == len(given)

    assert 0 < sizes[1] <= sizes[0]


def test_the_tools_of_an_agent_are_read_before_it_locks(admin_client, agent, monkeypatch):
    locked = []

    def read(*values, **more):
        locked.append(connection.in_atomic_block)
        return rows(*values, **more)

    rows = agent_tools.rows
    monkeypatch.setattr(agent_tools, "rows", read)
    form = agent_form(name="helper", is_default="on", instructions="Be brief.")
    admin_client.post(reverse("admin:agents_agent_change", args=[agent.pk]), form)

    assert agent.versions.get(number=2).snapshot["instructions"] == "Be brief."
    assert locked
    assert not any(locked)


def test_rules_are_reordered_in_as_many_statements_however_many_move(admin_client):
    sizes = []
    for count in (2, 12):
        GuardrailPattern.objects.all().delete()
        rules = [
            GuardrailPattern.objects.create(name=f"rule {number}", pattern="secret")
            for number in range(count)
        ]
        order = [rules[-1].pk, *(rule.pk for rule in rules[:-1])]
        sent = {"order": ",".join(map(str, order))}
        url = reverse("admin:agents_guardrail_order")
        sizes.append(longest_transaction(partial(admin_client.post, url, sent)))
        assert list(GuardrailPattern.objects.values_list("pk", flat=True)) == order

    moved = AuditEntry.objects.filter(subject__startswith="guardrailpattern:")
    assert moved.count() == LogEntry.objects.count() == 14
    assert 0 < sizes[1] <= sizes[0]


def test_keys_are_rotated_in_batches(monkeypatch):
    monkeypatch.setattr(rotate_keys, "BATCH", 5)
    for number in range(12):
        McpServer.objects.create(name=f"s{number}", url="https://x.test", headers={"A": "b"})

    work = partial(rotate_keys.reencrypt, McpServer, ["headers"])
    statements = longest_transaction(work)

    assert work() == (12, [])
    assert 0 < statements <= 6


def test_saved_results_are_deleted_in_batches(monkeypatch):
    monkeypatch.setattr(pruning, "BATCH", 5)
    now = timezone.now()
    about = {"kind": "tool", "value": {}, "size": 2, "saved_at": now, "used_at": now}
    for number in range(24):
        CacheEntry.objects.create(
            key=str(number), source=f"tool:{number % 2}", expires_at=now, **about
        )

    assert most_rows(partial(caches.clear, "tool:1")) == 5
    assert CacheEntry.objects.count() == 12
    assert most_rows(caches.clear) == 5
    assert not CacheEntry.objects.exists()


def test_many_documents_come_back_in_as_many_statements_as_a_few(administrator):
    collection = Collection.objects.create(name="Tea")
    sizes = []
    for count in (2, 12):
        documents = [
            Document.objects.create(
                collection=collection, source=f"{count}/{number}", url="https://x.test"
            )
            for number in range(count)
        ]
        removal = deletion.delete_documents(collection, documents, administrator)
        key = f"document:{removal.pk}"
        restore = partial(recently_deleted.restore, administrator, key)
        sizes.append(longest_transaction(restore))

    queued = collection.documents.filter(status=Document.Status.QUEUED)
    assert queued.count() == 14
    assert 0 < sizes[1] <= sizes[0]


def test_problems_are_merged_in_as_many_statements_with_any_number_of_hours(administrator):
    now = timezone.now()
    about = {"algorithm": 1, "kind": "error", "first_seen": now, "last_seen": now}
    sizes = []
    for count in (3, 12):
        source, target = (
            Problem.objects.create(fingerprint=f"{name}{count}", **about) for name in "ab"
        )
        for number in range(count):
            source.hours.create(hour=now + timedelta(hours=number), count=2)
            target.hours.create(hour=now + timedelta(hours=number + 1), count=1)
        sizes.append(longest_transaction(partial(status.merge, administrator, source, target)))
        moved = target.hours.order_by("hour").values_list("count", flat=True)
        assert list(moved) == [2, *[3] * (count - 1), 1]
        assert not source.hours.exists()

    assert 0 < sizes[1] <= sizes[0]
