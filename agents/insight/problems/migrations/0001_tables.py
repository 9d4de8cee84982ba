"""All tables of this app, as they were when migrations began."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from agents.db.create_tables import CreateTables


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('agents', '0001_tables'),
    ]

    operations = [
        CreateTables(
            operations=[
                migrations.CreateModel(
                    name='Problem',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('fingerprint', models.CharField(max_length=64, verbose_name='fingerprint')),
                        ('algorithm', models.PositiveSmallIntegerField(help_text='A newer one applies to new occurrences; older problems stay.', verbose_name='grouping version')),
                        ('kind', models.CharField(choices=[('model_error', 'Model error'), ('tool_error', 'Tool error'), ('run_error', 'Run failed'), ('empty_answer', 'Empty answer'), ('schema', "Answer didn't match its schema"), ('no_plan', 'No valid plan'), ('replan_limit', 'Replan limit'), ('step_limit', 'Step limit'), ('loop', 'Loop'), ('tool_limit', 'Tool call limit'), ('guardrail', 'Guardrail block'), ('rejected', 'Rejected approval'), ('rating', 'Bad rating'), ('interrupted', 'Interrupted')], max_length=16, verbose_name='type')),
                        ('stage', models.CharField(max_length=16, verbose_name='stage')),
                        ('subject', models.CharField(blank=True, help_text='The tool, provider, guardrail or reason.', max_length=120, verbose_name='cause')),
                        ('message', models.CharField(blank=True, help_text='Without numbers, names, addresses, secrets and personal data.', max_length=200, verbose_name='message')),
                        ('agent', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='problems', to='agents.agent', verbose_name='agent')),
                        ('agent_name', models.CharField(max_length=64, verbose_name='agent name')),
                        ('status', models.CharField(choices=[('open', 'open'), ('resolved', 'resolved'), ('ignored', 'ignored')], db_index=True, default='open', max_length=10, verbose_name='status')),
                        ('assignee', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='assigned to')),
                        ('first_seen', models.DateTimeField(verbose_name='first seen')),
                        ('last_seen', models.DateTimeField(db_index=True, verbose_name='last seen')),
                        ('count', models.PositiveIntegerField(default=0, verbose_name='occurrences')),
                        ('run_count', models.PositiveIntegerField(default=0, verbose_name='runs')),
                        ('resolved_at', models.DateTimeField(blank=True, null=True, verbose_name='resolved')),
                        ('resolved_version', models.PositiveIntegerField(blank=True, help_text="Runs of earlier versions don't open the problem again.", null=True, verbose_name='resolved in version')),
                        ('awaits_version', models.BooleanField(default=False, help_text='Whether only runs of that version or later open the problem again.', verbose_name='resolved in the next version')),
                        ('returns_on_spike', models.BooleanField(default=False, help_text='Whether an ignored problem is opened again when it spikes.', verbose_name='ignored until it spikes')),
                        ('merged_into', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='merged', to='problems.problem', verbose_name='merged into')),
                    ],
                    options={
                        'verbose_name': 'problem',
                        'verbose_name_plural': 'problems',
                        'ordering': ['-last_seen', '-pk'],
                        'default_permissions': ('view', 'change'),
                        'constraints': [models.UniqueConstraint(fields=('fingerprint', 'algorithm'), name='one_problem_a_fingerprint')],
                    },
                ),
                migrations.CreateModel(
                    name='ProblemChange',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('problem', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='changes', to='problems.problem')),
                        ('action', models.CharField(choices=[('found', 'found'), ('reopened', 'opened again by a new occurrence'), ('spiked', 'spiked'), ('resolved', 'resolved'), ('resolved_next', 'resolved in the next version'), ('ignored', 'ignored'), ('ignored_spike', 'ignored until it spikes'), ('opened', 'opened again'), ('assigned', 'assigned'), ('merged', 'merged')], max_length=16, verbose_name='action')),
                        ('by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='user')),
                        ('at', models.DateTimeField(verbose_name='time')),
                        ('version', models.PositiveIntegerField(blank=True, null=True, verbose_name='agent version')),
                        ('details', models.JSONField(blank=True, default=dict, verbose_name='details')),
                        ('is_announced', models.BooleanField(default=True, help_text='Whether alerts have handled it.', verbose_name='announced')),
                    ],
                    options={
                        'verbose_name': 'problem change',
                        'verbose_name_plural': 'problem changes',
                        'ordering': ['-at', '-pk'],
                        'indexes': [models.Index(condition=models.Q(('is_announced', False)), fields=['id'], name='changes_to_announce')],
                    },
                ),
                migrations.CreateModel(
                    name='ProblemHour',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('problem', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='hours', to='problems.problem')),
                        ('hour', models.DateTimeField(verbose_name='hour')),
                        ('count', models.PositiveIntegerField(default=0, verbose_name='occurrences')),
                    ],
                    options={
                        'verbose_name': 'problem count',
                        'verbose_name_plural': 'problem counts',
                        'constraints': [models.UniqueConstraint(fields=('problem', 'hour'), name='one_count_an_hour')],
                    },
                ),
                migrations.CreateModel(
                    name='ProblemRun',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('problem', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='occurrences', to='problems.problem')),
                        ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='problems', to='agents.run')),
                        ('times', models.PositiveIntegerField(default=1, verbose_name='occurrences')),
                        ('at', models.DateTimeField(verbose_name='time')),
                    ],
                    options={
                        'verbose_name': 'affected run',
                        'verbose_name_plural': 'affected runs',
                        'ordering': ['-at', '-pk'],
                        'indexes': [models.Index(fields=['problem', 'at'], name='runs_of_a_problem')],
                        'constraints': [models.UniqueConstraint(fields=('problem', 'run'), name='one_occurrence_a_run')],
                    },
                ),
                migrations.CreateModel(
                    name='ProblemTag',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('problem', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tags', to='problems.problem')),
                        ('kind', models.CharField(choices=[('version', 'agent version'), ('model', 'model')], max_length=8, verbose_name='type')),
                        ('value', models.CharField(max_length=200, verbose_name='value')),
                        ('count', models.PositiveIntegerField(default=0, verbose_name='occurrences')),
                    ],
                    options={
                        'verbose_name': 'problem tag',
                        'verbose_name_plural': 'problem tags',
                        'ordering': ['-count', 'value'],
                        'constraints': [models.UniqueConstraint(fields=('problem', 'kind', 'value'), name='one_count_a_problem_tag')],
                    },
                ),
            ],
        ),
    ]
