from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0011_branding")]

    operations = [
        migrations.AlterField(
            model_name="guardrailpattern",
            name="kind",
            field=models.CharField(
                choices=[
                    ("words", "Words or phrases"),
                    ("pattern", "Regular expression"),
                    ("model", "Model check"),
                ],
                default="pattern",
                max_length=10,
                verbose_name="kind",
            ),
        ),
        migrations.AlterField(
            model_name="guardrailpattern",
            name="pattern",
            field=models.CharField(
                blank=True,
                help_text="RE2 regular expression. Start with (?i) to ignore case.",
                max_length=8000,
                verbose_name="pattern",
            ),
        ),
    ]
