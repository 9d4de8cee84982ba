"""All tables of dashboard at once, for a new database.

An older database takes the migrations that this one replaces, one by one.
"""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import agents.db.create_tables


class Migration(migrations.Migration):
    replaces = [("dashboard", "0001_figures"), ("dashboard", "0002_signed_savings")]

    initial = True

    dependencies = [
        ("agents", "0038_model_defaults"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        agents.db.create_tables.CreateTables(
            operations=[
                migrations.CreateModel(
                    name="Progress",
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
                        ("last_run", models.BigIntegerField(default=0)),
                        ("run_at", models.DateTimeField(null=True)),
                    ],
                    options={
                        "verbose_name": "dashboard progress",
                        "verbose_name_plural": "dashboard progress",
                        "default_permissions": (),
                    },
                ),
                migrations.CreateModel(
                    name="StaleRun",
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
                        ("run", models.BigIntegerField(db_index=True)),
                    ],
                    options={
                        "verbose_name": "changed run",
                        "verbose_name_plural": "changed runs",
                        "default_permissions": (),
                    },
                ),
                migrations.CreateModel(
                    name="SummarizedDay",
                    fields=[
                        ("day", models.DateField(primary_key=True, serialize=False)),
                        ("changes", models.PositiveIntegerField(default=1)),
                    ],
                    options={
                        "verbose_name": "summarized day",
                        "verbose_name_plural": "summarized days",
                        "default_permissions": (),
                    },
                ),
                migrations.CreateModel(
                    name="DeletedFigures",
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
                        ("runs", models.PositiveIntegerField(db_default=0, default=0)),
                        ("completed", models.PositiveIntegerField(db_default=0, default=0)),
                        ("failed", models.PositiveIntegerField(db_default=0, default=0)),
                        ("blocked", models.PositiveIntegerField(db_default=0, default=0)),
                        ("cancelled", models.PositiveIntegerField(db_default=0, default=0)),
                        ("over_budget", models.PositiveIntegerField(db_default=0, default=0)),
                        ("limited", models.PositiveIntegerField(db_default=0, default=0)),
                        ("interrupted", models.PositiveIntegerField(db_default=0, default=0)),
                        ("planned", models.PositiveIntegerField(db_default=0, default=0)),
                        ("replanned", models.PositiveIntegerField(db_default=0, default=0)),
                        ("replans", models.PositiveIntegerField(db_default=0, default=0)),
                        ("model_calls", models.PositiveIntegerField(db_default=0, default=0)),
                        ("retries", models.PositiveIntegerField(db_default=0, default=0)),
                        ("fallbacks", models.PositiveIntegerField(db_default=0, default=0)),
                        ("tool_calls", models.PositiveIntegerField(db_default=0, default=0)),
                        ("tool_errors", models.PositiveIntegerField(db_default=0, default=0)),
                        ("tool_timeouts", models.PositiveIntegerField(db_default=0, default=0)),
                        ("timed_out", models.PositiveIntegerField(db_default=0, default=0)),
                        (
                            "input_tokens",
                            models.PositiveBigIntegerField(db_default=0, default=0),
                        ),
                        (
                            "output_tokens",
                            models.PositiveBigIntegerField(db_default=0, default=0),
                        ),
                        (
                            "cache_read_tokens",
                            models.PositiveBigIntegerField(db_default=0, default=0),
                        ),
                        (
                            "cache_write_tokens",
                            models.PositiveBigIntegerField(db_default=0, default=0),
                        ),
                        (
                            "reasoning_tokens",
                            models.PositiveBigIntegerField(db_default=0, default=0),
                        ),
                        (
                            "answer_cost",
                            models.PositiveBigIntegerField(db_default=0, default=0),
                        ),
                        (
                            "replan_cost",
                            models.PositiveBigIntegerField(db_default=0, default=0),
                        ),
                        ("retry_cost", models.PositiveBigIntegerField(db_default=0, default=0)),
                        ("check_cost", models.PositiveBigIntegerField(db_default=0, default=0)),
                        ("saved_cost", models.BigIntegerField(db_default=0, default=0)),
                        (
                            "unpriced_calls",
                            models.PositiveIntegerField(db_default=0, default=0),
                        ),
                        ("unpriced", models.PositiveIntegerField(db_default=0, default=0)),
                        ("cached", models.PositiveIntegerField(db_default=0, default=0)),
                        ("ratings_up", models.PositiveIntegerField(db_default=0, default=0)),
                        ("ratings_down", models.PositiveIntegerField(db_default=0, default=0)),
                        ("rated", models.PositiveIntegerField(db_default=0, default=0)),
                        ("corrected", models.PositiveIntegerField(db_default=0, default=0)),
                        ("regenerated", models.PositiveIntegerField(db_default=0, default=0)),
                        (
                            "guardrail_hits",
                            models.PositiveIntegerField(db_default=0, default=0),
                        ),
                        (
                            "guardrail_blocks",
                            models.PositiveIntegerField(db_default=0, default=0),
                        ),
                        ("guarded", models.PositiveIntegerField(db_default=0, default=0)),
                        ("active_count", models.PositiveIntegerField(db_default=0, default=0)),
                        ("active_ms", models.PositiveBigIntegerField(db_default=0, default=0)),
                        ("first_count", models.PositiveIntegerField(db_default=0, default=0)),
                        ("first_ms", models.PositiveBigIntegerField(db_default=0, default=0)),
                        (
                            "grain",
                            models.CharField(
                                choices=[
                                    ("day", "all runs"),
                                    ("agent", "agent, version, model"),
                                    ("person", "person"),
                                    ("both", "person, agent, version, model"),
                                    ("tool", "tool, agent, version, model"),
                                ],
                                max_length=8,
                            ),
                        ),
                        ("day", models.DateField()),
                        ("agent_name", models.CharField(default="", max_length=64)),
                        ("agent_version", models.PositiveIntegerField(default=0)),
                        ("model", models.CharField(default="", max_length=200)),
                        ("tool", models.CharField(default="", max_length=64)),
                        ("active_histogram", models.TextField(default="")),
                        ("first_histogram", models.TextField(default="")),
                        ("call_ms", models.PositiveBigIntegerField(db_default=0, default=0)),
                        ("call_histogram", models.TextField(default="")),
                    ],
                    options={
                        "verbose_name": "figures of deleted runs",
                        "verbose_name_plural": "figures of deleted runs",
                        "default_permissions": (),
                        "constraints": [
                            models.UniqueConstraint(
                                fields=(
                                    "grain",
                                    "day",
                                    "agent_name",
                                    "agent_version",
                                    "model",
                                    "tool",
                                ),
                                name="one_row_of_deleted_figures",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="RunSummary",
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
                        ("runs", models.PositiveIntegerField(db_default=0, default=0)),
                        ("completed", models.PositiveIntegerField(db_default=0, default=0)),
                        ("failed", models.PositiveIntegerField(db_default=0, default=0)),
                        ("blocked", models.PositiveIntegerField(db_default=0, default=0)),
                        ("cancelled", models.PositiveIntegerField(db_default=0, default=0)),
                        ("over_budget", models.PositiveIntegerField(db_default=0, default=0)),
                        ("limited", models.PositiveIntegerField(db_default=0, default=0)),
                        ("interrupted", models.PositiveIntegerField(db_default=0, default=0)),
                        ("planned", models.PositiveIntegerField(db_default=0, default=0)),
                        ("replanned", models.PositiveIntegerField(db_default=0, default=0)),
                        ("replans", models.PositiveIntegerField(db_default=0, default=0)),
                        ("model_calls", models.PositiveIntegerField(db_default=0, default=0)),
                        ("retries", models.PositiveIntegerField(db_default=0, default=0)),
                        ("fallbacks", models.PositiveIntegerField(db_default=0, default=0)),
                        ("tool_calls", models.PositiveIntegerField(db_default=0, default=0)),
                        ("tool_errors", models.PositiveIntegerField(db_default=0, default=0)),
                        ("tool_timeouts", models.PositiveIntegerField(db_default=0, default=0)),
                        ("timed_out", models.PositiveIntegerField(db_default=0, default=0)),
                        (
                            "input_tokens",
                            models.PositiveBigIntegerField(db_default=0, default=0),
                        ),
                        (
                            "output_tokens",
                            models.PositiveBigIntegerField(db_default=0, default=0),
                        ),
                        (
                            "cache_read_tokens",
                            models.PositiveBigIntegerField(db_default=0, default=0),
                        ),
                        (
                            "cache_write_tokens",
                            models.PositiveBigIntegerField(db_default=0, default=0),
                        ),
                        (
                            "reasoning_tokens",
                            models.PositiveBigIntegerField(db_default=0, default=0),
                        ),
                        (
                            "answer_cost",
                            models.PositiveBigIntegerField(db_default=0, default=0),
                        ),
                        (
                            "replan_cost",
                            models.PositiveBigIntegerField(db_default=0, default=0),
                        ),
                        ("retry_cost", models.PositiveBigIntegerField(db_default=0, default=0)),
                        ("check_cost", models.PositiveBigIntegerField(db_default=0, default=0)),
                        ("saved_cost", models.BigIntegerField(db_default=0, default=0)),
                        (
                            "unpriced_calls",
                            models.PositiveIntegerField(db_default=0, default=0),
                        ),
                        ("unpriced", models.PositiveIntegerField(db_default=0, default=0)),
                        ("cached", models.PositiveIntegerField(db_default=0, default=0)),
                        ("ratings_up", models.PositiveIntegerField(db_default=0, default=0)),
                        ("ratings_down", models.PositiveIntegerField(db_default=0, default=0)),
                        ("rated", models.PositiveIntegerField(db_default=0, default=0)),
                        ("corrected", models.PositiveIntegerField(db_default=0, default=0)),
                        ("regenerated", models.PositiveIntegerField(db_default=0, default=0)),
                        (
                            "guardrail_hits",
                            models.PositiveIntegerField(db_default=0, default=0),
                        ),
                        (
                            "guardrail_blocks",
                            models.PositiveIntegerField(db_default=0, default=0),
                        ),
                        ("guarded", models.PositiveIntegerField(db_default=0, default=0)),
                        ("active_count", models.PositiveIntegerField(db_default=0, default=0)),
                        ("active_ms", models.PositiveBigIntegerField(db_default=0, default=0)),
                        ("first_count", models.PositiveIntegerField(db_default=0, default=0)),
                        ("first_ms", models.PositiveBigIntegerField(db_default=0, default=0)),
                        ("topic", models.CharField(db_index=True, max_length=80)),
                        ("day", models.DateField()),
                        ("started_at", models.DateTimeField()),
                        ("ended_at", models.DateTimeField(null=True)),
                        ("agent_name", models.CharField(max_length=64)),
                        ("agent_version", models.PositiveIntegerField(default=0)),
                        ("model", models.CharField(max_length=200)),
                        ("last_seq", models.PositiveIntegerField(default=0)),
                        ("active_class", models.SmallIntegerField(null=True)),
                        ("first_class", models.SmallIntegerField(null=True)),
                        ("is_hidden", models.BooleanField(default=False)),
                        (
                            "run",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="figures",
                                to="agents.run",
                            ),
                        ),
                        (
                            "user",
                            models.ForeignKey(
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "run summary",
                        "verbose_name_plural": "run summaries",
                        "default_permissions": (),
                        "indexes": [
                            models.Index(fields=["day"], name="summaries_of_a_day"),
                            models.Index(fields=["user", "day"], name="summaries_of_a_person"),
                            models.Index(
                                fields=["agent_name", "day"], name="summaries_of_an_agent"
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ToolSummary",
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
                        ("tool", models.CharField(max_length=64)),
                        ("calls", models.PositiveIntegerField(db_default=0, default=0)),
                        ("errors", models.PositiveIntegerField(db_default=0, default=0)),
                        ("timeouts", models.PositiveIntegerField(db_default=0, default=0)),
                        ("call_ms", models.PositiveBigIntegerField(db_default=0, default=0)),
                        ("call_histogram", models.TextField(db_default="", default="")),
                        (
                            "run",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="tools",
                                to="dashboard.runsummary",
                                to_field="run",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "tool summary",
                        "verbose_name_plural": "tool summaries",
                        "default_permissions": (),
                        "indexes": [
                            models.Index(fields=["tool", "run"], name="runs_of_a_tool")
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("run", "tool"), name="one_tool_summary_a_run"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="DailyFigures",
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
                        ("runs", models.PositiveIntegerField(db_default=0, default=0)),
                        ("completed", models.PositiveIntegerField(db_default=0, default=0)),
                        ("failed", models.PositiveIntegerField(db_default=0, default=0)),
                        ("blocked", models.PositiveIntegerField(db_default=0, default=0)),
                        ("cancelled", models.PositiveIntegerField(db_default=0, default=0)),
                        ("over_budget", models.PositiveIntegerField(db_default=0, default=0)),
                        ("limited", models.PositiveIntegerField(db_default=0, default=0)),
                        ("interrupted", models.PositiveIntegerField(db_default=0, default=0)),
                        ("planned", models.PositiveIntegerField(db_default=0, default=0)),
                        ("replanned", models.PositiveIntegerField(db_default=0, default=0)),
                        ("replans", models.PositiveIntegerField(db_default=0, default=0)),
                        ("model_calls", models.PositiveIntegerField(db_default=0, default=0)),
                        ("retries", models.PositiveIntegerField(db_default=0, default=0)),
                        ("fallbacks", models.PositiveIntegerField(db_default=0, default=0)),
                        ("tool_calls", models.PositiveIntegerField(db_default=0, default=0)),
                        ("tool_errors", models.PositiveIntegerField(db_default=0, default=0)),
                        ("tool_timeouts", models.PositiveIntegerField(db_default=0, default=0)),
                        ("timed_out", models.PositiveIntegerField(db_default=0, default=0)),
                        (
                            "input_tokens",
                            models.PositiveBigIntegerField(db_default=0, default=0),
                        ),
                        (
                            "output_tokens",
                            models.PositiveBigIntegerField(db_default=0, default=0),
                        ),
                        (
                            "cache_read_tokens",
                            models.PositiveBigIntegerField(db_default=0, default=0),
                        ),
                        (
                            "cache_write_tokens",
                            models.PositiveBigIntegerField(db_default=0, default=0),
                        ),
                        (
                            "reasoning_tokens",
                            models.PositiveBigIntegerField(db_default=0, default=0),
                        ),
                        (
                            "answer_cost",
                            models.PositiveBigIntegerField(db_default=0, default=0),
                        ),
                        (
                            "replan_cost",
                            models.PositiveBigIntegerField(db_default=0, default=0),
                        ),
                        ("retry_cost", models.PositiveBigIntegerField(db_default=0, default=0)),
                        ("check_cost", models.PositiveBigIntegerField(db_default=0, default=0)),
                        ("saved_cost", models.BigIntegerField(db_default=0, default=0)),
                        (
                            "unpriced_calls",
                            models.PositiveIntegerField(db_default=0, default=0),
                        ),
                        ("unpriced", models.PositiveIntegerField(db_default=0, default=0)),
                        ("cached", models.PositiveIntegerField(db_default=0, default=0)),
                        ("ratings_up", models.PositiveIntegerField(db_default=0, default=0)),
                        ("ratings_down", models.PositiveIntegerField(db_default=0, default=0)),
                        ("rated", models.PositiveIntegerField(db_default=0, default=0)),
                        ("corrected", models.PositiveIntegerField(db_default=0, default=0)),
                        ("regenerated", models.PositiveIntegerField(db_default=0, default=0)),
                        (
                            "guardrail_hits",
                            models.PositiveIntegerField(db_default=0, default=0),
                        ),
                        (
                            "guardrail_blocks",
                            models.PositiveIntegerField(db_default=0, default=0),
                        ),
                        ("guarded", models.PositiveIntegerField(db_default=0, default=0)),
                        ("active_count", models.PositiveIntegerField(db_default=0, default=0)),
                        ("active_ms", models.PositiveBigIntegerField(db_default=0, default=0)),
                        ("first_count", models.PositiveIntegerField(db_default=0, default=0)),
                        ("first_ms", models.PositiveBigIntegerField(db_default=0, default=0)),
                        (
                            "grain",
                            models.CharField(
                                choices=[
                                    ("day", "all runs"),
                                    ("agent", "agent, version, model"),
                                    ("person", "person"),
                                    ("both", "person, agent, version, model"),
                                    ("tool", "tool, agent, version, model"),
                                ],
                                max_length=8,
                            ),
                        ),
                        ("day", models.DateField()),
                        ("agent_name", models.CharField(default="", max_length=64)),
                        ("agent_version", models.PositiveIntegerField(default=0)),
                        ("model", models.CharField(default="", max_length=200)),
                        ("tool", models.CharField(default="", max_length=64)),
                        ("active_histogram", models.TextField(default="")),
                        ("first_histogram", models.TextField(default="")),
                        ("call_ms", models.PositiveBigIntegerField(db_default=0, default=0)),
                        ("call_histogram", models.TextField(default="")),
                        (
                            "user",
                            models.ForeignKey(
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "daily figures",
                        "verbose_name_plural": "daily figures",
                        "permissions": [("view_dashboard", "Can see the dashboard")],
                        "default_permissions": (),
                        "indexes": [
                            models.Index(
                                fields=["grain", "day", "agent_name"], name="figures_of_a_day"
                            ),
                            models.Index(
                                fields=["user", "grain", "day"], name="figures_of_a_person"
                            ),
                        ],
                    },
                ),
            ],
        ),
    ]
