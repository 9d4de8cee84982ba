from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("agents", "0015_effects")]

    operations = [
        migrations.AlterModelOptions(
            name="run",
            options={
                "ordering": ["-pk"],
                "permissions": [
                    ("review_runs", "Can review everybody's runs"),
                    (
                        "rerun_runs",
                        "Can run again what others asked, with other guardrails, too",
                    ),
                ],
                "verbose_name": "run",
                "verbose_name_plural": "runs",
            },
        ),
    ]
