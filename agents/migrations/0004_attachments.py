"""Files that tools return, and which models can be sent images."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0003_stage_choices"),
    ]

    operations = [
        migrations.AddField(
            model_name="agentstep",
            name="attachments",
            field=models.JSONField(
                blank=True,
                db_default=models.Value([], models.JSONField()),
                default=list,
                help_text="Images, sounds and files that the tool returned.",
                verbose_name="attachments",
            ),
        ),
        migrations.AddField(
            model_name="languagemodel",
            name="image_input",
            field=models.CharField(
                choices=[("auto", "Automatic"), ("yes", "Yes"), ("no", "No")],
                db_default="auto",
                default="auto",
                help_text="Whether images from tools are sent to the model. Automatic uses LiteLLM's information.",
                max_length=4,
                verbose_name="image input",
            ),
        ),
        migrations.CreateModel(
            name="RunAttachment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("digest", models.CharField(max_length=64, verbose_name="digest")),
                ("mime_type", models.CharField(max_length=130, verbose_name="type")),
                ("name", models.CharField(blank=True, max_length=100, verbose_name="name")),
                ("size", models.PositiveIntegerField(verbose_name="size (bytes)")),
                ("data", models.BinaryField(verbose_name="content")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attachments",
                        to="agents.run",
                    ),
                ),
            ],
            options={
                "verbose_name": "attachment",
                "verbose_name_plural": "attachments",
                "ordering": ["run_id", "pk"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("run", "digest"), name="one_attachment_a_digest"
                    )
                ],
            },
        ),
    ]
