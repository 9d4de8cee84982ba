"""No action of the console locks SQLite's only writer for longer the more rows it changes."""

from functools import partial

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from agents.catalog import agent_spec
from agents.experiments import service
from agents.experiments.models import Experiment
from agents.knowledge import ingestion
from agents.knowledge.ingestion import documents
from agents.models import (
    Agent,
    Chunk,
    Collection,
    Deletion,
    Document,
    GuardrailPattern,
    McpServer,
    Run,
    ToolRegistration,
)
from agents.review.models import Example, ExampleSet
from chat.models import ChatSession, Message

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="SQLite has one writer."),
]


@pytest.fixture
def root(administrator):
    client = Client()
    client.force_login(administrator)
    return client


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
            "disable_selected",
        ),
        (GuardrailPattern, {"pattern": "secret"}, "disable"),
    ],
)
def test_an_action_on_a_list_releases_the_lock_after_each_row(root, model, values, action):
    rows = [model.objects.create(name=f"row_{number}", **values) for number in range(12)]

    few = longest_transaction(lambda: post_action(root, model, action, rows[:2]))
    many = longest_transaction(lambda: post_action(root, model, action, rows[2:]))

    assert not model.objects.filter(name__startswith="row_", enabled=True).exists()
    assert 0 < many <= few


def test_many_agents_are_deleted_in_batches(root):
    agents = [Agent.objects.create(name=f"agent-{number}") for number in range(45)]

    few = longest_transaction(lambda: post_action(root, Agent, "delete_selected", agents[:20]))
    many = longest_transaction(lambda: post_action(root, Agent, "delete_selected", agents[20:]))

    assert not Agent.objects.filter(name__startswith="agent-").exists()
    assert Deletion.objects.count() == 45
    assert 0 < many <= few


def test_a_long_chat_is_deleted_in_batches(root, agent, person):
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
        sizes.append(longest_transaction(partial(root.post, url, {"post": "yes"})))

    assert not ChatSession.objects.exists()
    assert not Run.objects.exists()
    assert 0 < sizes[1] <= sizes[0]


def test_a_restored_server_takes_one_statement_per_tool(root):
    sizes = []
    for count in (2, 12):
        server = McpServer.objects.create(name=f"files{count}", url="https://x.test/mcp")
        for number in range(count):
            server.tools.create(name=f"files{count}__{number}", source="mcp")
        root.post(reverse("admin:agents_mcpserver_delete", args=[server.pk]), {"post": "yes"})
        deletion = Deletion.objects.get(name=server.name)
        url = f"{reverse('admin:restore_deleted')}?items={deletion.pk}"
        sizes.append(longest_transaction(partial(root.post, url)))

    assert ToolRegistration.objects.filter(name__startswith="files").count() == 14
    assert sizes[1] - sizes[0] == 10


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
