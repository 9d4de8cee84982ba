"""A setting can have a file, for logos; the help of a memory's subject is another one."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0010_mcp_oauth")]

    operations = [
        migrations.AddField(
            model_name="installationsetting",
            name="file",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=models.deletion.PROTECT,
                related_name="settings",
                to="agents.storedfile",
                verbose_name="file",
            ),
        ),
        migrations.AlterField(
            model_name="memory",
            name="subject",
            field=models.CharField(
                blank=True,
                help_text="E.g. home city. A newer memory that contradicts it replaces it.",
                max_length=80,
                verbose_name="subject",
            ),
        ),
    ]
