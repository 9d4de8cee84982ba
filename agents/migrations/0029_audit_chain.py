import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import agents.models.audit
import agents.models.secret


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0028_agent_versions"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AuditHead",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveBigIntegerField(default=0)),
                ("seal", models.CharField(default=agents.models.audit.GENESIS, max_length=64)),
                ("cut", models.PositiveBigIntegerField(db_default=0, default=0)),
            ],
            options={
                "verbose_name": "end of the audit log",
                "verbose_name_plural": "end of the audit log",
            },
        ),
        migrations.CreateModel(
            name="Upkeep",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=40, unique=True, verbose_name="name")),
                ("at", models.DateTimeField(blank=True, null=True, verbose_name="last time")),
                (
                    "report",
                    models.JSONField(blank=True, default=dict, verbose_name="what came of it"),
                ),
            ],
            options={"verbose_name": "upkeep", "verbose_name_plural": "upkeep"},
        ),
        migrations.CreateModel(
            name="AuditPerson",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "token",
                    models.CharField(
                        default=agents.models.audit.new_token,
                        max_length=32,
                        unique=True,
                        verbose_name="token",
                    ),
                ),
                ("name", models.CharField(blank=True, max_length=150, verbose_name="name")),
                (
                    "key",
                    agents.models.secret.EncryptedTextField(
                        blank=True, default=agents.models.audit.new_key, verbose_name="key"
                    ),
                ),
                (
                    "leaves_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="It goes on until all is gone.",
                        null=True,
                        verbose_name="erasure begun",
                    ),
                ),
                (
                    "user",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="account",
                    ),
                ),
            ],
            options={
                "verbose_name": "person in the audit log",
                "verbose_name_plural": "people in the audit log",
            },
        ),
        migrations.AlterField(
            model_name="auditentry",
            name="at",
            field=models.DateTimeField(
                db_index=True, default=django.utils.timezone.now, verbose_name="time"
            ),
        ),
        migrations.AddField(
            model_name="auditentry",
            name="number",
            field=models.PositiveBigIntegerField(null=True, unique=True, verbose_name="number"),
        ),
        migrations.AddField(
            model_name="auditentry",
            name="person",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="entries",
                to="agents.auditperson",
                verbose_name="person",
            ),
        ),
        migrations.AddField(
            model_name="auditentry",
            name="place",
            field=models.TextField(
                blank=True,
                default="",
                help_text="Readable for as long as the person is known.",
                verbose_name="from where",
            ),
        ),
        migrations.AddField(
            model_name="auditentry",
            name="key",
            field=models.CharField(default="", max_length=8, verbose_name="sealed with"),
        ),
        migrations.AddField(
            model_name="auditentry",
            name="previous",
            field=models.CharField(
                default="", max_length=64, verbose_name="seal of the one before"
            ),
        ),
        migrations.AddField(
            model_name="auditentry",
            name="seal",
            field=models.CharField(default="", max_length=64, verbose_name="seal"),
        ),
    ]
