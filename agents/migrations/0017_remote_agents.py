"""Push notifications of A2A."""

import django.db.models.deletion
from django.db import migrations, models

import agents.models.secret


class Migration(migrations.Migration):
    dependencies = [("agents", "0016_client_tools")]
    operations = [
        migrations.CreateModel(
            name="PushTarget",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        help_text="As the program calls it.", max_length=64, verbose_name="name"
                    ),
                ),
                ("url", agents.models.secret.EncryptedTextField(verbose_name="URL")),
                (
                    "token",
                    agents.models.secret.EncryptedTextField(
                        blank=True, default="", verbose_name="token"
                    ),
                ),
                (
                    "scheme",
                    models.CharField(
                        blank=True, max_length=40, verbose_name="authentication scheme"
                    ),
                ),
                (
                    "credentials",
                    agents.models.secret.EncryptedTextField(
                        blank=True, default="", verbose_name="credentials"
                    ),
                ),
                (
                    "sent_status",
                    models.CharField(max_length=12, verbose_name="last status sent"),
                ),
                (
                    "attempts",
                    models.PositiveSmallIntegerField(default=0, verbose_name="attempts"),
                ),
                (
                    "next_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="next attempt"),
                ),
                ("last_error", models.TextField(blank=True, verbose_name="last error")),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="push_targets",
                        to="agents.run",
                        verbose_name="run",
                    ),
                ),
            ],
            options={
                "verbose_name": "push notification",
                "verbose_name_plural": "push notifications",
                "ordering": ["pk"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("run", "name"), name="one_push_target_a_name"
                    )
                ],
            },
        ),
    ]
