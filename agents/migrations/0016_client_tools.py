from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("agents", "0015_oauth_apps")]
    operations = []
