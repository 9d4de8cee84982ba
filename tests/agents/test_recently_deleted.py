import json
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, Permission
from django.urls import reverse
from django.utils import timezone

from agents.catalog import agent_versions, mcp_servers
from agents.console import deleted_rows
from agents.management.commands.rotate_keys import reencrypt
from agents.models import (
    Agent,
    AuditEntry,
    Collection,
    Deletion,
    Experience,
    GuardrailPattern,
    LanguageModel,
    McpServer,
    Run,
    ToolRegistration,
)
from chat.people_data import data_export, retention
from chat.people_data.person_texts import PersonTexts
from tests.agents.test_admin import page

pytestmark = pytest.mark.django_db

YES = {"post": "yes"}
PAGE = "/admin/recently-deleted/"


@pytest.fixture
def root(admin_client):
    return admin_client


def delete(client, row):
    return client.post(page(type(row), "delete", row.pk), YES, follow=True)


def restore_url() -> str:
    items = ",".join(str(pk) for pk in Deletion.objects.values_list("pk", flat=True))
    return f"{reverse('admin:restore_deleted')}?items={items}"


def items(client, **query):
    return client.get(PAGE, query).context["items"]


def test_a_deleted_agent_comes_back_with_its_tools_versions_and_runs(root, agent):
    runs = [
        Run.objects.create(topic=f"t{number}", query="q", status="completed", agent=agent)
        for number in range(3)
    ]
    agent_versions.save(agent, None)
    tools = sorted(agent.tools.values_list("name", flat=True))
    assert tools

    listed = delete(root, agent)
    assert not Agent.objects.filter(pk=agent.pk).exists()
    assert restore_url() in listed.text
    root.get("/admin/")  # and not only on the very next page
    [item] = items(root, kind="agents.Agent")
    assert (item.deletion.name, item.days_left) == (agent.name, 30)
    root.post(restore_url())

    back = Agent.objects.get(pk=agent.pk)
    assert sorted(back.tools.values_list("name", flat=True)) == tools
    assert (back.name, back.versions.count()) == (agent.name, 1)
    assert {run.agent_id for run in Run.objects.filter(pk__in=[r.pk for r in runs])} == {
        agent.pk
    }
    assert AuditEntry.objects.latest("number").action == "console.restored"
    assert items(root) == []


@pytest.mark.parametrize(
    "make",
    [
        lambda: ToolRegistration.objects.create(name="weather", source="http", endpoint="https://x.test"),
        lambda: LanguageModel.objects.create(label="fast", model="demo"),
        lambda: GuardrailPattern.objects.create(name="Falcon", pattern="falcon"),
        lambda: Group.objects.create(name="Sales"),
        lambda: McpServer.objects.create(name="mail", transport="http", url="https://x.test/mcp"),
    ],
)  # fmt: skip
def test_each_kind_is_listed_and_restored(root, make):
    row = make()
    assert f"{PAGE}?kind={row._meta.label}" in root.get(page(type(row), "changelist")).text

    delete(root, row)
    assert [item.deletion.object_id for item in items(root, kind=row._meta.label)] == [
        str(row.pk)
    ]
    root.post(restore_url())

    assert type(row).objects.get(pk=row.pk) == row


def test_a_deleted_model_comes_back_with_its_key(root):
    model = LanguageModel.objects.create(label="fast", model="openai/x", api_key="sk-secret")

    delete(root, model)
    assert "sk-secret" not in str(Deletion.objects.values())
    root.post(restore_url())

    assert LanguageModel.objects.get().api_key.reveal() == "sk-secret"


def test_the_keys_in_a_copy_follow_a_rotation(root, settings):
    old, new = "k" * 44, "n" * 44
    settings.ENCRYPTION_KEYS = [old]
    model = LanguageModel.objects.create(label="fast", model="openai/x", api_key="sk-secret")
    delete(root, model)
    settings.ENCRYPTION_KEYS = [new, old]
    reencrypt(Deletion, ["rows"])
    settings.ENCRYPTION_KEYS = [new]

    root.post(restore_url())

    assert LanguageModel.objects.get().api_key.reveal() == "sk-secret"


def test_a_selection_is_listed_one_by_one_and_undone_as_a_whole(root):
    rows = [LanguageModel.objects.create(label=label, model="demo") for label in "ab"]
    chosen = {"action": "delete_selected", "_selected_action": [row.pk for row in rows], **YES}

    root.post(page(LanguageModel, "changelist"), chosen)
    assert [item.deletion.name for item in items(root)] == ["b", "a"]
    root.post(restore_url())

    assert LanguageModel.objects.count() == 2


def test_a_name_that_was_taken_meanwhile_is_replaced(root):
    model = LanguageModel.objects.create(label="fast", model="demo")
    delete(root, model)
    LanguageModel.objects.create(label="fast", model="demo")

    refused = root.post(restore_url(), follow=True)
    [item] = refused.context["items"]
    assert item.new_name == "fast-restored"
    root.post(restore_url(), {"name": item.new_name})

    assert sorted(LanguageModel.objects.values_list("label", flat=True)) == [
        "fast",
        "fast-restored",
    ]


