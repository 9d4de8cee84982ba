import django.core.validators
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """The table stays what it is, with all that is in it: it gets a model, and more columns."""

    dependencies = [("agents", "0026_samples")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
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
                        "verbose_name": "tool of an agent",
                        "verbose_name_plural": "tools of agents",
                        "db_table": "agents_agent_tools",
                        "ordering": ["tool__name"],
                        "unique_together": {("agent", "tool")},
                    },
                ),
                migrations.AlterField(
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
        ),
        migrations.AddField(
            model_name="agenttool",
            name="approval",
            field=models.CharField(
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
        migrations.AddField(
            model_name="agenttool",
            name="effect",
            field=models.CharField(
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
        migrations.AddField(
            model_name="agenttool",
            name="timeout",
            field=models.PositiveIntegerField(
                blank=True,
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(600),
                ],
                verbose_name="timeout",
            ),
        ),
        migrations.AddField(
            model_name="agenttool",
            name="max_calls",
            field=models.PositiveIntegerField(
                blank=True,
                null=True,
                validators=[django.core.validators.MinValueValidator(1)],
                verbose_name="most calls",
            ),
        ),
    ]
