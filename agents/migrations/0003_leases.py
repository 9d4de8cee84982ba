"""Documents and embedding indexes are leased by a random value."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0002_search_index")]

    operations = [
        migrations.AddField(
            "document",
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
        migrations.AlterField(
            "document",
            "lease_until",
            models.DateTimeField(
                blank=True,
                help_text="After this time another process can work on it.",
                null=True,
                verbose_name="leased until",
            ),
        ),
        migrations.AddField(
            "embeddingindex",
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
        migrations.AlterField(
            "embeddingindex",
            "lease_until",
            models.DateTimeField(
                blank=True,
                help_text="After this time another process can work on it.",
                null=True,
                verbose_name="leased until",
            ),
        ),
    ]
