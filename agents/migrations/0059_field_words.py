from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0058_periodic_jobs")]

    operations = [
        migrations.RenameField("run", "road", "route"),
        migrations.RenameField("run", "marks", "step_types"),
        migrations.RenameModel("Absence", "Disconnection"),
        migrations.AlterField(
            "disconnection",
            "run",
            models.ForeignKey(
                on_delete=models.CASCADE, related_name="disconnections", to="agents.run"
            ),
        ),
    ]
