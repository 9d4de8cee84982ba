"""Models that share a provider, a URL and a key share a connection."""

import json

import django.db.models.deletion
from django.db import migrations, models

import agents.models.secret
from agents.models.secret import EncryptedValue, UnreadableSecret

# The prefix that each provider's models have in LiteLLM's notation.
PREFIXES = {
    "openai": "openai",
    "anthropic": "anthropic",
    "gemini": "gemini",
    "azure": "azure",
    "bedrock": "bedrock",
    "ollama": "ollama",
    "compatible": "openai",
}
NAMES = {
    "openai": "OpenAI",
    "anthropic": "Anthropic",
    "gemini": "Google Gemini",
    "azure": "Azure OpenAI",
    "bedrock": "AWS Bedrock",
    "ollama": "Ollama",
}
COLUMNS = ("provider", "base_url", "api_key", "api_version", "region", "secrets")
# These options decide where a key goes; all others are a model's own.
DESTINATION_OPTIONS = {
    "api_version",
    "aws_bedrock_runtime_endpoint",
    "aws_external_id",
    "aws_region_name",
    "aws_role_name",
    "vertex_location",
    "vertex_project",
}
MODEL = "agents.LanguageModel"


def connect(apps, schema_editor):
    """Give each model a connection, also the deleted ones that can still be restored."""
    connections = _Connections(apps)
    for row in apps.get_model("agents", "LanguageModel").objects.order_by("pk"):
        row.connection = connections.find(row)
        row.options = _own_options(row.options)
        row.save(update_fields=["connection", "options"])
    for deletion, copied in _deleted_models(apps):
        for values in copied["rows"]:
            if values["model"] == MODEL:
                fields = values["fields"]
                fields["connection_id"] = connections.find(_copied_row(apps, fields)).pk
                fields["options"] = _own_options(fields["options"])
        deletion.rows = json.dumps(copied)
        deletion.save(update_fields=["rows"])
    _check_constraints(schema_editor)


def disconnect(apps, schema_editor):
    """Give each model the columns of its connection again."""
    model = apps.get_model("agents", "LanguageModel")
    for row in model.objects.select_related("connection").order_by("pk"):
        for name in COLUMNS:
            setattr(row, name, getattr(row.connection, name))
        row.options = {**row.connection.options, **row.options}
        row.save(update_fields=[*COLUMNS, "options"])
    rows = apps.get_model("agents", "ModelConnection").objects.in_bulk()
    for deletion, copied in _deleted_models(apps):
        for values in copied["rows"]:
            connection = rows.get(values["fields"].get("connection_id"))
            if values["model"] == MODEL and connection is not None:
                _copy_columns(connection, values["fields"])
        deletion.rows = json.dumps(copied)
        deletion.save(update_fields=["rows"])
    _check_constraints(schema_editor)


class _Connections:
    """The connections made so far, by what their models have in common."""

    def __init__(self, apps):
        self.model = apps.get_model("agents", "ModelConnection")
        self.by_key = {}
        self.names = set()

    def find(self, row):
        prefix = row.model.partition("/")[0] if "/" in row.model else ""
        options = {n: v for n, v in _mapping(row.options).items() if n in DESTINATION_OPTIONS}
        place = [row.provider, row.base_url.rstrip("/"), row.api_version, row.region, options]
        if row.provider == "other":
            place.append(prefix)
        secrets = [_reveal(row.api_key), _reveal(row.secrets)]
        key = json.dumps([place, secrets], sort_keys=True)
        if key not in self.by_key:
            if row.provider not in ("other", "compatible"):
                prefix = PREFIXES[row.provider]
            self.by_key[key] = self.model.objects.create(
                name=self._name(row, prefix),
                prefix=(prefix or PREFIXES.get(row.provider, ""))[:40],
                options=options,
                **{name: getattr(row, name) for name in COLUMNS},
            )
        return self.by_key[key]

    def _name(self, row, prefix):
        """Return a free name: the provider's, or the host of a server of one's own."""
        host = row.base_url.partition("//")[2].partition("/")[0]
        label = NAMES.get(row.provider) or prefix.replace("_", " ").capitalize()
        is_server = host and row.provider in ("compatible", "other")
        base = (host if is_server else label)[:90] or "Connection"
        name = base
        number = 2
        while name in self.names:
            name = f"{base} {number}"
            number += 1
        self.names.add(name)
        return name


