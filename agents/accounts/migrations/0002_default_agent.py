import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0008_setting_names"), ("people", "0001_tables")]

    operations = [
        migrations.AddField(
            model_name="profile",
            name="default_agent",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="agents.agent",
                verbose_name="agent of new chats",
            ),
        ),
    ]
