from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("agents", "0017_remote_agents")]
    operations = []
