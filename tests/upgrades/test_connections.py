"""Models of earlier versions share connections, and get their columns back."""

import json

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from tests import tables
from tests.upgrades import databases
from tests.upgrades.test_upgrade import before, earlier

__all__ = ["before", "earlier"]

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]

BEFORE = ("agents", "0008_setting_names")
AFTER = ("agents", "0009_connections")
OPENAI = {"provider": "openai", "api_key": "sk-one"}
LOCAL = {"provider": "compatible", "base_url": "http://gpu:8000/v1"}


def migrate(target):
    executor = MigrationExecutor(connection)
    executor.migrate([target])
    return executor.loader.project_state([target]).apps


def fill(apps):
    model = apps.get_model("agents", "LanguageModel")
    model.objects.all().delete()
    rows = {
        "big": {**OPENAI, "model": "openai/gpt-5", "options": {"seed": 1}},
        "little": {**OPENAI, "model": "openai/gpt-5-mini"},
        "elsewhere": {**OPENAI, "model": "openai/gpt-5", "api_key": "sk-two"},
        "local": {**LOCAL, "model": "hosted_vllm/qwen"},
        "aws": {
            "provider": "bedrock",
            "model": "bedrock/claude",
            "region": "eu-central-1",
            "secrets": {"aws_access_key_id": "a"},
            "options": {"aws_external_id": "x", "seed": 2},
        },
        "small": {"provider": "other", "model": "mistral/small", "api_key": "sk-one"},
    }
    for label, columns in rows.items():
        model.objects.create(label=label, **columns)
    copied = {
        "model": "agents.LanguageModel",
        "fields": {
            **{"id": 999, "label": "gone", "provider": "openai", "model": "openai/gpt-4"},
            **dict.fromkeys(["base_url", "api_version", "region"], ""),
            **{"api_key": {"secret": "sk-one"}, "secrets": {"secret": {}}, "options": {}},
        },
    }
    apps.get_model("agents", "Deletion").objects.create(
        kind="agents.LanguageModel",
        object_id="999",
        rows=json.dumps({"rows": [copied], "references": []}),
    )


def deleted_fields(apps):
    [deletion] = apps.get_model("agents", "Deletion").objects.all()
    return json.loads(deletion.rows.reveal())["rows"][0]["fields"]


def test_rows_share_connections_and_get_their_columns_back(earlier, before):
    _, migrations = before
    with tables.connected_to(databases.load(earlier, migrations)):
        fill(migrate(BEFORE))

        apps = migrate(AFTER)
        model = apps.get_model("agents", "LanguageModel")
        rows = {row.label: row for row in model.objects.select_related("connection")}
        assert rows["big"].connection == rows["little"].connection
        names = {label: row.connection.name for label, row in rows.items()}
        assert names == {
            "big": "OpenAI",
            "little": "OpenAI",
            "elsewhere": "OpenAI 2",
            "local": "gpu:8000",
            "aws": "AWS Bedrock",
            "small": "Mistral",
        }
        assert rows["elsewhere"].connection.api_key.reveal() == "sk-two"
        assert rows["local"].connection.prefix == "hosted_vllm"
        aws = rows["aws"]
        assert (aws.options, aws.connection.options) == ({"seed": 2}, {"aws_external_id": "x"})
        assert deleted_fields(apps)["connection_id"] == rows["big"].connection_id

        apps = migrate(BEFORE)
        model = apps.get_model("agents", "LanguageModel")
        rows = {row.label: row for row in model.objects.all()}
        assert rows["little"].api_key.reveal() == "sk-one"
        assert rows["local"].base_url == "http://gpu:8000/v1"
        assert rows["aws"].options == {"seed": 2, "aws_external_id": "x"}
        assert rows["aws"].secrets.reveal() == {"aws_access_key_id": "a"}
        assert deleted_fields(apps)["api_key"] == {"secret": "sk-one"}
