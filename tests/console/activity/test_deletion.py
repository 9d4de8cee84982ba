"""No row of a trace is deleted alone, only whole runs and chats."""

import pytest
from asgiref.sync import sync_to_async
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from agents import runs
from agents.access import api_keys, audit
from agents.console.activity.deletion import CascadeDeleteAdmin
from agents.console.admin_classes.read_only import ReadOnlyAdmin
from agents.insight.alerts.models import AlertChannel, Delivery
from agents.insight.problems.models import Problem
from agents.insight.suggestions.models import Suggestion
from agents.knowledge.documents import default_collection
from agents.models import (
    Agent,
    AgentStep,
    Approval,
    AuditEntry,
    Chunk,
    Document,
    EmbeddingIndex,
    OAuthApp,
    Run,
    RunEvent,
)
from agents.review.experiments.models import Experiment
from chat import messages
from chat.models import ChatSession, Invitation, Member, Message
from tests.conftest import as_staff, run_question
from tests.sampling import one_in

pytestmark = [
    pytest.mark.both_databases,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]
PAGES = admin.site._registry
RAW = [
    m
    for m, p in PAGES.items()
    if isinstance(p, ReadOnlyAdmin) and not isinstance(p, CascadeDeleteAdmin)
]
WHOLE = [model for model, pages in PAGES.items() if isinstance(pages, CascadeDeleteAdmin)]
YES = {"post": "yes"}


def page(model, name, *args):
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{name}", args=args)


def delete_action(*rows):
    return {"action": "delete_selected", "_selected_action": [row.pk for row in rows]}


@pytest.fixture
def chat(person):
    """A chat with two questions and everything related."""
    chat = ChatSession.objects.create(user=person, title="My doctor")
    link = Invitation.objects.create(session=chat, digest="d", expires_at=chat.created_at)
    Member.objects.create(session=chat, topic=chat.topic, user=person, invitation=link)
    for number in (1, 2):
        run = Run.objects.create(
            user=person, topic=chat.topic, query=f"doctor {number}", status="completed"
        )
        now = run.started_at
        AgentStep.objects.create(run=run, number=1, kind="tool", started_at=now)
        RunEvent.objects.create(run=run, seq=1, type="delta", time=now, data={"content": "x"})
        Approval.objects.create(run=run, step=1, tool="t", arguments="{}", asked_at=now)
        said = {"author": person, "run": run, "text": "doctor", "client_id": str(number)}
        Message.objects.create(session=chat, **said)
    return chat


def test_rows_of_a_trace_cannot_be_deleted_alone():
    assert {AgentStep, RunEvent, Approval, Message, Member, Invitation, Chunk} <= {*RAW}
    assert {Run, ChatSession} <= {*WHOLE}


@pytest.mark.parametrize("model", one_in(4, RAW), ids=lambda model: model.__name__)
def test_single_rows_have_no_delete_button(model, admin_client, chat):
    audit.record(None, audit.LOG_STARTED, "audit")
    document = Document.objects.create(
        title="A", source="a.md", collection=default_collection()
    )
    Chunk.objects.create(document=document, ordinal=1, text="a")
    EmbeddingIndex.objects.get_or_create(model="local", dimension=512)
    tester, now = Agent.objects.create(name="tester"), timezone.now()
    Experiment.objects.create(agent=tester, kind="set")
    seen = {"first_seen": now, "last_seen": now, "figures": {"calls": 9, "failures": 3}}
    Suggestion.objects.create(agent=tester, kind="tool_fails", **seen)
    Problem.objects.create(fingerprint="a", algorithm=1, first_seen=now, last_seen=now)
    channel = AlertChannel.objects.create(name="Team")
    Delivery.objects.create(channel=channel, event="test", subject="A", next_at=now)
    api_keys.create(chat.user, "CI", ["ask"])
    OAuthApp.objects.create(name="Editor", client_id="editor", source="registered")
    row = model._default_manager.first()

    listed = admin_client.get(page(model, "changelist")).text
    by_page = admin_client.post(page(model, "delete", row.pk), YES)
    admin_client.post(page(model, "changelist"), {**delete_action(row), **YES})
    admin_client.post(
        page(model, "changelist"), {**delete_action(row), "index": "0", "select_across": "1"}
    )

    assert "delete_selected" not in listed
    assert by_page.status_code == 403
    assert "deletelink" not in admin_client.get(page(model, "change", row.pk)).text
    assert model._default_manager.filter(pk=row.pk).exists()


