from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("review", "0001_tables")]
    operations = [
        migrations.AddField(
            model_name="savedview",
            name="grouping",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                max_length=32,
                verbose_name="group by",
            ),
        ),
    ]
