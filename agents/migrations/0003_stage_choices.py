"""The choices of a stage are read from the code: a new one needs no migration."""

from django.db import migrations, models

import agents.models.guardrails


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0002_chunk_index"),
    ]

    operations = [
        migrations.AlterField(
            model_name="guardrailhit",
            name="stage",
            field=models.CharField(
                choices=agents.models.guardrails.stage_choices,
                max_length=12,
                verbose_name="stage",
            ),
        ),
        migrations.AlterField(
            model_name="guardrailpattern",
            name="stage",
            field=models.CharField(
                choices=agents.models.guardrails.stage_choices,
                default="both",
                max_length=12,
                verbose_name="stage",
            ),
        ),
    ]
