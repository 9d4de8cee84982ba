from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0057_approval_reason")]

    operations = [
        migrations.RenameModel("Upkeep", "PeriodicJob"),
        migrations.AlterModelOptions(
            "periodicjob",
            options={"verbose_name": "periodic job", "verbose_name_plural": "periodic jobs"},
        ),
        migrations.RenameField("periodicjob", "at", "started_at"),
        migrations.RenameField("periodicjob", "report", "result"),
        migrations.AddField(
            "periodicjob",
            "ended_at",
            models.DateTimeField(blank=True, null=True, verbose_name="ended"),
        ),
        migrations.AddField(
            "periodicjob",
            "problem",
            models.CharField(blank=True, db_default="", max_length=100, verbose_name="error"),
        ),
    ]
