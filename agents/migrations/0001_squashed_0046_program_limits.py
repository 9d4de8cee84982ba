"""All tables of agents at once, for a new database.

An older database takes the migrations that this one replaces, one by one.
"""

import uuid
from importlib import import_module

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import agents.db.create_tables
import agents.models.audit
import agents.models.guardrails
import agents.models.secret

CHUNK_INDEX = import_module("agents.migrations.0002_chunk_index")


class Migration(migrations.Migration):
    replaces = [
        ("agents", "0001_baseline"),
        ("agents", "0002_chunk_index"),
        ("agents", "0003_stage_choices"),
        ("agents", "0004_attachments"),
        ("agents", "0005_live_calls"),
        ("agents", "0006_mcp_isolation"),
        ("agents", "0007_agent_choices"),
        ("agents", "0008_custom_instructions"),
        ("agents", "0009_hidden_topics"),
        ("agents", "0010_run_overrides_help"),
        ("agents", "0011_tool_grants"),
        ("agents", "0012_approval_help"),
        ("agents", "0013_deleted_usage"),
        ("agents", "0014_knowledge"),
        ("agents", "0015_first_collection"),
        ("agents", "0016_document_collection"),
        ("agents", "0017_collection_deletion"),
        ("agents", "0018_agent_collections"),
        ("agents", "0019_memory_and_projects"),
        ("agents", "0020_stored_attachments"),
        ("agents", "0021_move_attachments"),
        ("agents", "0022_document_validators"),
        ("agents", "0023_memory_kind"),
        ("agents", "0024_citations"),
        ("agents", "0025_embedding_lease"),
        ("agents", "0026_untrusted_rows"),
        ("agents", "0027_refetched_pages"),
        ("agents", "0028_reading_usage"),
        ("agents", "0029_search_settings"),
        ("agents", "0030_document_sent_as"),
        ("agents", "0031_model_checks"),
        ("agents", "0032_agent_drafts"),
        ("agents", "0033_settings_and_quotas"),
        ("agents", "0034_finished_runs"),
        ("agents", "0035_databases"),
        ("agents", "0036_deletions"),
        ("agents", "0037_database_limits"),
        ("agents", "0038_model_defaults"),
        ("agents", "0039_panel_arithmetic"),
        ("agents", "0040_budget_requests"),
        ("agents", "0041_caches"),
        ("agents", "0042_experiences"),
        ("agents", "0043_budgets"),
        ("agents", "0044_tool_selection"),
        ("agents", "0045_model_slots"),
        ("agents", "0046_program_limits"),
    ]

    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        agents.db.create_tables.CreateTables(
            operations=[
                migrations.CreateModel(
                    name="AuditHead",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        ("number", models.PositiveBigIntegerField(default=0)),
                        (
                            "seal",
                            models.CharField(
                                default="0000000000000000000000000000000000000000000000000000000000000000",
                                max_length=64,
                            ),
                        ),
                        ("cut", models.PositiveBigIntegerField(db_default=0, default=0)),
                    ],
                    options={
                        "verbose_name": "audit log head",
                        "verbose_name_plural": "audit log head",
                    },
                ),
                migrations.CreateModel(
                    name="CacheGroup",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "name",
                            models.CharField(max_length=300, unique=True, verbose_name="name"),
                        ),
                        (
                            "generation",
                            models.PositiveBigIntegerField(
                                db_default=0, default=0, verbose_name="generation"
                            ),
                        ),
                        (
                            "changed_at",
                            models.DateTimeField(auto_now_add=True, verbose_name="created"),
                        ),
                    ],
                    options={
                        "verbose_name": "cache group",
                        "verbose_name_plural": "cache groups",
                        "ordering": ["name"],
                    },
                ),
                migrations.CreateModel(
                    name="DatabaseConnection",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "name",
                            models.SlugField(
                                help_text="Part of the tool's name, e.g. query_sales. Can't be changed later.",
                                max_length=40,
                                unique=True,
                                verbose_name="name",
                            ),
                        ),
                        (
                            "kind",
                            models.CharField(
                                choices=[
                                    ("sqlite", "SQLite file"),
                                    ("postgresql", "PostgreSQL"),
                                    ("mysql", "MySQL or MariaDB"),
                                ],
                                default="postgresql",
                                max_length=12,
                                verbose_name="kind",
                            ),
                        ),
                        (
                            "file",
                            models.CharField(
                                blank=True,
                                help_text="A file in the folder for databases (ASHIATO_DATABASE_FILES).",
                                max_length=200,
                                verbose_name="file",
                            ),
                        ),
                        (
                            "host",
                            models.CharField(
                                blank=True,
                                help_text="E.g. db.example.com, or the path of a socket on this machine.",
                                max_length=255,
                                verbose_name="host",
                            ),
                        ),
                        (
                            "port",
                            models.PositiveIntegerField(
                                blank=True,
                                help_text="Leave empty for the default: 5432 (PostgreSQL) or 3306 (MySQL).",
                                null=True,
                                validators=[
                                    django.core.validators.MinValueValidator(1),
                                    django.core.validators.MaxValueValidator(65535),
                                ],
                                verbose_name="port",
                            ),
                        ),
                        (
                            "database",
                            models.CharField(
                                blank=True, max_length=128, verbose_name="database"
                            ),
                        ),
                        (
                            "username",
                            models.CharField(
                                blank=True,
                                help_text="A user that can only read, if possible.",
                                max_length=128,
                                verbose_name="user name",
                            ),
                        ),
                        (
                            "password",
                            agents.models.secret.EncryptedTextField(
                                blank=True, default="", verbose_name="password"
                            ),
                        ),
                        (
                            "tls",
                            models.CharField(
                                choices=[
                                    ("off", "Off (only on a trusted network)"),
                                    ("require", "Encrypted, certificate not checked"),
                                    ("verify", "Encrypted, certificate and host name checked"),
                                ],
                                default="require",
                                max_length=8,
                                verbose_name="encryption",
                            ),
                        ),
                        (
                            "ca_certificate",
                            models.TextField(
                                blank=True,
                                default="",
                                help_text="PEM text, if your server's certificate isn't from a public authority.",
                                verbose_name="CA certificate",
                            ),
                        ),
                        (
                            "description",
                            models.TextField(
                                blank=True,
                                default="",
                                help_text="What the database holds and when to use it. The model sees it before the tables.",
                                verbose_name="description for the model",
                            ),
                        ),
                        (
                            "tables",
                            models.JSONField(
                                blank=True,
                                help_text='All tables, or a JSON object: {"orders": ["id", "total"], "customers": null}. null allows all columns.',
                                null=True,
                                verbose_name="allowed tables",
                            ),
                        ),
                        (
                            "max_rows",
                            models.PositiveIntegerField(
                                blank=True,
                                help_text="Rows a query returns at most, 1–1,000. Empty: as in Settings.",
                                null=True,
                                validators=[
                                    django.core.validators.MinValueValidator(1),
                                    django.core.validators.MaxValueValidator(1000),
                                ],
                                verbose_name="max rows",
                            ),
                        ),
                        (
                            "timeout",
                            models.PositiveIntegerField(
                                blank=True,
                                help_text="A query is stopped after this time, 1–120 seconds. Empty: as in Settings.",
                                null=True,
                                validators=[
                                    django.core.validators.MinValueValidator(1),
                                    django.core.validators.MaxValueValidator(120),
                                ],
                                verbose_name="query timeout (seconds)",
                            ),
                        ),
                        ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                        ("is_sample", models.BooleanField(default=False, editable=False)),
                        (
                            "state",
                            models.CharField(
                                choices=[
                                    ("unknown", "not tested yet"),
                                    ("ready", "ready"),
                                    ("failed", "failing"),
                                ],
                                default="unknown",
                                editable=False,
                                max_length=12,
                                verbose_name="state",
                            ),
                        ),
                        (
                            "checked_at",
                            models.DateTimeField(
                                blank=True,
                                editable=False,
                                null=True,
                                verbose_name="last checked",
                            ),
                        ),
                        (
                            "last_error",
                            models.TextField(
                                blank=True,
                                default="",
                                editable=False,
                                verbose_name="last error",
                            ),
                        ),
                        (
                            "latency_ms",
                            models.FloatField(
                                blank=True, editable=False, null=True, verbose_name="latency"
                            ),
                        ),
                        (
                            "version",
                            models.CharField(
                                blank=True,
                                editable=False,
                                max_length=60,
                                verbose_name="version",
                            ),
                        ),
                        ("powers", models.JSONField(blank=True, default=list, editable=False)),
                        ("schema", models.JSONField(blank=True, editable=False, null=True)),
                    ],
                    options={
                        "verbose_name": "database",
                        "verbose_name_plural": "databases",
                        "ordering": ["name"],
                    },
                ),
                migrations.CreateModel(
                    name="InstallationSetting",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "key",
                            models.CharField(
                                max_length=60, unique=True, verbose_name="setting"
                            ),
                        ),
                        (
                            "value",
                            models.JSONField(blank=True, null=True, verbose_name="value"),
                        ),
                        (
                            "changed_at",
                            models.DateTimeField(auto_now=True, verbose_name="changed"),
                        ),
                    ],
                    options={
                        "verbose_name": "setting",
                        "verbose_name_plural": "settings",
                        "ordering": ["key"],
                    },
                ),
                migrations.CreateModel(
                    name="McpServer",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "name",
                            models.SlugField(
                                help_text="Prefix of its tool names.",
                                max_length=40,
                                unique=True,
                                verbose_name="name",
                            ),
                        ),
                        (
                            "transport",
                            models.CharField(
                                choices=[
                                    ("stdio", "Program on this machine (stdio)"),
                                    ("http", "URL (streamable HTTP)"),
                                    ("sse", "URL (SSE, older servers)"),
                                ],
                                default="http",
                                max_length=10,
                                verbose_name="transport",
                            ),
                        ),
                        (
                            "url",
                            models.CharField(blank=True, max_length=500, verbose_name="URL"),
                        ),
                        (
                            "command",
                            models.CharField(
                                blank=True,
                                help_text="A single program, started without a shell.",
                                max_length=500,
                                verbose_name="command",
                            ),
                        ),
                        (
                            "args",
                            models.JSONField(
                                blank=True,
                                default=list,
                                help_text='A JSON array of strings, e.g. ["--verbose"].',
                                verbose_name="arguments",
                            ),
                        ),
                        ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                        (
                            "timeout",
                            models.PositiveIntegerField(
                                default=30,
                                help_text="Time limit for each call, 1–600 seconds. Each progress report starts it again.",
                                validators=[
                                    django.core.validators.MinValueValidator(1),
                                    django.core.validators.MaxValueValidator(600),
                                ],
                                verbose_name="timeout (seconds)",
                            ),
                        ),
                        (
                            "state",
                            models.CharField(
                                choices=[
                                    ("unknown", "not tested yet"),
                                    ("connecting", "connecting"),
                                    ("ready", "ready"),
                                    ("failed", "failing"),
                                    ("stopped", "stopped"),
                                ],
                                default="unknown",
                                editable=False,
                                max_length=12,
                                verbose_name="state",
                            ),
                        ),
                        (
                            "state_since",
                            models.DateTimeField(
                                blank=True, editable=False, null=True, verbose_name="since"
                            ),
                        ),
                        (
                            "last_error",
                            models.TextField(
                                blank=True, editable=False, verbose_name="last error"
                            ),
                        ),
                        (
                            "latency_ms",
                            models.FloatField(
                                blank=True, editable=False, null=True, verbose_name="latency"
                            ),
                        ),
                        (
                            "restarts",
                            models.PositiveIntegerField(
                                default=0, editable=False, verbose_name="restarts"
                            ),
                        ),
                        (
                            "env",
                            agents.models.secret.EncryptedJSONField(
                                blank=True,
                                default=dict,
                                help_text="A JSON object with string values. Stored encrypted and never displayed again.",
                                verbose_name="environment variables",
                            ),
                        ),
                        (
                            "headers",
                            agents.models.secret.EncryptedJSONField(
                                blank=True,
                                default=dict,
                                help_text="A JSON object with string values. Stored encrypted and never displayed again.",
                                verbose_name="headers",
                            ),
                        ),
                        (
                            "folders",
                            models.TextField(
                                blank=True,
                                default="",
                                help_text="One per line, read-only. Add :rw to let it write, e.g. /srv/reports:rw.",
                                verbose_name="folders this server can use",
                            ),
                        ),
                        (
                            "trusts_annotations",
                            models.BooleanField(
                                default=False,
                                help_text="When off, every tool requires approval, even if the server marks it read-only.",
                                verbose_name="trust this server's annotations",
                            ),
                        ),
                        (
                            "connect_timeout",
                            models.PositiveIntegerField(
                                default=60,
                                help_text="Time limit for starting and connecting, 5–600 seconds. It doesn't count against a call's timeout. The first start of npx, uvx or a container downloads packages.",
                                validators=[
                                    django.core.validators.MinValueValidator(5),
                                    django.core.validators.MaxValueValidator(600),
                                ],
                                verbose_name="start timeout (seconds)",
                            ),
                        ),
                        (
                            "files_deleted_at",
                            models.DateTimeField(blank=True, editable=False, null=True),
                        ),
                        (
                            "isolation",
                            models.CharField(
                                choices=[
                                    (
                                        "shared",
                                        "Shared: everyone uses the same process, session and files",
                                    ),
                                    (
                                        "person",
                                        "Per person: each person has a process, session and files",
                                    ),
                                    (
                                        "chat",
                                        "Per chat: each chat has a process, session and files",
                                    ),
                                ],
                                default="shared",
                                help_text="Choose per person or per chat if the server remembers something, e.g. notes, files or a signed-in account. Each instance starts with its first call.",
                                max_length=10,
                                verbose_name="who shares it",
                            ),
                        ),
                        (
                            "max_instances",
                            models.PositiveIntegerField(
                                default=10,
                                help_text="Per person or per chat: how many run at once in each process, 1–100. The one unused for longest stops first.",
                                validators=[
                                    django.core.validators.MinValueValidator(1),
                                    django.core.validators.MaxValueValidator(100),
                                ],
                                verbose_name="max instances",
                            ),
                        ),
                        (
                            "cpu_seconds",
                            models.PositiveIntegerField(
                                blank=True,
                                help_text="Leave empty for the limit of the settings. One busy core uses 300 s.",
                                null=True,
                                validators=[
                                    django.core.validators.MinValueValidator(5),
                                    django.core.validators.MaxValueValidator(1000000),
                                ],
                                verbose_name="max CPU time in 5 minutes (seconds)",
                            ),
                        ),
                        (
                            "memory_mb",
                            models.PositiveIntegerField(
                                blank=True,
                                help_text="With everything the program starts. Leave empty for the limit of the settings.",
                                null=True,
                                validators=[
                                    django.core.validators.MinValueValidator(64),
                                    django.core.validators.MaxValueValidator(1000000),
                                ],
                                verbose_name="max memory (MB)",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "MCP server",
                        "verbose_name_plural": "MCP servers",
                        "ordering": ["name"],
                        "permissions": [
                            (
                                "use_stdio_servers",
                                "Can set up MCP servers that are programs on this machine",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Membership",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        ("topic", models.CharField(max_length=80, verbose_name="topic")),
                        (
                            "may_write",
                            models.BooleanField(default=False, verbose_name="edit access"),
                        ),
                        (
                            "since",
                            models.DateTimeField(auto_now_add=True, verbose_name="since"),
                        ),
                        (
                            "user",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="memberships",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="user",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "membership",
                        "verbose_name_plural": "memberships",
                        "ordering": ["pk"],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("topic", "user"), name="one_membership_a_person"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ModelGate",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "model",
                            models.CharField(max_length=200, unique=True, verbose_name="model"),
                        ),
                        (
                            "requests_used",
                            models.FloatField(
                                default=0, verbose_name="requests in the last minute"
                            ),
                        ),
                        (
                            "tokens_used",
                            models.FloatField(
                                default=0, verbose_name="tokens in the last minute"
                            ),
                        ),
                        ("counted_at", models.DateTimeField(verbose_name="counted at")),
                    ],
                    options={
                        "verbose_name": "model limit",
                        "verbose_name_plural": "model limits",
                    },
                ),
                migrations.CreateModel(
                    name="ServerProcess",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "name",
                            models.CharField(max_length=120, unique=True, verbose_name="name"),
                        ),
                        (
                            "kind",
                            models.CharField(
                                choices=[("web", "web"), ("worker", "worker")],
                                max_length=10,
                                verbose_name="type",
                            ),
                        ),
                        ("version", models.CharField(max_length=40, verbose_name="version")),
                        ("started_at", models.DateTimeField(verbose_name="started")),
                        ("seen_at", models.DateTimeField(verbose_name="last heartbeat")),
                        ("runs", models.PositiveIntegerField(default=0, verbose_name="runs")),
                        (
                            "sockets",
                            models.PositiveIntegerField(
                                default=0, verbose_name="WebSocket connections"
                            ),
                        ),
                        (
                            "memory",
                            models.PositiveBigIntegerField(
                                default=0, help_text="In bytes.", verbose_name="memory"
                            ),
                        ),
                        (
                            "lateness",
                            models.FloatField(
                                default=0,
                                help_text="Current delay of the event loop, in seconds.",
                                verbose_name="event loop lag",
                            ),
                        ),
                        (
                            "stalls",
                            models.PositiveIntegerField(
                                default=0,
                                help_text="How many times the event loop was blocked.",
                                verbose_name="times blocked",
                            ),
                        ),
                        (
                            "longest_stall",
                            models.FloatField(default=0, verbose_name="longest block"),
                        ),
                        ("stalled_in", models.TextField(blank=True, verbose_name="blocked in")),
                        (
                            "stalled_at",
                            models.DateTimeField(
                                blank=True, null=True, verbose_name="last blocked"
                            ),
                        ),
                        (
                            "journal_lag",
                            models.FloatField(
                                default=0,
                                help_text="Seconds until an event is saved.",
                                verbose_name="event save lag",
                            ),
                        ),
                        (
                            "mcp_instances",
                            models.JSONField(
                                default=dict,
                                help_text="By server, as running now.",
                                verbose_name="MCP server instances",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "process",
                        "verbose_name_plural": "processes",
                        "ordering": ["kind", "started_at", "pk"],
                    },
                ),
                migrations.CreateModel(
                    name="StoredFile",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "digest",
                            models.CharField(max_length=64, unique=True, verbose_name="digest"),
                        ),
                        ("size", models.PositiveBigIntegerField(verbose_name="size (bytes)")),
                        (
                            "mime_type",
                            models.CharField(
                                help_text="Read from the content, not from the name.",
                                max_length=130,
                                verbose_name="type",
                            ),
                        ),
                        (
                            "created_at",
                            models.DateTimeField(auto_now_add=True, verbose_name="created"),
                        ),
                    ],
                    options={
                        "verbose_name": "stored file",
                        "verbose_name_plural": "stored files",
                        "ordering": ["pk"],
                    },
                ),
                migrations.CreateModel(
                    name="Upkeep",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "name",
                            models.CharField(max_length=40, unique=True, verbose_name="name"),
                        ),
                        (
                            "at",
                            models.DateTimeField(
                                blank=True, null=True, verbose_name="last run"
                            ),
                        ),
                        (
                            "report",
                            models.JSONField(blank=True, default=dict, verbose_name="result"),
                        ),
                    ],
                    options={
                        "verbose_name": "maintenance",
                        "verbose_name_plural": "maintenance",
                    },
                ),
                migrations.CreateModel(
                    name="Workflow",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "name",
                            models.CharField(max_length=80, unique=True, verbose_name="name"),
                        ),
                        (
                            "description",
                            models.CharField(
                                blank=True, max_length=300, verbose_name="description"
                            ),
                        ),
                        ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                        (
                            "created_at",
                            models.DateTimeField(auto_now_add=True, verbose_name="created"),
                        ),
                    ],
                    options={
                        "verbose_name": "workflow",
                        "verbose_name_plural": "workflows",
                        "ordering": ["name"],
                    },
                ),
                migrations.CreateModel(
                    name="Agent",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "name",
                            models.SlugField(max_length=64, unique=True, verbose_name="name"),
                        ),
                        (
                            "description",
                            models.CharField(
                                blank=True, max_length=200, verbose_name="description"
                            ),
                        ),
                        (
                            "instructions",
                            models.TextField(blank=True, verbose_name="instructions"),
                        ),
                        (
                            "model",
                            models.CharField(
                                blank=True,
                                help_text="A LiteLLM model name, e.g. anthropic/claude-sonnet-4-5, or demo. Leave empty for the default model.",
                                max_length=200,
                                verbose_name="model",
                            ),
                        ),
                        (
                            "dialect",
                            models.CharField(
                                choices=[
                                    ("native", "Native tool calls"),
                                    ("react", "ReAct text"),
                                ],
                                default="native",
                                max_length=10,
                                verbose_name="tool call format",
                            ),
                        ),
                        (
                            "max_steps",
                            models.PositiveIntegerField(
                                default=10,
                                validators=[
                                    django.core.validators.MinValueValidator(1),
                                    django.core.validators.MaxValueValidator(50),
                                ],
                                verbose_name="max steps",
                            ),
                        ),
                        (
                            "max_duplicate_tool_calls",
                            models.PositiveIntegerField(
                                default=2,
                                help_text="How many times a tool can be called with the same input.",
                                validators=[
                                    django.core.validators.MinValueValidator(1),
                                    django.core.validators.MaxValueValidator(50),
                                ],
                                verbose_name="max duplicate calls",
                            ),
                        ),
                        (
                            "max_tool_calls_per_tool",
                            models.PositiveIntegerField(
                                blank=True,
                                default=5,
                                help_text="Leave empty for no limit.",
                                null=True,
                                validators=[django.core.validators.MinValueValidator(1)],
                                verbose_name="max calls per tool",
                            ),
                        ),
                        (
                            "max_input_tokens",
                            models.PositiveIntegerField(
                                default=4096,
                                validators=[django.core.validators.MinValueValidator(1)],
                                verbose_name="max input tokens",
                            ),
                        ),
                        (
                            "max_output_tokens",
                            models.PositiveIntegerField(
                                default=4096,
                                validators=[django.core.validators.MinValueValidator(1)],
                                verbose_name="max output tokens",
                            ),
                        ),
                        (
                            "is_default",
                            models.BooleanField(
                                default=False,
                                help_text="Answers when no agent is selected.",
                                verbose_name="default",
                            ),
                        ),
                        ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                        (
                            "max_cost",
                            models.FloatField(
                                blank=True,
                                help_text="Applies only if the model's price is known. Leave empty for no limit.",
                                null=True,
                                validators=[django.core.validators.MinValueValidator(0)],
                                verbose_name="max cost per run (USD)",
                            ),
                        ),
                        (
                            "max_run_tokens",
                            models.PositiveIntegerField(
                                blank=True,
                                help_text="Input and output tokens of all turns. Leave empty for no limit.",
                                null=True,
                                validators=[django.core.validators.MinValueValidator(1)],
                                verbose_name="max tokens per run",
                            ),
                        ),
                        (
                            "max_seconds",
                            models.PositiveIntegerField(
                                blank=True,
                                default=600,
                                help_text="Checked between steps. Leave empty for no limit.",
                                null=True,
                                validators=[django.core.validators.MinValueValidator(1)],
                                verbose_name="timeout (seconds)",
                            ),
                        ),
                        (
                            "auto_execute_tools",
                            models.BooleanField(
                                default=True,
                                help_text="When off, every tool call waits for the user's approval.",
                                verbose_name="run tools automatically",
                            ),
                        ),
                        (
                            "fallback_models",
                            models.TextField(
                                blank=True,
                                help_text="One per line, tried in order when the model is unavailable.",
                                verbose_name="fallback models",
                            ),
                        ),
                        (
                            "output_schema",
                            models.JSONField(
                                blank=True,
                                help_text="JSON Schema for the answer. Leave empty for plain text.",
                                null=True,
                                verbose_name="output schema",
                            ),
                        ),
                        (
                            "max_replans",
                            models.PositiveSmallIntegerField(
                                db_default=2,
                                default=2,
                                help_text="How many times the agent can replan when a result isn't as expected.",
                                validators=[django.core.validators.MaxValueValidator(10)],
                                verbose_name="max replans",
                            ),
                        ),
                        (
                            "merge",
                            models.CharField(
                                choices=[
                                    ("vote", "Majority vote"),
                                    ("synthesis", "Synthesis with attribution"),
                                    ("judge", "Judge decides"),
                                    ("sum", "Sum of the numbers"),
                                    ("average", "Average of the numbers"),
                                ],
                                db_default="synthesis",
                                default="synthesis",
                                help_text="Sum and average need one clear number per answer, or numeric fields of structured answers. Without them, a synthesis is written.",
                                max_length=10,
                                verbose_name="panel merge method",
                            ),
                        ),
                        (
                            "mode",
                            models.CharField(
                                choices=[
                                    ("react", "Step by step"),
                                    ("plan", "Plan and execute"),
                                    ("panel", "Panel"),
                                ],
                                db_default="react",
                                default="react",
                                help_text="Plan and execute: writes a plan, runs it and checks the results. Panel: asks all handoff agents at once and merges their answers.",
                                max_length=10,
                                verbose_name="mode",
                            ),
                        ),
                        (
                            "roles",
                            models.CharField(
                                blank=True,
                                db_default="",
                                default="",
                                help_text="Comma-separated, e.g. research, legal. Plan steps for a role go to agents with that role; a user's roles are their groups.",
                                max_length=200,
                                verbose_name="roles",
                            ),
                        ),
                        (
                            "shows_plan",
                            models.BooleanField(
                                db_default=False,
                                default=False,
                                help_text="When on, the plan waits until the user approves or edits it.",
                                verbose_name="require plan approval",
                            ),
                        ),
                        (
                            "personal_data",
                            models.CharField(
                                choices=[
                                    ("shown", "Masked for reviewers only"),
                                    (
                                        "hidden",
                                        "Replaced before the model sees it, restored in the answer",
                                    ),
                                    ("unkept", "Masked before the trace is saved"),
                                ],
                                db_default="shown",
                                default="shown",
                                help_text="Covers email, postal and IP addresses; phone, card, account, passport, ID, license, pension and insurance numbers; dates of birth; keys and tokens.",
                                max_length=10,
                                verbose_name="personal data",
                            ),
                        ),
                        (
                            "version",
                            models.PositiveIntegerField(
                                db_default=0,
                                default=0,
                                editable=False,
                                help_text="Latest version number; 0 if none is saved yet.",
                                verbose_name="version",
                            ),
                        ),
                        (
                            "asker_approves_questions",
                            models.BooleanField(
                                db_default=True,
                                default=True,
                                help_text="The user reviews, and can edit, each question before it goes to experts.",
                                verbose_name="user approves questions to experts",
                            ),
                        ),
                        (
                            "allows_sampling",
                            models.BooleanField(
                                db_default=False,
                                default=False,
                                help_text="When on, a server can have this agent's model answer requests during a tool call (sampling), within the run's limits. When off, such requests are refused.",
                                verbose_name="MCP servers can use the model",
                            ),
                        ),
                        (
                            "allows_model_choice",
                            models.BooleanField(
                                db_default=False,
                                default=False,
                                help_text="Per chat, from the configured models that the user has access to.",
                                verbose_name="users can choose the model",
                            ),
                        ),
                        (
                            "allows_parameter_choice",
                            models.BooleanField(
                                db_default=False,
                                default=False,
                                help_text="Per chat, as far as the model supports them.",
                                verbose_name="users can choose effort and temperature",
                            ),
                        ),
                        (
                            "example_questions",
                            models.TextField(
                                blank=True,
                                db_default="",
                                default="",
                                help_text="One per line, up to 6. Users see them when they start a chat. Leave empty for questions that fit the agent's tools.",
                                verbose_name="example questions",
                            ),
                        ),
                        (
                            "icon",
                            models.CharField(
                                blank=True,
                                choices=[
                                    (None, "Automatic"),
                                    ("footprints", "Footprints"),
                                    ("chat", "Speech bubble"),
                                    ("chart", "Chart"),
                                    ("table", "Table"),
                                    ("book", "Book"),
                                    ("plan", "Plan"),
                                    ("people", "People"),
                                    ("scales", "Scales"),
                                    ("shield", "Shield"),
                                    ("lifebuoy", "Lifebuoy"),
                                    ("pen", "Pen"),
                                    ("code", "Code"),
                                    ("globe", "Globe"),
                                    ("mail", "Envelope"),
                                ],
                                db_default="",
                                default="",
                                help_text="Helps users recognize the agent. Each icon has its own color.",
                                max_length=20,
                                verbose_name="icon",
                            ),
                        ),
                        (
                            "accepts_custom_instructions",
                            models.BooleanField(
                                db_default=True,
                                default=True,
                                help_text="When off, what users say about themselves in their profile isn't sent.",
                                verbose_name="accepts users' custom instructions",
                            ),
                        ),
                        (
                            "max_history_tokens",
                            models.PositiveIntegerField(
                                blank=True,
                                help_text="Leave empty to use what the model's context window allows.",
                                null=True,
                                validators=[django.core.validators.MinValueValidator(100)],
                                verbose_name="max history tokens",
                            ),
                        ),
                        (
                            "max_history_turns",
                            models.PositiveIntegerField(
                                db_default=20,
                                default=20,
                                help_text="Earlier questions and answers of a chat that the model gets. 0 is none.",
                                validators=[django.core.validators.MaxValueValidator(200)],
                                verbose_name="max past turns",
                            ),
                        ),
                        (
                            "summarizes_history",
                            models.BooleanField(
                                db_default=True,
                                default=True,
                                help_text="When a chat exceeds these limits, the model summarizes older turns. When off, they are left out.",
                                verbose_name="summarize older turns",
                            ),
                        ),
                        (
                            "summary_threshold",
                            models.PositiveSmallIntegerField(
                                db_default=80,
                                default=80,
                                help_text="How full the history's tokens can be before older turns are summarized.",
                                validators=[
                                    django.core.validators.MinValueValidator(10),
                                    django.core.validators.MaxValueValidator(100),
                                ],
                                verbose_name="summarize at (%)",
                            ),
                        ),
                        (
                            "uses_memory",
                            models.BooleanField(
                                db_default=True,
                                default=True,
                                help_text="When off, it neither reads nor saves what is remembered about users.",
                                verbose_name="uses long-term memory",
                            ),
                        ),
                        (
                            "after_untrusted",
                            models.CharField(
                                choices=[
                                    ("suspicious", "If the text contains instructions"),
                                    ("always", "Always"),
                                    ("never", "Never"),
                                ],
                                db_default="suspicious",
                                default="suspicious",
                                help_text="Documents, files, web pages, database rows and results of HTTP and MCP tools are untrusted. Once a run has read some, tools with side effects need the user's approval, also if users always allow them.",
                                max_length=10,
                                verbose_name="approval after reading untrusted text",
                            ),
                        ),
                        (
                            "retrieves_first",
                            models.BooleanField(
                                db_default=False,
                                default=False,
                                help_text="When on, every question is searched for in the documents before the model answers. Requires the search tool.",
                                verbose_name="search before the first step",
                            ),
                        ),
                        (
                            "max_raise",
                            models.PositiveSmallIntegerField(
                                db_default=3,
                                default=3,
                                help_text="A run in a chat asks before it passes its time, token or cost limit. 1 lets only administrators raise it. 0 ends the run without asking.",
                                validators=[django.core.validators.MaxValueValidator(100)],
                                verbose_name="users can raise limits up to (times)",
                            ),
                        ),
                        (
                            "reply_cache",
                            models.CharField(
                                blank=True,
                                choices=[
                                    ("", "off"),
                                    ("person", "on, separately for each user"),
                                    ("public", "on, shared by all users of the tool"),
                                ],
                                db_default="",
                                default="",
                                help_text="The same question with the same history and instructions gets the saved reply, at no cost. Regenerated answers, reruns and experiments always ask the model.",
                                max_length=8,
                                verbose_name="cache model replies",
                            ),
                        ),
                        (
                            "reply_cache_seconds",
                            models.PositiveIntegerField(
                                db_default=3600,
                                default=3600,
                                help_text="How long a saved reply is used, up to 7 days.",
                                validators=[
                                    django.core.validators.MinValueValidator(1),
                                    django.core.validators.MaxValueValidator(604800),
                                ],
                                verbose_name="reply cache lifetime (seconds)",
                            ),
                        ),
                        (
                            "learns",
                            models.BooleanField(
                                db_default=False,
                                default=False,
                                help_text="When on, ratings and corrections become experiences, and similar questions get them. Each person has their own; others' are used after a review.",
                                verbose_name="learns from experience",
                            ),
                        ),
                        (
                            "max_experience_tokens",
                            models.PositiveIntegerField(
                                db_default=400,
                                default=400,
                                help_text="Per question, for up to 3 experiences.",
                                validators=[
                                    django.core.validators.MinValueValidator(50),
                                    django.core.validators.MaxValueValidator(4000),
                                ],
                                verbose_name="max tokens of experiences",
                            ),
                        ),
                        (
                            "tool_selection",
                            models.CharField(
                                choices=[
                                    ("auto", "Those that fit the question, if there are many"),
                                    ("all", "All tools"),
                                ],
                                db_default="auto",
                                default="auto",
                                help_text="With many tools, models choose worse and every request costs more. The model finds the other tools by searching. Settings has the limits.",
                                max_length=10,
                                verbose_name="tools sent to the model",
                            ),
                        ),
                        (
                            "experts",
                            models.ManyToManyField(
                                blank=True,
                                help_text="Groups this agent can send questions to. If none is selected, it can only ask the user.",
                                related_name="agents_that_ask",
                                to="auth.group",
                                verbose_name="experts it can ask",
                            ),
                        ),
                        (
                            "groups",
                            models.ManyToManyField(
                                blank=True,
                                help_text="Only members of these groups can use it. If none is selected, everyone can.",
                                related_name="+",
                                to="auth.group",
                                verbose_name="allowed groups",
                            ),
                        ),
                        (
                            "handoffs",
                            models.ManyToManyField(
                                blank=True,
                                help_text="Agents this agent can hand off tasks to. Their results come back to this agent.",
                                related_name="asked_by",
                                to="agents.agent",
                                verbose_name="can hand off to",
                            ),
                        ),
                        (
                            "collections",
                            models.ManyToManyField(
                                blank=True,
                                help_text="Documents this agent searches, as far as the user can open them. If none is selected, it searches everything the user can open.",
                                limit_choices_to={"owner": None, "topic": ""},
                                related_name="agents",
                                to="agents.collection",
                                verbose_name="collections it can search",
                            ),
                        ),
                        (
                            "tools",
                            models.ManyToManyField(
                                blank=True,
                                related_name="agents",
                                through="agents.AgentTool",
                                to="agents.toolregistration",
                                verbose_name="tools",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "agent",
                        "verbose_name_plural": "agents",
                        "ordering": ["name"],
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(("is_default", True)),
                                fields=("is_default",),
                                name="one_default_agent",
                                violation_error_message="Another agent is already the default.",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="AgentDraft",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "values",
                            models.JSONField(
                                default=dict, help_text="Texts by input.", verbose_name="values"
                            ),
                        ),
                        (
                            "marks",
                            models.JSONField(
                                default=dict,
                                help_text="Revision and user of each input's change.",
                                verbose_name="changes",
                            ),
                        ),
                        (
                            "replaced",
                            models.JSONField(
                                blank=True,
                                help_text="The values before they were discarded or overwritten, for undo.",
                                null=True,
                                verbose_name="replaced values",
                            ),
                        ),
                        (
                            "revision",
                            models.PositiveIntegerField(default=0, verbose_name="revision"),
                        ),
                        (
                            "created_at",
                            models.DateTimeField(auto_now_add=True, verbose_name="created"),
                        ),
                        (
                            "updated_at",
                            models.DateTimeField(auto_now=True, verbose_name="last edited"),
                        ),
                        (
                            "agent",
                            models.OneToOneField(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="draft",
                                to="agents.agent",
                                verbose_name="agent",
                            ),
                        ),
                        (
                            "editor",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="last edited by",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "agent draft",
                        "verbose_name_plural": "agent drafts",
                        "ordering": ["-updated_at"],
                    },
                ),
                migrations.CreateModel(
                    name="AuditPerson",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "token",
                            models.CharField(
                                default=agents.models.audit.new_token,
                                max_length=32,
                                unique=True,
                                verbose_name="token",
                            ),
                        ),
                        (
                            "name",
                            models.CharField(blank=True, max_length=150, verbose_name="name"),
                        ),
                        (
                            "key",
                            agents.models.secret.EncryptedTextField(
                                blank=True,
                                default=agents.models.audit.new_key,
                                verbose_name="encryption key",
                            ),
                        ),
                        (
                            "leaves_at",
                            models.DateTimeField(
                                blank=True,
                                help_text="Continues until all data is erased.",
                                null=True,
                                verbose_name="erasure started",
                            ),
                        ),
                        (
                            "user",
                            models.OneToOneField(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="account",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "audit log user",
                        "verbose_name_plural": "audit log users",
                    },
                ),
                migrations.CreateModel(
                    name="AuditEntry",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "at",
                            models.DateTimeField(
                                db_index=True,
                                default=django.utils.timezone.now,
                                verbose_name="time",
                            ),
                        ),
                        (
                            "action",
                            models.CharField(
                                db_index=True, max_length=40, verbose_name="action"
                            ),
                        ),
                        (
                            "subject",
                            models.CharField(
                                db_index=True,
                                help_text="For example, run:12.",
                                max_length=120,
                                verbose_name="subject",
                            ),
                        ),
                        (
                            "detail",
                            models.JSONField(blank=True, default=dict, verbose_name="details"),
                        ),
                        (
                            "number",
                            models.PositiveBigIntegerField(unique=True, verbose_name="number"),
                        ),
                        (
                            "place",
                            models.TextField(
                                blank=True,
                                help_text="Can't be read once the user is erased.",
                                verbose_name="IP address and browser",
                            ),
                        ),
                        ("key", models.CharField(max_length=8, verbose_name="signing key")),
                        (
                            "previous",
                            models.CharField(max_length=64, verbose_name="previous signature"),
                        ),
                        ("seal", models.CharField(max_length=64, verbose_name="signature")),
                        (
                            "person",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="entries",
                                to="agents.auditperson",
                                verbose_name="user",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "audit log entry",
                        "verbose_name_plural": "audit log",
                        "ordering": ["-number"],
                    },
                ),
                migrations.CreateModel(
                    name="BudgetCounter",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        ("scope", models.CharField(max_length=40, verbose_name="scope")),
                        ("window", models.CharField(max_length=6, verbose_name="window")),
                        ("start", models.DateTimeField(verbose_name="window start")),
                        ("runs", models.BigIntegerField(default=0, verbose_name="runs")),
                        (
                            "messages",
                            models.BigIntegerField(default=0, verbose_name="messages"),
                        ),
                        ("calls", models.BigIntegerField(default=0, verbose_name="calls")),
                        ("tokens", models.BigIntegerField(default=0, verbose_name="tokens")),
                        (
                            "cost",
                            models.BigIntegerField(
                                default=0,
                                help_text="In millionths of a dollar.",
                                verbose_name="cost",
                            ),
                        ),
                        (
                            "seconds",
                            models.BigIntegerField(
                                default=0, help_text="In ms.", verbose_name="active time"
                            ),
                        ),
                        (
                            "seeded_at",
                            models.DateTimeField(
                                blank=True,
                                help_text="When recorded usage was added: a limit may be newer than the window.",
                                null=True,
                                verbose_name="seeded",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "usage counter",
                        "verbose_name_plural": "usage counters",
                        "indexes": [
                            models.Index(
                                fields=["window", "start"], name="counters_of_a_window"
                            )
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("scope", "window", "start"), name="one_counter_a_window"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="CacheUsage",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        ("day", models.DateField(verbose_name="day")),
                        ("source", models.CharField(max_length=40, verbose_name="source")),
                        (
                            "kind",
                            models.CharField(
                                choices=[("tool", "Tool result"), ("model", "Model reply")],
                                max_length=6,
                                verbose_name="kind",
                            ),
                        ),
                        (
                            "hits",
                            models.PositiveBigIntegerField(
                                db_default=0, default=0, verbose_name="hits"
                            ),
                        ),
                        (
                            "misses",
                            models.PositiveBigIntegerField(
                                db_default=0, default=0, verbose_name="misses"
                            ),
                        ),
                        (
                            "seconds",
                            models.FloatField(
                                db_default=0.0, default=0.0, verbose_name="saved (seconds)"
                            ),
                        ),
                        (
                            "cost_micros",
                            models.BigIntegerField(
                                db_default=0,
                                default=0,
                                verbose_name="saved (millionths of USD)",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "cache usage",
                        "verbose_name_plural": "cache usage",
                        "ordering": ["-day", "source"],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("day", "source"), name="one_cache_usage_a_day"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Collection",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        ("name", models.CharField(max_length=80, verbose_name="name")),
                        (
                            "description",
                            models.CharField(
                                blank=True,
                                help_text="What agents can find here. They read this to decide where to search.",
                                max_length=300,
                                verbose_name="description",
                            ),
                        ),
                        (
                            "topic",
                            models.CharField(
                                blank=True, editable=False, max_length=80, verbose_name="topic"
                            ),
                        ),
                        (
                            "is_open",
                            models.BooleanField(
                                default=False,
                                help_text="Every signed-in user can search it and open its documents.",
                                verbose_name="open to everyone",
                            ),
                        ),
                        (
                            "created_at",
                            models.DateTimeField(auto_now_add=True, verbose_name="created"),
                        ),
                        (
                            "deleted_at",
                            models.DateTimeField(
                                blank=True,
                                editable=False,
                                help_text="Invisible since then; it can be restored for a moment.",
                                null=True,
                                verbose_name="deleted",
                            ),
                        ),
                        (
                            "deleted_from",
                            models.ForeignKey(
                                blank=True,
                                editable=False,
                                help_text="The collection from which these documents were deleted together.",
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="removals",
                                to="agents.collection",
                                verbose_name="deleted from",
                            ),
                        ),
                        (
                            "groups",
                            models.ManyToManyField(
                                blank=True,
                                help_text="Members of these groups can search it and open its documents.",
                                related_name="+",
                                to="auth.group",
                                verbose_name="groups",
                            ),
                        ),
                        (
                            "owner",
                            models.ForeignKey(
                                blank=True,
                                help_text="Empty: it belongs to the installation.",
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="collections",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="owner",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "collection",
                        "verbose_name_plural": "collections",
                        "ordering": ["name", "pk"],
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(("topic", ""), _negated=True),
                                fields=("topic",),
                                name="one_collection_a_topic",
                            ),
                            models.UniqueConstraint(
                                condition=models.Q(
                                    ("deleted_at", None), ("owner", None), ("topic", "")
                                ),
                                fields=("name",),
                                name="one_collection_a_name",
                                violation_error_message="A collection with this name already exists.",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="CollectionShare",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "may_edit",
                            models.BooleanField(default=False, verbose_name="edit access"),
                        ),
                        (
                            "collection",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="shares",
                                to="agents.collection",
                                verbose_name="collection",
                            ),
                        ),
                        (
                            "user",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="collection_shares",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="user",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "collection access",
                        "verbose_name_plural": "collection access",
                        "ordering": ["pk"],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("collection", "user"), name="one_share_a_person"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="DeletedUsage",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        ("day", models.DateField(verbose_name="day")),
                        (
                            "tokens",
                            models.PositiveBigIntegerField(default=0, verbose_name="tokens"),
                        ),
                        (
                            "cost",
                            models.PositiveBigIntegerField(
                                db_default=0,
                                default=0,
                                help_text="In millionths of a dollar.",
                                verbose_name="cost",
                            ),
                        ),
                        (
                            "messages",
                            models.PositiveIntegerField(
                                db_default=0, default=0, verbose_name="messages"
                            ),
                        ),
                        (
                            "runs",
                            models.PositiveIntegerField(
                                db_default=0, default=0, verbose_name="runs"
                            ),
                        ),
                        (
                            "user",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="user",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "usage of deleted runs",
                        "verbose_name_plural": "usage of deleted runs",
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("user", "day"), name="one_deleted_usage_a_day"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Deletion",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "created_at",
                            models.DateTimeField(
                                auto_now_add=True, db_index=True, verbose_name="deleted"
                            ),
                        ),
                        ("rows", agents.models.secret.EncryptedTextField(verbose_name="rows")),
                        (
                            "user",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="user",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "deletion",
                        "verbose_name_plural": "deletions",
                    },
                ),
                migrations.CreateModel(
                    name="Document",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        ("title", models.CharField(max_length=200, verbose_name="title")),
                        (
                            "source",
                            models.CharField(
                                help_text="Where the text came from: a file's name or path, or an address.",
                                max_length=500,
                                verbose_name="source",
                            ),
                        ),
                        (
                            "language",
                            models.CharField(
                                blank=True,
                                choices=[("en", "English"), ("ja", "Japanese")],
                                max_length=8,
                                verbose_name="language",
                            ),
                        ),
                        (
                            "digest",
                            models.CharField(
                                blank=True,
                                editable=False,
                                help_text="Of the text that its passages come from.",
                                max_length=64,
                                verbose_name="digest",
                            ),
                        ),
                        (
                            "added_at",
                            models.DateTimeField(auto_now_add=True, verbose_name="added"),
                        ),
                        (
                            "attempts",
                            models.PositiveSmallIntegerField(
                                db_default=0, default=0, verbose_name="attempts"
                            ),
                        ),
                        (
                            "done",
                            models.PositiveIntegerField(
                                db_default=0, default=0, verbose_name="done"
                            ),
                        ),
                        (
                            "indexed_at",
                            models.DateTimeField(
                                blank=True,
                                help_text="When its passages were last replaced; empty if it has none yet.",
                                null=True,
                                verbose_name="indexed",
                            ),
                        ),
                        (
                            "lease_until",
                            models.DateTimeField(
                                blank=True,
                                help_text="A process is reading it; after this time another one can.",
                                null=True,
                                verbose_name="leased until",
                            ),
                        ),
                        (
                            "mime_type",
                            models.CharField(
                                blank=True,
                                db_default="",
                                default="",
                                max_length=130,
                                verbose_name="type",
                            ),
                        ),
                        (
                            "pages",
                            models.PositiveIntegerField(
                                blank=True, null=True, verbose_name="pages"
                            ),
                        ),
                        (
                            "problem",
                            models.CharField(
                                blank=True,
                                db_default="",
                                default="",
                                help_text="Why it couldn't be read, or what is missing in it.",
                                max_length=500,
                                verbose_name="problem",
                            ),
                        ),
                        (
                            "size",
                            models.PositiveBigIntegerField(
                                db_default=0, default=0, verbose_name="size (bytes)"
                            ),
                        ),
                        (
                            "status",
                            models.CharField(
                                choices=[
                                    ("queued", "Waiting"),
                                    ("reading", "Reading"),
                                    ("indexing", "Indexing"),
                                    ("ready", "Ready"),
                                    ("failed", "Failed"),
                                    ("cancelled", "Canceled"),
                                ],
                                db_default="queued",
                                default="queued",
                                max_length=10,
                                verbose_name="status",
                            ),
                        ),
                        (
                            "total",
                            models.PositiveIntegerField(
                                db_default=0,
                                default=0,
                                help_text="Pages or passages of the current status; 0 if unknown.",
                                verbose_name="total",
                            ),
                        ),
                        (
                            "url",
                            models.CharField(
                                blank=True,
                                db_default="",
                                default="",
                                help_text="Fetched again from here.",
                                max_length=2000,
                                verbose_name="address",
                            ),
                        ),
                        (
                            "etag",
                            models.CharField(
                                blank=True,
                                db_default="",
                                default="",
                                editable=False,
                                max_length=200,
                            ),
                        ),
                        (
                            "last_modified",
                            models.CharField(
                                blank=True,
                                db_default="",
                                default="",
                                editable=False,
                                max_length=200,
                            ),
                        ),
                        (
                            "fetch_interval",
                            models.CharField(
                                choices=[
                                    ("never", "Never"),
                                    ("daily", "Every day"),
                                    ("weekly", "Every week"),
                                    ("monthly", "Every month"),
                                ],
                                db_default="never",
                                default="never",
                                max_length=10,
                                verbose_name="fetch automatically",
                            ),
                        ),
                        (
                            "fetch_problem",
                            models.CharField(
                                blank=True,
                                db_default="",
                                default="",
                                help_text="Why the last fetch failed; the text from before stays.",
                                max_length=500,
                                verbose_name="fetch problem",
                            ),
                        ),
                        (
                            "fetched_at",
                            models.DateTimeField(
                                blank=True, null=True, verbose_name="last fetched"
                            ),
                        ),
                        (
                            "is_slow",
                            models.BooleanField(
                                db_default=False,
                                default=False,
                                help_text="Needs text recognition or a transcript, so it has a queue of its own.",
                                verbose_name="slow",
                            ),
                        ),
                        (
                            "next_fetch_at",
                            models.DateTimeField(
                                blank=True, null=True, verbose_name="next fetch"
                            ),
                        ),
                        (
                            "is_private",
                            models.BooleanField(
                                db_default=False,
                                default=False,
                                help_text="No recording or image of it is sent to a model to be read.",
                                verbose_name="read on this server only",
                            ),
                        ),
                        (
                            "sent_as",
                            models.CharField(
                                blank=True,
                                choices=[
                                    ("", "by its size"),
                                    ("whole", "Whole text"),
                                    ("searchable", "Searchable"),
                                ],
                                db_default="",
                                default="",
                                help_text="A file of a chat: chosen by its user, or by its size.",
                                max_length=10,
                                verbose_name="how a model gets it",
                            ),
                        ),
                        (
                            "collection",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="documents",
                                to="agents.collection",
                                verbose_name="collection",
                            ),
                        ),
                        (
                            "owner",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="documents",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="added by",
                            ),
                        ),
                        (
                            "scheduled_by",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="scheduled by",
                            ),
                        ),
                        (
                            "sitemap",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="documents",
                                to="agents.sitemap",
                                verbose_name="sitemap",
                            ),
                        ),
                        (
                            "file",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="documents",
                                to="agents.storedfile",
                                verbose_name="file",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "document",
                        "verbose_name_plural": "documents",
                        "ordering": ("source",),
                        "indexes": [
                            models.Index(
                                condition=models.Q(
                                    ("status__in", ["queued", "reading", "indexing"])
                                ),
                                fields=["lease_until", "id"],
                                name="documents_to_read",
                            ),
                            models.Index(
                                condition=models.Q(("next_fetch_at__isnull", False)),
                                fields=["next_fetch_at"],
                                name="documents_to_fetch",
                            ),
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("collection", "source"), name="one_document_a_source"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Chunk",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        ("ordinal", models.PositiveIntegerField(verbose_name="position")),
                        (
                            "heading",
                            models.CharField(
                                blank=True, max_length=500, verbose_name="heading"
                            ),
                        ),
                        ("text", models.TextField(verbose_name="text")),
                        (
                            "end",
                            models.PositiveIntegerField(
                                blank=True,
                                help_text="First character after it.",
                                null=True,
                                verbose_name="end",
                            ),
                        ),
                        (
                            "part",
                            models.PositiveIntegerField(
                                db_default=1,
                                default=1,
                                help_text="Number of the part it begins in: its page, slide or sheet.",
                                verbose_name="part",
                            ),
                        ),
                        (
                            "start",
                            models.PositiveIntegerField(
                                blank=True,
                                help_text="First character in the part's text.",
                                null=True,
                                verbose_name="start",
                            ),
                        ),
                        (
                            "document",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="chunks",
                                to="agents.document",
                                verbose_name="document",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "passage",
                        "verbose_name_plural": "passages",
                        "ordering": ("document", "ordinal"),
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("document", "ordinal"), name="chunk_ordinal_in_document"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="DocumentPart",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "number",
                            models.PositiveIntegerField(
                                help_text="From 1.", verbose_name="number"
                            ),
                        ),
                        (
                            "kind",
                            models.CharField(
                                choices=[
                                    ("text", "Text"),
                                    ("page", "Page"),
                                    ("slide", "Slide"),
                                    ("sheet", "Sheet"),
                                    ("chapter", "Chapter"),
                                    ("clip", "Clip"),
                                ],
                                max_length=10,
                                verbose_name="kind",
                            ),
                        ),
                        (
                            "label",
                            models.CharField(
                                blank=True,
                                help_text="A sheet's name or a chapter's title.",
                                max_length=200,
                                verbose_name="label",
                            ),
                        ),
                        (
                            "text",
                            models.TextField(
                                help_text="Markdown; tables have one row per line.",
                                verbose_name="text",
                            ),
                        ),
                        (
                            "is_recognized",
                            models.BooleanField(
                                db_default=False,
                                default=False,
                                help_text="Whether the text was read from an image (OCR) or a recording.",
                                verbose_name="recognized",
                            ),
                        ),
                        (
                            "document",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="parts",
                                to="agents.document",
                                verbose_name="document",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "part of a document",
                        "verbose_name_plural": "parts of documents",
                        "ordering": ("document", "number"),
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("document", "number"), name="one_part_a_number"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="EmbeddingIndex",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "model",
                            models.CharField(
                                help_text="local, or a LiteLLM model name.",
                                max_length=200,
                                verbose_name="model",
                            ),
                        ),
                        ("dimension", models.PositiveIntegerField(verbose_name="dimension")),
                        (
                            "version",
                            models.PositiveSmallIntegerField(
                                default=1,
                                help_text="Changes with how texts are prepared.",
                                verbose_name="version",
                            ),
                        ),
                        (
                            "status",
                            models.CharField(
                                choices=[
                                    ("building", "Building"),
                                    ("active", "Active"),
                                    ("retired", "Retired"),
                                ],
                                default="building",
                                max_length=10,
                                verbose_name="status",
                            ),
                        ),
                        ("done", models.PositiveIntegerField(default=0, verbose_name="done")),
                        ("total", models.PositiveIntegerField(default=0, verbose_name="total")),
                        (
                            "problem",
                            models.CharField(
                                blank=True, max_length=500, verbose_name="problem"
                            ),
                        ),
                        (
                            "created_at",
                            models.DateTimeField(auto_now_add=True, verbose_name="created"),
                        ),
                        (
                            "activated_at",
                            models.DateTimeField(
                                blank=True, null=True, verbose_name="activated"
                            ),
                        ),
                        (
                            "lease_until",
                            models.DateTimeField(
                                blank=True,
                                help_text="A process is filling it; after this time another one can.",
                                null=True,
                                verbose_name="leased until",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "embedding index",
                        "verbose_name_plural": "embedding indexes",
                        "ordering": ["pk"],
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(("status", "active")),
                                fields=("status",),
                                name="one_active_embedding_index",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ChunkVector",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "window",
                            models.PositiveSmallIntegerField(
                                default=0,
                                help_text="0 is the whole passage.",
                                verbose_name="window",
                            ),
                        ),
                        (
                            "vector",
                            models.BinaryField(
                                help_text="Normalized, 16-bit floats.", verbose_name="vector"
                            ),
                        ),
                        (
                            "chunk",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="vectors",
                                to="agents.chunk",
                            ),
                        ),
                        (
                            "index",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="vectors",
                                to="agents.embeddingindex",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "vector",
                        "verbose_name_plural": "vectors",
                        "ordering": ["pk"],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("index", "chunk", "window"), name="one_vector_a_window"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="GuardrailPattern",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "name",
                            models.CharField(max_length=80, unique=True, verbose_name="name"),
                        ),
                        (
                            "pattern",
                            models.CharField(
                                blank=True,
                                help_text="RE2 regular expression. Start with (?i) to ignore case.",
                                max_length=1000,
                                verbose_name="pattern",
                            ),
                        ),
                        (
                            "action",
                            models.CharField(
                                choices=[
                                    ("allow", "Allow"),
                                    ("warn", "Warn"),
                                    ("mask", "Mask"),
                                    ("block", "Block"),
                                ],
                                default="block",
                                help_text="Block: stops the text. Mask: replaces the match with ‹name›. Warn: only records the match. Allow: exempts the match from all other rules.",
                                max_length=10,
                                verbose_name="action",
                            ),
                        ),
                        (
                            "message",
                            models.CharField(
                                blank=True,
                                help_text="What the user sees. Default: the pattern's name.",
                                max_length=300,
                                verbose_name="message",
                            ),
                        ),
                        ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                        (
                            "is_observed",
                            models.BooleanField(
                                default=False,
                                help_text="Records what the pattern would have done, without changing anything.",
                                verbose_name="observe only",
                            ),
                        ),
                        (
                            "stage",
                            models.CharField(
                                choices=agents.models.guardrails.stage_choices,
                                default="both",
                                max_length=12,
                                verbose_name="stage",
                            ),
                        ),
                        (
                            "kind",
                            models.CharField(
                                choices=[("pattern", "Pattern"), ("model", "Model check")],
                                default="pattern",
                                max_length=10,
                                verbose_name="kind",
                            ),
                        ),
                        (
                            "max_call_tokens",
                            models.PositiveIntegerField(
                                default=8000,
                                help_text="A longer text isn't sent, and counts as a failed check.",
                                validators=[
                                    django.core.validators.MinValueValidator(100),
                                    django.core.validators.MaxValueValidator(1000000),
                                ],
                                verbose_name="max tokens per call",
                            ),
                        ),
                        (
                            "max_calls",
                            models.PositiveIntegerField(
                                default=20,
                                validators=[
                                    django.core.validators.MinValueValidator(1),
                                    django.core.validators.MaxValueValidator(1000),
                                ],
                                verbose_name="max calls per run",
                            ),
                        ),
                        (
                            "max_daily_cost",
                            models.FloatField(
                                blank=True,
                                default=5.0,
                                help_text="Empty: no limit. Calls of a model without a price count as $0.",
                                null=True,
                                validators=[django.core.validators.MinValueValidator(0)],
                                verbose_name="max cost per day (USD)",
                            ),
                        ),
                        (
                            "model",
                            models.CharField(
                                blank=True,
                                help_text="Answers whether a text breaks the rule. A small, fast model is enough.",
                                max_length=200,
                                verbose_name="model",
                            ),
                        ),
                        (
                            "on_failure",
                            models.CharField(
                                choices=[
                                    (
                                        "allow",
                                        "Allow the text, and note that it wasn't checked",
                                    ),
                                    ("block", "Block the text"),
                                ],
                                default="allow",
                                help_text="On an error, a timeout, an invalid reply or a reached limit.",
                                max_length=10,
                                verbose_name="if the check fails",
                            ),
                        ),
                        (
                            "position",
                            models.PositiveIntegerField(
                                default=0,
                                help_text="Rules are checked from the lowest to the highest.",
                                verbose_name="position",
                            ),
                        ),
                        (
                            "rubric",
                            models.TextField(
                                blank=True,
                                help_text="What counts as a violation, in plain words. Examples make it more reliable.",
                                max_length=8000,
                                verbose_name="rule for the model",
                            ),
                        ),
                        (
                            "threshold",
                            models.PositiveSmallIntegerField(
                                default=50,
                                help_text="A violation counts from this confidence. 0 counts every one.",
                                validators=[django.core.validators.MaxValueValidator(100)],
                                verbose_name="min confidence (%)",
                            ),
                        ),
                        (
                            "timeout",
                            models.PositiveIntegerField(
                                default=20,
                                validators=[
                                    django.core.validators.MinValueValidator(1),
                                    django.core.validators.MaxValueValidator(120),
                                ],
                                verbose_name="timeout (seconds)",
                            ),
                        ),
                        (
                            "agents",
                            models.ManyToManyField(
                                blank=True,
                                help_text="Agents it applies to. If none is selected, it applies to all.",
                                related_name="patterns",
                                to="agents.agent",
                                verbose_name="agents",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "guardrail",
                        "verbose_name_plural": "guardrails",
                        "ordering": ["position", "pk"],
                    },
                ),
                migrations.CreateModel(
                    name="GuardrailHit",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        ("step", models.PositiveIntegerField(verbose_name="step")),
                        ("agent_name", models.CharField(max_length=64, verbose_name="agent")),
                        (
                            "stage",
                            models.CharField(
                                choices=agents.models.guardrails.stage_choices,
                                max_length=12,
                                verbose_name="stage",
                            ),
                        ),
                        (
                            "action",
                            models.CharField(
                                choices=[
                                    ("allow", "Allow"),
                                    ("warn", "Warn"),
                                    ("mask", "Mask"),
                                    ("block", "Block"),
                                ],
                                max_length=10,
                                verbose_name="action",
                            ),
                        ),
                        (
                            "is_observed",
                            models.BooleanField(default=False, verbose_name="observed only"),
                        ),
                        (
                            "matches",
                            models.PositiveIntegerField(default=1, verbose_name="matches"),
                        ),
                        ("at", models.DateTimeField(verbose_name="time")),
                        (
                            "pattern",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="hits",
                                to="agents.guardrailpattern",
                            ),
                        ),
                        (
                            "run",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="hits",
                                to="agents.run",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "guardrail hit",
                        "verbose_name_plural": "guardrail hits",
                        "indexes": [
                            models.Index(fields=["pattern", "id"], name="hits_of_a_pattern"),
                            models.Index(fields=["at"], name="hits_by_time"),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="GuardrailUsage",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        ("day", models.DateField(verbose_name="day")),
                        ("calls", models.PositiveIntegerField(default=0, verbose_name="calls")),
                        (
                            "failures",
                            models.PositiveIntegerField(default=0, verbose_name="failed calls"),
                        ),
                        (
                            "tokens",
                            models.PositiveIntegerField(default=0, verbose_name="tokens"),
                        ),
                        ("cost", models.FloatField(default=0.0, verbose_name="cost")),
                        (
                            "pattern",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="usage",
                                to="agents.guardrailpattern",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "guardrail usage",
                        "verbose_name_plural": "guardrail usage",
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("pattern", "day"), name="usage_of_a_guardrail_a_day"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="GuardrailVerdict",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        ("is_right", models.BooleanField(verbose_name="correct")),
                        ("at", models.DateTimeField(auto_now=True, verbose_name="time")),
                        (
                            "by",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "hit",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="verdict",
                                to="agents.guardrailhit",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "guardrail hit verdict",
                        "verbose_name_plural": "guardrail hit verdicts",
                    },
                ),
                migrations.CreateModel(
                    name="HiddenTopic",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "topic",
                            models.CharField(max_length=80, unique=True, verbose_name="topic"),
                        ),
                        (
                            "user",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="visible to",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "hidden topic",
                        "verbose_name_plural": "hidden topics",
                    },
                ),
                migrations.CreateModel(
                    name="LanguageModel",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "label",
                            models.CharField(
                                help_text="Name that users see and agents refer to. Can't be changed later.",
                                max_length=64,
                                unique=True,
                                validators=[
                                    django.core.validators.RegexValidator(
                                        "\\A\\w[\\w.:+-]*\\Z",
                                        "Use only letters, digits and . : + - _ (no spaces or slashes).",
                                    )
                                ],
                                verbose_name="label",
                            ),
                        ),
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
                        ("model", models.CharField(max_length=200, verbose_name="model")),
                        (
                            "base_url",
                            models.CharField(blank=True, max_length=500, verbose_name="URL"),
                        ),
                        (
                            "api_key",
                            agents.models.secret.EncryptedTextField(
                                blank=True, default="", verbose_name="API key"
                            ),
                        ),
                        (
                            "api_version",
                            models.CharField(
                                blank=True, max_length=40, verbose_name="API version"
                            ),
                        ),
                        (
                            "region",
                            models.CharField(blank=True, max_length=40, verbose_name="region"),
                        ),
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
                            "parameters",
                            models.JSONField(
                                blank=True, default=dict, verbose_name="parameters"
                            ),
                        ),
                        (
                            "input_price",
                            models.FloatField(
                                blank=True,
                                help_text="Leave empty to use LiteLLM's price, if known. Use 0 if it's free.",
                                null=True,
                                validators=[django.core.validators.MinValueValidator(0)],
                                verbose_name="input price (USD per 1M tokens)",
                            ),
                        ),
                        (
                            "output_price",
                            models.FloatField(
                                blank=True,
                                null=True,
                                validators=[django.core.validators.MinValueValidator(0)],
                                verbose_name="output price (USD per 1M tokens)",
                            ),
                        ),
                        (
                            "context_window",
                            models.PositiveIntegerField(
                                blank=True,
                                help_text="Max tokens per request. Leave empty to use LiteLLM's value.",
                                null=True,
                                validators=[django.core.validators.MinValueValidator(256)],
                                verbose_name="context window",
                            ),
                        ),
                        (
                            "fallbacks",
                            models.TextField(
                                blank=True,
                                help_text="Model labels or LiteLLM names, one per line, tried in order. The agent's own fallback models come first.",
                                verbose_name="fallback models",
                            ),
                        ),
                        (
                            "concurrency",
                            models.PositiveIntegerField(
                                blank=True,
                                help_text="Leave empty for no limit. Limits hold over all server processes together.",
                                null=True,
                                validators=[django.core.validators.MinValueValidator(1)],
                                verbose_name="max concurrent requests",
                            ),
                        ),
                        (
                            "requests_per_minute",
                            models.PositiveIntegerField(
                                blank=True,
                                null=True,
                                validators=[django.core.validators.MinValueValidator(1)],
                                verbose_name="max requests per minute",
                            ),
                        ),
                        (
                            "tokens_per_minute",
                            models.PositiveIntegerField(
                                blank=True,
                                null=True,
                                validators=[django.core.validators.MinValueValidator(1)],
                                verbose_name="max tokens per minute",
                            ),
                        ),
                        ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                        (
                            "image_input",
                            models.CharField(
                                choices=[("auto", "Automatic"), ("yes", "Yes"), ("no", "No")],
                                db_default="auto",
                                default="auto",
                                help_text="Whether images from tools are sent to the model. Automatic uses LiteLLM's information.",
                                max_length=4,
                                verbose_name="image input",
                            ),
                        ),
                        (
                            "abilities",
                            models.JSONField(
                                blank=True,
                                db_default=models.Value({}, models.JSONField()),
                                default=dict,
                                help_text="What differs from the price list: tools, audio, schema, reasoning.",
                                verbose_name="abilities",
                            ),
                        ),
                        (
                            "is_default",
                            models.BooleanField(
                                db_default=False,
                                default=False,
                                help_text="Used by agents without a model of their own.",
                                verbose_name="default model",
                            ),
                        ),
                        (
                            "last_test",
                            models.JSONField(
                                blank=True,
                                db_default=models.Value({}, models.JSONField()),
                                default=dict,
                                editable=False,
                                help_text="When it was tested, what worked, and why it failed.",
                                verbose_name="last test",
                            ),
                        ),
                        (
                            "prompt_caching",
                            models.BooleanField(
                                db_default=True,
                                default=True,
                                help_text="Lets the provider reuse the unchanged beginning of a prompt at a lower price. When off, prompts aren't marked for it.",
                                verbose_name="prompt caching",
                            ),
                        ),
                        (
                            "cache_read_price",
                            models.FloatField(
                                blank=True,
                                help_text="For input that the provider reads from its cache. Empty: as the input price.",
                                null=True,
                                validators=[django.core.validators.MinValueValidator(0)],
                                verbose_name="cached input price (USD per 1M tokens)",
                            ),
                        ),
                        (
                            "cache_write_price",
                            models.FloatField(
                                blank=True,
                                help_text="For input that the provider saves in its cache. Empty: as the input price.",
                                null=True,
                                validators=[django.core.validators.MinValueValidator(0)],
                                verbose_name="cache write price (USD per 1M tokens)",
                            ),
                        ),
                        (
                            "groups",
                            models.ManyToManyField(
                                blank=True,
                                help_text="Only members of these groups can use it. If none is selected, everyone can.",
                                related_name="+",
                                to="auth.group",
                                verbose_name="allowed groups",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "model",
                        "verbose_name_plural": "models",
                        "ordering": ["label"],
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(("is_default", True)),
                                fields=("is_default",),
                                name="one_default_model",
                                violation_error_message="Another model is already the default.",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ProjectMember",
                    fields=[
                        (
                            "membership_ptr",
                            models.OneToOneField(
                                auto_created=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                parent_link=True,
                                primary_key=True,
                                serialize=False,
                                to="agents.membership",
                            ),
                        ),
                        (
                            "project",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="members",
                                to="agents.project",
                                verbose_name="project",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "project member",
                        "verbose_name_plural": "project members",
                        "ordering": ["pk"],
                    },
                    bases=("agents.membership",),
                ),
                migrations.CreateModel(
                    name="MemoryExclusion",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "group",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="auth.group",
                                verbose_name="group",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "group without memory",
                        "verbose_name_plural": "groups without memory",
                        "ordering": ["group__name"],
                    },
                ),
                migrations.CreateModel(
                    name="ModelSlot",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "key",
                            models.CharField(max_length=32, unique=True, verbose_name="key"),
                        ),
                        ("model", models.CharField(max_length=200, verbose_name="model")),
                        (
                            "is_running",
                            models.BooleanField(default=False, verbose_name="running"),
                        ),
                        ("expires_at", models.DateTimeField(verbose_name="expires")),
                    ],
                    options={
                        "verbose_name": "model slot",
                        "verbose_name_plural": "model slots",
                        "ordering": ["pk"],
                        "indexes": [
                            models.Index(fields=["model", "id"], name="model_slot_line")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Personalization",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "learns",
                            models.BooleanField(
                                db_default=True,
                                default=True,
                                help_text="Ratings and corrections become experiences for your later chats.",
                                verbose_name="learn from my chats",
                            ),
                        ),
                        (
                            "learns_style",
                            models.BooleanField(
                                db_default=True,
                                default=True,
                                verbose_name="learn my answer style",
                            ),
                        ),
                        (
                            "chosen",
                            models.JSONField(
                                blank=True, default=dict, verbose_name="chosen style"
                            ),
                        ),
                        (
                            "learned",
                            models.JSONField(
                                blank=True, default=dict, verbose_name="learned style"
                            ),
                        ),
                        (
                            "user",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="personalization",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="user",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "personalization",
                        "verbose_name_plural": "personalizations",
                    },
                ),
                migrations.CreateModel(
                    name="Project",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        ("name", models.CharField(max_length=80, verbose_name="name")),
                        (
                            "description",
                            models.CharField(
                                blank=True, max_length=300, verbose_name="description"
                            ),
                        ),
                        (
                            "instructions",
                            models.TextField(
                                blank=True,
                                help_text="Sent with every chat of the project, instead of your custom instructions.",
                                max_length=8000,
                                verbose_name="instructions",
                            ),
                        ),
                        (
                            "uses_memory",
                            models.BooleanField(
                                db_default=True,
                                default=True,
                                help_text="Remember facts for this project. Members can read and change them.",
                                verbose_name="use memory",
                            ),
                        ),
                        (
                            "created_at",
                            models.DateTimeField(auto_now_add=True, verbose_name="created"),
                        ),
                        (
                            "updated_at",
                            models.DateTimeField(auto_now=True, verbose_name="changed"),
                        ),
                        (
                            "agent",
                            models.ForeignKey(
                                blank=True,
                                help_text="Answers new chats of the project unless another one is chosen.",
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to="agents.agent",
                                verbose_name="default agent",
                            ),
                        ),
                        (
                            "owner",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="projects",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="owner",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "project",
                        "verbose_name_plural": "projects",
                        "ordering": ["name", "pk"],
                    },
                ),
                migrations.CreateModel(
                    name="Experience",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "scope",
                            models.CharField(
                                choices=[
                                    ("person", "One person"),
                                    ("project", "Project"),
                                    ("agent", "Everyone who uses the agent"),
                                ],
                                default="person",
                                max_length=10,
                                verbose_name="used by",
                            ),
                        ),
                        (
                            "kind",
                            models.CharField(
                                choices=[
                                    ("success", "What worked"),
                                    ("correction", "Correction"),
                                ],
                                max_length=12,
                                verbose_name="kind",
                            ),
                        ),
                        (
                            "source",
                            models.CharField(
                                choices=[
                                    ("rating", "Rating"),
                                    ("follow_up", "Correction in the chat"),
                                    ("regenerated", "Answer was regenerated"),
                                    ("review", "Reviewer's correction"),
                                    ("example", "Saved example"),
                                    ("page", "Added by hand"),
                                ],
                                default="page",
                                max_length=12,
                                verbose_name="source",
                            ),
                        ),
                        (
                            "status",
                            models.CharField(
                                choices=[
                                    ("active", "Active"),
                                    ("review", "Awaiting review"),
                                    ("off", "Off"),
                                ],
                                default="active",
                                max_length=10,
                                verbose_name="status",
                            ),
                        ),
                        (
                            "off_reason",
                            models.CharField(
                                blank=True,
                                choices=[
                                    ("", ""),
                                    ("harmful", "It made answers worse."),
                                    ("rejected", "A reviewer rejected it."),
                                    ("person", "You turned it off."),
                                    ("console", "Turned off in the console."),
                                ],
                                default="",
                                max_length=10,
                                verbose_name="reason",
                            ),
                        ),
                        (
                            "question",
                            models.CharField(
                                help_text="Similar questions use it. E.g. What was the GMV in May?",
                                max_length=300,
                                verbose_name="question",
                            ),
                        ),
                        (
                            "text",
                            models.CharField(
                                help_text="What worked, or what is right. E.g. GMV means revenue.",
                                max_length=600,
                                validators=[django.core.validators.MinLengthValidator(3)],
                                verbose_name="lesson",
                            ),
                        ),
                        (
                            "digest",
                            models.CharField(
                                editable=False, max_length=64, verbose_name="digest"
                            ),
                        ),
                        (
                            "tools",
                            models.JSONField(
                                blank=True,
                                default=list,
                                help_text="Tools it is about; runs without them don't use it.",
                                verbose_name="tools",
                            ),
                        ),
                        (
                            "collections",
                            models.JSONField(
                                blank=True,
                                default=list,
                                help_text="Collections it quotes; only users who can open them use it.",
                                verbose_name="collections",
                            ),
                        ),
                        (
                            "helpful",
                            models.PositiveIntegerField(default=0, verbose_name="helpful"),
                        ),
                        (
                            "harmful",
                            models.PositiveIntegerField(default=0, verbose_name="harmful"),
                        ),
                        (
                            "expires_at",
                            models.DateTimeField(blank=True, null=True, verbose_name="expires"),
                        ),
                        (
                            "reviewed_at",
                            models.DateTimeField(
                                blank=True, null=True, verbose_name="reviewed"
                            ),
                        ),
                        (
                            "vector",
                            models.BinaryField(blank=True, null=True, verbose_name="vector"),
                        ),
                        (
                            "vector_model",
                            models.CharField(
                                blank=True,
                                editable=False,
                                max_length=200,
                                verbose_name="embedding model",
                            ),
                        ),
                        (
                            "created_at",
                            models.DateTimeField(auto_now_add=True, verbose_name="created"),
                        ),
                        (
                            "updated_at",
                            models.DateTimeField(auto_now=True, verbose_name="changed"),
                        ),
                        (
                            "deleted_at",
                            models.DateTimeField(blank=True, null=True, verbose_name="deleted"),
                        ),
                        (
                            "agent",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="experiences",
                                to="agents.agent",
                                verbose_name="agent",
                            ),
                        ),
                        (
                            "reviewed_by",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="reviewed by",
                            ),
                        ),
                        (
                            "user",
                            models.ForeignKey(
                                blank=True,
                                help_text="Whose run it comes from; it is deleted with their account.",
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="experiences",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="user",
                            ),
                        ),
                        (
                            "project",
                            models.ForeignKey(
                                blank=True,
                                help_text="Only runs of this project use it.",
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="experiences",
                                to="agents.project",
                                verbose_name="project",
                            ),
                        ),
                        (
                            "run",
                            models.ForeignKey(
                                blank=True,
                                help_text="The run it comes from; it is deleted with it.",
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="experiences",
                                to="agents.run",
                                verbose_name="run",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "experience",
                        "verbose_name_plural": "experiences",
                        "ordering": ["-pk"],
                        "indexes": [
                            models.Index(
                                fields=["agent", "status"], name="experiences_of_an_agent"
                            )
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(("deleted_at", None), ("scope", "person")),
                                fields=("user", "agent", "digest"),
                                name="one_experience_a_person",
                            ),
                            models.UniqueConstraint(
                                condition=models.Q(("deleted_at", None), ("scope", "project")),
                                fields=("project", "agent", "digest"),
                                name="one_experience_a_project",
                            ),
                            models.UniqueConstraint(
                                condition=models.Q(("deleted_at", None), ("scope", "agent")),
                                fields=("agent", "digest"),
                                name="one_experience_an_agent",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ReadingUsage",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        ("digest", models.CharField(max_length=64, verbose_name="digest")),
                        ("model", models.CharField(max_length=200, verbose_name="model")),
                        (
                            "cost",
                            models.FloatField(blank=True, null=True, verbose_name="cost (USD)"),
                        ),
                        (
                            "prompt_tokens",
                            models.PositiveIntegerField(
                                default=0, verbose_name="prompt tokens"
                            ),
                        ),
                        (
                            "completion_tokens",
                            models.PositiveIntegerField(
                                default=0, verbose_name="completion tokens"
                            ),
                        ),
                        (
                            "created_at",
                            models.DateTimeField(auto_now_add=True, verbose_name="created"),
                        ),
                        (
                            "user",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="user",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "usage of reading files",
                        "verbose_name_plural": "usage of reading files",
                        "indexes": [
                            models.Index(fields=["user", "digest"], name="usage_of_files")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ReviewScope",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "agents",
                            models.ManyToManyField(
                                blank=True,
                                related_name="+",
                                to="agents.agent",
                                verbose_name="agents",
                            ),
                        ),
                        (
                            "user",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="review_scope",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="reviewer",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "reviewer access",
                        "verbose_name_plural": "reviewer access",
                    },
                ),
                migrations.CreateModel(
                    name="Run",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "topic",
                            models.CharField(
                                help_text="Channel the run's events are sent to.",
                                max_length=80,
                                verbose_name="topic",
                            ),
                        ),
                        (
                            "agent_name",
                            models.CharField(max_length=64, verbose_name="agent name"),
                        ),
                        ("model", models.CharField(max_length=200, verbose_name="model")),
                        (
                            "dialect",
                            models.CharField(
                                default="native", max_length=10, verbose_name="tool call format"
                            ),
                        ),
                        ("query", models.TextField(verbose_name="question")),
                        ("answer", models.TextField(blank=True, verbose_name="answer")),
                        (
                            "status",
                            models.CharField(
                                choices=[
                                    ("running", "running"),
                                    ("waiting", "waiting for a user"),
                                    ("completed", "completed"),
                                    ("stopped", "stopped"),
                                    ("blocked", "blocked"),
                                    ("failed", "failed"),
                                    ("interrupted", "interrupted"),
                                ],
                                default="running",
                                max_length=12,
                                verbose_name="status",
                            ),
                        ),
                        (
                            "stopped_reason",
                            models.CharField(blank=True, max_length=32, verbose_name="reason"),
                        ),
                        ("detail", models.TextField(blank=True, verbose_name="what happened")),
                        ("advice", models.TextField(blank=True, verbose_name="what to do")),
                        (
                            "max_steps",
                            models.PositiveIntegerField(default=10, verbose_name="max steps"),
                        ),
                        ("turns", models.PositiveIntegerField(default=0, verbose_name="turns")),
                        (
                            "tool_calls",
                            models.PositiveIntegerField(default=0, verbose_name="tool calls"),
                        ),
                        (
                            "prompt_tokens",
                            models.PositiveIntegerField(default=0, verbose_name="input tokens"),
                        ),
                        (
                            "completion_tokens",
                            models.PositiveIntegerField(
                                default=0, verbose_name="output tokens"
                            ),
                        ),
                        (
                            "cost",
                            models.FloatField(blank=True, null=True, verbose_name="cost (USD)"),
                        ),
                        (
                            "owner",
                            models.CharField(
                                blank=True,
                                help_text="Process that executes the run.",
                                max_length=120,
                                verbose_name="owner",
                            ),
                        ),
                        (
                            "started_at",
                            models.DateTimeField(
                                auto_now_add=True, db_index=True, verbose_name="started"
                            ),
                        ),
                        (
                            "ended_at",
                            models.DateTimeField(blank=True, null=True, verbose_name="ended"),
                        ),
                        (
                            "history",
                            models.JSONField(
                                blank=True,
                                default=list,
                                help_text="Saved as sent to the model, so the run can resume after a pause.",
                                verbose_name="earlier messages",
                            ),
                        ),
                        (
                            "output",
                            models.JSONField(
                                blank=True, null=True, verbose_name="structured output"
                            ),
                        ),
                        (
                            "epoch",
                            models.PositiveIntegerField(
                                default=0,
                                help_text="Increases with each new owner, so an earlier one can't write.",
                                verbose_name="epoch",
                            ),
                        ),
                        (
                            "heartbeat_at",
                            models.DateTimeField(
                                blank=True,
                                help_text="If empty, any worker can take over the run.",
                                null=True,
                                verbose_name="heartbeat",
                            ),
                        ),
                        (
                            "takeovers",
                            models.PositiveSmallIntegerField(
                                default=0, verbose_name="takeovers"
                            ),
                        ),
                        (
                            "road",
                            models.CharField(
                                blank=True,
                                help_text="How the model was called: directly or through LiteLLM.",
                                max_length=10,
                                verbose_name="route",
                            ),
                        ),
                        (
                            "is_to_stop",
                            models.BooleanField(
                                db_default=False,
                                default=False,
                                help_text="The owner has been asked to stop the run.",
                                verbose_name="stop requested",
                            ),
                        ),
                        (
                            "origin_step",
                            models.PositiveIntegerField(
                                blank=True, null=True, verbose_name="from step"
                            ),
                        ),
                        (
                            "overrides",
                            models.JSONField(
                                blank=True,
                                db_default=models.Value({}, models.JSONField()),
                                default=dict,
                                help_text="Settings that differ from the agent's: of a rerun, or chosen in the chat.",
                                verbose_name="overrides",
                            ),
                        ),
                        (
                            "seconds",
                            models.FloatField(
                                blank=True, null=True, verbose_name="duration (seconds)"
                            ),
                        ),
                        (
                            "version",
                            models.CharField(
                                blank=True,
                                db_default="",
                                default="",
                                help_text="Identical for runs with the same configuration.",
                                max_length=12,
                                verbose_name="version",
                            ),
                        ),
                        (
                            "marks",
                            models.TextField(
                                blank=True,
                                db_default="",
                                help_text="Step types of a finished run, used for search.",
                                verbose_name="step types",
                            ),
                        ),
                        (
                            "parameters",
                            models.JSONField(
                                blank=True,
                                db_default=models.Value({}, models.JSONField()),
                                default=dict,
                                help_text="Values the workflow was started with.",
                                verbose_name="parameters",
                            ),
                        ),
                        (
                            "agent_version",
                            models.PositiveIntegerField(
                                blank=True,
                                help_text="Version the run started with; empty for tests of a draft.",
                                null=True,
                                verbose_name="agent version",
                            ),
                        ),
                        (
                            "crashes",
                            models.PositiveSmallIntegerField(
                                db_default=0,
                                default=0,
                                help_text="Processes that crashed since the last recorded step.",
                                verbose_name="crashes",
                            ),
                        ),
                        (
                            "steps_at_crash",
                            models.PositiveIntegerField(
                                db_default=0, default=0, verbose_name="steps at the last crash"
                            ),
                        ),
                        (
                            "tasks",
                            models.PositiveIntegerField(
                                db_default=0,
                                default=0,
                                help_text="Plan steps that were started; 0 without a plan.",
                                verbose_name="plan steps",
                            ),
                        ),
                        (
                            "waited",
                            models.FloatField(
                                db_default=0.0,
                                default=0.0,
                                help_text="Part of the duration spent waiting for users, and for turns of a model.",
                                verbose_name="waiting time (seconds)",
                            ),
                        ),
                        (
                            "files",
                            models.JSONField(
                                blank=True,
                                db_default=models.Value([], models.JSONField()),
                                default=list,
                                help_text="References to the files that the user attached to the question.",
                                verbose_name="files",
                            ),
                        ),
                        (
                            "agent",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="runs",
                                to="agents.agent",
                                verbose_name="agent",
                            ),
                        ),
                        (
                            "origin",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="reruns",
                                to="agents.run",
                                verbose_name="rerun of",
                            ),
                        ),
                        (
                            "project",
                            models.ForeignKey(
                                blank=True,
                                db_index=False,
                                help_text="The project of its chat when it started.",
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to="agents.project",
                                verbose_name="project",
                            ),
                        ),
                        (
                            "user",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="runs",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="user",
                            ),
                        ),
                        (
                            "workflow",
                            models.ForeignKey(
                                blank=True,
                                help_text="Workflow version that this run executes.",
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="runs",
                                to="agents.workflowversion",
                                verbose_name="workflow",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "run",
                        "verbose_name_plural": "runs",
                        "ordering": ["-pk"],
                        "permissions": [
                            ("review_runs", "Can review everybody's runs"),
                            ("see_personal_data", "Can see personal data in others' runs"),
                            (
                                "rerun_runs",
                                "Can run again what others asked, with other guardrails, too",
                            ),
                        ],
                        "indexes": [
                            models.Index(
                                fields=["status", "ended_at"], name="runs_of_a_status"
                            ),
                            models.Index(fields=["user", "status"], name="runs_of_a_person"),
                            models.Index(
                                condition=models.Q(("seconds__isnull", False)),
                                fields=[
                                    "started_at",
                                    "status",
                                    "cost",
                                    "seconds",
                                    "waited",
                                    "agent_name",
                                    "topic",
                                ],
                                name="finished_runs",
                            ),
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(("status__in", ["running", "waiting"])),
                                fields=("topic",),
                                name="one_live_run_a_topic",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Memory",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "subject",
                            models.CharField(
                                blank=True,
                                help_text="E.g. home city. A newer fact about the same subject replaces it.",
                                max_length=80,
                                verbose_name="subject",
                            ),
                        ),
                        ("text", models.CharField(max_length=500, verbose_name="text")),
                        (
                            "digest",
                            models.CharField(
                                editable=False, max_length=64, verbose_name="digest"
                            ),
                        ),
                        (
                            "status",
                            models.CharField(
                                choices=[("active", "Saved"), ("proposed", "Suggested")],
                                default="active",
                                max_length=10,
                                verbose_name="status",
                            ),
                        ),
                        (
                            "source",
                            models.CharField(
                                choices=[
                                    ("stated", "You asked for it in a chat"),
                                    ("agent", "An agent suggested it"),
                                    ("page", "You added it here"),
                                ],
                                default="page",
                                max_length=10,
                                verbose_name="source",
                            ),
                        ),
                        (
                            "step",
                            models.PositiveIntegerField(
                                blank=True, null=True, verbose_name="step"
                            ),
                        ),
                        (
                            "reason",
                            models.CharField(
                                blank=True,
                                help_text="Why it waits for the user's decision.",
                                max_length=200,
                                verbose_name="reason",
                            ),
                        ),
                        (
                            "valid_from",
                            models.DateTimeField(
                                default=django.utils.timezone.now, verbose_name="valid from"
                            ),
                        ),
                        (
                            "valid_to",
                            models.DateTimeField(
                                blank=True, null=True, verbose_name="valid until"
                            ),
                        ),
                        (
                            "vector",
                            models.BinaryField(blank=True, null=True, verbose_name="vector"),
                        ),
                        (
                            "vector_model",
                            models.CharField(
                                blank=True,
                                editable=False,
                                max_length=200,
                                verbose_name="embedding model",
                            ),
                        ),
                        (
                            "created_at",
                            models.DateTimeField(auto_now_add=True, verbose_name="created"),
                        ),
                        (
                            "updated_at",
                            models.DateTimeField(auto_now=True, verbose_name="changed"),
                        ),
                        (
                            "deleted_at",
                            models.DateTimeField(blank=True, null=True, verbose_name="deleted"),
                        ),
                        (
                            "kind",
                            models.CharField(
                                choices=[("fact", "Fact"), ("preference", "Preference")],
                                db_default="fact",
                                default="fact",
                                help_text="Agents always get preferences, and facts when they fit the question.",
                                max_length=12,
                                verbose_name="kind",
                            ),
                        ),
                        (
                            "superseded_by",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="replaces",
                                to="agents.memory",
                                verbose_name="replaced by",
                            ),
                        ),
                        (
                            "user",
                            models.ForeignKey(
                                help_text="Whom it is about; in a project, who added it.",
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="memories",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="user",
                            ),
                        ),
                        (
                            "project",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="memories",
                                to="agents.project",
                                verbose_name="project",
                            ),
                        ),
                        (
                            "run",
                            models.ForeignKey(
                                blank=True,
                                help_text="The run it comes from.",
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="memories",
                                to="agents.run",
                                verbose_name="run",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "memory",
                        "verbose_name_plural": "memories",
                        "ordering": ["-pk"],
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(
                                    ("deleted_at", None), ("project", None), ("valid_to", None)
                                ),
                                fields=("user", "digest"),
                                name="one_memory_a_text",
                            ),
                            models.UniqueConstraint(
                                condition=models.Q(
                                    ("deleted_at", None),
                                    ("project__isnull", False),
                                    ("valid_to", None),
                                ),
                                fields=("project", "digest"),
                                name="one_memory_a_text_in_project",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="HistorySummary",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        ("text", models.TextField(verbose_name="text")),
                        (
                            "kept",
                            models.PositiveIntegerField(
                                help_text="Turns before the run that it doesn't include.",
                                verbose_name="turns after it",
                            ),
                        ),
                        (
                            "created_at",
                            models.DateTimeField(auto_now_add=True, verbose_name="created"),
                        ),
                        (
                            "run",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="summary",
                                to="agents.run",
                                verbose_name="run",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "chat summary",
                        "verbose_name_plural": "chat summaries",
                    },
                ),
                migrations.CreateModel(
                    name="ExperienceRun",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "role",
                            models.CharField(
                                choices=[("origin", "Learned from it"), ("used", "Used it")],
                                max_length=10,
                                verbose_name="role",
                            ),
                        ),
                        (
                            "outcome",
                            models.CharField(
                                blank=True,
                                choices=[
                                    ("", "No feedback"),
                                    ("helpful", "Helpful"),
                                    ("harmful", "Harmful"),
                                ],
                                default="",
                                max_length=10,
                                verbose_name="outcome",
                            ),
                        ),
                        (
                            "created_at",
                            models.DateTimeField(auto_now_add=True, verbose_name="created"),
                        ),
                        (
                            "experience",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="evidence",
                                to="agents.experience",
                                verbose_name="experience",
                            ),
                        ),
                        (
                            "run",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="agents.run",
                                verbose_name="run",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "run of an experience",
                        "verbose_name_plural": "runs of experiences",
                        "ordering": ["-run_id"],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("experience", "run", "role"), name="one_run_a_role"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="CacheEntry",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "key",
                            models.CharField(max_length=64, unique=True, verbose_name="key"),
                        ),
                        (
                            "kind",
                            models.CharField(
                                choices=[("tool", "Tool result"), ("model", "Model reply")],
                                max_length=6,
                                verbose_name="kind",
                            ),
                        ),
                        (
                            "source",
                            models.CharField(
                                help_text="The tool or agent, e.g. tool:12.",
                                max_length=40,
                                verbose_name="source",
                            ),
                        ),
                        ("value", models.JSONField(verbose_name="value")),
                        ("size", models.PositiveIntegerField(verbose_name="size (bytes)")),
                        (
                            "seconds",
                            models.FloatField(default=0.0, verbose_name="duration (seconds)"),
                        ),
                        (
                            "cost_micros",
                            models.BigIntegerField(
                                default=0, verbose_name="cost (millionths of USD)"
                            ),
                        ),
                        ("hits", models.PositiveIntegerField(default=0, verbose_name="hits")),
                        ("saved_at", models.DateTimeField(verbose_name="saved")),
                        (
                            "used_at",
                            models.DateTimeField(db_index=True, verbose_name="last used"),
                        ),
                        (
                            "expires_at",
                            models.DateTimeField(db_index=True, verbose_name="expires"),
                        ),
                        (
                            "user",
                            models.ForeignKey(
                                blank=True,
                                help_text="Empty: declared the same for everyone.",
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="user",
                            ),
                        ),
                        (
                            "group",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="entries",
                                to="agents.cachegroup",
                            ),
                        ),
                        (
                            "run",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="agents.run",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "cached result",
                        "verbose_name_plural": "cached results",
                        "ordering": ["-used_at"],
                        "indexes": [
                            models.Index(fields=["source"], name="entries_of_a_source")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Approval",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        ("step", models.PositiveIntegerField(verbose_name="step")),
                        ("call_id", models.TextField(verbose_name="call ID")),
                        (
                            "agent_name",
                            models.CharField(max_length=64, verbose_name="agent name"),
                        ),
                        ("tool", models.TextField(verbose_name="tool")),
                        ("arguments", models.TextField(verbose_name="arguments")),
                        ("digest", models.CharField(max_length=64, verbose_name="digest")),
                        (
                            "why",
                            models.CharField(
                                choices=[
                                    (
                                        "agent",
                                        "This agent requires approval for every tool call.",
                                    ),
                                    (
                                        "tool",
                                        "This tool can make changes, so it requires approval.",
                                    ),
                                    (
                                        "unknown",
                                        "The server stopped during this call. It may already have completed.",
                                    ),
                                    (
                                        "plan",
                                        "This agent's plan requires approval before it runs.",
                                    ),
                                    ("step", "The next steps require approval."),
                                    ("question", "The run needs an answer to continue."),
                                    (
                                        "sharing",
                                        "This question will be sent to experts. They see only the question.",
                                    ),
                                    (
                                        "elicitation",
                                        "A running tool needs information from you.",
                                    ),
                                    (
                                        "untrusted",
                                        "This run has read text that could contain instructions to the model.",
                                    ),
                                    ("budget", "This run has reached one of its limits."),
                                ],
                                default="tool",
                                max_length=12,
                                verbose_name="reason for request",
                            ),
                        ),
                        (
                            "verdict",
                            models.CharField(
                                choices=[
                                    ("waiting", "waiting"),
                                    ("approved", "approved"),
                                    ("edited", "approved with edits"),
                                    ("rejected", "rejected"),
                                    ("withdrawn", "withdrawn"),
                                ],
                                default="waiting",
                                max_length=10,
                                verbose_name="verdict",
                            ),
                        ),
                        (
                            "new_arguments",
                            models.TextField(blank=True, verbose_name="edited arguments"),
                        ),
                        ("reason", models.TextField(blank=True, verbose_name="reason")),
                        ("asked_at", models.DateTimeField(verbose_name="asked")),
                        (
                            "decided_at",
                            models.DateTimeField(blank=True, null=True, verbose_name="decided"),
                        ),
                        (
                            "role",
                            models.CharField(
                                blank=True,
                                db_default="",
                                default="",
                                help_text="Members of the group with this name can also answer.",
                                max_length=150,
                                verbose_name="role",
                            ),
                        ),
                        (
                            "granted_scope",
                            models.CharField(
                                blank=True,
                                db_default="",
                                default="",
                                help_text="Scope of the user's permission for this tool. Empty if a person decided.",
                                max_length=8,
                                verbose_name="approved automatically",
                            ),
                        ),
                        (
                            "decided_by",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="decided by",
                            ),
                        ),
                        (
                            "run",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="approvals",
                                to="agents.run",
                                verbose_name="run",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "approval",
                        "verbose_name_plural": "approvals",
                        "ordering": ["pk"],
                        "permissions": [
                            ("raise_budgets", "Can raise the limits of other users' runs")
                        ],
                        "indexes": [
                            models.Index(fields=["verdict", "run"], name="approvals_that_wait")
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("run", "step"), name="one_approval_a_step"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="AgentStep",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        ("number", models.PositiveIntegerField(verbose_name="number")),
                        ("turn", models.PositiveIntegerField(default=0, verbose_name="turn")),
                        (
                            "kind",
                            models.CharField(
                                choices=[
                                    ("thought", "Thought"),
                                    ("tool", "Tool"),
                                    ("answer", "Answer"),
                                    ("guardrail", "Guardrail"),
                                    ("plan", "Plan"),
                                    ("task", "Task"),
                                    ("evaluation", "Check"),
                                    ("budget", "Budget"),
                                ],
                                max_length=10,
                                verbose_name="type",
                            ),
                        ),
                        (
                            "status",
                            models.CharField(
                                choices=[
                                    ("running", "running"),
                                    ("waiting", "waiting"),
                                    ("done", "done"),
                                    ("failed", "failed"),
                                    ("blocked", "blocked"),
                                    ("rejected", "rejected"),
                                    ("cancelled", "canceled"),
                                    ("cut", "interrupted"),
                                    ("unknown", "outcome unknown"),
                                    ("skipped", "skipped"),
                                    ("unstarted", "not started"),
                                ],
                                default="running",
                                max_length=10,
                                verbose_name="status",
                            ),
                        ),
                        (
                            "agent_name",
                            models.CharField(
                                blank=True, max_length=64, verbose_name="agent name"
                            ),
                        ),
                        ("call_id", models.TextField(blank=True, verbose_name="call ID")),
                        ("thought", models.TextField(blank=True, verbose_name="thought")),
                        ("action", models.TextField(blank=True, verbose_name="action")),
                        (
                            "action_input",
                            models.JSONField(
                                blank=True, null=True, verbose_name="action input"
                            ),
                        ),
                        (
                            "observation",
                            models.TextField(blank=True, verbose_name="observation"),
                        ),
                        (
                            "request",
                            models.JSONField(blank=True, null=True, verbose_name="request"),
                        ),
                        (
                            "attempts",
                            models.PositiveIntegerField(default=1, verbose_name="attempts"),
                        ),
                        (
                            "prompt_tokens",
                            models.PositiveIntegerField(default=0, verbose_name="input tokens"),
                        ),
                        (
                            "completion_tokens",
                            models.PositiveIntegerField(
                                default=0, verbose_name="output tokens"
                            ),
                        ),
                        (
                            "cost",
                            models.FloatField(blank=True, null=True, verbose_name="cost (USD)"),
                        ),
                        (
                            "first_seq",
                            models.PositiveIntegerField(default=0, verbose_name="first event"),
                        ),
                        ("started_at", models.DateTimeField(verbose_name="started")),
                        (
                            "ended_at",
                            models.DateTimeField(blank=True, null=True, verbose_name="ended"),
                        ),
                        (
                            "depth",
                            models.PositiveSmallIntegerField(default=0, verbose_name="depth"),
                        ),
                        (
                            "parent",
                            models.PositiveIntegerField(
                                blank=True,
                                help_text="Step that this one is part of.",
                                null=True,
                                verbose_name="parent",
                            ),
                        ),
                        (
                            "notes",
                            models.JSONField(
                                blank=True,
                                default=list,
                                help_text="What happened along the way: retries, fallbacks, omissions.",
                                verbose_name="notes",
                            ),
                        ),
                        (
                            "effect",
                            models.CharField(
                                blank=True,
                                choices=[
                                    ("read", "read"),
                                    ("idempotent", "write"),
                                    ("at_most_once", "irreversible"),
                                ],
                                db_default="",
                                default="",
                                help_text="Possible side effects of the call.",
                                max_length=12,
                                verbose_name="side effects",
                            ),
                        ),
                        (
                            "attachments",
                            models.JSONField(
                                blank=True,
                                db_default=models.Value([], models.JSONField()),
                                default=list,
                                help_text="Images, sounds and files that the tool returned.",
                                verbose_name="attachments",
                            ),
                        ),
                        (
                            "is_untrusted",
                            models.BooleanField(
                                db_default=False,
                                default=False,
                                help_text="Whether the observation is text from outside.",
                                verbose_name="untrusted",
                            ),
                        ),
                        (
                            "sources",
                            models.JSONField(
                                blank=True,
                                db_default=models.Value([], models.JSONField()),
                                default=list,
                                help_text="Passages that a search returned, with their numbers.",
                                verbose_name="sources",
                            ),
                        ),
                        (
                            "cache_read_tokens",
                            models.PositiveIntegerField(
                                db_default=0,
                                default=0,
                                verbose_name="input tokens from the provider's cache",
                            ),
                        ),
                        (
                            "cache_savings",
                            models.FloatField(
                                blank=True,
                                help_text="Negative if writing into the cache cost more than reading saved.",
                                null=True,
                                verbose_name="saved by the provider's cache (USD)",
                            ),
                        ),
                        (
                            "run",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="steps",
                                to="agents.run",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "step",
                        "verbose_name_plural": "steps",
                        "ordering": ["run_id", "number"],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("run", "number"), name="one_step_a_number"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Absence",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "page",
                            models.CharField(
                                help_text="ID that an open page gives itself.",
                                max_length=40,
                                verbose_name="page",
                            ),
                        ),
                        (
                            "reason",
                            models.CharField(
                                choices=[
                                    ("lost", "connection lost"),
                                    ("closed", "page closed"),
                                ],
                                default="lost",
                                max_length=8,
                                verbose_name="reason",
                            ),
                        ),
                        ("left_at", models.DateTimeField(verbose_name="disconnected")),
                        (
                            "came_back_at",
                            models.DateTimeField(
                                blank=True, null=True, verbose_name="reconnected"
                            ),
                        ),
                        (
                            "run",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="absences",
                                to="agents.run",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "disconnection",
                        "verbose_name_plural": "disconnections",
                        "ordering": ["run_id", "left_at"],
                    },
                ),
                migrations.CreateModel(
                    name="RunEvent",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        ("seq", models.PositiveIntegerField(verbose_name="number")),
                        ("type", models.CharField(max_length=20, verbose_name="type")),
                        ("agent", models.CharField(max_length=64, verbose_name="agent")),
                        ("time", models.DateTimeField(verbose_name="time")),
                        ("data", models.JSONField(verbose_name="data")),
                        (
                            "run",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="events",
                                to="agents.run",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "event",
                        "verbose_name_plural": "events",
                        "ordering": ["run_id", "seq"],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("run", "seq"), name="one_event_a_number"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ServerSample",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        ("at", models.DateTimeField(verbose_name="sampled at")),
                        ("is_up", models.BooleanField(verbose_name="healthy")),
                        (
                            "latency_ms",
                            models.FloatField(blank=True, null=True, verbose_name="latency"),
                        ),
                        (
                            "server",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="samples",
                                to="agents.mcpserver",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "sample",
                        "verbose_name_plural": "samples",
                        "ordering": ["server_id", "at"],
                        "indexes": [
                            models.Index(fields=["server", "at"], name="samples_of_a_server")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Sitemap",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "fetch_interval",
                            models.CharField(
                                choices=[
                                    ("never", "Never"),
                                    ("daily", "Every day"),
                                    ("weekly", "Every week"),
                                    ("monthly", "Every month"),
                                ],
                                db_default="never",
                                default="never",
                                max_length=10,
                                verbose_name="fetch automatically",
                            ),
                        ),
                        (
                            "fetched_at",
                            models.DateTimeField(
                                blank=True, null=True, verbose_name="last fetched"
                            ),
                        ),
                        (
                            "next_fetch_at",
                            models.DateTimeField(
                                blank=True, null=True, verbose_name="next fetch"
                            ),
                        ),
                        (
                            "fetch_problem",
                            models.CharField(
                                blank=True,
                                db_default="",
                                default="",
                                help_text="Why the last fetch failed; the text from before stays.",
                                max_length=500,
                                verbose_name="fetch problem",
                            ),
                        ),
                        ("url", models.CharField(max_length=2000, verbose_name="address")),
                        (
                            "max_pages",
                            models.PositiveIntegerField(default=200, verbose_name="max pages"),
                        ),
                        (
                            "known",
                            models.JSONField(
                                default=list,
                                help_text="Digests of pages already added; a deleted one isn't added again.",
                                verbose_name="known pages",
                            ),
                        ),
                        (
                            "added_at",
                            models.DateTimeField(auto_now_add=True, verbose_name="added"),
                        ),
                        (
                            "collection",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="sitemaps",
                                to="agents.collection",
                                verbose_name="collection",
                            ),
                        ),
                        (
                            "scheduled_by",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="scheduled by",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "sitemap",
                        "verbose_name_plural": "sitemaps",
                        "ordering": ["pk"],
                    },
                ),
                migrations.CreateModel(
                    name="RunAttachment",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        ("digest", models.CharField(max_length=64, verbose_name="digest")),
                        ("mime_type", models.CharField(max_length=130, verbose_name="type")),
                        (
                            "name",
                            models.CharField(blank=True, max_length=100, verbose_name="name"),
                        ),
                        ("size", models.PositiveIntegerField(verbose_name="size (bytes)")),
                        (
                            "data",
                            models.BinaryField(
                                blank=True,
                                help_text="Empty once the file is stored by its digest.",
                                null=True,
                                verbose_name="content",
                            ),
                        ),
                        (
                            "created_at",
                            models.DateTimeField(auto_now_add=True, verbose_name="created"),
                        ),
                        (
                            "text",
                            models.TextField(
                                blank=True,
                                db_default="",
                                default="",
                                help_text="What was read in the image or heard in the recording, if anything was.",
                                verbose_name="text",
                            ),
                        ),
                        (
                            "run",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="attachments",
                                to="agents.run",
                            ),
                        ),
                        (
                            "file",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="run_attachments",
                                to="agents.storedfile",
                                verbose_name="file",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "attachment",
                        "verbose_name_plural": "attachments",
                        "ordering": ["run_id", "pk"],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("run", "digest"), name="one_attachment_a_digest"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="StyleSignal",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "trait",
                            models.CharField(
                                choices=[
                                    ("length", "Length"),
                                    ("tone", "Tone"),
                                    ("format", "Format"),
                                    ("language", "Language"),
                                ],
                                max_length=10,
                                verbose_name="trait",
                            ),
                        ),
                        ("value", models.CharField(max_length=20, verbose_name="value")),
                        (
                            "source",
                            models.CharField(
                                choices=[("rating", "Rating"), ("stated", "Said in a chat")],
                                max_length=10,
                                verbose_name="source",
                            ),
                        ),
                        (
                            "is_lasting",
                            models.BooleanField(
                                default=False,
                                help_text="The user asked for it from now on.",
                                verbose_name="lasting",
                            ),
                        ),
                        (
                            "quote",
                            models.CharField(blank=True, max_length=200, verbose_name="quote"),
                        ),
                        (
                            "created_at",
                            models.DateTimeField(auto_now_add=True, verbose_name="created"),
                        ),
                        (
                            "run",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="agents.run",
                                verbose_name="run",
                            ),
                        ),
                        (
                            "user",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="style_signals",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="user",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "style signal",
                        "verbose_name_plural": "style signals",
                        "ordering": ["-pk"],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("run", "trait", "source"), name="one_style_signal_a_run"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ToolRegistration",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "name",
                            models.SlugField(max_length=64, unique=True, verbose_name="name"),
                        ),
                        (
                            "description",
                            models.TextField(
                                blank=True,
                                help_text="Replaces the description the model sees. Leave empty to use the tool's own.",
                                verbose_name="description",
                            ),
                        ),
                        ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                        (
                            "timeout",
                            models.PositiveIntegerField(
                                default=30,
                                help_text="Time limit for each call, 1–600 seconds.",
                                validators=[
                                    django.core.validators.MinValueValidator(1),
                                    django.core.validators.MaxValueValidator(600),
                                ],
                                verbose_name="timeout (seconds)",
                            ),
                        ),
                        (
                            "approval",
                            models.CharField(
                                choices=[
                                    ("tool", "as declared by the tool"),
                                    ("always", "always"),
                                    ("never", "never"),
                                ],
                                default="tool",
                                help_text="Whether the user must approve each call.",
                                max_length=10,
                                verbose_name="requires approval",
                            ),
                        ),
                        (
                            "definition",
                            models.JSONField(
                                blank=True,
                                help_text="What the model sees: name, description and parameters.",
                                null=True,
                                verbose_name="definition",
                            ),
                        ),
                        (
                            "effect",
                            models.CharField(
                                blank=True,
                                choices=[
                                    ("", "as declared by the tool"),
                                    ("read", "read-only"),
                                    ("idempotent", "can be repeated"),
                                    ("at_most_once", "must not be repeated"),
                                ],
                                default="",
                                max_length=12,
                                verbose_name="side effects",
                            ),
                        ),
                        (
                            "endpoint",
                            models.CharField(
                                blank=True, max_length=500, verbose_name="endpoint"
                            ),
                        ),
                        (
                            "is_gone",
                            models.BooleanField(
                                default=False,
                                editable=False,
                                verbose_name="removed from server",
                            ),
                        ),
                        (
                            "method",
                            models.CharField(
                                choices=[
                                    ("GET", "Get"),
                                    ("POST", "Post"),
                                    ("PUT", "Put"),
                                    ("PATCH", "Patch"),
                                    ("DELETE", "Delete"),
                                ],
                                default="POST",
                                max_length=6,
                                verbose_name="method",
                            ),
                        ),
                        (
                            "pending",
                            models.JSONField(
                                blank=True,
                                editable=False,
                                help_text="The server's current definition, until an administrator accepts it.",
                                null=True,
                                verbose_name="pending definition",
                            ),
                        ),
                        (
                            "source",
                            models.CharField(
                                choices=[
                                    ("own", "Built-in"),
                                    ("http", "HTTP endpoint"),
                                    ("mcp", "MCP server"),
                                    ("database", "Database"),
                                ],
                                default="own",
                                editable=False,
                                max_length=10,
                                verbose_name="source",
                            ),
                        ),
                        (
                            "headers",
                            agents.models.secret.EncryptedJSONField(
                                blank=True,
                                default=dict,
                                help_text="A JSON object with string values. Stored encrypted and never displayed again.",
                                verbose_name="headers",
                            ),
                        ),
                        (
                            "always_allow",
                            models.CharField(
                                choices=[
                                    ("never", "never"),
                                    ("chat", "in one chat"),
                                    ("user", "in one chat or in all of a user's chats"),
                                ],
                                db_default="never",
                                default="never",
                                help_text="Whether users can approve all further calls at once. Calls that must not be repeated can be allowed in one chat at most.",
                                max_length=8,
                                verbose_name="users can always allow it",
                            ),
                        ),
                        (
                            "min_score",
                            models.FloatField(
                                db_default=0.0,
                                default=0.0,
                                help_text="Passages with a lower score are left out. 0 returns all.",
                                validators=[
                                    django.core.validators.MinValueValidator(0),
                                    django.core.validators.MaxValueValidator(1),
                                ],
                                verbose_name="minimum score",
                            ),
                        ),
                        (
                            "top_k",
                            models.PositiveSmallIntegerField(
                                db_default=5,
                                default=5,
                                help_text="How many passages a search returns, 1–50.",
                                validators=[
                                    django.core.validators.MinValueValidator(1),
                                    django.core.validators.MaxValueValidator(50),
                                ],
                                verbose_name="passages per search",
                            ),
                        ),
                        (
                            "min_certainty",
                            models.FloatField(
                                blank=True,
                                help_text="Below this, a search reports that nothing relevant was found. Empty: the default of the installation (ASHIATO_SEARCH_MIN_SCORE).",
                                null=True,
                                validators=[
                                    django.core.validators.MinValueValidator(0),
                                    django.core.validators.MaxValueValidator(3),
                                ],
                                verbose_name="minimum certainty",
                            ),
                        ),
                        (
                            "rerank_count",
                            models.PositiveSmallIntegerField(
                                db_default=20,
                                default=20,
                                help_text="How many of the best passages the model reads, 2–50.",
                                validators=[
                                    django.core.validators.MinValueValidator(2),
                                    django.core.validators.MaxValueValidator(50),
                                ],
                                verbose_name="passages to re-rank",
                            ),
                        ),
                        (
                            "rerank_model",
                            models.CharField(
                                blank=True,
                                db_default="",
                                default="",
                                help_text="Reads the best passages and puts them in order, which takes time and tokens. A label from Models or a LiteLLM name; names with “rerank” are called as re-ranking models. Empty: off.",
                                max_length=200,
                                verbose_name="re-ranking model",
                            ),
                        ),
                        (
                            "rerank_seconds",
                            models.FloatField(
                                db_default=5.0,
                                default=5.0,
                                help_text="After this time the passages stay in their order.",
                                validators=[
                                    django.core.validators.MinValueValidator(0.5),
                                    django.core.validators.MaxValueValidator(60),
                                ],
                                verbose_name="re-ranking timeout (seconds)",
                            ),
                        ),
                        (
                            "max_retries",
                            models.PositiveSmallIntegerField(
                                blank=True,
                                help_text="How often a failed call is tried again, 0–10. Empty: as in Settings. Calls that must not be repeated are never tried again.",
                                null=True,
                                validators=[django.core.validators.MaxValueValidator(10)],
                                verbose_name="max retries",
                            ),
                        ),
                        (
                            "result_cache",
                            models.CharField(
                                blank=True,
                                choices=[
                                    ("", "off"),
                                    ("person", "on, separately for each user"),
                                    ("public", "on, shared by all users of the tool"),
                                ],
                                db_default="",
                                default="",
                                help_text="Equal calls return the saved result. Only read-only calls are cached; any other call to the same place deletes what is saved. Share results only if they are the same for everyone.",
                                max_length=8,
                                verbose_name="cache results",
                            ),
                        ),
                        (
                            "result_cache_seconds",
                            models.PositiveIntegerField(
                                db_default=300,
                                default=300,
                                help_text="How long a saved result is used, up to 7 days.",
                                validators=[
                                    django.core.validators.MinValueValidator(1),
                                    django.core.validators.MaxValueValidator(604800),
                                ],
                                verbose_name="cache lifetime (seconds)",
                            ),
                        ),
                        (
                            "collections",
                            models.ManyToManyField(
                                blank=True,
                                help_text="What this tool searches, as far as the agent and the user can open it. If none is selected, it searches everything they can open.",
                                limit_choices_to={"owner": None, "topic": ""},
                                related_name="+",
                                to="agents.collection",
                                verbose_name="collections",
                            ),
                        ),
                        (
                            "connection",
                            models.ForeignKey(
                                blank=True,
                                editable=False,
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="tools",
                                to="agents.databaseconnection",
                                verbose_name="database",
                            ),
                        ),
                        (
                            "fallback",
                            models.ForeignKey(
                                blank=True,
                                help_text="Used instead when this tool is failing.",
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to="agents.toolregistration",
                                verbose_name="fallback tool",
                            ),
                        ),
                        (
                            "groups",
                            models.ManyToManyField(
                                blank=True,
                                help_text="Only members of these groups can use it. If none is selected, everyone can.",
                                related_name="+",
                                to="auth.group",
                                verbose_name="allowed groups",
                            ),
                        ),
                        (
                            "server",
                            models.ForeignKey(
                                blank=True,
                                editable=False,
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="tools",
                                to="agents.mcpserver",
                                verbose_name="MCP server",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "tool",
                        "verbose_name_plural": "tools",
                        "ordering": ["name"],
                    },
                ),
                migrations.CreateModel(
                    name="ToolGrant",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "agent_name",
                            models.CharField(max_length=64, verbose_name="agent name"),
                        ),
                        ("digest", models.CharField(max_length=64, verbose_name="digest")),
                        (
                            "topic",
                            models.CharField(
                                blank=True,
                                help_text="Empty: in all of the user's chats.",
                                max_length=80,
                                verbose_name="chat",
                            ),
                        ),
                        (
                            "created_at",
                            models.DateTimeField(auto_now_add=True, verbose_name="created"),
                        ),
                        (
                            "used_at",
                            models.DateTimeField(
                                blank=True, null=True, verbose_name="last used"
                            ),
                        ),
                        (
                            "user",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="tool_grants",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="user",
                            ),
                        ),
                        (
                            "tool",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="grants",
                                to="agents.toolregistration",
                                verbose_name="tool",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "tool permission",
                        "verbose_name_plural": "tool permissions",
                        "ordering": ["pk"],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("user", "agent_name", "tool", "topic"),
                                name="one_grant_a_tool",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Quota",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "measure",
                            models.CharField(
                                choices=[
                                    ("runs", "Runs"),
                                    ("messages", "Messages"),
                                    ("calls", "Calls"),
                                    ("tokens", "Tokens"),
                                    ("cost", "Cost (USD)"),
                                    ("seconds", "Active time (seconds)"),
                                ],
                                max_length=10,
                                verbose_name="measure",
                            ),
                        ),
                        (
                            "window",
                            models.CharField(
                                choices=[
                                    ("minute", "per minute"),
                                    ("day", "per day"),
                                    ("month", "per month"),
                                ],
                                max_length=6,
                                verbose_name="window",
                            ),
                        ),
                        (
                            "limit",
                            models.BigIntegerField(
                                blank=True,
                                help_text="Empty: no limit. Cost is in millionths of a dollar.",
                                null=True,
                                validators=[django.core.validators.MinValueValidator(0)],
                                verbose_name="limit",
                            ),
                        ),
                        (
                            "changed_at",
                            models.DateTimeField(auto_now=True, verbose_name="changed"),
                        ),
                        (
                            "is_shared",
                            models.BooleanField(
                                db_default=False,
                                default=False,
                                help_text="Members use one limit together. When off, each member has it.",
                                verbose_name="shared",
                            ),
                        ),
                        (
                            "agent",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="quotas",
                                to="agents.agent",
                                verbose_name="agent",
                            ),
                        ),
                        (
                            "group",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="quotas",
                                to="auth.group",
                                verbose_name="group",
                            ),
                        ),
                        (
                            "language_model",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="quotas",
                                to="agents.languagemodel",
                                verbose_name="model",
                            ),
                        ),
                        (
                            "user",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="quotas",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="user",
                            ),
                        ),
                        (
                            "tool",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="quotas",
                                to="agents.toolregistration",
                                verbose_name="tool",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "quota",
                        "verbose_name_plural": "quotas",
                        "ordering": ["measure", "window", "pk"],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("user", "measure", "window"), name="one_quota_a_person"
                            ),
                            models.UniqueConstraint(
                                fields=("group", "is_shared", "measure", "window"),
                                name="one_quota_a_group",
                            ),
                            models.UniqueConstraint(
                                fields=("agent", "measure", "window"), name="one_quota_an_agent"
                            ),
                            models.UniqueConstraint(
                                fields=("language_model", "measure", "window"),
                                name="one_quota_a_model",
                            ),
                            models.UniqueConstraint(
                                fields=("tool", "measure", "window"), name="one_quota_a_tool"
                            ),
                            models.UniqueConstraint(
                                condition=models.Q(
                                    ("agent__isnull", True),
                                    ("group__isnull", True),
                                    ("language_model__isnull", True),
                                    ("tool__isnull", True),
                                    ("user__isnull", True),
                                ),
                                fields=("is_shared", "measure", "window"),
                                name="one_quota_of_all",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(
                                        ("agent__isnull", True),
                                        ("group__isnull", True),
                                        ("language_model__isnull", True),
                                        ("tool__isnull", True),
                                        ("user__isnull", True),
                                    ),
                                    models.Q(
                                        ("agent__isnull", True),
                                        ("group__isnull", True),
                                        ("language_model__isnull", True),
                                        ("tool__isnull", True),
                                        ("user__isnull", False),
                                    ),
                                    models.Q(
                                        ("agent__isnull", True),
                                        ("group__isnull", False),
                                        ("language_model__isnull", True),
                                        ("tool__isnull", True),
                                        ("user__isnull", True),
                                    ),
                                    models.Q(
                                        ("agent__isnull", False),
                                        ("group__isnull", True),
                                        ("language_model__isnull", True),
                                        ("tool__isnull", True),
                                        ("user__isnull", True),
                                    ),
                                    models.Q(
                                        ("agent__isnull", True),
                                        ("group__isnull", True),
                                        ("language_model__isnull", False),
                                        ("tool__isnull", True),
                                        ("user__isnull", True),
                                    ),
                                    models.Q(
                                        ("agent__isnull", True),
                                        ("group__isnull", True),
                                        ("language_model__isnull", True),
                                        ("tool__isnull", False),
                                        ("user__isnull", True),
                                    ),
                                    _connector="OR",
                                ),
                                name="quota_of_one_owner_at_most",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="AgentTool",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "approval",
                            models.CharField(
                                blank=True,
                                choices=[
                                    ("", "tool default"),
                                    ("always", "always"),
                                    ("never", "never"),
                                ],
                                db_default="",
                                default="",
                                max_length=10,
                                verbose_name="requires approval",
                            ),
                        ),
                        (
                            "effect",
                            models.CharField(
                                blank=True,
                                choices=[
                                    ("", "tool default"),
                                    ("read", "read-only"),
                                    ("idempotent", "can be repeated"),
                                    ("at_most_once", "must not be repeated"),
                                ],
                                db_default="",
                                default="",
                                max_length=12,
                                verbose_name="side effects",
                            ),
                        ),
                        (
                            "timeout",
                            models.PositiveIntegerField(
                                blank=True,
                                null=True,
                                validators=[
                                    django.core.validators.MinValueValidator(1),
                                    django.core.validators.MaxValueValidator(600),
                                ],
                                verbose_name="timeout (seconds)",
                            ),
                        ),
                        (
                            "max_calls",
                            models.PositiveIntegerField(
                                blank=True,
                                null=True,
                                validators=[django.core.validators.MinValueValidator(1)],
                                verbose_name="max calls",
                            ),
                        ),
                        (
                            "description",
                            models.TextField(
                                blank=True,
                                db_default="",
                                default="",
                                verbose_name="description for the model",
                            ),
                        ),
                        (
                            "retries",
                            models.PositiveSmallIntegerField(
                                blank=True,
                                help_text="How often a failed call is repeated, 0–10.",
                                null=True,
                                validators=[django.core.validators.MaxValueValidator(10)],
                                verbose_name="retries",
                            ),
                        ),
                        (
                            "sending",
                            models.CharField(
                                blank=True,
                                choices=[("", "if it fits the question"), ("always", "always")],
                                db_default="",
                                default="",
                                help_text="Matters only if the agent has too many tools to send all of them.",
                                max_length=10,
                                verbose_name="sent to the model",
                            ),
                        ),
                        (
                            "agent",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="links",
                                to="agents.agent",
                                verbose_name="agent",
                            ),
                        ),
                        (
                            "tool",
                            models.ForeignKey(
                                db_column="toolregistration_id",
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="links",
                                to="agents.toolregistration",
                                verbose_name="tool",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "agent tool",
                        "verbose_name_plural": "agent tools",
                        "db_table": "agents_agent_tools",
                        "ordering": ["tool__name"],
                        "unique_together": {("agent", "tool")},
                    },
                ),
                migrations.CreateModel(
                    name="Schedule",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        (
                            "cron",
                            models.CharField(
                                help_text="Minute, hour, day, month, weekday. Example: 0 9 * * 1-5.",
                                max_length=100,
                                verbose_name="cron expression",
                            ),
                        ),
                        (
                            "parameters",
                            models.JSONField(
                                blank=True, default=dict, verbose_name="parameters"
                            ),
                        ),
                        (
                            "next_at",
                            models.DateTimeField(
                                blank=True, db_index=True, null=True, verbose_name="next run"
                            ),
                        ),
                        (
                            "last_run_at",
                            models.DateTimeField(
                                blank=True, null=True, verbose_name="last run"
                            ),
                        ),
                        ("trouble", models.TextField(blank=True, verbose_name="error")),
                        ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                        (
                            "accepted",
                            models.JSONField(
                                blank=True,
                                editable=False,
                                help_text="Version, parameters and times that the owner accepted.",
                                null=True,
                                verbose_name="accepted",
                            ),
                        ),
                        (
                            "user",
                            models.ForeignKey(
                                help_text="The workflow runs as this user, who also gets its approval requests.",
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="user",
                            ),
                        ),
                        (
                            "workflow",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="schedules",
                                to="agents.workflow",
                                verbose_name="workflow",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "schedule",
                        "verbose_name_plural": "schedules",
                        "ordering": ["workflow__name", "pk"],
                    },
                ),
                migrations.CreateModel(
                    name="WorkflowVersion",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        ("number", models.PositiveIntegerField(verbose_name="version")),
                        (
                            "text",
                            models.TextField(
                                help_text="YAML or JSON.", verbose_name="definition"
                            ),
                        ),
                        (
                            "created_at",
                            models.DateTimeField(auto_now_add=True, verbose_name="created"),
                        ),
                        (
                            "author",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="created by",
                            ),
                        ),
                        (
                            "workflow",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="versions",
                                to="agents.workflow",
                                verbose_name="workflow",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "workflow version",
                        "verbose_name_plural": "workflow versions",
                        "ordering": ["workflow_id", "-number"],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("workflow", "number"), name="one_version_a_number"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="AgentVersion",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        ("number", models.PositiveIntegerField(verbose_name="version")),
                        ("snapshot", models.JSONField(verbose_name="snapshot")),
                        (
                            "created_at",
                            models.DateTimeField(auto_now_add=True, verbose_name="changed"),
                        ),
                        (
                            "note",
                            models.CharField(blank=True, max_length=200, verbose_name="note"),
                        ),
                        (
                            "agent",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="versions",
                                to="agents.agent",
                                verbose_name="agent",
                            ),
                        ),
                        (
                            "author",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="changed by",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "agent version",
                        "verbose_name_plural": "agent versions",
                        "ordering": ["agent_id", "-number"],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("agent", "number"), name="one_agent_version_a_number"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="BudgetHold",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        ("call", models.UUIDField(default=uuid.uuid4, verbose_name="call")),
                        (
                            "run",
                            models.BigIntegerField(blank=True, null=True, verbose_name="run"),
                        ),
                        ("calls", models.BigIntegerField(default=0, verbose_name="calls")),
                        ("tokens", models.BigIntegerField(default=0, verbose_name="tokens")),
                        ("cost", models.BigIntegerField(default=0, verbose_name="cost")),
                        (
                            "seconds",
                            models.BigIntegerField(default=0, verbose_name="active time"),
                        ),
                        (
                            "used_tokens",
                            models.BigIntegerField(default=0, verbose_name="tokens so far"),
                        ),
                        (
                            "used_cost",
                            models.BigIntegerField(default=0, verbose_name="cost so far"),
                        ),
                        (
                            "used_seconds",
                            models.BigIntegerField(
                                default=0, verbose_name="active time so far"
                            ),
                        ),
                        ("expires_at", models.DateTimeField(verbose_name="expires")),
                        (
                            "is_counted",
                            models.BooleanField(
                                default=False,
                                help_text="It has expired, and what was used so far has been counted.",
                                verbose_name="counted",
                            ),
                        ),
                        (
                            "counter",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="holds",
                                to="agents.budgetcounter",
                                verbose_name="counter",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "reservation",
                        "verbose_name_plural": "reservations",
                        "indexes": [
                            models.Index(
                                fields=["counter", "is_counted"], name="holds_of_a_counter"
                            )
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("call", "counter"), name="one_hold_a_call"
                            )
                        ],
                    },
                ),
            ],
        ),
        migrations.RunPython(CHUNK_INDEX.create, CHUNK_INDEX.drop),
    ]
