"""The model's context window limits a text, unless an agent has a limit of its own."""

from django.core.validators import MinValueValidator
from django.db import migrations, models

OLD_DEFAULT = 4096


def clear_old_defaults(apps, schema_editor):
    """Clear limits that nobody chose; the next run saves the change as a new version."""
    agents = apps.get_model("agents", "Agent").objects
    for name in ("max_input_tokens", "max_output_tokens"):
        agents.filter(**{name: OLD_DEFAULT}).update(**{name: None}, version=0)


def restore_old_defaults(apps, schema_editor):
    agents = apps.get_model("agents", "Agent").objects
    for name in ("max_input_tokens", "max_output_tokens"):
        agents.filter(**{f"{name}__isnull": True}).update(**{name: OLD_DEFAULT}, version=0)


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0049_job_crashes"),
    ]

    operations = [
        migrations.AlterField(
            model_name="agent",
            name="max_input_tokens",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="Leave empty to use what the model's context window allows.",
                null=True,
                validators=[MinValueValidator(1)],
                verbose_name="max input tokens",
            ),
        ),
        migrations.AlterField(
            model_name="agent",
            name="max_output_tokens",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="An answer ends here and can be continued. Leave empty for no limit.",
                null=True,
                validators=[MinValueValidator(1)],
                verbose_name="max output tokens",
            ),
        ),
        migrations.RunPython(clear_old_defaults, restore_old_defaults),
    ]
