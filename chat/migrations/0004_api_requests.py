import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0014_api_keys"), ("chat", "0003_deleted_prompts")]
    operations = [
        migrations.CreateModel(
            name="ApiRequest",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "key_digest",
                    models.CharField(
                        max_length=64, verbose_name="digest of the idempotency key"
                    ),
                ),
                ("digest", models.CharField(max_length=64, verbose_name="digest")),
                (
                    "reference",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Empty until it has.",
                        null=True,
                        verbose_name="what it created",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        auto_now_add=True, db_index=True, verbose_name="created"
                    ),
                ),
                (
                    "api_key",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="requests",
                        to="agents.apikey",
                        verbose_name="API key",
                    ),
                ),
            ],
            options={
                "verbose_name": "API request",
                "verbose_name_plural": "API requests",
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("api_key", "key_digest"), name="one_request_an_idempotency_key"
                    )
                ],
            },
        ),
    ]
