from django.db import migrations, models

BATCH_SIZE = 1_000


def mark_existing(apps, schema_editor):
    """Mark every topic that has runs: what they read may already be deleted."""
    runs = apps.get_model("agents", "Run").objects.exclude(topic__startswith="trial.")
    topics = runs.order_by().values_list("topic", flat=True).distinct()
    mark = apps.get_model("agents", "OutsideTextTopic")
    mark.objects.bulk_create((mark(topic=topic) for topic in topics), BATCH_SIZE)


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0047_run_stop_reasons"),
    ]

    operations = [
        migrations.CreateModel(
            name="OutsideTextTopic",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "topic",
                    models.CharField(max_length=80, unique=True, verbose_name="topic"),
                ),
            ],
            options={
                "verbose_name": "topic with text from outside",
                "verbose_name_plural": "topics with text from outside",
            },
        ),
        migrations.RunPython(mark_existing, migrations.RunPython.noop),
    ]
