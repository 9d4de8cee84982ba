"""The page that imports MCP servers: a preview, values to enter, and what comes of it."""

import json
import os
import sys
from html import unescape

import pytest
from django.test import Client
from django.urls import reverse

from agents.catalog import mcp_servers
from agents.models import AuditEntry, McpServer
from tests.conftest import as_staff, as_user

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = "admin:agents_mcpserver_import"
DOCS = {"url": "https://docs.example/mcp"}


def desktop(**entries):
    return json.dumps({"mcpServers": entries})


def preview(client, text, **more):
    return client.post(reverse(PAGE), {"text": text, "preview": "1", **more})


def imported(client, text, **chosen):
    """Preview the text, then import all servers without problems."""
    seen = preview(client, text)
    sent = {"text": text, "seen": seen.context["seen"], "import": "1"}
    for view in seen.context["views"]:
        sent[f"name-{view.number}"] = view.name
        sent |= {f"pick-{view.number}": "on"} if view.is_picked else {}
        for place, value in enumerate(view.inputs):
            sent[f"label-{view.number}-{place}"] = value.value.name
            sent[f"value-{view.number}-{place}"] = value.shown
    sent = {k: v for k, v in {**sent, **chosen}.items() if v is not None}
    return client.post(reverse(PAGE), sent, follow=True)


def page_messages(response):
    return [unescape(str(message)) for message in response.context["messages"]]


def html(response):
    return unescape(response.text)


def test_a_preview_creates_nothing(admin_client):
    response = preview(admin_client, desktop(Docs=DOCS))

    assert [view.name for view in response.context["views"]] == ["docs"]
    assert "1 server found" in html(response)
    assert "https://docs.example/mcp" in html(response)
    assert "no-store" in response["Cache-Control"]
    assert not McpServer.objects.exists()


def test_servers_are_imported_with_their_secrets_sealed(admin_client):
    text = desktop(
        time={"command": sys.executable, "args": ["-m", "time"], "env": {"KEY": "hunter2"}},
        docs={**DOCS, "headers": {"X-Key": "k3y"}, "timeout": 90},
    )
    response = imported(admin_client, text)
    time, docs = McpServer.objects.get(name="time"), McpServer.objects.get(name="docs")

    assert page_messages(response)[0] == "Imported: time, docs"
    assert (time.transport, time.args, str(time.env)) == ("stdio", ["-m", "time"], "••••••••")
    assert mcp_servers.server_config(time).env == {"KEY": "hunter2"}
    assert (docs.transport, docs.timeout, docs.enabled) == ("http", 90, True)
    assert mcp_servers.server_config(docs).headers == {"X-Key": "k3y"}
    assert AuditEntry.objects.filter(action="console.added").count() == 2
    assert "hunter2" not in str(AuditEntry.objects.values())


def test_a_server_with_problems_does_not_stop_the_others(admin_client):
    McpServer.objects.create(name="docs", **DOCS)
    wrong = {"url": "docs.example", "cwd": "/", "headers": {"Host": "x"}}
    text = desktop(a={}, b={"command": "bash"}, docs=wrong, new=DOCS)
    shown = html(preview(admin_client, text))
    response = imported(admin_client, text)

    for sentence in (
        "'a' has neither command nor url",
        "'b' can't start: 'bash' can run any program",
        "A server named docs already exists.",
        "Skipped 'cwd'. Every server runs in its own folder.",
        "Server 'docs', url: Enter a full URL",
        "Server 'docs', headers: The header 'Host' is set automatically.",
    ):
        assert sentence in shown
    assert page_messages(response) == ["Imported: new"]
    assert {*McpServer.objects.values_list("name", flat=True)} == {"docs", "new"}


def test_a_name_that_exists_can_be_changed(admin_client):
    McpServer.objects.create(name="docs", **DOCS)
    response = imported(
        admin_client, desktop(docs=DOCS), **{"name-0": "docs-2", "pick-0": "on"}
    )

    assert page_messages(response) == ["Imported: docs-2"]


def test_a_selected_invalid_server_stays_on_the_page_with_its_reason(admin_client):
    text = desktop(docs=DOCS, other=DOCS)
    response = imported(admin_client, text, **{"name-1": "docs"})

    assert page_messages(response) == [
        "Imported: docs",
        "Some servers weren't imported. Fix the errors below.",
    ]
    assert "A server named docs already exists." in html(response)
    assert "imported</span>" in html(response)
    assert McpServer.objects.count() == 1


