"""All tables of this app, as they were when migrations began."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from agents.db.create_tables import CreateTables


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('agents', '0001_tables'),
        ('experiments', '0001_tables'),
    ]

    operations = [
        CreateTables(
            operations=[
                migrations.CreateModel(
                    name='Suggestion',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('agent', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='suggestions', to='agents.agent', verbose_name='agent')),
                        ('kind', models.CharField(choices=[('tool_fails', 'Tool fails often'), ('tool_unused', 'Tool is never used'), ('instruction', 'Instruction from feedback')], max_length=12, verbose_name='type')),
                        ('subject', models.CharField(help_text='The tool, or what the feedback has in common.', max_length=120, verbose_name='subject')),
                        ('text', models.TextField(blank=True, help_text="What is added to the agent's instructions.", verbose_name='instruction')),
                        ('figures', models.JSONField(default=dict, verbose_name='figures')),
                        ('status', models.CharField(choices=[('open', 'open'), ('applied', 'applied'), ('dismissed', 'dismissed')], db_index=True, default='open', max_length=10, verbose_name='status')),
                        ('first_seen', models.DateTimeField(verbose_name='first seen')),
                        ('last_seen', models.DateTimeField(verbose_name='last seen')),
                        ('before', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='experiments.experiment', verbose_name='backtest without it')),
                        ('after', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='experiments.experiment', verbose_name='backtest with it')),
                        ('base_version', models.PositiveIntegerField(blank=True, null=True, verbose_name='version before')),
                        ('applied_version', models.PositiveIntegerField(blank=True, null=True, verbose_name='version with it')),
                        ('decided_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='decided by')),
                        ('decided_at', models.DateTimeField(blank=True, null=True, verbose_name='decided')),
                        ('runs', models.ManyToManyField(blank=True, related_name='suggestions', to='agents.run', verbose_name='runs')),
                    ],
                    options={
                        'verbose_name': 'suggestion',
                        'verbose_name_plural': 'suggestions',
                        'ordering': ['-last_seen', '-pk'],
                        'default_permissions': ('view', 'change'),
                        'constraints': [models.UniqueConstraint(fields=('agent', 'kind', 'subject'), name='one_suggestion_a_subject')],
                    },
                ),
            ],
        ),
    ]
