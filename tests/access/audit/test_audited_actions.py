"""Sign-ins, accounts, permissions and configuration are audited."""

import json

import pytest
from django.contrib.auth.models import Group, Permission
from django.db import OperationalError
from django.test import Client

from agents.access import audit
from agents.access.audit import hash_chain, request_context
from agents.catalog import agent_versions
from agents.console.mcp import server_import
from agents.models import Agent, AuditEntry, GuardrailPattern, McpServer
from tests.conftest import as_user
from tests.console.forms import agent_form
from tests.sampling import one_in

pytestmark = pytest.mark.django_db(transaction=True)
PASSWORD = "a long walk on the beach"
SERVERS = '{"mcpServers": {"shop": {"url": "https://shop.example/mcp"}}}'
REVIEWED = {"seen": server_import.text_digest(SERVERS), "name-0": "shop", "pick-0": "on"}
IMPORT = {"text": SERVERS, **REVIEWED, "import": "1"}


@pytest.fixture
def ada(django_user_model):
    return django_user_model.objects.create_user("ada", password=PASSWORD)


def fail_to_save(*_):
    raise OperationalError("server closed the connection unexpectedly")


def newest(action):
    return AuditEntry.objects.filter(action=action).first()


def test_signing_in_and_out_is_audited_with_the_ip_address(ada):
    client = Client(headers={"user-agent": "Lynx/2.9"}, REMOTE_ADDR="203.0.113.77")

    client.post("/login/", {"username": "ada", "password": PASSWORD})
    client.post("/logout/")

    entry = newest("signin.ok")
    place = json.loads(entry.person.decrypt(entry.place))
    assert (entry.actor, entry.subject) == (ada, audit.person(ada).subject)
    assert place == {"address": "203.0.113.77", "browser": "Lynx/2.9"}
    assert "203.0.113" not in str(AuditEntry.objects.values())
    assert newest("signin.out").actor == ada


def test_users_can_sign_in_and_are_audited_after_a_lost_key(ada, settings):
    settings.ENCRYPTION_KEYS = ["the first phrase"]
    Client(REMOTE_ADDR="203.0.113.77").post("/login/", {"username": "ada", "password": "x"})
    old = newest("signin.failed")

    settings.ENCRYPTION_KEYS = ["another phrase"]
    client = Client(REMOTE_ADDR="203.0.113.78")
    answers = [client.post("/login/", {"username": "ada", "password": p}) for p in "xy"]
    answers.append(client.post("/login/", {"username": "ada", "password": PASSWORD}))

    assert [answer.status_code for answer in answers] == [200, 200, 302]
    entry, before = newest("signin.ok"), AuditEntry.objects.get(pk=old.pk)
    assert json.loads(entry.person.decrypt(entry.place)) == {"address": "203.0.113.78"}
    assert before.person.decrypt(before.place) == ""


def test_a_password_entered_as_username_is_not_audited(ada):
    Client().post("/login/", {"username": "my Secret pass", "password": "x"})
    Client().post("/login/", {"username": "ada", "password": "wrong"})

    failed = AuditEntry.objects.filter(action="signin.failed")
    subjects = {entry.subject for entry in failed}
    assert subjects == {"person:unknown", audit.person(ada).subject}
    assert "Secret" not in str(AuditEntry.objects.values())


def test_sign_in_fails_if_the_audit_log_fails(ada, monkeypatch):
    monkeypatch.setattr(AuditEntry.objects, "bulk_create", fail_to_save)
    client = Client()

    refused = client.post("/login/", {"username": "ada", "password": PASSWORD})

    assert refused.status_code == 503
    assert client.get("/").status_code == 302


def test_permission_changes_are_audited(ada, administrator):
    group = Group.objects.create(name="auditors")
    right = Permission.objects.get(codename="review_runs")

    ada.groups.add(group)
    group.user_set.remove(ada)
    ada.user_permissions.set([right])
    ada.user_permissions.clear()
    ada.is_staff = True
    ada.save()

    entries = AuditEntry.objects.filter(action="rights.changed").order_by("number")
    assert [entry.detail for entry in entries] == [
        {"field": "groups", "added": ["auditors"]},
        {"field": "groups", "removed": ["auditors"]},
        {"field": "permissions", "added": ["review_runs"]},
        {"field": "permissions", "removed": ["review_runs"]},
    ]
    assert {entry.subject for entry in entries} == {audit.person(ada).subject}
    assert newest("person.changed").detail == {"changes": {"is_staff": [False, True]}}


def test_a_changed_name_is_audited_without_the_name(ada, administrator):
    typed = {"username": "ada", "first_name": "Augusta", "role": "person", "is_active": "on"}

    as_user(administrator).post(f"/admin/auth/user/{ada.pk}/change/", typed)

    entry = newest("person.changed")
    assert (entry.actor, entry.detail) == (administrator, {"changes": ["first_name"]})
    assert "Augusta" not in str(AuditEntry.objects.values())


