from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("agents", "0014_api_keys")]
    operations = []
