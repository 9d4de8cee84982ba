"""All tables of this app, as they were when migrations began."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import agents.models.secret
from agents.db.create_tables import CreateTables


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        ('sessions', '0001_initial'),
    ]

    operations = [
        CreateTables(
            operations=[
                migrations.CreateModel(
                    name='Attempts',
                    fields=[
                        ('key', models.CharField(max_length=64, primary_key=True, serialize=False, verbose_name='key')),
                        ('count', models.PositiveIntegerField(default=0, verbose_name='failed attempts')),
                        ('last_at', models.DateTimeField(db_index=True, verbose_name='last attempt')),
                        ('wait_until', models.DateTimeField(blank=True, null=True, verbose_name='blocked until')),
                        ('succeeded_at', models.DateTimeField(blank=True, null=True, verbose_name='last success')),
                    ],
                    options={
                        'verbose_name': 'sign-in attempts',
                        'verbose_name_plural': 'sign-in attempts',
                    },
                ),
                migrations.CreateModel(
                    name='Authenticator',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='authenticator', to=settings.AUTH_USER_MODEL, verbose_name='user')),
                        ('secret', agents.models.secret.EncryptedTextField(verbose_name='secret')),
                        ('last_step', models.BigIntegerField(default=0, help_text='Each code works once; earlier codes are rejected.', verbose_name='last time step')),
                        ('added_at', models.DateTimeField(auto_now_add=True, verbose_name='date added')),
                        ('used_at', models.DateTimeField(blank=True, null=True, verbose_name='last used')),
                    ],
                    options={
                        'verbose_name': 'authenticator app',
                        'verbose_name_plural': 'authenticator apps',
                    },
                ),
                migrations.CreateModel(
                    name='Invitation',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('digest', models.CharField(max_length=64, unique=True, verbose_name='digest')),
                        ('email', models.EmailField(blank=True, help_text='The new account gets this address. Deleted here once the invitation is accepted.', max_length=254, verbose_name='email address')),
                        ('role', models.CharField(choices=[('person', 'User'), ('reviewer', 'Reviewer'), ('administrator', 'Administrator')], default='person', max_length=20, verbose_name='role')),
                        ('invited_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='invited by')),
                        ('max_uses', models.PositiveIntegerField(default=1, verbose_name='max uses')),
                        ('uses', models.PositiveIntegerField(default=0, verbose_name='uses')),
                        ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                        ('expires_at', models.DateTimeField(verbose_name='expires')),
                        ('sent_at', models.DateTimeField(blank=True, null=True, verbose_name='sent')),
                        ('revoked_at', models.DateTimeField(blank=True, null=True, verbose_name='revoked')),
                        ('groups', models.ManyToManyField(blank=True, related_name='+', to='auth.group', verbose_name='groups')),
                    ],
                    options={
                        'verbose_name': 'invitation',
                        'verbose_name_plural': 'invitations',
                        'ordering': ['-pk'],
                    },
                ),
                migrations.CreateModel(
                    name='Passkey',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='passkeys', to=settings.AUTH_USER_MODEL, verbose_name='user')),
                        ('name', models.CharField(max_length=60, verbose_name='name')),
                        ('key_id', models.CharField(max_length=1400, unique=True, verbose_name='key ID')),
                        ('public_key', models.TextField(verbose_name='public key')),
                        ('uses', models.BigIntegerField(default=0, help_text='Counter reported by the passkey; many always report 0.', verbose_name='use count')),
                        ('added_at', models.DateTimeField(auto_now_add=True, verbose_name='date added')),
                        ('used_at', models.DateTimeField(blank=True, null=True, verbose_name='last used')),
                    ],
                    options={
                        'verbose_name': 'passkey',
                        'verbose_name_plural': 'passkeys',
                        'ordering': ['pk'],
                    },
                ),
                migrations.CreateModel(
                    name='Profile',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='profile', to=settings.AUTH_USER_MODEL, verbose_name='user')),
                        ('display_name', models.CharField(blank=True, max_length=60, verbose_name='display name')),
                        ('skeleton', models.CharField(blank=True, db_index=True, max_length=180, verbose_name='name for look-alike checks')),
                        ('language', models.CharField(blank=True, max_length=10, verbose_name='language')),
                        ('time_zone', models.CharField(blank=True, max_length=64, verbose_name='time zone')),
                        ('date_format', models.CharField(blank=True, choices=[('', 'By language'), ('iso', '2026-11-17'), ('dmy', '17/11/2026'), ('mdy', '11/17/2026')], max_length=3, verbose_name='date format')),
                        ('clock', models.CharField(choices=[('24', '24-hour (15:04)'), ('12', '12-hour (3:04 PM)')], default='24', max_length=2, verbose_name='clock')),
                        ('has_single_keys', models.BooleanField(default=True, verbose_name='single-key shortcuts')),
                        ('has_instructions', models.BooleanField(default=True, verbose_name='use custom instructions')),
                        ('has_memory', models.BooleanField(db_default=True, default=True, verbose_name='use long-term memory')),
                        ('has_setup_guide', models.BooleanField(db_default=True, default=True, verbose_name='setup checklist in the console')),
                        ('about_me', models.TextField(blank=True, max_length=1500, verbose_name='what agents should know')),
                        ('answer_style', models.TextField(blank=True, max_length=1500, verbose_name='how agents should answer')),
                    ],
                    options={
                        'verbose_name': 'profile',
                        'verbose_name_plural': 'profiles',
                    },
                ),
                migrations.CreateModel(
                    name='Visit',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('session', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='visit', to='sessions.session', verbose_name='session')),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='visits', to=settings.AUTH_USER_MODEL, verbose_name='user')),
                        ('way', models.CharField(max_length=20, verbose_name='sign-in method')),
                        ('device', models.CharField(blank=True, max_length=300, verbose_name='device')),
                        ('address', models.CharField(blank=True, max_length=45, verbose_name='IP address')),
                        ('began_at', models.DateTimeField(auto_now_add=True, verbose_name='since')),
                        ('seen_at', models.DateTimeField(auto_now_add=True, verbose_name='last active')),
                    ],
                    options={
                        'verbose_name': 'sign-in session',
                        'verbose_name_plural': 'sign-in sessions',
                        'ordering': ['-seen_at', '-pk'],
                    },
                ),
                migrations.CreateModel(
                    name='Identity',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='identities', to=settings.AUTH_USER_MODEL, verbose_name='user')),
                        ('issuer', models.CharField(max_length=200, verbose_name='issuer')),
                        ('subject', models.CharField(max_length=255, verbose_name='subject')),
                        ('added_at', models.DateTimeField(auto_now_add=True, verbose_name='date added')),
                    ],
                    options={
                        'verbose_name': 'identity',
                        'verbose_name_plural': 'identities',
                        'constraints': [models.UniqueConstraint(fields=('issuer', 'subject'), name='one_identity')],
                    },
                ),
                migrations.CreateModel(
                    name='RecoveryCode',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='recovery_codes', to=settings.AUTH_USER_MODEL, verbose_name='user')),
                        ('digest', models.CharField(max_length=64, verbose_name='digest')),
                    ],
                    options={
                        'verbose_name': 'recovery code',
                        'verbose_name_plural': 'recovery codes',
                        'constraints': [models.UniqueConstraint(fields=('user', 'digest'), name='one_recovery_code')],
                    },
                ),
            ],
        ),
    ]