def test_what_was_only_for_a_group_that_is_gone_comes_back_disabled(root, agent):
    group = Group.objects.create(name="HR")
    agent.groups.add(group)
    delete(root, agent)
    group.delete()

    root.post(restore_url())

    agent.refresh_from_db()
    assert not agent.enabled


def test_a_rule_that_was_disabled_with_its_agent_is_enabled_again(root, agent):
    rule = GuardrailPattern.objects.create(name="Falcon", pattern="falcon")
    rule.agents.add(agent)
    delete(root, agent)
    rule.refresh_from_db()
    assert not rule.enabled

    root.post(restore_url())

    rule.refresh_from_db()
    assert rule.enabled
    assert [row.pk for row in rule.agents.all()] == [agent.pk]


def test_two_agents_that_hand_off_to_each_other_come_back_in_any_order(root, agent):
    other = Agent.objects.create(name="other")
    agent.handoffs.add(other)
    delete(root, agent)
    delete(root, other)
    first, second = Deletion.objects.order_by("-pk")

    for deletion in (second, first):
        root.post(f"{reverse('admin:restore_deleted')}?items={deletion.pk}")

    assert set(Agent.objects.filter(pk__in=[agent.pk, other.pk])) == {agent, other}


def test_who_can_delete_can_restore(root, client, person, agent):
    delete(root, agent)
    person.is_staff = True
    person.save()
    client.force_login(person)
    erase_url = reverse("admin:erase_deleted", args=[Deletion.objects.get().pk])

    assert client.get(PAGE).status_code == 403
    person.user_permissions.add(Permission.objects.get(codename="delete_guardrailpattern"))
    assert items(client) == []
    assert client.post(restore_url()).status_code == 404
    assert client.post(erase_url).status_code == 404
    person.user_permissions.add(Permission.objects.get(codename="delete_agent"))

    assert client.get(restore_url()).status_code == 405
    assert client.post(restore_url()).status_code == 302
    assert Agent.objects.filter(pk=agent.pk).exists()


def test_a_group_that_grants_more_than_the_user_has_is_not_restored(root, client, person):
    group = Group.objects.create(name="Operators")
    group.permissions.add(Permission.objects.get(codename="change_agent"))
    delete(root, group)
    person.is_staff = True
    person.save()
    person.user_permissions.add(Permission.objects.get(codename="delete_group"))
    client.force_login(person)

    assert items(client) == []
    assert client.post(restore_url()).status_code == 404


def test_a_restored_group_does_not_read_what_a_user_added_to_their_collection_since(
    root, person
):
    group = Group.objects.create(name="Operators")
    rows = [Collection.objects.create(name=name, owner=person) for name in ("Plans", "Diary")]
    for row in rows:
        row.groups.add(group)
        row.documents.create(source="old.md")
    delete(root, group)
    rows[1].documents.create(source="new.md")

    root.post(restore_url())

    [restored] = Group.objects.filter(name="Operators")
    assert [list(row.groups.all()) for row in rows] == [[restored], []]


def test_after_thirty_days_it_is_gone_for_good_with_the_files_of_a_server(
    root, settings, tmp_path, django_capture_on_commit_callbacks
):
    settings.DATA_DIR = tmp_path
    server = McpServer.objects.create(name="mail", transport="http", url="https://x.test/mcp")
    file = mcp_servers.home_folder(server.pk) / "notes.txt"
    file.parent.mkdir(parents=True)
    file.write_text("x")
    delete(root, server)
    assert file.exists()
    url = restore_url()

    Deletion.objects.update(created_at=timezone.now() - timedelta(days=31))
    assert root.post(url).status_code == 404
    with django_capture_on_commit_callbacks(execute=True):
        retention.prune()

    assert not Deletion.objects.exists()
    assert not file.exists()


def test_it_can_be_deleted_for_good_at_once(root, agent):
    delete(root, agent)

    root.post(reverse("admin:erase_deleted", args=[Deletion.objects.get().pk]))

    assert not Deletion.objects.exists()
    entry = AuditEntry.objects.latest("number")
    assert (entry.action, entry.detail["name"]) == ("console.erased", agent.name)


def test_what_is_too_much_is_deleted_for_good_and_the_page_says_so(root, agent, monkeypatch):
    monkeypatch.setattr(deleted_rows, "MAX_ROWS", 1)

    asked = root.get(page(Agent, "delete", agent.pk))
    delete(root, agent)

    assert not asked.wsgi_request.can_undo
    assert not Deletion.objects.exists()


def test_exports_and_erasure_reach_what_was_deleted(root, agent, person):
    lesson = "Always answer my supplier questions with the invoice number first."
    Experience.objects.create(agent=agent, user=person, question="Invoices?", text=lesson)
    version = agent_versions.save(agent, person, "by me")
    delete(root, agent)

    exported = dict(data_export.files(person))["recently-deleted.json"]
    assert [row["text"] for row in json.loads("".join(exported))] == [lesson]
    PersonTexts(person).redact_deleted(person)
    [deletion] = Deletion.objects.all()

    copied = deletion.rows.reveal()
    assert lesson not in copied
    restored = deleted_rows.restore(deletion)
    assert restored.row.versions.get(pk=version.pk).author is None
