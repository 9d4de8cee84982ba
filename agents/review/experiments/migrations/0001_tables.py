"""All tables of this app, as they were when migrations began."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from agents.db.create_tables import CreateTables


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('agents', '0001_tables'),
        ('review', '0001_tables'),
    ]

    operations = [
        CreateTables(
            operations=[
                migrations.CreateModel(
                    name='Experiment',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('kind', models.CharField(choices=[('examples', 'Example set'), ('backtest', 'Backtest')], max_length=10, verbose_name='kind')),
                        ('state', models.CharField(choices=[('running', 'running'), ('done', 'finished'), ('cancelled', 'canceled'), ('failed', 'failed')], db_index=True, default='running', max_length=10, verbose_name='status')),
                        ('example_set', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='experiments', to='review.exampleset', verbose_name='example set')),
                        ('agent', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='experiments', to='agents.agent', verbose_name='agent')),
                        ('target', models.CharField(choices=[('published', 'Published'), ('version', 'Earlier version'), ('draft', 'Draft')], max_length=10, verbose_name='version tested')),
                        ('version', models.PositiveIntegerField(blank=True, null=True, verbose_name='agent version')),
                        ('spec', models.JSONField(default=dict, verbose_name='settings tested')),
                        ('is_live', models.BooleanField(default=False, help_text='When on, tools run. When off, they return the recorded results.', verbose_name='live tools')),
                        ('judge_model', models.CharField(blank=True, max_length=200, verbose_name='judge model')),
                        ('rubric', models.TextField(blank=True, default='', help_text='The judge also uses this to grade answers to past messages.', verbose_name='rubric')),
                        ('deadline', models.PositiveIntegerField(default=120, verbose_name='timeout per question (seconds)')),
                        ('left_out', models.JSONField(blank=True, default=list, verbose_name='left out')),
                        ('problem', models.TextField(blank=True, verbose_name='problem')),
                        ('is_to_stop', models.BooleanField(default=False, verbose_name='cancel requested')),
                        ('count', models.PositiveIntegerField(default=0, verbose_name='questions')),
                        ('passed', models.PositiveIntegerField(default=0, verbose_name='passed')),
                        ('score', models.FloatField(blank=True, null=True, verbose_name='score')),
                        ('cost', models.FloatField(blank=True, null=True, verbose_name='cost (USD)')),
                        ('started_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='started by')),
                        ('started_at', models.DateTimeField(auto_now_add=True, verbose_name='started')),
                        ('ended_at', models.DateTimeField(blank=True, null=True, verbose_name='ended')),
                    ],
                    options={
                        'verbose_name': 'experiment',
                        'verbose_name_plural': 'experiments',
                        'ordering': ['-pk'],
                    },
                ),
                migrations.CreateModel(
                    name='ExperimentResult',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('experiment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='results', to='experiments.experiment')),
                        ('number', models.PositiveIntegerField(verbose_name='number')),
                        ('example', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='results', to='review.example', verbose_name='example')),
                        ('origin', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='agents.run', verbose_name='recorded run')),
                        ('run', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='experiment_results', to='agents.run', verbose_name='run')),
                        ('name', models.CharField(max_length=120, verbose_name='name')),
                        ('state', models.CharField(choices=[('waiting', 'waiting'), ('running', 'running'), ('scoring', 'being scored'), ('passed', 'passed'), ('failed', 'failed'), ('diverged', 'diverged'), ('approval', 'needs approval'), ('error', 'error'), ('cancelled', 'canceled')], default='waiting', max_length=10, verbose_name='result')),
                        ('verdict', models.CharField(blank=True, choices=[('better', 'better'), ('same', 'same'), ('changed', 'changed'), ('worse', 'worse'), ('stopped', 'stopped')], max_length=10, verbose_name='compared with the recording')),
                        ('score', models.FloatField(blank=True, null=True, verbose_name='score')),
                        ('base_score', models.FloatField(blank=True, null=True, verbose_name='score of the recording')),
                        ('checks', models.JSONField(blank=True, default=list, verbose_name='checks')),
                        ('divergence', models.JSONField(blank=True, null=True, verbose_name='first divergence')),
                        ('problem', models.TextField(blank=True, verbose_name='problem')),
                        ('judge_cost', models.FloatField(blank=True, null=True, verbose_name='cost of the judge (USD)')),
                        ('claimed_at', models.DateTimeField(blank=True, null=True, verbose_name='scoring since')),
                    ],
                    options={
                        'verbose_name': 'experiment result',
                        'verbose_name_plural': 'experiment results',
                        'ordering': ['experiment_id', 'number'],
                        'constraints': [models.UniqueConstraint(fields=('experiment', 'number'), name='one_result_a_question')],
                    },
                ),
            ],
        ),
    ]
