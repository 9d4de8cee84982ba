import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import agents.models.secret


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("sessions", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Visit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("way", models.CharField(max_length=20, verbose_name="sign-in method")),
                ("device", models.CharField(blank=True, max_length=300, verbose_name="device")),
                (
                    "address",
                    models.CharField(blank=True, max_length=45, verbose_name="IP address"),
                ),
                ("began_at", models.DateTimeField(auto_now_add=True, verbose_name="since")),
                (
                    "seen_at",
                    models.DateTimeField(auto_now_add=True, verbose_name="last active"),
                ),
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="visit",
                        to="sessions.session",
                        verbose_name="session",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="visits",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
            ],
            options={
                "verbose_name": "sign-in session",
                "verbose_name_plural": "sign-in sessions",
                "ordering": ["-seen_at", "-pk"],
            },
        ),
        migrations.CreateModel(
            name="Authenticator",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("secret", agents.models.secret.EncryptedTextField(verbose_name="secret")),
                (
                    "last_step",
                    models.BigIntegerField(
                        default=0,
                        help_text="Each code works once; earlier codes are rejected.",
                        verbose_name="last time step",
                    ),
                ),
                (
                    "added_at",
                    models.DateTimeField(auto_now_add=True, verbose_name="date added"),
                ),
                (
                    "used_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="last used"),
                ),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="authenticator",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
            ],
            options={
                "verbose_name": "authenticator app",
                "verbose_name_plural": "authenticator apps",
            },
        ),
        migrations.CreateModel(
            name="Passkey",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=60, verbose_name="name")),
                (
                    "key_id",
                    models.CharField(max_length=1400, unique=True, verbose_name="key ID"),
                ),
                ("public_key", models.TextField(verbose_name="public key")),
                (
                    "uses",
                    models.BigIntegerField(
                        default=0,
                        help_text="Counter reported by the passkey; many always report 0.",
                        verbose_name="use count",
                    ),
                ),
                (
                    "added_at",
                    models.DateTimeField(auto_now_add=True, verbose_name="date added"),
                ),
                (
                    "used_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="last used"),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="passkeys",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
            ],
            options={
                "verbose_name": "passkey",
                "verbose_name_plural": "passkeys",
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="RecoveryCode",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("digest", models.CharField(max_length=64, verbose_name="digest")),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="recovery_codes",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
            ],
            options={
                "verbose_name": "recovery code",
                "verbose_name_plural": "recovery codes",
                "constraints": [
                    models.UniqueConstraint(fields=("user", "digest"), name="one_recovery_code")
                ],
            },
        ),
        migrations.CreateModel(
            name="Identity",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("issuer", models.CharField(max_length=200, verbose_name="issuer")),
                ("subject", models.CharField(max_length=255, verbose_name="subject")),
                (
                    "added_at",
                    models.DateTimeField(auto_now_add=True, verbose_name="date added"),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="identities",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
            ],
            options={
                "verbose_name": "identity",
                "verbose_name_plural": "identities",
                "constraints": [
                    models.UniqueConstraint(fields=("issuer", "subject"), name="one_identity")
                ],
            },
        ),
        migrations.CreateModel(
            name="Attempts",
            fields=[
                (
                    "key",
                    models.CharField(
                        max_length=64, primary_key=True, serialize=False, verbose_name="key"
                    ),
                ),
                (
                    "count",
                    models.PositiveIntegerField(default=0, verbose_name="failed attempts"),
                ),
                ("last_at", models.DateTimeField(db_index=True, verbose_name="last attempt")),
                (
                    "wait_until",
                    models.DateTimeField(blank=True, null=True, verbose_name="blocked until"),
                ),
                (
                    "succeeded_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="last success"),
                ),
            ],
            options={
                "verbose_name": "sign-in attempts",
                "verbose_name_plural": "sign-in attempts",
            },
        ),
    ]