def test_configuration_changes_are_audited_with_old_values(administrator):
    pattern = GuardrailPattern.objects.create(name="mail", pattern="x", action="warn")
    page = f"/admin/agents/guardrailpattern/{pattern.pk}/change/"
    form = {"kind": "pattern", "name": "mail", "pattern": "y", "message": ""}
    form |= {"stage": pattern.stage, "action": "warn", "enabled": "on"}

    answer = as_user(administrator).post(page, form)

    assert answer.status_code == 302, answer.text
    entry = newest("console.changed")
    assert (entry.actor, entry.subject) == (administrator, f"guardrailpattern:{pattern.pk}")
    assert entry.detail == {"name": "mail", "changes": {"pattern": ["x", "y"]}}


def test_secrets_are_audited_as_set_changed_or_cleared_only(administrator):
    server = McpServer.objects.create(name="shop", transport="http", url="https://a.example/")
    page = f"/admin/agents/mcpserver/{server.pk}/change/"
    form = {"transport": "http", "url": "https://a.example/", "timeout": "5"}
    form |= {"connect_timeout": "60", "isolation": "shared", "max_instances": "10"}

    for name, value in (("Authorization", "Bearer s3cret"), ("", "")):
        row = {"headers-name": name, "headers-value": value}
        as_user(administrator).post(page, form | row)
        told = newest("console.changed").detail["changes"]["headers"]
        assert told == ("set" if name else "removed")
    assert "s3cret" not in str(AuditEntry.objects.values())


def test_changes_fail_if_the_audit_log_fails(administrator, monkeypatch):
    client = as_user(administrator)
    agent = Agent.objects.create(name="clerk")

    monkeypatch.setattr(AuditEntry.objects, "bulk_create", fail_to_save)
    answer = client.post(f"/admin/agents/agent/{agent.pk}/delete/", {"post": "yes"})

    assert answer.status_code == 503
    assert Agent.objects.exists()


@pytest.mark.parametrize(
    ("page", "typed"),
    one_in(
        4,
        [
            ("agent/{pk}/change/", agent_form(name="clerk", instructions="Be kind.")),
            ("agent/{pk}/clone/", {}),
            ("mcpserver/import/", IMPORT),
            ("guardrailpattern/sets/", {"set": "secrets"}),
        ],
    ),
)
def test_changes_on_custom_console_pages_fail_if_the_audit_log_fails(
    administrator, monkeypatch, page, typed
):
    agent = Agent.objects.create(name="clerk")
    agent_versions.save(agent, None)
    Agent.objects.filter(pk=agent.pk).update(instructions="Be brief.")
    agent_versions.save(agent, None)
    kinds = (Agent, McpServer, GuardrailPattern)
    before = [list(kind.objects.order_by("pk").values()) for kind in kinds]

    monkeypatch.setattr(AuditEntry.objects, "bulk_create", fail_to_save)
    answer = as_user(administrator).post(f"/admin/agents/{page.format(pk=agent.pk)}", typed)

    assert answer.status_code == 503
    assert [list(kind.objects.order_by("pk").values()) for kind in kinds] == before


def test_password_changes_fail_if_the_audit_log_fails(administrator, ada, monkeypatch):
    link = as_user(administrator).post(f"/admin/auth/user/{ada.pk}/link/").context["link"]
    typed = dict.fromkeys(("new_password1", "new_password2"), "another walk on the beach")

    monkeypatch.setattr(AuditEntry.objects, "bulk_create", fail_to_save)
    answer = Client().post(link, typed)

    ada.refresh_from_db()
    assert answer.status_code == 503
    assert ada.check_password(PASSWORD)


def test_deletions_are_audited_without_the_text(administrator, person):
    run = person.runs.create(topic="chat.1", query="my doctor said", status="completed")

    as_user(administrator).post(f"/admin/agents/run/{run.pk}/delete/", {"post": "yes"})

    assert newest("console.deleted").subject == f"run:{run.pk}"
    assert "doctor" not in str(AuditEntry.objects.values())


def test_ip_addresses_are_shown_as_networks():
    assert request_context.mask_address("203.0.113.77") == "203.0.113.0/24"
    assert request_context.mask_address("2001:db8:1:2::3") == "2001:db8:1::/48"


def test_a_client_cannot_forge_its_ip_address(rf, settings):
    forged = {"HTTP_X_FORWARDED_FOR": "9.9.9.9, 203.0.113.77", "REMOTE_ADDR": "10.0.0.1"}

    assert request_context.client_address(rf.get("/", **forged)) == "10.0.0.1"
    settings.PROXIES = ["10.0.0.0/8"]
    assert request_context.client_address(rf.get("/", **forged)) == "203.0.113.77"


def test_the_chain_of_these_entries_is_intact(ada):
    Client().post("/login/", {"username": "ada", "password": PASSWORD})

    assert hash_chain.verify().holds
