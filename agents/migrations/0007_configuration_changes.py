"""Triggers leave a row when something changes that agents are built from."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0006_no_deleted_usage")]

    operations = [
        migrations.CreateModel(
            "ConfigurationChange",
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
                ("value", models.CharField(max_length=36, verbose_name="value")),
                ("changed_at", models.DateTimeField(verbose_name="changed")),
            ],
            options={
                "verbose_name": "settings change",
                "verbose_name_plural": "settings changes",
            },
        ),
    ]