def test_missing_values_are_asked_for_and_entered(admin_client):
    header = {"Authorization": "Bearer <token>"}
    text = desktop(docs={"url": "https://${REGION}.example/mcp", "headers": header})
    shown = html(preview(admin_client, text))
    imported(admin_client, text, **{"value-0-0": "eu", "value-0-1": "s3cret"})
    config = mcp_servers.server_config(McpServer.objects.get())

    assert "'REGION' needs a value (url)." in shown
    assert 'type="password"' in shown
    assert config.url == "https://eu.example/mcp"
    assert config.headers == {"Authorization": "Bearer s3cret"}
    assert McpServer.objects.get().enabled


def test_a_server_without_its_values_is_disabled_until_they_are_entered(admin_client):
    text = desktop(docs={**DOCS, "headers": {"X-Key": "<YOUR_API_KEY>"}})
    response = imported(admin_client, text)
    server = McpServer.objects.get()
    form = {"transport": "http", "url": server.url, "timeout": "30", "args": "[]"}
    page = reverse("admin:agents_mcpserver_change", args=[server.pk])
    enabled = admin_client.post(page, {**form, "enabled": "on", "headers": "", "env": ""})

    assert any(
        "is disabled. Enter X-Key on its page" in each for each in page_messages(response)
    )
    assert not server.enabled
    assert "'X-Key' contains a placeholder, '${X-Key}'. Enter the actual value." in html(
        enabled
    )


def test_an_entered_value_is_not_displayed_again(admin_client):
    text = desktop(docs={"url": "nowhere", "headers": {"X-Key": "<key>"}})
    first = preview(admin_client, text)
    typed = {"value-0-0": "s3cret", "label-0-0": "X-Key", "name-0": "docs", "pick-0": "on"}
    again = preview(admin_client, text, seen=first.context["seen"], **typed)

    assert "s3cret" not in html(again)
    assert "Enter it again. Secrets are never displayed." in html(again)


def test_an_unknown_value_is_never_taken_from_the_environment(admin_client, monkeypatch):
    monkeypatch.setenv("OUR_KEY", "sentinel")
    imported(admin_client, desktop(docs={**DOCS, "headers": {"X-Key": "${OUR_KEY}"}}))

    [server] = McpServer.objects.all()
    assert mcp_servers.server_config(server).headers == {"X-Key": "${OUR_KEY}"}


def test_only_the_reviewed_text_is_imported(admin_client):
    seen = preview(admin_client, desktop(docs=DOCS)).context["seen"]
    sent = {"text": desktop(other=DOCS), "seen": seen, "pick-0": "on", "import": "1"}
    response = admin_client.post(reverse(PAGE), sent)

    assert page_messages(response) == [
        "The text changed, so nothing was imported. Review the servers again."
    ]
    assert [view.name for view in response.context["views"]] == ["other"]
    assert not McpServer.objects.exists()


def test_without_a_selection_nothing_is_imported(admin_client):
    response = imported(admin_client, desktop(docs=DOCS), **{"pick-0": None})

    assert page_messages(response) == ["Select at least one server."]
    assert not McpServer.objects.exists()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"mcpServers": {', "Invalid JSON: Expecting property name"),
        ("{}", "No server found."),
        ("", "This field is required."),
    ],
)
def test_unreadable_text_has_a_reason(admin_client, text, sentence):
    assert sentence in html(preview(admin_client, text))


def test_a_package_without_a_version_is_imported_with_a_warning(
    admin_client, tmp_path, monkeypatch
):
    (tmp_path / "npx").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    response = imported(admin_client, desktop(more={"command": "npx", "args": ["-y", "x"]}))

    assert any(
        each.startswith("more: x has no pinned version") for each in page_messages(response)
    )


def test_importing_programs_needs_the_permission(person):
    clerk = as_staff(person, "add_mcpserver")
    text = desktop(time={"command": sys.executable, "args": ["-m", "time"]}, docs=DOCS)
    shown = html(preview(clerk, text))
    imported(clerk, text, **{"pick-0": "on"})

    assert "have permission to set up servers that run programs" in shown
    assert [server.name for server in McpServer.objects.all()] == ["docs"]


def test_users_without_permission_cannot_open_the_import(person):
    person.is_staff = True
    person.save()

    assert as_user(person).get(reverse(PAGE)).status_code == 403
    assert Client().get(reverse(PAGE)).status_code == 302
