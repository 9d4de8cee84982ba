"""Key rotation by a command."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from agents.models import AuditPerson, McpServer, ModelConnection, ToolRegistration
from tests.language_models import make_model

pytestmark = pytest.mark.django_db


@pytest.fixture
def keys(settings):
    def use(*phrases):
        settings.ENCRYPTION_KEYS = list(phrases)

    use("old")
    return use


def rotate():
    out = StringIO()
    call_command("rotate_keys", stdout=out)
    return out.getvalue()


def columns():
    with connection.cursor() as cursor:
        cursor.execute("SELECT api_key, secrets FROM agents_modelconnection ORDER BY id")
        return cursor.fetchall()


def test_after_rotation_all_secrets_are_readable_with_the_new_key_only(keys):
    model = make_model("fast", "bedrock/x", api_key="sk-1", secrets={"aws_access_key_id": "a"})
    server = McpServer.objects.create(name="shop", url="http://x", headers={"A": "b"})
    tool = ToolRegistration.objects.create(name="x", source="http", headers={"C": "d"})
    person = AuditPerson.objects.create(name="ada")
    of_person = person.key.reveal()
    before = columns()

    keys("new", "old")
    said = rotate()
    keys("new")

    for row in (model, server, tool, person):
        row.refresh_from_db()
    assert model.connection.api_key.reveal() == "sk-1"
    assert model.connection.secrets.reveal() == {"aws_access_key_id": "a"}
    assert (server.headers.reveal(), tool.headers.reveal()) == ({"A": "b"}, {"C": "d"})
    assert person.key.reveal() == of_person
    assert columns() != before
    assert "connections: 2 re-encrypted" in said
    assert "sk-1" not in said


def test_unreadable_secrets_are_listed_and_unchanged(keys):
    make_model("lost", "openai/x", api_key="sk-1")
    keys("other")
    make_model("kept", "openai/x", api_key="sk-2")
    lost = columns()[0]

    with pytest.raises(CommandError, match="connection lost: API key") as caught:
        rotate()

    assert "kept" not in str(caught.value)
    assert columns()[0] == lost
    keys("old")
    assert ModelConnection.objects.get(name="lost").api_key.reveal() == "sk-1"


def test_without_secrets_nothing_is_rotated(keys):
    make_model("open", "ollama/x")

    assert "connections: 0 re-encrypted" in rotate()
