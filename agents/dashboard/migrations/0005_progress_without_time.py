from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0004_count_by_model")]

    operations = [migrations.RemoveField("progress", "run_at")]
