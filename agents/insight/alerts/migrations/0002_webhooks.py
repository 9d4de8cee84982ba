from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("alerts", "0001_tables")]
    operations = []
