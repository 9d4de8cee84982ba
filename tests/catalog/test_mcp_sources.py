"""A collection follows the resources of a real MCP server."""

import json
import sys
import threading
from pathlib import Path

import pytest

from agents.catalog.mcp_servers import resources
from agents.knowledge import sources
from agents.models import Collection, DocumentSource, McpServer

pytestmark = pytest.mark.django_db

SHELF = Path(__file__).parents[1] / "tools" / "mcp_servers" / "shelf.py"


@pytest.fixture
def shelf(tmp_path, settings):
    """Return a function that says what the server has."""
    settings.STORAGES = settings.STORAGES | {
        "files": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": tmp_path / "files"},
        }
    }
    (tmp_path / "shelf").mkdir()
    file = tmp_path / "shelf" / "shelf.json"

    def write(*pages, **contents):
        values = {"contents": {f"note://{key}": text for key, text in contents.items()}}
        file.write_text(json.dumps({"pages": pages, **values}))
        return file

    write([])
    return write


@pytest.fixture
def server(tmp_path, shelf):
    return McpServer.objects.create(
        name="notes",
        transport="stdio",
        command=sys.executable,
        args=[str(SHELF), str(tmp_path / "shelf" / "shelf.json")],
        folders=str(tmp_path / "shelf"),
    )


@pytest.fixture
def source(server):
    return DocumentSource.objects.create(
        collection=Collection.objects.create(name="Birds"),
        kind="mcp",
        name="Notes",
        place={"server": server.pk},
    )


def resource(key, **facts):
    return {"uri": f"note://{key}", "name": key, **facts}


def check(source, **place):
    source.place |= place
    source.save(update_fields=["place"])
    sources.check_soon(source)
    assert sources.check_due() == 1
    source.refresh_from_db()
    assert not [thread for thread in threading.enumerate() if thread.name == "source"]
    return source.problem


def names(source):
    return sorted(source.documents.values_list("source", flat=True))


def texts(source):
    contents = []
    for document in source.documents.order_by("source"):
        with document.file.open() as file:
            contents.append(file.read())
    return contents


def test_all_pages_of_resources_are_followed(shelf, source):
    heron = resource("heron", title="The heron", mimeType="text/markdown")
    bittern = resource("bittern.txt")
    table = resource("table", mimeType="text/csv")
    image = resource("image", mimeType="application/x-thing")
    shelf([heron, bittern], [], [table, image], heron="Nests.", table="base64:a,b\n1,2")
    assert check(source) == "bittern.txt couldn't be read. Resource not found"
    assert names(source) == ["Notes/The heron.md", "Notes/table.csv"]
    assert texts(source) == [b"Nests.", b"a,b\n1,2"]
    assert source.skipped == 1

    indexed = source.documents.get(source="Notes/table.csv")
    type(indexed).objects.filter(pk=indexed.pk).update(status="ready")
    shelf([heron, table], heron="Fishes.", table="base64:a,b\n1,2")
    assert check(source) == ""
    assert texts(source) == [b"Fishes.", b"a,b\n1,2"]
    indexed.refresh_from_db()
    assert indexed.status == "ready"  # its content is the same

    assert check(source, uri_prefix="note://t") == ""
    assert names(source) == ["Notes/table.csv"]


def test_a_server_that_never_ends_or_sends_too_much_harms_nothing(shelf, source, monkeypatch):
    monkeypatch.setattr(resources, "MAX_PAGES", 20)
    large = resource("large", mimeType="text/plain")
    heron = resource("heron", mimeType="text/plain")
    shelf([heron], heron="Nests.")
    assert check(source) == ""
    file = shelf([heron, large], heron="Nests.", large=20_000_000)
    assert check(source)
    assert names(source) == ["Notes/heron.txt"]
    file.write_text(json.dumps({"endless": True}))
    assert check(source) == resources.ENDLESS.fill(name="notes")
    file.write_text("nonsense")
    assert "notes" in check(source)
    assert names(source) == ["Notes/heron.txt"]


@pytest.mark.parametrize(
    "columns",
    [{"sign_in": "user"}, {"sign_in": "shared"}, {"isolation": "person"}, {"enabled": False}],
)
def test_a_server_of_each_user_is_refused(columns, source, server):
    McpServer.objects.update(**columns)
    assert check(source) in {
        resources.PERSONAL.fill(name="notes"),
        resources.NO_SIGN_IN.fill(name="notes"),
        resources.NO_SERVER,
    }
