import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0013_oauth_clients"),
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ApiKey",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=80, verbose_name="name")),
                (
                    "prefix",
                    models.CharField(
                        help_text="How the key begins, to recognize it.",
                        max_length=12,
                        verbose_name="beginning",
                    ),
                ),
                ("digest", models.CharField(max_length=64, unique=True, verbose_name="digest")),
                ("scopes", models.JSONField(default=list, verbose_name="scopes")),
                (
                    "is_service",
                    models.BooleanField(
                        db_default=False, default=False, verbose_name="service key"
                    ),
                ),
                (
                    "requests_per_minute",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Leave empty for the default of the installation.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                        verbose_name="requests per minute",
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                (
                    "expires_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="expires"),
                ),
                (
                    "last_used_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="last used"),
                ),
                (
                    "revoked_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="revoked"),
                ),
            ],
            options={
                "verbose_name": "API key",
                "verbose_name_plural": "API keys",
                "ordering": ["-pk"],
            },
        ),
        migrations.RemoveConstraint(
            model_name="quota",
            name="one_quota_of_all",
        ),
        migrations.RemoveConstraint(
            model_name="quota",
            name="quota_of_one_owner_at_most",
        ),
        migrations.AddField(
            model_name="apikey",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="api_keys",
                to=settings.AUTH_USER_MODEL,
                verbose_name="user",
            ),
        ),
        migrations.AddField(
            model_name="quota",
            name="api_key",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="quotas",
                to="agents.apikey",
                verbose_name="API key",
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="api_key",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                help_text="The key of the program that started it, if one did.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="agents.apikey",
                verbose_name="API key",
            ),
        ),
        migrations.AddConstraint(
            model_name="quota",
            constraint=models.UniqueConstraint(
                fields=("api_key", "measure", "window"), name="one_quota_a_key"
            ),
        ),
        migrations.AddConstraint(
            model_name="quota",
            constraint=models.UniqueConstraint(
                condition=models.Q(
                    ("agent__isnull", True),
                    ("api_key__isnull", True),
                    ("group__isnull", True),
                    ("language_model__isnull", True),
                    ("tool__isnull", True),
                    ("user__isnull", True),
                ),
                fields=("is_shared", "measure", "window"),
                name="one_quota_of_all",
            ),
        ),
        migrations.AddConstraint(
            model_name="quota",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("agent__isnull", True),
                        ("api_key__isnull", True),
                        ("group__isnull", True),
                        ("language_model__isnull", True),
                        ("tool__isnull", True),
                        ("user__isnull", True),
                    ),
                    models.Q(
                        ("agent__isnull", True),
                        ("api_key__isnull", True),
                        ("group__isnull", True),
                        ("language_model__isnull", True),
                        ("tool__isnull", True),
                        ("user__isnull", False),
                    ),
                    models.Q(
                        ("agent__isnull", True),
                        ("api_key__isnull", True),
                        ("group__isnull", False),
                        ("language_model__isnull", True),
                        ("tool__isnull", True),
                        ("user__isnull", True),
                    ),
                    models.Q(
                        ("agent__isnull", False),
                        ("api_key__isnull", True),
                        ("group__isnull", True),
                        ("language_model__isnull", True),
                        ("tool__isnull", True),
                        ("user__isnull", True),
                    ),
                    models.Q(
                        ("agent__isnull", True),
                        ("api_key__isnull", True),
                        ("group__isnull", True),
                        ("language_model__isnull", False),
                        ("tool__isnull", True),
                        ("user__isnull", True),
                    ),
                    models.Q(
                        ("agent__isnull", True),
                        ("api_key__isnull", True),
                        ("group__isnull", True),
                        ("language_model__isnull", True),
                        ("tool__isnull", False),
                        ("user__isnull", True),
                    ),
                    models.Q(
                        ("agent__isnull", True),
                        ("api_key__isnull", False),
                        ("group__isnull", True),
                        ("language_model__isnull", True),
                        ("tool__isnull", True),
                        ("user__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="quota_of_one_owner_at_most",
            ),
        ),
    ]
