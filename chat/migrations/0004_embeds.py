from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("chat", "0003_deleted_prompts")]
    operations = []
