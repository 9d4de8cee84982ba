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
                        help_text="How its tools begin.",
                        max_length=40,
                        unique=True,
                        verbose_name="name",
                    ),
                ),
                (
                    "transport",
                    models.CharField(
                        choices=[
                            ("stdio", "a program on this machine"),
                            ("http", "an address (streamable HTTP)"),
                        ],
                        default="http",
                        max_length=10,
                        verbose_name="transport",
                    ),
                ),
                ("url", models.CharField(blank=True, max_length=500, verbose_name="address")),
                (
                    "command",
                    models.CharField(
                        blank=True,
                        help_text="One program, started without a shell.",
                        max_length=500,
                        verbose_name="command",
                    ),
                ),
                (
                    "args",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="A JSON list of texts.",
                        verbose_name="arguments",
                    ),
                ),
                ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                (
                    "timeout",
                    models.PositiveIntegerField(
                        default=30,
                        help_text="Seconds after which a call is given up.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(600),
                        ],
                        verbose_name="timeout",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("unknown", "not tried yet"),
                            ("connecting", "connecting"),
                            ("ready", "ready"),
                            ("failed", "out of order"),
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
                        help_text="A JSON object of texts. It is kept encrypted and never shown again.",
                        verbose_name="environment",
                    ),
                ),
                (
                    "headers",
                    agents.models.secret.EncryptedJSONField(
                        blank=True,
                        default=dict,
                        help_text="A JSON object of texts. It is kept encrypted and never shown again.",
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
                ("at", models.DateTimeField(verbose_name="at")),
                ("is_up", models.BooleanField(verbose_name="in order")),
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
                        help_text="Replaces what the model is told of this tool; empty keeps its own words.",
                        verbose_name="description",
                    ),
                ),
                ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                (
                    "timeout",
                    models.PositiveIntegerField(
                        default=30,
                        help_text="Seconds after which a call is given up.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(600),
                        ],
                        verbose_name="timeout",
                    ),
                ),
                (
                    "approval",
                    models.CharField(
                        choices=[
                            ("tool", "as the tool says"),
                            ("always", "always"),
                            ("never", "never"),
                        ],
                        default="tool",
                        help_text="Whether the person who asked has to agree to each call.",
                        max_length=10,
                        verbose_name="asks a person first",
                    ),
                ),
                (
                    "definition",
                    models.JSONField(
                        blank=True,
                        help_text="As the model is told of it: name, description and parameters.",
                        null=True,
                        verbose_name="definition",
                    ),
                ),
                (
                    "effect",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "as the tool says"),
                            ("read", "only reads"),
                            ("idempotent", "may be repeated"),
                            ("at_most_once", "must not be repeated"),
                        ],
                        default="",
                        max_length=12,
                        verbose_name="effect",
                    ),
                ),
                (
                    "endpoint",
                    models.CharField(blank=True, max_length=500, verbose_name="endpoint"),
                ),
                (
                    "is_gone",
                    models.BooleanField(
                        default=False, editable=False, verbose_name="gone from its server"
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
                        help_text="What its server says now, until an administrator accepts it.",
                        null=True,
                        verbose_name="changed definition",
                    ),
                ),
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("own", "this installation"),
                            ("http", "an HTTP endpoint"),
                            ("mcp", "an MCP server"),
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
                        help_text="A JSON object of texts. It is kept encrypted and never shown again.",
                        verbose_name="headers",
                    ),
                ),
                (
                    "fallback",
                    models.ForeignKey(
                        blank=True,
                        help_text="The tool that is used in its place where it is out of order.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="agents.toolregistration",
                        verbose_name="stand-in",
                    ),
                ),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="The groups whose people may use it. None: everybody may.",
                        related_name="+",
                        to="auth.group",
                        verbose_name="only for",
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
                        help_text="A LiteLLM model name such as anthropic/claude-sonnet-4-5, or demo. Empty takes the model of this installation.",
                        max_length=200,
                        verbose_name="model",
                    ),
                ),
                (
                    "dialect",
                    models.CharField(
                        choices=[
                            ("native", "tool calls of the model"),
                            ("react", "ReAct text"),
                        ],
                        default="native",
                        max_length=10,
                        verbose_name="dialect",
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
                        verbose_name="most steps",
                    ),
                ),
                (
                    "max_duplicate_tool_calls",
                    models.PositiveIntegerField(
                        default=2,
                        help_text="How often the same tool may be called with the same input.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(50),
                        ],
                        verbose_name="most equal calls",
                    ),
                ),
                (
                    "max_tool_calls_per_tool",
                    models.PositiveIntegerField(
                        blank=True,
                        default=5,
                        help_text="Empty means no limit.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                        verbose_name="most calls a tool",
                    ),
                ),
                (
                    "max_input_tokens",
                    models.PositiveIntegerField(
                        default=4096,
                        validators=[django.core.validators.MinValueValidator(1)],
                        verbose_name="most input tokens",
                    ),
                ),
                (
                    "max_output_tokens",
                    models.PositiveIntegerField(
                        default=4096,
                        validators=[django.core.validators.MinValueValidator(1)],
                        verbose_name="most output tokens",
                    ),
                ),
                (
                    "is_default",
                    models.BooleanField(
                        default=False,
                        help_text="Answers where no agent was chosen.",
                        verbose_name="default",
                    ),
                ),
                ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                (
                    "max_cost",
                    models.FloatField(
                        blank=True,
                        help_text="Where the price of the model is known. Empty means no limit.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(0)],
                        verbose_name="most dollars a run",
                    ),
                ),
                (
                    "max_run_tokens",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Read and written, in all turns together. Empty means no limit.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                        verbose_name="most tokens a run",
                    ),
                ),
                (
                    "max_seconds",
                    models.PositiveIntegerField(
                        blank=True,
                        default=600,
                        help_text="Asked between two steps. Empty means no limit.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                        verbose_name="most seconds",
                    ),
                ),
                (
                    "auto_execute_tools",
                    models.BooleanField(
                        default=True,
                        help_text="Switched off, every call is shown and waits for the person who asked.",
                        verbose_name="calls tools by itself",
                    ),
                ),
                (
                    "fallback_models",
                    models.TextField(
                        blank=True,
                        help_text="One a line, asked in this order where the model cannot be used.",
                        verbose_name="models to fall back to",
                    ),
                ),
                (
                    "output_schema",
                    models.JSONField(
                        blank=True,
                        help_text="A JSON Schema that the answer has to fit. Empty: the answer is text.",
                        null=True,
                        verbose_name="output schema",
                    ),
                ),
                (
                    "max_replans",
                    models.PositiveSmallIntegerField(
                        db_default=2,
                        default=2,
                        help_text="How often it may plan anew where a result is not what was expected.",
                        validators=[django.core.validators.MaxValueValidator(10)],
                        verbose_name="most new plans",
                    ),
                ),
                (
                    "merge",
                    models.CharField(
                        choices=[
                            ("vote", "majority vote"),
                            ("synthesis", "synthesis with attribution"),
                            ("judge", "a judge decides"),
                        ],
                        db_default="synthesis",
                        default="synthesis",
                        max_length=10,
                        verbose_name="how a panel agrees",
                    ),
                ),
                (
                    "mode",
                    models.CharField(
                        choices=[
                            ("react", "step by step"),
                            ("plan", "by a plan"),
                            ("panel", "as a panel"),
                        ],
                        db_default="react",
                        default="react",
                        help_text="By a plan: it writes one first, carries it out and checks what came of it. As a panel: it asks all agents that it may ask at once, and merges their answers.",
                        max_length=10,
                        verbose_name="works",
                    ),
                ),
                (
                    "roles",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="What it is good for, with commas between: steps of a plan that are meant for a role are given to it. People have the roles of their groups.",
                        max_length=200,
                        verbose_name="roles",
                    ),
                ),
                (
                    "shows_plan",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="A plan then waits until the person has approved or changed it.",
                        verbose_name="shows its plan first",
                    ),
                ),
                (
                    "personal_data",
                    models.CharField(
                        choices=[
                            ("shown", "Masked only when it is shown to reviewers"),
                            (
                                "hidden",
                                "Replaced before the model sees it, restored in the answer",
                            ),
                            ("unkept", "Masked before the trace keeps it"),
                        ],
                        db_default="shown",
                        default="shown",
                        help_text="What happens to e-mail, postal and IP addresses; phone, card, account, passport, ID, licence, pension and insurance numbers; dates of birth; keys and tokens.",
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
                        help_text="The number of its newest version; 0 where none was kept yet.",
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
                        help_text="The groups whose people may use it. None: everybody may.",
                        related_name="+",
                        to="auth.group",
                        verbose_name="only for",
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
                        help_text="Agents that this one may give a task to; they answer to it.",
                        related_name="asked_by",
                        to="agents.agent",
                        verbose_name="may ask",
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
                        violation_error_message="Another agent is the default already.",
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
                            ("", "as the tool is set up"),
                            ("always", "always"),
                            ("never", "never"),
                        ],
                        db_default="",
                        default="",
                        max_length=10,
                        verbose_name="asks a person first",
                    ),
                ),
                (
                    "effect",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "as the tool is set up"),
                            ("read", "only reads"),
                            ("idempotent", "may be repeated"),
                            ("at_most_once", "must not be repeated"),
                        ],
                        db_default="",
                        default="",
                        max_length=12,
                        verbose_name="effect",
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
                        verbose_name="timeout",
                    ),
                ),
                (
                    "max_calls",
                    models.PositiveIntegerField(
                        blank=True,
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                        verbose_name="most calls",
                    ),
                ),
            ],
            options={
                "verbose_name": "tool of an agent",
                "verbose_name_plural": "tools of agents",
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
                "verbose_name": "scope of a reviewer",
                "verbose_name_plural": "scopes of reviewers",
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
                ("may_write", models.BooleanField(default=False, verbose_name="may write")),
                ("since", models.DateTimeField(auto_now_add=True, verbose_name="since")),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="person",
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
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="written")),
                (
                    "author",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="written by",
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
                "verbose_name": "version of a workflow",
                "verbose_name_plural": "versions of workflows",
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
                        help_text="As in a crontab: minute hour day month weekday, such as 0 9 * * 1-5.",
                        max_length=100,
                        verbose_name="when",
                    ),
                ),
                (
                    "parameters",
                    models.JSONField(blank=True, default=dict, verbose_name="parameters"),
                ),
                (
                    "next_at",
                    models.DateTimeField(
                        blank=True, db_index=True, null=True, verbose_name="next time"
                    ),
                ),
                (
                    "last_run_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="last time"),
                ),
                ("trouble", models.TextField(blank=True, verbose_name="what went wrong")),
                ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                (
                    "user",
                    models.ForeignKey(
                        help_text="Whose run it is: they see it, and are asked what has to be asked.",
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="person",
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
                        help_text="Where its events are told.",
                        max_length=80,
                        verbose_name="topic",
                    ),
                ),
                ("agent_name", models.CharField(max_length=64, verbose_name="agent's name")),
                ("model", models.CharField(max_length=200, verbose_name="model")),
                (
                    "dialect",
                    models.CharField(default="native", max_length=10, verbose_name="dialect"),
                ),
                ("query", models.TextField(verbose_name="question")),
                ("answer", models.TextField(blank=True, verbose_name="answer")),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("running", "running"),
                            ("waiting", "waiting for a person"),
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
                    models.PositiveIntegerField(default=10, verbose_name="most steps"),
                ),
                ("turns", models.PositiveIntegerField(default=0, verbose_name="turns")),
                (
                    "tool_calls",
                    models.PositiveIntegerField(default=0, verbose_name="tool calls"),
                ),
                (
                    "prompt_tokens",
                    models.PositiveIntegerField(default=0, verbose_name="tokens read"),
                ),
                (
                    "completion_tokens",
                    models.PositiveIntegerField(default=0, verbose_name="tokens written"),
                ),
                ("cost", models.FloatField(blank=True, null=True, verbose_name="cost in USD")),
                (
                    "owner",
                    models.CharField(
                        blank=True,
                        help_text="The process that runs it.",
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
                        verbose_name="person",
                    ),
                ),
                (
                    "history",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="As the model is told of it, so that the run can go on after a pause.",
                        verbose_name="what was said before",
                    ),
                ),
                (
                    "output",
                    models.JSONField(blank=True, null=True, verbose_name="structured answer"),
                ),
                (
                    "epoch",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="Grows with each owner; a former one cannot write.",
                        verbose_name="epoch",
                    ),
                ),
                (
                    "heartbeat_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="Empty: whoever comes may take it.",
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
                        help_text="How the model was asked.",
                        max_length=10,
                        verbose_name="road",
                    ),
                ),
                (
                    "is_to_stop",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Its owner is asked to end it.",
                        verbose_name="to be stopped",
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
                        help_text="Of a run that was run again: what is not as the agent has it.",
                        verbose_name="what is different",
                    ),
                ),
                ("seconds", models.FloatField(blank=True, null=True, verbose_name="seconds")),
                (
                    "version",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Runs with the same configuration have the same.",
                        max_length=12,
                        verbose_name="version",
                    ),
                ),
                (
                    "marks",
                    models.TextField(
                        blank=True,
                        db_default="",
                        help_text="Of a run that is over: the kinds of its steps, to find it by.",
                        verbose_name="marks",
                    ),
                ),
                (
                    "parameters",
                    models.JSONField(
                        blank=True,
                        db_default=models.Value({}, models.JSONField()),
                        default=dict,
                        help_text="What the workflow was started with.",
                        verbose_name="parameters",
                    ),
                ),
                (
                    "workflow",
                    models.ForeignKey(
                        blank=True,
                        help_text="What it carries out, in the version of that time.",
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
                        help_text="The version that it began with; a trial of a draft has none.",
                        null=True,
                        verbose_name="agent's version",
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
                        help_text="Part of the duration spent waiting for people.",
                        verbose_name="seconds waited",
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
                        verbose_name="run again from",
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
                        verbose_name="kind",
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
                            ("rejected", "declined"),
                            ("cancelled", "cancelled"),
                            ("cut", "cut off"),
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
                    models.CharField(blank=True, max_length=64, verbose_name="agent's name"),
                ),
                ("call_id", models.TextField(blank=True, verbose_name="call")),
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
                    models.PositiveIntegerField(default=0, verbose_name="tokens read"),
                ),
                (
                    "completion_tokens",
                    models.PositiveIntegerField(default=0, verbose_name="tokens written"),
                ),
                ("cost", models.FloatField(blank=True, null=True, verbose_name="cost in USD")),
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
                        help_text="The step that it is a part of.",
                        null=True,
                        verbose_name="parent",
                    ),
                ),
                (
                    "notes",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="What happened on the way: asked again, fallen back, left out.",
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
                        help_text="What the call could do to the world outside.",
                        max_length=12,
                        verbose_name="effect",
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
                        help_text="A name that an open page gives itself.",
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
                ("left_at", models.DateTimeField(verbose_name="left")),
                (
                    "came_back_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="came back"),
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
                "verbose_name": "absence",
                "verbose_name_plural": "absences",
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
                ("call_id", models.TextField(verbose_name="call")),
                ("agent_name", models.CharField(max_length=64, verbose_name="agent's name")),
                ("tool", models.TextField(verbose_name="tool")),
                ("arguments", models.TextField(verbose_name="arguments")),
                ("digest", models.CharField(max_length=64, verbose_name="digest")),
                (
                    "why",
                    models.CharField(
                        choices=[
                            ("agent", "This agent shows every call before it is made."),
                            (
                                "tool",
                                "This tool may change something, so it asks before it is used.",
                            ),
                            (
                                "unknown",
                                "The server stopped while this ran. It may have been done.",
                            ),
                            ("plan", "This agent shows its plan before it begins."),
                            ("step", "The next steps wait until somebody agrees."),
                            ("question", "A person has to answer this."),
                            (
                                "sharing",
                                "This question goes to other people. They see only the question.",
                            ),
                        ],
                        default="tool",
                        max_length=10,
                        verbose_name="why",
                    ),
                ),
                (
                    "verdict",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("approved", "approved"),
                            ("edited", "approved with other arguments"),
                            ("rejected", "declined"),
                            ("withdrawn", "withdrawn"),
                        ],
                        default="waiting",
                        max_length=10,
                        verbose_name="verdict",
                    ),
                ),
                ("new_arguments", models.TextField(blank=True, verbose_name="other arguments")),
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
                        help_text="Whoever is in the group of this name may answer, too.",
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
                        blank=True, default=agents.models.audit.new_key, verbose_name="key"
                    ),
                ),
                (
                    "leaves_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="It goes on until all is gone.",
                        null=True,
                        verbose_name="erasure begun",
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
                "verbose_name": "person in the audit log",
                "verbose_name_plural": "people in the audit log",
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
                        help_text="For example run:12.",
                        max_length=120,
                        verbose_name="subject",
                    ),
                ),
                ("detail", models.JSONField(blank=True, default=dict, verbose_name="detail")),
                ("number", models.PositiveBigIntegerField(unique=True, verbose_name="number")),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="entries",
                        to="agents.auditperson",
                        verbose_name="person",
                    ),
                ),
                (
                    "place",
                    models.TextField(
                        blank=True,
                        help_text="Readable for as long as the person is known.",
                        verbose_name="from where",
                    ),
                ),
                ("key", models.CharField(max_length=8, verbose_name="sealed with")),
                (
                    "previous",
                    models.CharField(max_length=64, verbose_name="seal of the one before"),
                ),
                ("seal", models.CharField(max_length=64, verbose_name="seal")),
            ],
            options={
                "verbose_name": "entry of the audit log",
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
                "verbose_name": "end of the audit log",
                "verbose_name_plural": "end of the audit log",
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
                ("at", models.DateTimeField(blank=True, null=True, verbose_name="last time")),
                (
                    "report",
                    models.JSONField(blank=True, default=dict, verbose_name="what came of it"),
                ),
            ],
            options={
                "verbose_name": "upkeep",
                "verbose_name_plural": "upkeep",
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
                        help_text="A regular expression in RE2 syntax. (?i) at its start ignores case.",
                        max_length=1000,
                        verbose_name="pattern",
                    ),
                ),
                (
                    "action",
                    models.CharField(
                        choices=[
                            ("allow", "allow"),
                            ("warn", "warn"),
                            ("mask", "mask"),
                            ("block", "block"),
                        ],
                        default="block",
                        help_text="Block: it goes no further. Mask: the match is replaced by ‹name›. Warn: it is only recorded. Allow: an exception; what lies within its match no other rule sees.",
                        max_length=10,
                        verbose_name="action",
                    ),
                ),
                (
                    "message",
                    models.CharField(
                        blank=True,
                        help_text="What the person is told; empty gives the pattern's name.",
                        max_length=300,
                        verbose_name="message",
                    ),
                ),
                ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                (
                    "is_observed",
                    models.BooleanField(
                        default=False,
                        help_text="It changes nothing; what it would have done is recorded.",
                        verbose_name="only observe",
                    ),
                ),
                (
                    "stage",
                    models.CharField(
                        choices=[
                            ("input", "what a person asks"),
                            ("output", "what an agent answers"),
                            ("both", "what is asked and answered"),
                            ("tool_input", "what a tool is given"),
                            ("tool_output", "what a tool returns"),
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
                        help_text="The agents that it is for. None: all of them.",
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
                            ("input", "what a person asks"),
                            ("output", "what an agent answers"),
                            ("both", "what is asked and answered"),
                            ("tool_input", "what a tool is given"),
                            ("tool_output", "what a tool returns"),
                        ],
                        max_length=12,
                        verbose_name="stage",
                    ),
                ),
                (
                    "action",
                    models.CharField(
                        choices=[
                            ("allow", "allow"),
                            ("warn", "warn"),
                            ("mask", "mask"),
                            ("block", "block"),
                        ],
                        max_length=10,
                        verbose_name="action",
                    ),
                ),
                ("is_observed", models.BooleanField(default=False, verbose_name="observed")),
                ("matches", models.PositiveIntegerField(default=1, verbose_name="matches")),
                ("at", models.DateTimeField(verbose_name="when")),
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
                ("is_right", models.BooleanField(verbose_name="right")),
                ("at", models.DateTimeField(auto_now=True, verbose_name="when")),
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
                "verbose_name": "verdict on a hit",
                "verbose_name_plural": "verdicts on hits",
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
                ("ordinal", models.PositiveIntegerField(verbose_name="ordinal")),
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
                        help_text="What people see, and agents name it by. It stays as it is.",
                        max_length=64,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\\A\\w[\\w.:+-]*\\Z",
                                "Letters, digits and . : + - _ without blanks; no / in it.",
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
                            ("compatible", "an OpenAI-compatible address"),
                            ("other", "another one that LiteLLM knows"),
                        ],
                        default="openai",
                        max_length=20,
                        verbose_name="provider",
                    ),
                ),
                ("model", models.CharField(max_length=200, verbose_name="model")),
                (
                    "base_url",
                    models.CharField(blank=True, max_length=500, verbose_name="address"),
                ),
                (
                    "api_key",
                    agents.models.secret.EncryptedTextField(
                        blank=True, default="", verbose_name="key"
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
                        blank=True, default=dict, verbose_name="further secrets"
                    ),
                ),
                (
                    "options",
                    models.JSONField(blank=True, default=dict, verbose_name="further settings"),
                ),
                (
                    "parameters",
                    models.JSONField(blank=True, default=dict, verbose_name="parameters"),
                ),
                (
                    "input_price",
                    models.FloatField(
                        blank=True,
                        help_text="Empty: as LiteLLM's table says, where it does. 0 is a price, too.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(0)],
                        verbose_name="dollars per million tokens read",
                    ),
                ),
                (
                    "output_price",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[django.core.validators.MinValueValidator(0)],
                        verbose_name="dollars per million tokens written",
                    ),
                ),
                (
                    "context_window",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Tokens that fit into a request. Empty: as LiteLLM's table says.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(256)],
                        verbose_name="context window",
                    ),
                ),
                (
                    "fallbacks",
                    models.TextField(
                        blank=True,
                        help_text="Labels or LiteLLM names, one a line, asked in this order where it cannot be used. Those of the agent come first.",
                        verbose_name="models to fall back to",
                    ),
                ),
                (
                    "concurrency",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Empty means no limit. These limits count in each server process by itself.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                        verbose_name="most at once",
                    ),
                ),
                (
                    "requests_per_minute",
                    models.PositiveIntegerField(
                        blank=True,
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                        verbose_name="most requests a minute",
                    ),
                ),
                (
                    "tokens_per_minute",
                    models.PositiveIntegerField(
                        blank=True,
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                        verbose_name="most tokens a minute",
                    ),
                ),
                ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="The groups whose people may use it. None: everybody may.",
                        related_name="+",
                        to="auth.group",
                        verbose_name="only for",
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
                        verbose_name="kind",
                    ),
                ),
                ("version", models.CharField(max_length=40, verbose_name="version")),
                ("started_at", models.DateTimeField(verbose_name="started")),
                ("seen_at", models.DateTimeField(verbose_name="last heard of")),
                ("runs", models.PositiveIntegerField(default=0, verbose_name="runs")),
                ("sockets", models.PositiveIntegerField(default=0, verbose_name="sockets")),
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
                        help_text="Seconds for which the event loop owed an answer.",
                        verbose_name="lateness",
                    ),
                ),
                (
                    "stalls",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="How often the event loop was held up.",
                        verbose_name="stalls",
                    ),
                ),
                ("longest_stall", models.FloatField(default=0, verbose_name="longest stall")),
                ("stalled_in", models.TextField(blank=True, verbose_name="held up in")),
                (
                    "stalled_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="last stall"),
                ),
                (
                    "journal_lag",
                    models.FloatField(
                        default=0,
                        help_text="Seconds until what happened was kept.",
                        verbose_name="journal's lag",
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
                ("snapshot", models.JSONField(verbose_name="what it was")),
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
                "verbose_name": "version of an agent",
                "verbose_name_plural": "versions of agents",
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
