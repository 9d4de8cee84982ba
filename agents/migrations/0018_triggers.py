import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import agents.models.catalog.triggers
import agents.models.secret


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0017_remote_agents"),
        ("alerts", "0001_tables"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="schedule",
            options={
                "ordering": ["workflow__name", "agent__name", "pk"],
                "verbose_name": "schedule",
                "verbose_name_plural": "schedules",
            },
        ),
        migrations.AddField(
            model_name="schedule",
            name="agent",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="%(class)ss",
                to="agents.agent",
                verbose_name="agent",
            ),
        ),
        migrations.AddField(
            model_name="schedule",
            name="into_chat",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Each run of an agent starts a chat of this user.",
                verbose_name="answer in a new chat",
            ),
        ),
        migrations.AddField(
            model_name="schedule",
            name="question",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                validators=[django.core.validators.MaxLengthValidator(20000)],
                verbose_name="message to the agent",
            ),
        ),
        migrations.AddField(
            model_name="schedule",
            name="result_channel",
            field=models.ForeignKey(
                blank=True,
                help_text="A webhook, email or notification channel.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="alerts.alertchannel",
                verbose_name="send the answer to",
            ),
        ),
        migrations.AlterField(
            model_name="schedule",
            name="user",
            field=models.ForeignKey(
                help_text="It runs as this user, who also gets its approval requests.",
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
                verbose_name="user",
            ),
        ),
        migrations.AlterField(
            model_name="schedule",
            name="workflow",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="%(class)ss",
                to="agents.workflow",
                verbose_name="workflow",
            ),
        ),
        migrations.CreateModel(
            name="Trigger",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "secret",
                    agents.models.secret.EncryptedTextField(
                        blank=True, editable=False, verbose_name="signing secret"
                    ),
                ),
                (
                    "previous_secret",
                    agents.models.secret.EncryptedTextField(
                        blank=True,
                        db_default="",
                        default="",
                        editable=False,
                        verbose_name="previous signing secret",
                    ),
                ),
                (
                    "previous_until",
                    models.DateTimeField(
                        blank=True,
                        editable=False,
                        null=True,
                        verbose_name="previous secret works until",
                    ),
                ),
                (
                    "question",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        validators=[django.core.validators.MaxLengthValidator(20000)],
                        verbose_name="message to the agent",
                    ),
                ),
                (
                    "parameters",
                    models.JSONField(blank=True, default=dict, verbose_name="parameters"),
                ),
                (
                    "into_chat",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Each run of an agent starts a chat of this user.",
                        verbose_name="answer in a new chat",
                    ),
                ),
                (
                    "last_run_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="last run"),
                ),
                ("trouble", models.TextField(blank=True, verbose_name="error")),
                ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                ("name", models.CharField(max_length=80, unique=True, verbose_name="name")),
                (
                    "public_id",
                    models.CharField(
                        default=agents.models.catalog.triggers.new_public_id,
                        editable=False,
                        max_length=40,
                        unique=True,
                        verbose_name="public ID",
                    ),
                ),
                (
                    "verification",
                    models.CharField(
                        choices=[
                            ("standard", "Standard Webhooks signature"),
                            ("github", "GitHub signature (X-Hub-Signature-256)"),
                            ("bearer", "Secret as a bearer token"),
                        ],
                        default="standard",
                        max_length=10,
                        verbose_name="how requests are verified",
                    ),
                ),
                (
                    "agent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="%(class)ss",
                        to="agents.agent",
                        verbose_name="agent",
                    ),
                ),
                (
                    "result_channel",
                    models.ForeignKey(
                        blank=True,
                        help_text="A webhook, email or notification channel.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="alerts.alertchannel",
                        verbose_name="send the answer to",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        help_text="It runs as this user, who also gets its approval requests.",
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
                (
                    "workflow",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="%(class)ss",
                        to="agents.workflow",
                        verbose_name="workflow",
                    ),
                ),
            ],
            options={
                "verbose_name": "trigger",
                "verbose_name_plural": "triggers",
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="TriggerCall",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("digest", models.CharField(max_length=64, verbose_name="digest")),
                (
                    "at",
                    models.DateTimeField(auto_now_add=True, db_index=True, verbose_name="time"),
                ),
                (
                    "run",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="agents.run",
                        verbose_name="run",
                    ),
                ),
                (
                    "trigger",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="calls",
                        to="agents.trigger",
                        verbose_name="trigger",
                    ),
                ),
            ],
            options={
                "verbose_name": "trigger call",
                "verbose_name_plural": "trigger calls",
                "ordering": ["-pk"],
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("trigger", "digest"), name="one_call_a_message"
                    )
                ],
            },
        ),
    ]
