import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0014_api_keys"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="OAuthApp",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "client_id",
                    models.CharField(max_length=500, unique=True, verbose_name="client ID"),
                ),
                ("secret_digest", models.CharField(blank=True, editable=False, max_length=64)),
                (
                    "auth_method",
                    models.CharField(default="none", editable=False, max_length=30),
                ),
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("registered", "Registered itself"),
                            ("document", "Describes itself at its client ID"),
                            ("built_in", "Part of this product"),
                        ],
                        max_length=12,
                        verbose_name="registration",
                    ),
                ),
                ("name", models.CharField(max_length=100, verbose_name="name")),
                (
                    "homepage",
                    models.CharField(blank=True, max_length=500, verbose_name="website"),
                ),
                ("redirect_uris", models.JSONField(default=list, verbose_name="redirect URIs")),
                ("grant_types", models.JSONField(default=list, verbose_name="grant types")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("fetched_at", models.DateTimeField(editable=False, null=True)),
                (
                    "blocked_at",
                    models.DateTimeField(
                        blank=True, editable=False, null=True, verbose_name="blocked"
                    ),
                ),
            ],
            options={
                "verbose_name": "app",
                "verbose_name_plural": "connected apps",
                "ordering": ["-pk"],
            },
        ),
        migrations.CreateModel(
            name="DeviceCode",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("user_code_digest", models.CharField(max_length=64, unique=True)),
                ("scopes", models.JSONField(default=list)),
                ("is_allowed", models.BooleanField(null=True)),
                ("polled_at", models.DateTimeField(null=True)),
                ("expires_at", models.DateTimeField(db_index=True)),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "app",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="device_codes",
                        to="agents.oauthapp",
                    ),
                ),
            ],
            options={
                "verbose_name": "device code",
                "verbose_name_plural": "device codes",
            },
        ),
        migrations.CreateModel(
            name="AuthorizationCode",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("scopes", models.JSONField(default=list)),
                ("redirect_uri", models.CharField(max_length=2000)),
                ("challenge", models.CharField(max_length=128)),
                ("expires_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(null=True)),
                (
                    "key",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="agents.apikey",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "app",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="codes",
                        to="agents.oauthapp",
                    ),
                ),
            ],
            options={
                "verbose_name": "authorization code",
                "verbose_name_plural": "authorization codes",
            },
        ),
        migrations.AddField(
            model_name="apikey",
            name="app",
            field=models.ForeignKey(
                blank=True,
                help_text="The connected app whose access token it is, if it is one.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="api_keys",
                to="agents.oauthapp",
                verbose_name="app",
            ),
        ),
        migrations.CreateModel(
            name="OAuthGrant",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("family_digest", models.CharField(max_length=64, unique=True)),
                ("secret_digest", models.CharField(max_length=64)),
                ("scopes", models.JSONField(default=list)),
                ("expires_at", models.DateTimeField(db_index=True)),
                (
                    "key",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="grant",
                        to="agents.apikey",
                    ),
                ),
            ],
            options={
                "verbose_name": "grant of an app",
                "verbose_name_plural": "grants of apps",
            },
        ),
    ]
