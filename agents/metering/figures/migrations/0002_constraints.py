import django.db.models.deletion
from django.db import migrations, models


def delete_orphans(apps, schema_editor):
    """Delete what is left of runs and summaries that were deleted without it."""
    runs = apps.get_model("agents", "Run").objects
    summaries = apps.get_model("dashboard", "RunSummary").objects
    apps.get_model("dashboard", "ModelSummary").objects.exclude(
        run_id__in=summaries.values("run_id")
    ).delete()
    apps.get_model("dashboard", "TitleUsage").objects.exclude(
        run_id__in=runs.values("pk")
    ).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0006_no_deleted_usage"),
        ("dashboard", "0001_tables"),
    ]

    operations = [
        migrations.RunPython(delete_orphans, migrations.RunPython.noop),
        migrations.AlterField(
            model_name="modelsummary",
            name="run",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="models",
                to="dashboard.runsummary",
                to_field="run",
            ),
        ),
        migrations.AlterField(
            model_name="titleusage",
            name="run",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="title_usage",
                to="agents.run",
            ),
        ),
    ]
