from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("chat", "0004_embeds")]
    operations = []
