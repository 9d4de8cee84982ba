"""Results are leased while they are scored; one that is being scored is free at once."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("experiments", "0002_guardrail_backtests")]

    operations = [
        migrations.RenameField("experimentresult", "claimed_at", "lease_until"),
        migrations.AlterField(
            "experimentresult",
            "lease_until",
            models.DateTimeField(
                blank=True,
                help_text="After this time another process can work on it.",
                null=True,
                verbose_name="leased until",
            ),
        ),
        migrations.AddField(
            "experimentresult",
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