def test_the_delete_action_lists_what_is_deleted_with_a_run(admin_client, chat, person):
    first, second = Run.objects.order_by("pk")
    again = Run.objects.create(
        user=person, topic="again", query="doctor", status="completed", origin=first
    )

    asks = admin_client.post(
        page(Run, "changelist"), {**delete_action(first, second), "index": "0"}
    )
    assert Run.objects.count() == 3
    assert "Steps</span><strong>2<" in asks.text
    admin_client.post(page(Run, "changelist"), {**delete_action(first, second), **YES})

    assert not Run.objects.exists()
    assert not RunEvent.objects.exists()
    entries = AuditEntry.objects.filter(action=audit.DELETED).order_by("number")
    assert [entry.subject for entry in entries] == [f"run:{first.pk}", f"run:{second.pk}"]
    told = entries[0].detail
    assert told["who"] == audit.person(person).subject
    assert told["reruns"] == [again.pk]
    assert (told["agentstep_count"], told["runevent_count"]) == (1, 1)
    assert told["deleted_together"] == 2


def test_deletion_removes_all_text(admin_client, chat):
    for run in Run.objects.all():
        admin_client.post(page(Run, "delete", run.pk), YES)
    admin_client.post(page(ChatSession, "changelist"), {**delete_action(chat), **YES})

    assert not ChatSession.objects.exists()
    assert "doctor" not in str([*AuditEntry.objects.values(), *LogEntry.objects.values()])


def test_deleting_a_chat_deletes_its_runs(admin_client, chat, person):
    numbers = list(Run.objects.order_by("pk").values_list("pk", flat=True))

    asks = admin_client.get(page(ChatSession, "delete", chat.pk)).text
    admin_client.post(page(ChatSession, "delete", chat.pk), YES)

    assert "Messages</span><strong>2<" in asks
    assert "Runs</span><strong>2<" in asks
    assert not Run.objects.exists()
    entry = AuditEntry.objects.get(action=audit.DELETED)
    assert entry.subject == f"chatsession:{chat.pk}"
    assert entry.detail["runs"] == numbers
    assert entry.detail["message_count"] == 2


def test_nothing_is_deleted_if_the_audit_log_fails(admin_client, chat, monkeypatch):
    def away(*args, **more):
        raise audit.NotRecorded("The disk is full.")

    monkeypatch.setattr(audit, "record", away)
    admin_client.raise_request_exception = False
    admin_client.post(page(ChatSession, "delete", chat.pk), YES)

    assert Run.objects.count() == 2
    assert ChatSession.objects.exists()


def test_deleting_runs_needs_the_permission(chat, stranger):
    client = as_staff(stranger)

    assert client.post(page(Run, "delete", Run.objects.first().pk), YES).status_code == 403
    assert Run.objects.count() == 2


async def test_a_pending_run_is_stopped_and_then_deleted(admin_client, person):
    run = await run_question("6 * 7", user=person)
    await Run.objects.filter(pk=run.pk).aupdate(status="waiting", ended_at=None)

    await sync_to_async(admin_client.post)(page(Run, "delete", run.pk), YES)

    assert not await Run.objects.filter(pk=run.pk).aexists()


async def test_a_chat_continues_after_its_answer_was_deleted(admin_client, person):
    first = await sync_to_async(messages.save)(None, person, "6 * 7", "a")
    runs.launch(first.run)
    await runs.wait(first.run)
    await sync_to_async(admin_client.post)(page(Run, "delete", first.run_id), YES)

    second = await sync_to_async(messages.save)(first.session, person, "7 * 7", "b")
    runs.launch(second.run)
    await runs.wait(second.run)
    await second.run.arefresh_from_db()

    client = Client()
    await sync_to_async(client.force_login)(person)
    shown = (await sync_to_async(client.get)(f"/chat/{first.session_id}/")).text
    assert second.run.status == "completed"
    assert second.run.history == []
    assert shown.count("No answer is saved for this message.") == 1


def test_deleting_configuration_keeps_the_runs(admin_client, chat, agent):
    Run.objects.update(agent=agent)

    admin_client.post(page(type(agent), "delete", agent.pk), YES)
    by_user = admin_client.post(page(type(chat.user), "delete", chat.user.pk), YES)

    assert by_user.status_code == 403
    assert (Run.objects.count(), AgentStep.objects.count()) == (2, 2)
    assert RunEvent.objects.count() == 2
