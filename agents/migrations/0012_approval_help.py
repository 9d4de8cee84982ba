from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0011_tool_grants"),
    ]

    operations = [
        migrations.AlterField(
            model_name="approval",
            name="granted_scope",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Scope of the user's permission for this tool. Empty if a person decided.",
                max_length=8,
                verbose_name="approved automatically",
            ),
        ),
    ]
