import django.core.validators
from django.db import migrations, models

SETTING = "search_min_score"


def to_probability(value):
    """Return a minimum of the former scale, on which 0.4 was the default and 0.7 was good."""
    if not value:
        return value
    return round(min(0.04 + max(value - 0.4, 0) * 0.36 / 0.3, 1.0), 2)


def convert(apps, schema_editor):
    tools = apps.get_model("agents", "ToolRegistration").objects.filter(min_certainty__gt=0)
    for tool in tools:
        tool.min_certainty = to_probability(tool.min_certainty)
        tool.save(update_fields=["min_certainty"])
    for setting in apps.get_model("agents", "InstallationSetting").objects.filter(key=SETTING):
        setting.value = to_probability(setting.value)
        setting.save(update_fields=["value"])


class Migration(migrations.Migration):
    dependencies = [("agents", "0024_document_sources")]

    operations = [
        migrations.AlterField(
            model_name="toolregistration",
            name="min_certainty",
            field=models.FloatField(
                blank=True,
                help_text=(
                    "Below this, a search reports that nothing relevant was found. Leave empty "
                    "for the installation's default (ASHIATO_SEARCH_MIN_SCORE)."
                ),
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(0),
                    django.core.validators.MaxValueValidator(1),
                ],
                verbose_name="minimum certainty",
            ),
        ),
        migrations.AlterField(
            model_name="toolregistration",
            name="rerank_model",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text=(
                    "Reorders the best passages, which takes time and tokens. Enter a label "
                    "from Models or a LiteLLM name; names with “rerank” are called as "
                    "re-ranking models. Leave empty for the agent's own model, which is asked "
                    "only if a search is uncertain. “off” asks none."
                ),
                max_length=200,
                verbose_name="re-ranking model",
            ),
        ),
        migrations.RunPython(convert, migrations.RunPython.noop),
    ]
