"""Imports are leased; one that is being worked on is free at once."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chat", "0001_tables")]

    operations = [
        migrations.RemoveField("chatimport", "owner"),
        migrations.RenameField("chatimport", "heartbeat_at", "lease_until"),
        migrations.AlterField(
            "chatimport",
            "lease_until",
            models.DateTimeField(
                blank=True,
                help_text="After this time another process can work on it.",
                null=True,
                verbose_name="leased until",
            ),
        ),
        migrations.AddField(
            "chatimport",
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
    ]
