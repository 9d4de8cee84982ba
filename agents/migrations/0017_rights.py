from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0016_marks"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="run",
            options={
                "ordering": ["-pk"],
                "permissions": [
                    ("review_runs", "Can review everybody's runs"),
                    ("see_personal_data", "Can see personal data in others' runs"),
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
