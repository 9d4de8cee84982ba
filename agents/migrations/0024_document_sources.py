import django.db.models.deletion
from django.db import migrations, models

import agents.models.secret


class Migration(migrations.Migration):
    dependencies = [("agents", "0023_checks_figures")]

    operations = [
        migrations.AddField(
            model_name="document",
            name="origin_key",
            field=models.CharField(
                blank=True, db_default="", default="", editable=False, max_length=64
            ),
        ),
        migrations.AddField(
            model_name="document",
            name="origin_version",
            field=models.CharField(
                blank=True, db_default="", default="", editable=False, max_length=100
            ),
        ),
        migrations.CreateModel(
            name="DocumentSource",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "lease",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        editable=False,
                        help_text="A random value of the process that works on it; empty if none does.",
                        max_length=16,
                        verbose_name="lease",
                    ),
                ),
                (
                    "lease_until",
                    models.DateTimeField(
                        blank=True,
                        help_text="After this time another process can work on it.",
                        null=True,
                        verbose_name="leased until",
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("folder", "Folder on the server"),
                            ("git", "Git repository"),
                            ("s3", "S3 bucket"),
                            ("mcp", "MCP server"),
                        ],
                        max_length=10,
                        verbose_name="kind",
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        help_text="Its documents' names begin with it.",
                        max_length=80,
                        verbose_name="name",
                    ),
                ),
                ("place", models.JSONField(default=dict, verbose_name="place")),
                (
                    "secret",
                    agents.models.secret.EncryptedTextField(
                        blank=True, db_default="", default="", verbose_name="token or key"
                    ),
                ),
                (
                    "enabled",
                    models.BooleanField(db_default=True, default=True, verbose_name="enabled"),
                ),
                (
                    "interval",
                    models.CharField(
                        choices=[
                            ("hourly", "Every hour"),
                            ("daily", "Every day"),
                            ("weekly", "Every week"),
                        ],
                        db_default="daily",
                        default="daily",
                        max_length=10,
                        verbose_name="check",
                    ),
                ),
                (
                    "checked_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="last checked"),
                ),
                (
                    "next_check_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="next check"),
                ),
                (
                    "problem",
                    models.TextField(
                        blank=True, db_default="", default="", verbose_name="problem"
                    ),
                ),
                (
                    "place_version",
                    models.CharField(
                        blank=True, db_default="", default="", editable=False, max_length=100
                    ),
                ),
                (
                    "skipped",
                    models.PositiveIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Files of the last check that aren't documents.",
                        verbose_name="skipped files",
                    ),
                ),
                (
                    "missing",
                    models.PositiveIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Documents that are deleted only if an administrator agrees.",
                        verbose_name="missing files",
                    ),
                ),
                (
                    "deletable",
                    models.PositiveIntegerField(
                        db_default=0,
                        default=0,
                        help_text="How many missing documents an administrator has agreed to delete.",
                        verbose_name="approved deletions",
                    ),
                ),
                (
                    "removed",
                    models.JSONField(
                        default=list,
                        help_text="Keys of files whose documents a user deleted; they aren't added again.",
                        verbose_name="removed files",
                    ),
                ),
                ("added_at", models.DateTimeField(auto_now_add=True, verbose_name="added")),
                (
                    "collection",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sources",
                        to="agents.collection",
                        verbose_name="collection",
                    ),
                ),
            ],
            options={
                "verbose_name": "source of documents",
                "verbose_name_plural": "sources of documents",
                "ordering": ["pk"],
                "default_permissions": (),
            },
        ),
        migrations.AddField(
            model_name="document",
            name="origin",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="documents",
                to="agents.documentsource",
                verbose_name="source of documents",
            ),
        ),
        migrations.AddConstraint(
            model_name="document",
            constraint=models.UniqueConstraint(
                condition=models.Q(("origin__isnull", False)),
                fields=("collection", "origin", "origin_key"),
                name="one_document_an_origin",
            ),
        ),
        migrations.AddIndex(
            model_name="documentsource",
            index=models.Index(
                condition=models.Q(("next_check_at__isnull", False)),
                fields=["next_check_at"],
                name="sources_to_check",
            ),
        ),
    ]
