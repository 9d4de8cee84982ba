import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import agents.models.audit
import agents.models.secret


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="McpServer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
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
                        ],
                        default="http",
                        max_length=10,
                        verbose_name="transport",
                    ),
                ),
                ("url", models.CharField(blank=True, max_length=500, verbose_name="URL")),
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
                        help_text="Time limit for each call, 1–600 seconds.",
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
                    models.TextField(blank=True, editable=False, verbose_name="last error"),
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
            name="ServerSample",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
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
                "indexes": [models.Index(fields=["server", "at"], name="samples_of_a_server")],
            },
        ),
        migrations.CreateModel(
            name="ToolRegistration",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.SlugField(max_length=64, unique=True, verbose_name="name")),
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
                    models.CharField(blank=True, max_length=500, verbose_name="endpoint"),
                ),
                (
                    "is_gone",
                    models.BooleanField(
                        default=False, editable=False, verbose_name="removed from server"
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
                        ],
                        default="own",
                        editable=False,
                        max_length=10,
                        verbose_name="source",
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
            ],
            options={
                "verbose_name": "tool",
                "verbose_name_plural": "tools",
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="Agent",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.SlugField(max_length=64, unique=True, verbose_name="name")),
                (
                    "description",
                    models.CharField(blank=True, max_length=200, verbose_name="description"),
                ),
                ("instructions", models.TextField(blank=True, verbose_name="instructions")),
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
                        ],
                        db_default="synthesis",
                        default="synthesis",
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
                    "handoffs",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Agents this agent can hand off tasks to. Their results come back to this agent.",
                        related_name="asked_by",
                        to="agents.agent",
                        verbose_name="can hand off to",
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
            name="AgentTool",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
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
            name="ReviewScope",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
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
                (
                    "agents",
                    models.ManyToManyField(
                        blank=True, related_name="+", to="agents.agent", verbose_name="agents"
                    ),
                ),
            ],
            options={
                "verbose_name": "reviewer access",
                "verbose_name_plural": "reviewer access",
            },
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("topic", models.CharField(max_length=80, verbose_name="topic")),
                ("may_write", models.BooleanField(default=False, verbose_name="edit access")),
                ("since", models.DateTimeField(auto_now_add=True, verbose_name="since")),
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
            name="Workflow",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=80, unique=True, verbose_name="name")),
                (
                    "description",
                    models.CharField(blank=True, max_length=300, verbose_name="description"),
                ),
                ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
            ],
            options={
                "verbose_name": "workflow",
                "verbose_name_plural": "workflows",
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="WorkflowVersion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField(verbose_name="version")),
                (
                    "text",
                    models.TextField(help_text="YAML or JSON.", verbose_name="definition"),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
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
            name="Schedule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
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
                    models.JSONField(blank=True, default=dict, verbose_name="parameters"),
                ),
                (
                    "next_at",
                    models.DateTimeField(
                        blank=True, db_index=True, null=True, verbose_name="next run"
                    ),
                ),
                (
                    "last_run_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="last run"),
                ),
                ("trouble", models.TextField(blank=True, verbose_name="error")),
                ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
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
            ],
            options={
                "verbose_name": "schedule",
                "verbose_name_plural": "schedules",
                "ordering": ["workflow__name", "pk"],
            },
        ),
        migrations.CreateModel(
            name="Run",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
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
                ("agent_name", models.CharField(max_length=64, verbose_name="agent name")),
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
                    models.PositiveIntegerField(default=0, verbose_name="output tokens"),
                ),
                ("cost", models.FloatField(blank=True, null=True, verbose_name="cost (USD)")),
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
                ("ended_at", models.DateTimeField(blank=True, null=True, verbose_name="ended")),
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
                    models.JSONField(blank=True, null=True, verbose_name="structured output"),
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
                    models.PositiveSmallIntegerField(default=0, verbose_name="takeovers"),
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
                        help_text="Reruns only: settings that differ from the agent's.",
                        verbose_name="overrides",
                    ),
                ),
                (
                    "seconds",
                    models.FloatField(blank=True, null=True, verbose_name="duration (seconds)"),
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
                        help_text="Part of the duration spent waiting for users.",
                        verbose_name="waiting time (seconds)",
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
                    models.Index(fields=["status", "ended_at"], name="runs_of_a_status"),
                    models.Index(fields=["user", "status"], name="runs_of_a_person"),
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
            name="RunEvent",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
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
                    models.UniqueConstraint(fields=("run", "seq"), name="one_event_a_number")
                ],
            },
        ),
        migrations.CreateModel(
            name="AgentStep",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
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
                    models.CharField(blank=True, max_length=64, verbose_name="agent name"),
                ),
                ("call_id", models.TextField(blank=True, verbose_name="call ID")),
                ("thought", models.TextField(blank=True, verbose_name="thought")),
                ("action", models.TextField(blank=True, verbose_name="action")),
                (
                    "action_input",
                    models.JSONField(blank=True, null=True, verbose_name="action input"),
                ),
                ("observation", models.TextField(blank=True, verbose_name="observation")),
                ("request", models.JSONField(blank=True, null=True, verbose_name="request")),
                ("attempts", models.PositiveIntegerField(default=1, verbose_name="attempts")),
                (
                    "prompt_tokens",
                    models.PositiveIntegerField(default=0, verbose_name="input tokens"),
                ),
                (
                    "completion_tokens",
                    models.PositiveIntegerField(default=0, verbose_name="output tokens"),
                ),
                ("cost", models.FloatField(blank=True, null=True, verbose_name="cost (USD)")),
                (
                    "first_seq",
                    models.PositiveIntegerField(default=0, verbose_name="first event"),
                ),
                ("started_at", models.DateTimeField(verbose_name="started")),
                ("ended_at", models.DateTimeField(blank=True, null=True, verbose_name="ended")),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="steps",
                        to="agents.run",
                    ),
                ),
                ("depth", models.PositiveSmallIntegerField(default=0, verbose_name="depth")),
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
            ],
            options={
                "verbose_name": "step",
                "verbose_name_plural": "steps",
                "ordering": ["run_id", "number"],
                "constraints": [
                    models.UniqueConstraint(fields=("run", "number"), name="one_step_a_number")
                ],
            },
        ),
        migrations.CreateModel(
            name="Absence",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
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
                        choices=[("lost", "connection lost"), ("closed", "page closed")],
                        default="lost",
                        max_length=8,
                        verbose_name="reason",
                    ),
                ),
                ("left_at", models.DateTimeField(verbose_name="disconnected")),
                (
                    "came_back_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="reconnected"),
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
            name="Approval",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("step", models.PositiveIntegerField(verbose_name="step")),
                ("call_id", models.TextField(verbose_name="call ID")),
                ("agent_name", models.CharField(max_length=64, verbose_name="agent name")),
                ("tool", models.TextField(verbose_name="tool")),
                ("arguments", models.TextField(verbose_name="arguments")),
                ("digest", models.CharField(max_length=64, verbose_name="digest")),
                (
                    "why",
                    models.CharField(
                        choices=[
                            ("agent", "This agent requires approval for every tool call."),
                            (
                                "tool",
                                "This tool can make changes, so it requires approval.",
                            ),
                            (
                                "unknown",
                                "The server stopped during this call. It may already have completed.",
                            ),
                            ("plan", "This agent's plan requires approval before it runs."),
                            ("step", "The next steps require approval."),
                            ("question", "The run needs an answer to continue."),
                            (
                                "sharing",
                                "This question will be sent to experts. They see only the question.",
                            ),
                        ],
                        default="tool",
                        max_length=10,
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
            ],
            options={
                "verbose_name": "approval",
                "verbose_name_plural": "approvals",
                "ordering": ["pk"],
                "indexes": [
                    models.Index(fields=["verdict", "run"], name="approvals_that_wait")
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("run", "step"), name="one_approval_a_step")
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditPerson",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
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
                ("name", models.CharField(blank=True, max_length=150, verbose_name="name")),
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
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "at",
                    models.DateTimeField(
                        db_index=True, default=django.utils.timezone.now, verbose_name="time"
                    ),
                ),
                (
                    "action",
                    models.CharField(db_index=True, max_length=40, verbose_name="action"),
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
                ("detail", models.JSONField(blank=True, default=dict, verbose_name="details")),
                ("number", models.PositiveBigIntegerField(unique=True, verbose_name="number")),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="entries",
                        to="agents.auditperson",
                        verbose_name="user",
                    ),
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
            ],
            options={
                "verbose_name": "audit log entry",
                "verbose_name_plural": "audit log",
                "ordering": ["-number"],
            },
        ),
        migrations.CreateModel(
            name="AuditHead",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
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
            name="Upkeep",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=40, unique=True, verbose_name="name")),
                ("at", models.DateTimeField(blank=True, null=True, verbose_name="last run")),
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
            name="GuardrailPattern",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=80, unique=True, verbose_name="name")),
                (
                    "pattern",
                    models.CharField(
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
                        choices=[
                            ("input", "User message"),
                            ("output", "Agent answer"),
                            ("both", "Message and answer"),
                            ("tool_input", "Tool input"),
                            ("tool_output", "Tool output"),
                        ],
                        default="both",
                        max_length=12,
                        verbose_name="stage",
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
                "verbose_name": "guardrail pattern",
                "verbose_name_plural": "guardrail patterns",
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="GuardrailHit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("step", models.PositiveIntegerField(verbose_name="step")),
                ("agent_name", models.CharField(max_length=64, verbose_name="agent")),
                (
                    "stage",
                    models.CharField(
                        choices=[
                            ("input", "User message"),
                            ("output", "Agent answer"),
                            ("both", "Message and answer"),
                            ("tool_input", "Tool input"),
                            ("tool_output", "Tool output"),
                        ],
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
                ("matches", models.PositiveIntegerField(default=1, verbose_name="matches")),
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
                "indexes": [models.Index(fields=["pattern", "id"], name="hits_of_a_pattern")],
            },
        ),
        migrations.CreateModel(
            name="GuardrailVerdict",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
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
            name="Document",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("title", models.CharField(max_length=200, verbose_name="title")),
                (
                    "source",
                    models.CharField(
                        help_text="Where the text came from.",
                        max_length=500,
                        unique=True,
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
                    models.CharField(editable=False, max_length=64, verbose_name="digest"),
                ),
                ("added_at", models.DateTimeField(auto_now_add=True, verbose_name="added at")),
            ],
            options={
                "verbose_name": "document",
                "verbose_name_plural": "documents",
                "ordering": ("source",),
            },
        ),
        migrations.CreateModel(
            name="Chunk",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("ordinal", models.PositiveIntegerField(verbose_name="position")),
                (
                    "heading",
                    models.CharField(blank=True, max_length=500, verbose_name="heading"),
                ),
                ("text", models.TextField(verbose_name="text")),
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
            name="LanguageModel",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
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
                    "parameters",
                    models.JSONField(blank=True, default=dict, verbose_name="parameters"),
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
                        help_text="Leave empty for no limit. Limits apply to each server process separately.",
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
            },
        ),
        migrations.CreateModel(
            name="ServerProcess",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=120, unique=True, verbose_name="name")),
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
                ("longest_stall", models.FloatField(default=0, verbose_name="longest block")),
                ("stalled_in", models.TextField(blank=True, verbose_name="blocked in")),
                (
                    "stalled_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="last blocked"),
                ),
                (
                    "journal_lag",
                    models.FloatField(
                        default=0,
                        help_text="Seconds until an event is saved.",
                        verbose_name="event save lag",
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
            name="AgentVersion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField(verbose_name="version")),
                ("snapshot", models.JSONField(verbose_name="snapshot")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="changed")),
                ("note", models.CharField(blank=True, max_length=200, verbose_name="note")),
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
        migrations.AddField(
            model_name="agent",
            name="tools",
            field=models.ManyToManyField(
                blank=True,
                related_name="agents",
                through="agents.AgentTool",
                to="agents.toolregistration",
                verbose_name="tools",
            ),
        ),
    ]
