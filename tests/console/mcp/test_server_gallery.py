"""MCP servers in the console: cards, pause, and the gallery of well-known servers."""

import json
import os
import sys
from pathlib import Path

import pytest
from django.urls import reverse
from django.utils import translation

from agents.catalog import mcp_servers
from agents.catalog.mcp_servers.server_gallery import gallery, verified_on
from agents.console.mcp.server_gallery_page import GalleryForm
from agents.models import Agent, AgentTool, AuditEntry, McpServer, ToolRegistration
from tests.conftest import as_staff

pytestmark = pytest.mark.django_db
LIST = "/admin/agents/mcpserver/"


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


def test_the_gallery_says_when_it_was_verified(admin_client):
    page = admin_client.get(f"{LIST}gallery/").text

    assert "GitHub" in page
    assert verified_on().year >= 2026
    assert page.count("gallery-card") >= len(gallery())


def test_a_hosted_server_is_added_with_its_token_encrypted(admin_client):
    page = admin_client.get(entry_url("github")).text
    assert 'type="password"' in page

    answer = admin_client.post(entry_url("github"), {"name": "github", "TOKEN": "github_pat_1"})

    server = McpServer.objects.get(name="github")
    assert answer.url == reverse("admin:agents_mcpserver_setup", args=[server.pk])
    assert server.headers.reveal() == {"Authorization": "Bearer github_pat_1"}
    assert (server.transport, server.url) == ("http", "https://api.githubcopilot.com/mcp/")
    assert AuditEntry.objects.filter(action="console.added").exists()


def test_a_missing_value_is_named_and_nothing_is_lost(admin_client):
    page = admin_client.post(entry_url("atlassian"), {"name": "jira", "EMAIL": "a@example.com"})

    text = page.text
    assert "This field is required." in text
    assert 'value="a@example.com"' in text
    assert not McpServer.objects.filter(name="jira").exists()


def test_a_name_that_is_taken_is_refused(admin_client):
    McpServer.objects.create(name="fetch", transport="http", url="https://example.com/mcp")

    text = admin_client.post(entry_url("fetch"), {"name": "fetch"}).text

    assert "already exists" in text


def test_without_permission_for_programs_only_hosted_servers_can_be_added(person):
    client = as_staff(person, "add_mcpserver", "change_mcpserver", "view_mcpserver")

    client.post(entry_url("time"), {"name": "time", "TIMEZONE": "UTC"})
    client.post(entry_url("cloudflare-docs"), {"name": "docs"})

    assert list(McpServer.objects.filter(name__in=["time", "docs"]).values_list("name")) == [
        ("docs",)
    ]
    assert client.get(f"{LIST}gallery/nothing/").status_code == 404


@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
def test_a_server_of_the_gallery_works_offline(admin_client, run_executor):
    """The time server is installed for development; uvx would download it."""
    admin_client.post(entry_url("time"), {"name": "clock", "TIMEZONE": "Asia/Tokyo"})
    server = McpServer.objects.get(name="clock")
    assert server.args == ["mcp-server-time", "--local-timezone", "Asia/Tokyo"]
    program = str(Path(sys.executable).parent / "mcp-server-time")
    McpServer.objects.filter(pk=server.pk).update(command=program, args=server.args[1:])

    admin_client.post(
        reverse("admin:agents_mcpserver_test", args=[server.pk]), {"back": "list"}
    )

    server.refresh_from_db()
    assert (server.state, server.last_error) == ("ready", "")
    assert server.tools.count() == 2
    mcp_servers.disconnect(server.name)


def test_a_card_has_health_tools_errors_and_agents(admin_client):
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

    page = admin_client.get(LIST).text

    assert "2 of 3 enabled" in page
    assert "1 changed" in page
    assert "The server closed the connection." in page
    assert "postman" in page
    assert 'data-tone="red"' in page


def test_a_server_is_paused_and_resumed(admin_client):
    server = McpServer.objects.create(name="m", transport="http", url="https://m.example/mcp")
    url = reverse("admin:agents_mcpserver_pause", args=[server.pk])

    admin_client.post(url, {"state": "off"})
    assert not McpServer.objects.get(pk=server.pk).enabled
    assert "paused" in admin_client.get(LIST).text

    admin_client.post(url, {"state": "on"})
    assert McpServer.objects.get(pk=server.pk).enabled
    assert admin_client.get(url).status_code == 405


def test_an_empty_list_leads_to_the_gallery(admin_client):
    McpServer.objects.all().delete()

    assert "Choose from the gallery" in admin_client.get(LIST).text


def test_a_server_that_needs_nothing_more_is_added_with_one_click(admin_client):
    page = admin_client.get(f"{LIST}gallery/").text
    assert f'action="{entry_url("fetch")}"' in page
    assert f'action="{entry_url("github")}"' not in page

    McpServer.objects.create(name="fetch", transport="http", url="https://example.com/mcp")
    admin_client.post(entry_url("fetch"))

    assert McpServer.objects.get(name="fetch-2").args == ["mcp-server-fetch"]


def test_a_program_that_is_not_installed_is_marked_with_how_to_install_it(
    admin_client, monkeypatch, tmp_path
):
    (tmp_path / "apt-get").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    page = admin_client.get(f"{LIST}gallery/").text

    assert "npx isn’t installed on this machine." in page
    assert "apt-get install -y npm" in page
    assert f'action="{entry_url("fetch")}"' not in page
    assert f'action="{entry_url("cloudflare-docs")}"' in page
