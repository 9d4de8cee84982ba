import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def drop_unnamed(apps, schema_editor):
    """Drop copies from which a deletion could be undone for ten minutes: they have no name."""
    apps.get_model("agents", "Deletion").objects.all().delete()


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0050_text_limits"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunPython(drop_unnamed, migrations.RunPython.noop),
        migrations.AddField(
            model_name="deletion",
            name="kind",
            field=models.CharField(
                default="", help_text="E.g. agents.Agent.", max_length=100, verbose_name="kind"
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="deletion",
            name="object_id",
            field=models.CharField(default="", max_length=64, verbose_name="ID"),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="deletion",
            name="name",
            field=models.CharField(blank=True, default="", max_length=200, verbose_name="name"),
            preserve_default=False,
        ),
        migrations.AlterField(
            model_name="deletion",
            name="user",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
                verbose_name="user",
            ),
        ),
    ]
