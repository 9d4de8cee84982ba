"""Embedded chats in the console: the form, its secret, limits and examples."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.contrib.auth.models import Group

from agents.console import embed_examples
from agents.knowledge import scope
from agents.models import (
    Agent,
    AuditEntry,
    Collection,
    Deletion,
    Embed,
    EmbedVisitor,
    Quota,
    ToolRegistration,
)
from chat.embedding import visitors
from chat.embedding.visitors import Identity
from tests.conftest import as_staff, select

pytestmark = pytest.mark.django_db
ADD = "/admin/agents/embed/add/"
SITE = "https://www.example.com"


def fields(agent, **values):
    return {
        "name": "Website",
        "agent": agent.pk,
        "origins": SITE,
        "audience": "anonymous",
        "enabled": "on",
        "theme": "auto",
        "language": "auto",
        "retention_days": 30,
    } | values


@pytest.fixture
def add(admin_client, agent):
    def post(**values):
        return admin_client.post(ADD, fields(agent, **values), follow=True)

    return post


def change_url(embed):
    return f"/admin/agents/embed/{embed.pk}/change/"


def test_three_fields_are_enough_to_start(add, administrator):
    response = add()

    embed = Embed.objects.get()
    assert embed.group.name == "Visitors: Website"
    assert embed.approver == administrator
    assert not embed.secret  # nobody is signed in
    assert embed.public_id in select(response, "#example-script")[0].text()
    assert select(response, ".embed-preview iframe")


def test_the_form_offers_strict_limits_and_saves_them_for_the_group(admin_client, add):
    page = admin_client.get(ADD)
    offered = {
        name: int(select(page, f"[name={name}]")[0].attributes["value"])
        for name in ("messages_per_minute", "messages_per_day", "all_messages_per_day")
    }
    assert offered == {
        "messages_per_minute": 6,
        "messages_per_day": 50,
        "all_messages_per_day": 1000,
    }
    add(**offered)

    group = Group.objects.get(name="Visitors: Website")
    rows = Quota.objects.filter(group=group, measure="messages")
    assert set(rows.values_list("window", "is_shared", "limit")) == {
        ("minute", False, 6),
        ("day", False, 50),
        ("day", True, 1000),
    }


def test_an_empty_limit_is_removed(admin_client, add, agent):
    add(messages_per_day=50)
    embed = Embed.objects.get()
    admin_client.post(change_url(embed), fields(agent, messages_per_day=""))

    assert not Quota.objects.exists()


@pytest.mark.parametrize(
    ("typed", "saved"),
    [
        ("https://www.example.com/", SITE),
        ("HTTPS://WWW.Example.com:443", SITE),
        ("http://localhost:3000\n\nhttps://www.example.com", f"http://localhost:3000\n{SITE}"),
        (f"{SITE}\n{SITE}", SITE),
    ],
)
def test_sites_are_saved_as_browsers_write_them(typed, saved, add):
    add(origins=typed)

    assert Embed.objects.get().origins == saved


@pytest.mark.parametrize(
    "typed",
    [
        "*",
        "https://*.example.com",
        "www.example.com",
        "javascript://x",
        "https://example.com/chat",
        "https://user@example.com",
        "https://example.com; script-src *",
        "https://exa'mple.com",
        "https://\u017fite.example",  # a letter that equals s without case
        "null",
    ],
)
def test_other_sites_are_refused(typed, add):
    response = add(origins=typed)

    assert not Embed.objects.exists()
    assert select(response, ".field-origins .errorlist")


def test_the_page_says_which_documents_visitors_search(add, admin_client, agent):
    add()
    embed = Embed.objects.get()
    opened = Collection.objects.create(name="Handbook", is_open=True)
    agent.tools.add(ToolRegistration.objects.get_or_create(name="search")[0])
    before = admin_client.get(change_url(embed))
    agent.collections.add(opened)
    after = admin_client.get(change_url(embed))

    assert list(before.context["searched"]) == []
    assert list(after.context["searched"]) == [opened]
    visitor = visitors.find_or_create(embed, Identity(digest="d"), "")
    assert scope.for_run(visitor.user_id, "", agent).collections == {opened.pk}


def test_a_secret_is_displayed_once(admin_client, add, agent):
    response = add(audience="both")
    embed = Embed.objects.get()
    secret = select(response, "#secret")[0].attributes["value"]
    page = admin_client.get(change_url(embed))

    assert secret == embed.secret.reveal()
    assert "no-store" in response["Cache-Control"]
    assert secret not in page.text
    assert secret not in str(list(AuditEntry.objects.values_list("detail", flat=True)))


def test_a_new_secret_replaces_the_old_one(admin_client, add):
    add(audience="signed")
    embed = Embed.objects.get()
    before = embed.secret.reveal()
    response = admin_client.post(f"/admin/agents/embed/{embed.pk}/rotate/")
    embed.refresh_from_db()

    assert select(response, "#secret")[0].attributes["value"] == embed.secret.reveal() != before
    assert AuditEntry.objects.filter(action="webhook.secret_rotated").exists()
    assert admin_client.get(f"/admin/agents/embed/{embed.pk}/rotate/").status_code == 403


def test_visitors_can_ask_an_agent_that_is_only_for_some(add, agent):
    agent.groups.add(Group.objects.create(name="Team"))
    add()

    visitor = visitors.find_or_create(Embed.objects.get(), Identity(digest="d"), "")
    assert agent in Agent.objects.open_to(visitor.user_id)


def test_editors_choose_only_agents_that_they_can_use(person, agent):
    agent.groups.add(Group.objects.create(name="Team"))
    client = as_staff(person, "add_embed", "view_embed", "change_embed")
    response = client.post(ADD, fields(agent))

    assert not Embed.objects.exists()
    assert select(response, ".field-agent .errorlist")


def test_a_deleted_chat_can_be_restored_with_its_visitors(admin_client, add, administrator):
    from agents.console.admin_classes import deleted_rows

    add()
    embed = Embed.objects.get()
    visitor = visitors.find_or_create(embed, Identity(digest="d"), "192.0.2.1")
    admin_client.post(f"/admin/agents/embed/{embed.pk}/delete/", {"post": "yes"})
    assert not Embed.objects.exists()
    assert visitors.find_embed(embed.public_id) is None
    deleted_rows.restore(Deletion.objects.get(kind="agents.Embed"))

    assert EmbedVisitor.objects.get() == visitor
    assert visitors.find_embed(embed.public_id) is not None
    assert EmbedVisitor.objects.get().embed == Embed.objects.get()


@pytest.mark.parametrize("language", ["python", "node"])
def test_the_examples_sign_tokens_that_are_accepted(language, rf, add):
    add(audience="signed")
    embed = Embed.objects.get()
    codes = {e.key: e.code for e in embed_examples.identity_examples(rf.get("/"), embed)}
    programs = {
        "python": [sys.executable, "-c", codes["python"]],
        "node": [shutil.which("node") or "", "--input-type=module", "-e", codes["node"]],
    }
    if not programs[language][0]:
        pytest.skip("Node.js isn't installed.")
    environment = {"CHAT_SECRET": embed.secret.reveal()}
    signed = subprocess.run(
        programs[language], env=environment, capture_output=True, text=True, check=True
    )

    _embed, identity = visitors.identify(embed.public_id, signed.stdout.strip())
    assert (identity.subject, identity.name) == ("user-42", "Ada")


def test_the_documentation_has_the_same_examples():
    page = Path("docs/embedding.md").read_text()
    values = {"origin": "https://ashiato.example.com", "key": "KEY"}
    codes = [
        *(embed_examples.SCRIPT, embed_examples.INLINE),
        *(embed_examples.FRAME, embed_examples.SIGNED),
    ]
    for language, code in (("python", embed_examples.PYTHON), ("js", embed_examples.NODE)):
        assert f"```{language}\n{code}```" in page
    for code in codes:
        assert f"```html\n{code.format(**values)}```" in page


def test_an_administrator_sees_the_preview_as_a_signed_user(add, admin_client):
    add(audience="signed")
    embed = Embed.objects.get()
    (preview,) = select(admin_client.get(change_url(embed)), ".embed-preview")

    _embed, identity = visitors.identify(embed.public_id, preview.attributes["data-token"])
    assert identity.subject.startswith("preview-")


def test_readers_cant_make_a_new_secret(add, person):
    add(audience="signed")
    embed = Embed.objects.get()
    page = as_staff(person, "view_embed").get(change_url(embed))

    assert page.status_code == 200
    assert not select(page, "[value='Make a new secret']")
