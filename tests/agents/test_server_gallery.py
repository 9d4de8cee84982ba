"""MCP servers in the console: cards, pause, and the gallery of well-known servers."""

import json
import os
import sys
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from django.utils import translation

from agents.catalog import mcp_servers
from agents.catalog.server_gallery import gallery, verified_on
from agents.console.server_gallery_page import GalleryForm
from agents.models import Agent, AgentTool, AuditEntry, McpServer, ToolRegistration

pytestmark = pytest.mark.django_db
LIST = "/admin/agents/mcpserver/"


@pytest.fixture
def root(administrator):
    client = Client()
    client.force_login(administrator)
    return client


@pytest.fixture(autouse=True)
def programs(monkeypatch, tmp_path_factory):
    """Make npx and uvx findable, which not every machine has."""
    folder = tmp_path_factory.mktemp("bin")
    for name in ("npx", "uvx"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def entry_url(key):
    return reverse("admin:agents_mcpserver_gallery_entry", args=[key])


def example_values(entry, folder):
    paths = {"FOLDER", "REPOSITORY"}
    return {
        field.name: str(folder) if field.name in paths else field.default or "value-1"
        for field in entry.fields
    }


@pytest.mark.parametrize("key", sorted(gallery()))
def test_every_entry_of_the_gallery_is_a_valid_server(key, administrator, tmp_path):
    entry = gallery()[key]
    values = {**example_values(entry, tmp_path), "name": key}
    if "SITE" in values:
        values["SITE"] = "https://example.atlassian.net"
    form = GalleryForm(entry, values)
    assert form.is_valid(), form.errors

    inner = form.server_form(administrator)

    assert inner.is_valid(), inner.errors
    assert "${" not in json.dumps(entry.settings(values))


@pytest.mark.parametrize("language", ["en", "ja"])
def test_every_entry_is_described_in_both_languages(language):
    with translation.override(language):
        for entry in gallery().values():
            assert entry.about == entry.abouts[language]
            assert entry.docs.startswith("https://")
            for field in entry.fields:
                assert field.label == field.labels[language]
                assert field.help == field.helps[language]


def test_the_gallery_says_when_it_was_verified(root):
    page = root.get(f"{LIST}gallery/").content.decode()

    assert "GitHub" in page
    assert verified_on().year >= 2026
    assert page.count("gallery-card") >= len(gallery())


def test_a_hosted_server_is_added_with_its_token_encrypted(root):
    page = root.get(entry_url("github")).content.decode()
    assert 'type="password"' in page

    answer = root.post(entry_url("github"), {"name": "github", "TOKEN": "github_pat_1"})

    server = McpServer.objects.get(name="github")
    assert answer.url == reverse("admin:agents_mcpserver_change", args=[server.pk])
    assert server.headers.reveal() == {"Authorization": "Bearer github_pat_1"}
    assert (server.transport, server.url) == ("http", "https://api.githubcopilot.com/mcp/")
    assert AuditEntry.objects.filter(action="console.added").exists()


def test_a_missing_value_is_named_and_nothing_is_lost(root):
    page = root.post(entry_url("atlassian"), {"name": "jira", "EMAIL": "a@example.com"})

    text = page.content.decode()
    assert "This field is required." in text
    assert 'value="a@example.com"' in text
    assert not McpServer.objects.filter(name="jira").exists()


def test_a_name_that_is_taken_is_refused(root):
    McpServer.objects.create(name="fetch", transport="http", url="https://example.com/mcp")

    text = root.post(entry_url("fetch"), {"name": "fetch"}).content.decode()

    assert "already exists" in text


def test_without_permission_for_programs_only_hosted_servers_can_be_added(person):
    person.is_staff = True
    person.save()
    codes = ("add_mcpserver", "change_mcpserver", "view_mcpserver")
    person.user_permissions.set(Permission.objects.filter(codename__in=codes))
    client = Client()
    client.force_login(person)

    client.post(entry_url("time"), {"name": "time", "TIMEZONE": "UTC"})
    client.post(entry_url("cloudflare-docs"), {"name": "docs"})

    assert list(McpServer.objects.filter(name__in=["time", "docs"]).values_list("name")) == [
        ("docs",)
    ]
    assert client.get(f"{LIST}gallery/nothing/").status_code == 404


@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
def test_a_server_of_the_gallery_works_offline(root, run_executor):
    """The time server is installed for development; uvx would download it."""
    root.post(entry_url("time"), {"name": "clock", "TIMEZONE": "Asia/Tokyo"})
    server = McpServer.objects.get(name="clock")
    assert server.args == ["mcp-server-time", "--local-timezone", "Asia/Tokyo"]
    program = str(Path(sys.executable).parent / "mcp-server-time")
    McpServer.objects.filter(pk=server.pk).update(command=program, args=server.args[1:])

    root.post(reverse("admin:agents_mcpserver_test", args=[server.pk]), {"back": "list"})

    server.refresh_from_db()
    assert (server.state, server.last_error) == ("ready", "")
    assert server.tools.count() == 2
    mcp_servers.disconnect(server.name)


def test_a_card_has_health_tools_errors_and_agents(root):
    server = McpServer.objects.create(
        name="mail",
        transport="http",
        url="https://mail.example/mcp",
        state="failed",
        last_error="The server closed the connection.",
        latency_ms=120,
    )
    tools = [
        ToolRegistration.objects.create(name=f"mail_{n}", server=server, enabled=n > 0)
        for n in range(3)
    ]
    ToolRegistration.objects.filter(pk=tools[2].pk).update(pending={"description": "x"})
    agent = Agent.objects.create(name="postman")
    AgentTool.objects.create(agent=agent, tool=tools[1])

    page = root.get(LIST).content.decode()

    assert "2 of 3 enabled" in page
    assert "1 changed" in page
    assert "The server closed the connection." in page
    assert "postman" in page
    assert 'data-tone="red"' in page


def test_a_server_is_paused_and_resumed(root):
    server = McpServer.objects.create(name="m", transport="http", url="https://m.example/mcp")
    url = reverse("admin:agents_mcpserver_pause", args=[server.pk])

    root.post(url, {"state": "off"})
    assert not McpServer.objects.get(pk=server.pk).enabled
    assert "paused" in root.get(LIST).content.decode()

    root.post(url, {"state": "on"})
    assert McpServer.objects.get(pk=server.pk).enabled
    assert root.get(url).status_code == 405


def test_an_empty_list_leads_to_the_gallery(root):
    McpServer.objects.all().delete()

    assert "Choose from the gallery" in root.get(LIST).content.decode()
