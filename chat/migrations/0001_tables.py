"""All tables of this app, as they were when migrations began."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from agents.db.create_tables import CreateTables


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('agents', '0001_tables'),
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
        CreateTables(
            operations=[
                migrations.CreateModel(
                    name='ChatImport',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='chat_imports', to=settings.AUTH_USER_MODEL, verbose_name='user')),
                        ('status', models.CharField(choices=[('counting', 'reading files'), ('ready', 'ready to import'), ('running', 'importing'), ('done', 'finished'), ('cancelled', 'canceled'), ('failed', 'failed')], default='counting', max_length=10, verbose_name='status')),
                        ('files', models.JSONField(default=list, help_text='Names of uploaded files.', verbose_name='files')),
                        ('sources', models.JSONField(default=dict, help_text='Chats found, by product.', verbose_name='sources')),
                        ('found', models.PositiveIntegerField(default=0, verbose_name='chats found')),
                        ('is_new', models.PositiveIntegerField(default=0, verbose_name='not imported yet')),
                        ('done', models.PositiveIntegerField(default=0, verbose_name='chats processed')),
                        ('problem', models.CharField(blank=True, default='', max_length=32, verbose_name='problem')),
                        ('owner', models.CharField(blank=True, default='', max_length=120, verbose_name='owner')),
                        ('attempts', models.PositiveSmallIntegerField(default=0, verbose_name='attempts')),
                        ('heartbeat_at', models.DateTimeField(blank=True, null=True, verbose_name='heartbeat')),
                        ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                        ('ended_at', models.DateTimeField(blank=True, null=True, verbose_name='ended')),
                    ],
                    options={
                        'verbose_name': 'chat import',
                        'verbose_name_plural': 'chat imports',
                        'ordering': ['-pk'],
                    },
                ),
                migrations.CreateModel(
                    name='ChatSession',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='chat_sessions', to=settings.AUTH_USER_MODEL, verbose_name='user')),
                        ('title', models.CharField(max_length=80, verbose_name='title')),
                        ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                        ('updated_at', models.DateTimeField(auto_now_add=True, verbose_name='last used')),
                        ('is_shared', models.BooleanField(db_default=False, default=False, help_text='Whether the chat has members besides its owner.', verbose_name='shared')),
                        ('public_until', models.DateTimeField(blank=True, help_text='When the last public link expires.', null=True, verbose_name='public until')),
                        ('title_source', models.CharField(blank=True, choices=[('', 'first message'), ('model', 'model'), ('person', 'user')], db_default='', default='', help_text='A title that a user typed is never replaced.', max_length=8, verbose_name='title written by')),
                        ('title_tokens', models.PositiveIntegerField(db_default=0, default=0, verbose_name='tokens for the title')),
                        ('is_temporary', models.BooleanField(db_default=False, default=False, help_text='Deleted soon after its last page is closed, and never listed.', verbose_name='temporary')),
                        ('last_open_at', models.DateTimeField(blank=True, help_text='When a page of a temporary chat was last open.', null=True, verbose_name='last open')),
                        ('deleted_at', models.DateTimeField(blank=True, help_text='Invisible from this time on, and erased soon afterwards.', null=True, verbose_name='deleted')),
                        ('options', models.JSONField(blank=True, db_default=models.Value({}, models.JSONField()), default=dict, help_text="Model, effort and temperature, where they differ from the agent's.", verbose_name='model options')),
                        ('project', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='chats', to='agents.project', verbose_name='project')),
                    ],
                    options={
                        'verbose_name': 'chat',
                        'verbose_name_plural': 'chats',
                        'ordering': ['-updated_at', '-pk'],
                        'indexes': [models.Index(fields=['user', '-updated_at'], name='sessions_of_a_person'), models.Index(condition=models.Q(('deleted_at__isnull', False)), fields=['deleted_at'], name='deleted_sessions'), models.Index(condition=models.Q(('is_temporary', True)), fields=['last_open_at'], name='temporary_sessions')],
                    },
                ),
                migrations.CreateModel(
                    name='Folder',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='chat_folders', to=settings.AUTH_USER_MODEL, verbose_name='user')),
                        ('name', models.CharField(max_length=60, verbose_name='name')),
                        ('order', models.IntegerField(db_default=0, default=0, verbose_name='order')),
                        ('is_collapsed', models.BooleanField(db_default=False, default=False, verbose_name='collapsed')),
                        ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                    ],
                    options={
                        'verbose_name': 'folder',
                        'verbose_name_plural': 'folders',
                        'ordering': ['order', 'pk'],
                    },
                ),
                migrations.CreateModel(
                    name='Filing',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='filings', to='chat.chatsession', verbose_name='chat')),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='user')),
                        ('pinned_at', models.DateTimeField(blank=True, null=True, verbose_name='pinned')),
                        ('archived_at', models.DateTimeField(blank=True, null=True, verbose_name='archived')),
                        ('folder', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='filings', to='chat.folder', verbose_name='folder')),
                    ],
                    options={
                        'verbose_name': 'filed chat',
                        'verbose_name_plural': 'filed chats',
                        'constraints': [models.UniqueConstraint(fields=('user', 'session'), name='one_filing_a_person')],
                    },
                ),
                migrations.CreateModel(
                    name='ImportedChat',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='user')),
                        ('session', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='imported', to='chat.chatsession', verbose_name='chat')),
                        ('source', models.CharField(max_length=20, verbose_name='source')),
                        ('original_id', models.CharField(max_length=200, verbose_name='original ID')),
                        ('imported_at', models.DateTimeField(auto_now_add=True, verbose_name='imported')),
                    ],
                    options={
                        'verbose_name': 'imported chat',
                        'verbose_name_plural': 'imported chats',
                        'constraints': [models.UniqueConstraint(fields=('user', 'source', 'original_id'), name='one_import_a_chat')],
                    },
                ),
                migrations.CreateModel(
                    name='ImportResult',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('chat_import', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='results', to='chat.chatimport', verbose_name='import')),
                        ('number', models.PositiveIntegerField(verbose_name='number')),
                        ('outcome', models.CharField(choices=[('imported', 'imported'), ('known', 'already imported'), ('skipped', 'skipped'), ('failed', 'failed')], max_length=10, verbose_name='outcome')),
                        ('source', models.CharField(blank=True, default='', max_length=20, verbose_name='source')),
                        ('title', models.CharField(blank=True, default='', max_length=80, verbose_name='title')),
                        ('problem', models.CharField(blank=True, default='', max_length=32, verbose_name='problem')),
                        ('file', models.CharField(blank=True, default='', max_length=200, verbose_name='file')),
                        ('session', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='chat.chatsession', verbose_name='chat')),
                    ],
                    options={
                        'verbose_name': 'import result',
                        'verbose_name_plural': 'import results',
                        'ordering': ['chat_import', 'number'],
                        'constraints': [models.UniqueConstraint(fields=('chat_import', 'number'), name='one_result_a_number')],
                    },
                ),
                migrations.CreateModel(
                    name='Invitation',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to='chat.chatsession', verbose_name='chat')),
                        ('digest', models.CharField(max_length=64, unique=True, verbose_name='digest')),
                        ('may_write', models.BooleanField(default=False, verbose_name='edit access')),
                        ('made_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                        ('expires_at', models.DateTimeField(verbose_name='expires')),
                        ('withdrawn_at', models.DateTimeField(blank=True, null=True, verbose_name='revoked')),
                    ],
                    options={
                        'verbose_name': 'invitation',
                        'verbose_name_plural': 'invitations',
                        'ordering': ['-pk'],
                    },
                ),
                migrations.CreateModel(
                    name='Member',
                    fields=[
                        ('membership_ptr', models.OneToOneField(auto_created=True, on_delete=django.db.models.deletion.CASCADE, parent_link=True, primary_key=True, serialize=False, to='agents.membership')),
                        ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='members', to='chat.chatsession', verbose_name='chat')),
                        ('invitation', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='members', to='chat.invitation', verbose_name='joined via')),
                    ],
                    options={
                        'verbose_name': 'member',
                        'verbose_name_plural': 'members',
                        'ordering': ['pk'],
                    },
                    bases=('agents.membership',),
                ),
                migrations.CreateModel(
                    name='Message',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='messages', to='chat.chatsession', verbose_name='chat')),
                        ('parent', models.ForeignKey(blank=True, help_text='Empty for the first message. Messages with the same previous message are branches.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='children', to='chat.message', verbose_name='previous message')),
                        ('author', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='user')),
                        ('run', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='message', to='agents.run', verbose_name='run')),
                        ('text', models.TextField(verbose_name='text')),
                        ('agent_name', models.CharField(blank=True, db_default='', help_text='The agent chosen to answer, if any.', max_length=64, verbose_name='agent name')),
                        ('options', models.JSONField(blank=True, db_default=models.Value({}, models.JSONField()), default=dict, help_text='Options for the run of a queued message. Once the run starts, it stores them itself.', verbose_name='model options')),
                        ('is_mention', models.BooleanField(db_default=False, default=False, help_text='Whether @ was used to choose another agent for this message only.', verbose_name='agent mentioned')),
                        ('has_files', models.BooleanField(db_default=False, default=False, help_text='Whether files are attached; most messages have none.', verbose_name='files')),
                        ('place', models.IntegerField(blank=True, help_text="Empty if the message isn't queued.", null=True, verbose_name='queue position')),
                        ('client_id', models.CharField(max_length=64, verbose_name='client ID')),
                        ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='sent')),
                        ('edited_at', models.DateTimeField(blank=True, help_text='When the text was corrected. The run has the original message.', null=True, verbose_name='edited')),
                    ],
                    options={
                        'verbose_name': 'message',
                        'verbose_name_plural': 'messages',
                        'ordering': ['pk'],
                        'constraints': [models.UniqueConstraint(fields=('author', 'client_id'), name='one_message_a_client_id'), models.UniqueConstraint(condition=models.Q(('place__isnull', False)), fields=('session', 'place'), name='one_message_a_place'), models.CheckConstraint(condition=models.Q(('place', None), ('run', None), _connector='OR'), name='no_run_while_it_waits')],
                    },
                ),
                migrations.CreateModel(
                    name='BranchPosition',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='branch_positions', to='chat.chatsession', verbose_name='chat')),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='user')),
                        ('branch', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='chat.message', verbose_name='branch')),
                        ('leaf', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='chat.message', verbose_name='last message')),
                    ],
                    options={
                        'verbose_name': 'branch position',
                        'verbose_name_plural': 'branch positions',
                        'constraints': [models.UniqueConstraint(condition=models.Q(('branch', None)), fields=('session', 'user'), name='one_visible_leaf_a_person'), models.UniqueConstraint(condition=models.Q(('branch__isnull', False)), fields=('branch', 'user'), name='one_last_leaf_a_branch')],
                    },
                ),
                migrations.CreateModel(
                    name='Attachment',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='chat_attachments', to=settings.AUTH_USER_MODEL, verbose_name='user')),
                        ('message', models.ForeignKey(blank=True, help_text='Empty until it is sent.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='attachments', to='chat.message', verbose_name='message')),
                        ('file', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='chat_attachments', to='agents.storedfile', verbose_name='file')),
                        ('document', models.ForeignKey(blank=True, help_text="The file's text. Empty until it has been read.", null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='chat_attachments', to='agents.document', verbose_name='document')),
                        ('name', models.CharField(max_length=200, verbose_name='name')),
                        ('mime_type', models.CharField(max_length=130, verbose_name='type')),
                        ('kind', models.CharField(choices=[('image', 'Image'), ('audio', 'Audio'), ('video', 'Video'), ('table', 'Table'), ('document', 'Document')], max_length=10, verbose_name='kind')),
                        ('width', models.PositiveIntegerField(blank=True, null=True, verbose_name='width')),
                        ('height', models.PositiveIntegerField(blank=True, null=True, verbose_name='height')),
                        ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='uploaded')),
                    ],
                    options={
                        'verbose_name': 'attached file',
                        'verbose_name_plural': 'attached files',
                        'ordering': ['pk'],
                        'indexes': [models.Index(condition=models.Q(('message', None)), fields=['user', 'created_at'], name='unsent_attachments')],
                    },
                ),
                migrations.CreateModel(
                    name='Prompt',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='prompts', to=settings.AUTH_USER_MODEL, verbose_name='owner')),
                        ('name', models.CharField(max_length=40, verbose_name='name')),
                        ('title', models.CharField(max_length=80, verbose_name='title')),
                        ('text', models.TextField(verbose_name='text')),
                        ('sharing', models.CharField(choices=[('private', 'Only me'), ('groups', 'Groups'), ('everyone', 'Everyone')], default='private', max_length=10, verbose_name='shared with')),
                        ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                        ('updated_at', models.DateTimeField(auto_now=True, verbose_name='updated')),
                        ('groups', models.ManyToManyField(blank=True, related_name='+', to='auth.group', verbose_name='groups')),
                    ],
                    options={
                        'verbose_name': 'prompt',
                        'verbose_name_plural': 'prompts',
                        'ordering': ['name', 'pk'],
                        'permissions': [('share_prompts', 'Can share prompts with everyone')],
                        'constraints': [models.UniqueConstraint(fields=('user', 'name'), name='one_prompt_a_name')],
                    },
                ),
                migrations.CreateModel(
                    name='PublicLink',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='public_links', to='chat.chatsession', verbose_name='chat')),
                        ('made_by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='created by')),
                        ('digest', models.CharField(max_length=64, unique=True, verbose_name='digest')),
                        ('level', models.CharField(choices=[('answers', 'messages and answers'), ('steps', 'messages, answers and step names'), ('details', 'messages, answers and full steps')], max_length=10, verbose_name='shared content')),
                        ('snapshot', models.JSONField(help_text='The masked copy of the chat that visitors read.', verbose_name='copy')),
                        ('made_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                        ('updated_at', models.DateTimeField(verbose_name='updated')),
                        ('expires_at', models.DateTimeField(verbose_name='expires')),
                        ('opened', models.PositiveIntegerField(default=0, verbose_name='times opened')),
                    ],
                    options={
                        'verbose_name': 'public link',
                        'verbose_name_plural': 'public links',
                        'ordering': ['-pk'],
                    },
                ),
                migrations.CreateModel(
                    name='RemovedMember',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='removed_members', to='chat.chatsession', verbose_name='chat')),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='user')),
                        ('may_read', models.BooleanField(default=False, verbose_name='view access')),
                        ('removed_at', models.DateTimeField(auto_now_add=True, verbose_name='removed')),
                    ],
                    options={
                        'verbose_name': 'removed member',
                        'verbose_name_plural': 'removed members',
                        'constraints': [models.UniqueConstraint(fields=('session', 'user'), name='one_removal_a_person')],
                    },
                ),
            ],
        ),
    ]
