from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from agents.console import undo
from agents.models import Agent, AuditEntry, Deletion, LanguageModel, McpServer, Run
from tests.agents.test_admin import page

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(admin_client):
    return admin_client


YES = {"post": "yes"}


def undo_url() -> str:
    return reverse("admin:undo", args=[Deletion.objects.get().pk])


def test_a_deleted_agent_comes_back_with_its_tools_and_runs(root, agent):
    run = Run.objects.create(topic="t", query="q", status="completed", agent=agent)
    tools, version = sorted(agent.tools.values_list("name", flat=True)), agent.version
    assert tools

    listed = root.post(page(Agent, "delete", agent.pk), YES, follow=True)
    assert not Agent.objects.filter(pk=agent.pk).exists()
    assert undo_url() in listed.text
    root.post(undo_url())

    back = Agent.objects.get(pk=agent.pk)
    assert sorted(back.tools.values_list("name", flat=True)) == tools
    assert (back.name, back.version) == (agent.name, version)
    run.refresh_from_db()
    assert run.agent_id == agent.pk
    assert AuditEntry.objects.latest("number").detail["restored"]


def test_a_deleted_model_comes_back_with_its_key(root):
    model = LanguageModel.objects.create(label="fast", model="openai/x", api_key="sk-secret")

    root.post(page(LanguageModel, "delete", model.pk), YES)
    assert "sk-secret" not in str(Deletion.objects.values())
    root.post(undo_url())

    assert LanguageModel.objects.get().api_key.reveal() == "sk-secret"


def test_a_selection_is_restored_as_a_whole(root):
    rows = [LanguageModel.objects.create(label=label, model="demo") for label in "ab"]
    chosen = {"action": "delete_selected", "_selected_action": [row.pk for row in rows], **YES}

    root.post(page(LanguageModel, "changelist"), chosen)
    root.post(undo_url())

    assert LanguageModel.objects.count() == 2


def test_a_name_that_was_taken_meanwhile_is_said(root):
    model = LanguageModel.objects.create(label="fast", model="demo")
    root.post(page(LanguageModel, "delete", model.pk), YES)
    LanguageModel.objects.create(label="fast", model="demo")

    shown = root.post(undo_url(), follow=True).text

    assert "It can't be restored" in shown.replace("&#x27;", "'")
    assert Deletion.objects.exists()


def test_only_the_same_user_can_undo_and_only_for_ten_minutes(root, client, person):
    model = LanguageModel.objects.create(label="fast", model="demo")
    root.post(page(LanguageModel, "delete", model.pk), YES)
    url = undo_url()
    person.is_staff = person.is_superuser = True
    person.save()
    client.force_login(person)

    assert client.post(url).status_code == 404
    Deletion.objects.update(created_at=timezone.now() - undo.KEPT_FOR - timedelta(seconds=1))
    assert root.post(url).status_code == 404
    assert root.get(url).status_code == 405


def test_what_is_too_much_is_deleted_for_good_and_the_page_says_so(root, agent, monkeypatch):
    monkeypatch.setattr(undo, "MAX_ROWS", 1)

    asked = root.get(page(Agent, "delete", agent.pk)).text.replace("&#x27;", "'")
    root.post(page(Agent, "delete", agent.pk), YES)

    assert "This can't be undone." in asked
    assert not Deletion.objects.exists()


def test_a_server_without_files_can_be_restored(root):
    server = McpServer.objects.create(name="mail", transport="http", url="https://x.test/mcp")

    asked = root.get(page(McpServer, "delete", server.pk)).text
    root.post(page(McpServer, "delete", server.pk), YES)
    root.post(undo_url())

    assert "You can undo this" in asked
    assert McpServer.objects.get().url == server.url
