from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0022_web_tools")]

    operations = [
        migrations.AddField(
            model_name="agent",
            name="checks_figures",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text=(
                    "When on, an answer with figures or names that aren't in any result goes "
                    "back to the model once. This takes one more step."
                ),
                verbose_name="check figures before answering",
            ),
        )
    ]
