"""Key rotation by a command."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from agents.models import AuditPerson, LanguageModel, McpServer, ToolRegistration

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
        cursor.execute("SELECT api_key, secrets FROM agents_languagemodel ORDER BY id")
        return cursor.fetchall()


def test_after_rotation_all_secrets_are_readable_with_the_new_key_only(keys):
    model = LanguageModel.objects.create(
        label="fast", model="bedrock/x", api_key="sk-1", secrets={"aws_access_key_id": "a"}
    )
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
    assert model.api_key.reveal() == "sk-1"
    assert model.secrets.reveal() == {"aws_access_key_id": "a"}
    assert (server.headers.reveal(), tool.headers.reveal()) == ({"A": "b"}, {"C": "d"})
    assert person.key.reveal() == of_person
    assert columns() != before
    assert "models: 2 re-encrypted" in said
    assert "sk-1" not in said


def test_unreadable_secrets_are_listed_and_unchanged(keys):
    LanguageModel.objects.create(label="lost", model="openai/x", api_key="sk-1")
    keys("other")
    LanguageModel.objects.create(label="kept", model="openai/x", api_key="sk-2")
    lost = columns()[0]

    with pytest.raises(CommandError, match="model lost: API key") as caught:
        rotate()

    assert "kept" not in str(caught.value)
    assert columns()[0] == lost
    keys("old")
    assert LanguageModel.objects.get(label="lost").api_key.reveal() == "sk-1"


def test_without_secrets_nothing_is_rotated(keys):
    LanguageModel.objects.create(label="open", model="ollama/x")

    assert "models: 0 re-encrypted" in rotate()
