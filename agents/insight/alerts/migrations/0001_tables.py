"""All tables of this app, as they were when migrations began."""

import datetime

import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import agents.models.secret
from agents.db.create_tables import CreateTables


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('agents', '0001_tables'),
        ('problems', '0001_tables'),
    ]

    operations = [
        CreateTables(
            operations=[
                migrations.CreateModel(
                    name='AlertChannel',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=64, unique=True, verbose_name='name')),
                        ('kind', models.CharField(choices=[('notification', 'Notification'), ('email', 'Email'), ('webhook', 'Webhook')], default='notification', max_length=12, verbose_name='type')),
                        ('addresses', models.TextField(blank=True, help_text='One per line, e.g. a mailing list.', verbose_name='more email addresses')),
                        ('url', models.CharField(blank=True, help_text='Receives a POST request with JSON.', max_length=500, verbose_name='URL')),
                        ('secret', agents.models.secret.EncryptedTextField(blank=True, help_text='Requests are signed with it, so that the receiver can verify them.', verbose_name='signing secret')),
                        ('base_url', models.CharField(blank=True, editable=False, max_length=200)),
                        ('enabled', models.BooleanField(default=True, verbose_name='enabled')),
                        ('people', models.ManyToManyField(blank=True, help_text="Users who can't see a problem aren't notified of it.", related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='users')),
                    ],
                    options={
                        'verbose_name': 'alert channel',
                        'verbose_name_plural': 'alert channels',
                        'ordering': ['name'],
                    },
                ),
                migrations.CreateModel(
                    name='AlertRule',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=64, unique=True, verbose_name='name')),
                        ('event', models.CharField(choices=[('problem.new', 'New problem'), ('problem.reopened', 'Problem opened again'), ('problem.spiking', 'Problem spiking'), ('schedule.waiting', 'Scheduled workflow pending approval')], default='problem.new', max_length=20, verbose_name='when')),
                        ('quiet_minutes', models.PositiveIntegerField(default=60, help_text='No second alert about the same problem within this time.', validators=[django.core.validators.MaxValueValidator(43200)], verbose_name='quiet period (minutes)')),
                        ('enabled', models.BooleanField(default=True, verbose_name='enabled')),
                        ('agents', models.ManyToManyField(blank=True, help_text='None selected means all agents.', related_name='+', to='agents.agent', verbose_name='agents')),
                        ('channels', models.ManyToManyField(related_name='rules', to='alerts.alertchannel', verbose_name='channels')),
                    ],
                    options={
                        'verbose_name': 'alert rule',
                        'verbose_name_plural': 'alert rules',
                        'ordering': ['name'],
                    },
                ),
                migrations.CreateModel(
                    name='SummarySchedule',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=64, unique=True, verbose_name='name')),
                        ('frequency', models.CharField(choices=[('daily', 'Daily'), ('weekly', 'Weekly'), ('monthly', 'Monthly')], default='weekly', max_length=8, verbose_name='frequency')),
                        ('at', models.TimeField(default=datetime.time(8, 0), verbose_name='time')),
                        ('weekday', models.PositiveSmallIntegerField(choices=[(0, 'Monday'), (1, 'Tuesday'), (2, 'Wednesday'), (3, 'Thursday'), (4, 'Friday'), (5, 'Saturday'), (6, 'Sunday')], default=0, help_text='Only for weekly summaries.', verbose_name='day of the week')),
                        ('day', models.PositiveSmallIntegerField(default=1, help_text='Only for monthly summaries: 1 to 28.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(28)], verbose_name='day of the month')),
                        ('enabled', models.BooleanField(default=True, verbose_name='enabled')),
                        ('next_at', models.DateTimeField(blank=True, editable=False, null=True, verbose_name='next')),
                        ('last_sent_at', models.DateTimeField(blank=True, editable=False, null=True, verbose_name='last sent')),
                        ('channels', models.ManyToManyField(related_name='summaries', to='alerts.alertchannel', verbose_name='channels')),
                    ],
                    options={
                        'verbose_name': 'scheduled summary',
                        'verbose_name_plural': 'scheduled summaries',
                        'ordering': ['name'],
                    },
                ),
                migrations.CreateModel(
                    name='Delivery',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('channel', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='alerts.alertchannel', verbose_name='channel')),
                        ('event', models.CharField(choices=[('problem.new', 'New problem'), ('problem.reopened', 'Problem opened again'), ('problem.spiking', 'Problem spiking'), ('schedule.waiting', 'Scheduled workflow pending approval'), ('collection.shared', 'Collection shared'), ('summary', 'Summary'), ('test', 'Test')], max_length=20, verbose_name='event')),
                        ('problem', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='problems.problem', verbose_name='problem')),
                        ('person', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='user')),
                        ('address', models.CharField(blank=True, max_length=500, verbose_name='address')),
                        ('subject', models.CharField(max_length=300, verbose_name='subject')),
                        ('text', models.TextField(blank=True, verbose_name='text')),
                        ('html', models.TextField(blank=True, verbose_name='HTML')),
                        ('payload', models.JSONField(blank=True, default=dict, verbose_name='payload')),
                        ('status', models.CharField(choices=[('pending', 'pending'), ('sent', 'sent'), ('failed', 'failed')], default='pending', max_length=8, verbose_name='status')),
                        ('attempts', models.PositiveSmallIntegerField(default=0, verbose_name='attempts')),
                        ('next_at', models.DateTimeField(verbose_name='next attempt')),
                        ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                        ('sent_at', models.DateTimeField(blank=True, null=True, verbose_name='sent')),
                        ('last_error', models.TextField(blank=True, verbose_name='last error')),
                    ],
                    options={
                        'verbose_name': 'delivery',
                        'verbose_name_plural': 'deliveries',
                        'ordering': ['-pk'],
                        'default_permissions': ('view',),
                        'indexes': [models.Index(condition=models.Q(('status', 'pending')), fields=['next_at'], name='deliveries_that_wait'), models.Index(fields=['created_at'], name='deliveries_by_age')],
                    },
                ),
                migrations.CreateModel(
                    name='Notification',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='notifications', to=settings.AUTH_USER_MODEL, verbose_name='user')),
                        ('event', models.CharField(choices=[('problem.new', 'New problem'), ('problem.reopened', 'Problem opened again'), ('problem.spiking', 'Problem spiking'), ('schedule.waiting', 'Scheduled workflow pending approval'), ('collection.shared', 'Collection shared'), ('summary', 'Summary'), ('test', 'Test')], max_length=20, verbose_name='event')),
                        ('problem', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='problems.problem', verbose_name='problem')),
                        ('run', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='agents.run', verbose_name='run')),
                        ('collection', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='agents.collection', verbose_name='collection')),
                        ('text', models.TextField(blank=True, verbose_name='text')),
                        ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                        ('read_at', models.DateTimeField(blank=True, null=True, verbose_name='read')),
                    ],
                    options={
                        'verbose_name': 'notification',
                        'verbose_name_plural': 'notifications',
                        'ordering': ['-pk'],
                        'default_permissions': (),
                        'indexes': [models.Index(condition=models.Q(('read_at__isnull', True)), fields=['user'], name='unread_notifications')],
                    },
                ),
                migrations.CreateModel(
                    name='QuietPeriod',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('rule', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='alerts.alertrule')),
                        ('problem', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='problems.problem')),
                        ('announced_at', models.DateTimeField()),
                    ],
                    options={
                        'verbose_name': 'quiet period',
                        'verbose_name_plural': 'quiet periods',
                        'constraints': [models.UniqueConstraint(fields=('rule', 'problem'), name='one_quiet_period_a_problem')],
                    },
                ),
            ],
        ),
    ]
