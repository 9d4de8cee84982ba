from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("agents", "0016_client_tools")]
    operations = []