def _own_options(options):
    return {n: v for n, v in _mapping(options).items() if n not in DESTINATION_OPTIONS}


def _mapping(options):
    return options if isinstance(options, dict) else {}


def _reveal(secret):
    """Return a secret, whose encrypted form differs each time; an unreadable one stands alone."""
    try:
        return secret.reveal()
    except UnreadableSecret:
        return secret.token


def _deleted_models(apps):
    """Yield the readable copies of deleted models."""
    for deletion in apps.get_model("agents", "Deletion").objects.filter(kind=MODEL):
        try:
            yield deletion, json.loads(deletion.rows.reveal())
        except UnreadableSecret:
            continue


def _copied_row(apps, fields):
    row = apps.get_model("agents", "LanguageModel")(model=fields["model"])
    row.options = fields["options"]
    for name in COLUMNS:
        value = fields[name]
        if isinstance(value, dict) and value.keys() == {"token"}:
            value = EncryptedValue(value["token"])
        elif isinstance(value, dict) and value.keys() == {"secret"}:
            value = value["secret"]
        setattr(row, name, value)
    return row


def _copy_columns(connection, fields):
    del fields["connection_id"]
    for name in COLUMNS:
        value = getattr(connection, name)
        if isinstance(value, EncryptedValue):
            try:
                value = {"secret": value.reveal()}
            except UnreadableSecret:
                value = {"token": value.token}
        fields[name] = value
    fields["options"] = {**connection.options, **fields["options"]}


def _check_constraints(schema_editor):
    """Let the tables change in this transaction: PostgreSQL refuses while checks are pending."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        schema_editor.execute("SET CONSTRAINTS ALL DEFERRED")


class Migration(migrations.Migration):
    dependencies = [("agents", "0008_setting_names")]

    operations = [
        migrations.CreateModel(
            "ModelConnection",
            [
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("name", models.CharField(max_length=100, unique=True, verbose_name="name")),
                (
                    "provider",
                    models.CharField(
                        choices=[
                            ("openai", "OpenAI"),
                            ("anthropic", "Anthropic"),
                            ("gemini", "Gemini"),
                            ("azure", "Azure OpenAI"),
                            ("bedrock", "Amazon Bedrock"),
                            ("ollama", "Ollama"),
                            ("compatible", "OpenAI-compatible API"),
                            ("other", "Other (LiteLLM)"),
                        ],
                        default="openai",
                        max_length=20,
                        verbose_name="provider",
                    ),
                ),
                (
                    "prefix",
                    models.CharField(
                        blank=True,
                        help_text="What LiteLLM puts before a model's name, e.g. mistral in "
                        "mistral/small.",
                        max_length=40,
                        verbose_name="provider prefix",
                    ),
                ),
                ("base_url", models.CharField(blank=True, max_length=500, verbose_name="URL")),
                (
                    "api_key",
                    agents.models.secret.EncryptedTextField(
                        blank=True, default="", verbose_name="API key"
                    ),
                ),
                (
                    "api_version",
                    models.CharField(blank=True, max_length=40, verbose_name="API version"),
                ),
                ("region", models.CharField(blank=True, max_length=40, verbose_name="region")),
                (
                    "secrets",
                    agents.models.secret.EncryptedJSONField(
                        blank=True, default=dict, verbose_name="additional secrets"
                    ),
                ),
                (
                    "options",
                    models.JSONField(
                        blank=True, default=dict, verbose_name="additional settings"
                    ),
                ),
                (
                    "listing",
                    models.JSONField(
                        blank=True,
                        db_default=models.Value({}, models.JSONField()),
                        default=dict,
                        editable=False,
                        help_text="What the server listed, when, and why it didn't.",
                        verbose_name="models found",
                    ),
                ),
            ],
            options={
                "verbose_name": "connection",
                "verbose_name_plural": "connections",
                "ordering": ["name"],
            },
        ),
        migrations.AddField(
            "languagemodel",
            "connection",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="models",
                to="agents.modelconnection",
                verbose_name="connection",
            ),
        ),
        migrations.RunPython(connect, disconnect),
        *(migrations.RemoveField("languagemodel", name) for name in COLUMNS),
        migrations.AlterField(
            "languagemodel",
            "connection",
            models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="models",
                to="agents.modelconnection",
                verbose_name="connection",
            ),
        ),
    ]
