import django.core.validators
from django.db import migrations, models


def close(apps, schema_editor):
    """Have rules that block fail closed: so far, the other choice was the default."""
    rules = apps.get_model("agents", "GuardrailPattern").objects.filter(kind="model")
    rules.filter(action="block", on_failure="allow").update(on_failure="block")


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0051_recently_deleted"),
    ]

    operations = [
        migrations.AlterField(
            model_name="guardrailpattern",
            name="max_call_tokens",
            field=models.PositiveIntegerField(
                default=8000,
                help_text="A longer text is checked in overlapping parts, one call each.",
                validators=[
                    django.core.validators.MinValueValidator(100),
                    django.core.validators.MaxValueValidator(1000000),
                ],
                verbose_name="max tokens per call",
            ),
        ),
        migrations.AlterField(
            model_name="guardrailpattern",
            name="max_calls",
            field=models.PositiveIntegerField(
                default=100,
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(1000),
                ],
                verbose_name="max calls per run",
            ),
        ),
        migrations.AlterField(
            model_name="guardrailpattern",
            name="on_failure",
            field=models.CharField(
                choices=[
                    ("allow", "Allow the text, and note that it wasn't checked"),
                    ("block", "Block the text"),
                ],
                default="block",
                help_text="For rules that block: on an error, a timeout, an invalid reply or a spent budget. Without calls left in the run, the text is always blocked.",
                max_length=10,
                verbose_name="if the check fails",
            ),
        ),
        migrations.RunPython(close, migrations.RunPython.noop),
    ]
