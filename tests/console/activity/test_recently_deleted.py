import json
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, Permission
from django.urls import reverse
from django.utils import timezone

from agents.catalog import agent_versions, mcp_servers
from agents.console.admin_classes import deleted_rows
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
from tests.conftest import as_staff
from tests.console.test_admin import page
from tests.language_models import make_model

pytestmark = pytest.mark.django_db

YES = {"post": "yes"}
PAGE = "/admin/recently-deleted/"


def delete(client, row):
    return client.post(page(type(row), "delete", row.pk), YES, follow=True)


def restore_url() -> str:
    items = ",".join(f"{kind}:{pk}" for kind, pk in Deletion.objects.values_list("kind", "pk"))
    return f"{reverse('admin:restore_deleted')}?items={items}"


def erase_url() -> str:
    return restore_url().replace("/restore/", "/erase/")


def items(client, **query):
    return client.get(PAGE, query).context["items"]


def test_a_deleted_agent_comes_back_with_its_tools_versions_and_runs(admin_client, agent):
    runs = [
        Run.objects.create(topic=f"t{number}", query="q", status="completed", agent=agent)
        for number in range(3)
    ]
    agent_versions.save(agent, None)
    tools = sorted(agent.tools.values_list("name", flat=True))
    assert tools

    listed = delete(admin_client, agent)
    assert not Agent.objects.filter(pk=agent.pk).exists()
    assert restore_url() in listed.text
    admin_client.get("/admin/")  # and not only on the very next page
    [item] = items(admin_client, kind="agents.Agent")
    assert (item.title, item.days_left) == (agent.name, 30)
    admin_client.post(restore_url())

    back = Agent.objects.get(pk=agent.pk)
    assert sorted(back.tools.values_list("name", flat=True)) == tools
    assert (back.name, back.versions.count()) == (agent.name, 1)
    assert {run.agent_id for run in Run.objects.filter(pk__in=[r.pk for r in runs])} == {
        agent.pk
    }
    assert AuditEntry.objects.latest("number").action == "console.restored"
    assert items(admin_client) == []


@pytest.mark.parametrize(
    "make",
    [
        lambda: ToolRegistration.objects.create(name="weather", source="http", endpoint="https://x.test"),
        lambda: make_model("fast", "demo"),
        lambda: GuardrailPattern.objects.create(name="Falcon", pattern="falcon"),
        lambda: Group.objects.create(name="Sales"),
        lambda: McpServer.objects.create(name="mail", transport="http", url="https://x.test/mcp"),
    ],
)  # fmt: skip
def test_each_kind_is_listed_and_restored(admin_client, make):
    row = make()
    assert (
        f"{PAGE}?kind={row._meta.label}" in admin_client.get(page(type(row), "changelist")).text
    )

    delete(admin_client, row)
    [item] = items(admin_client, kind=row._meta.label)
    assert item.row.object_id == str(row.pk)
    admin_client.post(restore_url())

    assert type(row).objects.get(pk=row.pk) == row


def test_a_deleted_model_comes_back_with_its_key(admin_client):
    model = make_model("fast", "openai/x", api_key="sk-secret")

    delete(admin_client, model.connection)
    assert "sk-secret" not in str(Deletion.objects.values())
    admin_client.post(restore_url())

    assert LanguageModel.objects.get().connection.api_key.reveal() == "sk-secret"


def test_the_keys_in_a_copy_follow_a_rotation(admin_client, settings):
    old, new = "k" * 44, "n" * 44
    settings.ENCRYPTION_KEYS = [old]
    model = make_model("fast", "openai/x", api_key="sk-secret")
    delete(admin_client, model.connection)
    settings.ENCRYPTION_KEYS = [new, old]
    reencrypt(Deletion, ["rows"])
    settings.ENCRYPTION_KEYS = [new]

    admin_client.post(restore_url())

    assert LanguageModel.objects.get().connection.api_key.reveal() == "sk-secret"


def test_a_selection_is_listed_one_by_one_and_undone_as_a_whole(admin_client):
    rows = [make_model(label, "demo") for label in "ab"]
    chosen = {"action": "delete_selected", "_selected_action": [row.pk for row in rows], **YES}

    admin_client.post(page(LanguageModel, "changelist"), chosen)
    assert [item.title for item in items(admin_client)] == ["b", "a"]
    admin_client.post(restore_url())

    assert LanguageModel.objects.count() == 2


def test_a_name_that_was_taken_meanwhile_is_replaced(admin_client):
    model = make_model("fast", "demo")
    delete(admin_client, model)
    make_model("fast", "demo")

    refused = admin_client.post(restore_url(), follow=True)
    [item] = refused.context["items"]
    assert item.new_name == "fast-restored"
    admin_client.post(restore_url(), {"name": item.new_name})

    assert sorted(LanguageModel.objects.values_list("label", flat=True)) == [
        "fast",
        "fast-restored",
    ]


