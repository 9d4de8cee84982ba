import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0030_audit_chained")]

    operations = [
        migrations.AlterModelOptions(
            name="auditentry",
            options={
                "ordering": ["-number"],
                "verbose_name": "entry of the audit log",
                "verbose_name_plural": "audit log",
            },
        ),
        migrations.RemoveField(model_name="auditentry", name="actor"),
        migrations.RemoveField(model_name="auditentry", name="actor_name"),
        migrations.AlterField(
            model_name="auditentry",
            name="number",
            field=models.PositiveBigIntegerField(unique=True, verbose_name="number"),
        ),
        migrations.AlterField(
            model_name="auditentry",
            name="person",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="entries",
                to="agents.auditperson",
                verbose_name="person",
            ),
        ),
        migrations.AlterField(
            model_name="auditentry",
            name="place",
            field=models.TextField(
                blank=True,
                help_text="Readable for as long as the person is known.",
                verbose_name="from where",
            ),
        ),
        migrations.AlterField(
            model_name="auditentry",
            name="key",
            field=models.CharField(max_length=8, verbose_name="sealed with"),
        ),
        migrations.AlterField(
            model_name="auditentry",
            name="previous",
            field=models.CharField(max_length=64, verbose_name="seal of the one before"),
        ),
        migrations.AlterField(
            model_name="auditentry",
            name="seal",
            field=models.CharField(max_length=64, verbose_name="seal"),
        ),
    ]
