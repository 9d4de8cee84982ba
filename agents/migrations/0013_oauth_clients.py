from django.core.validators import MaxValueValidator
from django.db import migrations, models

import agents.models.secret


class Migration(migrations.Migration):
    dependencies = [("agents", "0012_personalization")]

    operations = [
        migrations.AddField(
            model_name="mcpserver",
            name="oauth_client_id",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                max_length=500,
                verbose_name="client ID",
            ),
        ),
        migrations.AddField(
            model_name="mcpserver",
            name="oauth_client_secret",
            field=agents.models.secret.EncryptedTextField(
                blank=True, default="", verbose_name="client secret"
            ),
        ),
        migrations.AlterField(
            model_name="agentstep",
            name="effect",
            field=models.CharField(
                blank=True,
                choices=[
                    ("read", "read-only"),
                    ("idempotent", "makes changes"),
                    ("at_most_once", "irreversible"),
                ],
                db_default="",
                default="",
                help_text="Possible side effects of the call.",
                max_length=12,
                verbose_name="side effects",
            ),
        ),
        migrations.AlterField(
            model_name="agenttool",
            name="effect",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "tool default"),
                    ("read", "read-only"),
                    ("idempotent", "makes changes"),
                    ("at_most_once", "irreversible"),
                ],
                db_default="",
                default="",
                max_length=12,
                verbose_name="side effects",
            ),
        ),
        migrations.AlterField(
            model_name="toolregistration",
            name="always_allow",
            field=models.CharField(
                choices=[
                    ("never", "never"),
                    ("chat", "in one chat"),
                    ("user", "in one chat or in all of a user's chats"),
                ],
                db_default="never",
                default="never",
                help_text="Whether users can approve all further calls at once. Irreversible calls can be allowed only within one chat.",
                max_length=8,
                verbose_name="users can always allow it",
            ),
        ),
        migrations.AlterField(
            model_name="toolregistration",
            name="effect",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "as declared by the tool"),
                    ("read", "read-only"),
                    ("idempotent", "makes changes"),
                    ("at_most_once", "irreversible"),
                ],
                default="",
                max_length=12,
                verbose_name="side effects",
            ),
        ),
        migrations.AlterField(
            model_name="toolregistration",
            name="max_retries",
            field=models.PositiveSmallIntegerField(
                blank=True,
                help_text="How many times a failed call is retried, 0–10. Leave empty to use the value in Settings. Irreversible calls are never retried.",
                null=True,
                validators=[MaxValueValidator(10)],
                verbose_name="max retries",
            ),
        ),
    ]