def test_what_was_only_for_a_group_that_is_gone_comes_back_disabled(admin_client, agent):
    group = Group.objects.create(name="HR")
    agent.groups.add(group)
    delete(admin_client, agent)
    group.delete()

    admin_client.post(restore_url())

    agent.refresh_from_db()
    assert not agent.enabled


def test_a_rule_that_was_disabled_with_its_agent_is_enabled_again(admin_client, agent):
    rule = GuardrailPattern.objects.create(name="Falcon", pattern="falcon")
    rule.agents.add(agent)
    delete(admin_client, agent)
    rule.refresh_from_db()
    assert not rule.enabled

    admin_client.post(restore_url())

    rule.refresh_from_db()
    assert rule.enabled
    assert [row.pk for row in rule.agents.all()] == [agent.pk]


def test_two_agents_that_hand_off_to_each_other_come_back_in_any_order(admin_client, agent):
    other = Agent.objects.create(name="other")
    agent.handoffs.add(other)
    delete(admin_client, agent)
    delete(admin_client, other)
    first, second = Deletion.objects.order_by("-pk")

    for deletion in (second, first):
        admin_client.post(
            f"{reverse('admin:restore_deleted')}?items=agents.Agent:{deletion.pk}"
        )

    assert set(Agent.objects.filter(pk__in=[agent.pk, other.pk])) == {agent, other}


def test_who_can_delete_can_restore(admin_client, person, agent):
    delete(admin_client, agent)
    client = as_staff(person)

    assert client.get(PAGE).status_code == 403
    person.user_permissions.add(Permission.objects.get(codename="delete_guardrailpattern"))
    assert items(client) == []
    assert client.post(restore_url()).status_code == 404
    assert client.post(erase_url()).status_code == 404
    person.user_permissions.add(Permission.objects.get(codename="delete_agent"))

    assert client.get(restore_url()).status_code == 405
    assert client.post(restore_url()).status_code == 302
    assert Agent.objects.filter(pk=agent.pk).exists()


def test_a_group_that_grants_more_than_the_user_has_is_not_restored(admin_client, person):
    group = Group.objects.create(name="Operators")
    group.permissions.add(Permission.objects.get(codename="change_agent"))
    delete(admin_client, group)
    client = as_staff(person, "delete_group")

    assert items(client) == []
    assert client.post(restore_url()).status_code == 404


def test_a_restored_group_does_not_read_what_a_user_added_to_their_collection_since(
    admin_client, person
):
    group = Group.objects.create(name="Operators")
    rows = [Collection.objects.create(name=name, owner=person) for name in ("Plans", "Diary")]
    for row in rows:
        row.groups.add(group)
        row.documents.create(source="old.md")
    delete(admin_client, group)
    rows[1].documents.create(source="new.md")

    admin_client.post(restore_url())

    [restored] = Group.objects.filter(name="Operators")
    assert [list(row.groups.all()) for row in rows] == [[restored], []]


def test_after_thirty_days_it_is_gone_for_good_with_the_files_of_a_server(
    admin_client, settings, tmp_path, django_capture_on_commit_callbacks
):
    settings.DATA_DIR = tmp_path
    server = McpServer.objects.create(name="mail", transport="http", url="https://x.test/mcp")
    file = mcp_servers.home_folder(server.pk) / "notes.txt"
    file.parent.mkdir(parents=True)
    file.write_text("x")
    delete(admin_client, server)
    assert file.exists()
    url = restore_url()

    Deletion.objects.update(created_at=timezone.now() - timedelta(days=31))
    assert admin_client.post(url).status_code == 404
    with django_capture_on_commit_callbacks(execute=True):
        retention.prune()

    assert not Deletion.objects.exists()
    assert not file.exists()


def test_it_can_be_deleted_for_good_at_once(admin_client, agent):
    delete(admin_client, agent)

    admin_client.post(erase_url())

    assert not Deletion.objects.exists()
    entry = AuditEntry.objects.latest("number")
    assert (entry.action, entry.detail["name"]) == ("console.erased", agent.name)


def test_what_is_too_much_is_deleted_for_good_and_the_page_says_so(
    admin_client, agent, monkeypatch
):
    monkeypatch.setattr(deleted_rows, "MAX_ROWS", 1)

    asked = admin_client.get(page(Agent, "delete", agent.pk))
    delete(admin_client, agent)

    assert not asked.wsgi_request.can_undo
    assert not Deletion.objects.exists()


def test_exports_and_erasure_reach_what_was_deleted(admin_client, agent, person):
    lesson = "Always answer my supplier questions with the invoice number first."
    Experience.objects.create(agent=agent, user=person, question="Invoices?", text=lesson)
    version = agent_versions.save(agent, person, "by me")
    delete(admin_client, agent)

    exported = dict(data_export.files(person))["recently-deleted.json"]
    assert [row["text"] for row in json.loads("".join(exported))] == [lesson]
    PersonTexts(person).redact_deleted(person)
    [deletion] = Deletion.objects.all()

    copied = deletion.rows.reveal()
    assert lesson not in copied
    row, _is_disabled, _left_out = deleted_rows.restore(deletion)
    assert row.versions.get(pk=version.pk).author is None
