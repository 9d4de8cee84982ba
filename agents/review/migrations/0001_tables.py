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
                    name='Comment',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='comments', to='agents.run', verbose_name='run')),
                        ('step', models.PositiveIntegerField(default=0, help_text='0 = the whole run.', verbose_name='step')),
                        ('author', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='author')),
                        ('text', models.TextField(verbose_name='text')),
                        ('written_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                    ],
                    options={
                        'verbose_name': 'comment',
                        'verbose_name_plural': 'comments',
                        'ordering': ['pk'],
                    },
                ),
                migrations.CreateModel(
                    name='ExampleSet',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=64, unique=True, verbose_name='name')),
                        ('description', models.CharField(blank=True, help_text='What this set tests.', max_length=200, verbose_name='description')),
                        ('agent', models.ForeignKey(blank=True, help_text='Agent that is selected when you run the set.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='agents.agent', verbose_name='agent')),
                        ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                    ],
                    options={
                        'verbose_name': 'example set',
                        'verbose_name_plural': 'example sets',
                        'ordering': ['name'],
                    },
                ),
                migrations.CreateModel(
                    name='Example',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=120, unique=True, verbose_name='name')),
                        ('example_set', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='examples', to='review.exampleset', verbose_name='example set')),
                        ('checks', models.JSONField(blank=True, db_default=models.Value([], models.JSONField()), default=list, verbose_name='checks')),
                        ('tags', models.CharField(blank=True, db_default='', default='', help_text='Separated by commas, e.g. billing, regression.', max_length=200, verbose_name='tags')),
                        ('run', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='examples', to='agents.run', verbose_name='run')),
                        ('agent', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='agents.agent', verbose_name='agent')),
                        ('agent_name', models.CharField(blank=True, max_length=64, verbose_name='agent name')),
                        ('question', models.TextField(verbose_name='question')),
                        ('history', models.JSONField(blank=True, default=list, verbose_name='earlier messages')),
                        ('observations', models.JSONField(blank=True, default=list, verbose_name='tool results')),
                        ('expected', models.TextField(blank=True, verbose_name='expected answer')),
                        ('saved_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='saved by')),
                        ('saved_at', models.DateTimeField(auto_now_add=True, verbose_name='saved')),
                        ('score', models.FloatField(blank=True, null=True, verbose_name='last score')),
                        ('scored_at', models.DateTimeField(blank=True, null=True, verbose_name='last run')),
                    ],
                    options={
                        'verbose_name': 'example',
                        'verbose_name_plural': 'examples',
                        'ordering': ['name'],
                    },
                ),
                migrations.CreateModel(
                    name='Note',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='review_notes', to='agents.run', verbose_name='run')),
                        ('step', models.PositiveIntegerField(default=0, help_text='0 = the whole run.', verbose_name='step')),
                        ('author', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='author')),
                        ('text', models.TextField(verbose_name='text')),
                        ('written_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                        ('edited_at', models.DateTimeField(blank=True, null=True, verbose_name='edited')),
                    ],
                    options={
                        'verbose_name': 'note',
                        'verbose_name_plural': 'notes',
                        'ordering': ['pk'],
                    },
                ),
                migrations.CreateModel(
                    name='ShareLink',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='share_links', to='agents.run', verbose_name='run')),
                        ('digest', models.CharField(max_length=64, unique=True, verbose_name='digest')),
                        ('level', models.CharField(choices=[('person', 'question, answer and steps, without details'), ('reviewer', 'everything, with personal data masked'), ('auditor', 'everything')], max_length=10, verbose_name='shared content')),
                        ('made_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='created by')),
                        ('made_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                        ('expires_at', models.DateTimeField(verbose_name='expires')),
                        ('revoked_at', models.DateTimeField(blank=True, null=True, verbose_name='revoked')),
                        ('opened', models.PositiveIntegerField(default=0, verbose_name='times opened')),
                    ],
                    options={
                        'verbose_name': 'share link',
                        'verbose_name_plural': 'share links',
                        'ordering': ['-pk'],
                    },
                ),
                migrations.CreateModel(
                    name='Label',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='labels', to='agents.run', verbose_name='run')),
                        ('step', models.PositiveIntegerField(default=0, help_text='0 = the whole run.', verbose_name='step')),
                        ('name', models.CharField(db_index=True, max_length=64, verbose_name='name')),
                        ('author', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='author')),
                        ('put_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                    ],
                    options={
                        'verbose_name': 'label',
                        'verbose_name_plural': 'labels',
                        'ordering': ['name'],
                        'constraints': [models.UniqueConstraint(fields=('run', 'step', 'name'), name='one_label_a_step')],
                    },
                ),
                migrations.CreateModel(
                    name='Rating',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='ratings', to='agents.run', verbose_name='run')),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='ratings', to=settings.AUTH_USER_MODEL, verbose_name='user')),
                        ('is_good', models.BooleanField(verbose_name='good')),
                        ('reason', models.CharField(blank=True, choices=[('wrong', 'Incorrect'), ('incomplete', 'Incomplete'), ('ignored', "Didn't follow my instructions"), ('long', 'Too long'), ('brief', 'Not enough detail'), ('slow', 'Too slow'), ('unsafe', 'Harmful or reveals sensitive data'), ('other', 'Other')], max_length=12, verbose_name='reason')),
                        ('comment', models.TextField(blank=True, verbose_name='comment')),
                        ('rated_at', models.DateTimeField(auto_now=True, verbose_name='rated')),
                    ],
                    options={
                        'verbose_name': 'rating',
                        'verbose_name_plural': 'ratings',
                        'constraints': [models.UniqueConstraint(fields=('run', 'user'), name='one_rating_a_person')],
                    },
                ),
                migrations.CreateModel(
                    name='Review',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('run', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='review', to='agents.run', verbose_name='run')),
                        ('why', models.TextField(blank=True, verbose_name='reason for review')),
                        ('flagged_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='flagged by')),
                        ('flagged_at', models.DateTimeField(auto_now_add=True, verbose_name='flagged')),
                        ('assignee', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='reviews', to=settings.AUTH_USER_MODEL, verbose_name='assigned to')),
                        ('verdict', models.CharField(blank=True, choices=[('correct', 'correct'), ('partly', 'partly correct'), ('wrong', 'wrong'), ('unsafe', 'unsafe')], max_length=10, verbose_name='verdict')),
                        ('decided_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='decided by')),
                        ('decided_at', models.DateTimeField(blank=True, null=True, verbose_name='decided')),
                        ('correction', models.TextField(blank=True, verbose_name='corrected answer')),
                        ('corrected_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='corrected by')),
                        ('corrected_at', models.DateTimeField(blank=True, null=True, verbose_name='corrected')),
                    ],
                    options={
                        'verbose_name': 'review',
                        'verbose_name_plural': 'reviews',
                        'ordering': ['flagged_at', 'pk'],
                        'indexes': [models.Index(fields=['verdict', 'flagged_at'], name='reviews_to_do')],
                    },
                ),
                migrations.CreateModel(
                    name='SavedView',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='saved_views', to=settings.AUTH_USER_MODEL, verbose_name='user')),
                        ('name', models.CharField(max_length=64, verbose_name='name')),
                        ('query', models.TextField(blank=True, verbose_name='filter')),
                        ('columns', models.CharField(blank=True, db_default='', default='', max_length=300, verbose_name='columns')),
                        ('sort', models.CharField(blank=True, db_default='', default='', max_length=32, verbose_name='sort')),
                    ],
                    options={
                        'verbose_name': 'saved view',
                        'verbose_name_plural': 'saved views',
                        'ordering': ['name'],
                        'constraints': [models.UniqueConstraint(fields=('user', 'name'), name='one_view_a_name')],
                    },
                ),
            ],
        ),
    ]
