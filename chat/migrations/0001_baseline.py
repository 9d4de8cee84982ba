import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("agents", "0001_baseline"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ChatSession",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("title", models.CharField(max_length=80, verbose_name="title")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                (
                    "updated_at",
                    models.DateTimeField(auto_now_add=True, verbose_name="last used"),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="chat_sessions",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
                (
                    "is_shared",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Whether the chat has members besides its owner.",
                        verbose_name="shared",
                    ),
                ),
            ],
            options={
                "verbose_name": "chat",
                "verbose_name_plural": "chats",
                "ordering": ["-updated_at", "-pk"],
                "indexes": [
                    models.Index(fields=["user", "-updated_at"], name="sessions_of_a_person")
                ],
            },
        ),
        migrations.CreateModel(
            name="Invitation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("digest", models.CharField(max_length=64, unique=True, verbose_name="digest")),
                ("may_write", models.BooleanField(default=False, verbose_name="edit access")),
                ("made_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("expires_at", models.DateTimeField(verbose_name="expires")),
                (
                    "withdrawn_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="revoked"),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="invitations",
                        to="chat.chatsession",
                        verbose_name="chat",
                    ),
                ),
            ],
            options={
                "verbose_name": "invitation",
                "verbose_name_plural": "invitations",
                "ordering": ["-pk"],
            },
        ),
        migrations.CreateModel(
            name="Member",
            fields=[
                (
                    "membership_ptr",
                    models.OneToOneField(
                        auto_created=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        parent_link=True,
                        primary_key=True,
                        serialize=False,
                        to="agents.membership",
                    ),
                ),
                (
                    "invitation",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="members",
                        to="chat.invitation",
                        verbose_name="joined via",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="members",
                        to="chat.chatsession",
                        verbose_name="chat",
                    ),
                ),
            ],
            options={
                "verbose_name": "member",
                "verbose_name_plural": "members",
                "ordering": ["pk"],
            },
            bases=("agents.membership",),
        ),
        migrations.CreateModel(
            name="RemovedMember",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("removed_at", models.DateTimeField(auto_now_add=True, verbose_name="removed")),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="removed_members",
                        to="chat.chatsession",
                        verbose_name="chat",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
                ("may_read", models.BooleanField(default=False, verbose_name="view access")),
            ],
            options={
                "verbose_name": "removed member",
                "verbose_name_plural": "removed members",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("session", "user"), name="one_removal_a_person"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Message",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("text", models.TextField(verbose_name="text")),
                ("client_id", models.CharField(max_length=64, verbose_name="client ID")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="sent")),
                (
                    "author",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
                (
                    "run",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="message",
                        to="agents.run",
                        verbose_name="run",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="messages",
                        to="chat.chatsession",
                        verbose_name="chat",
                    ),
                ),
                (
                    "agent_name",
                    models.CharField(
                        blank=True,
                        db_default="",
                        help_text="The agent chosen to answer, if any.",
                        max_length=64,
                        verbose_name="agent name",
                    ),
                ),
                (
                    "place",
                    models.IntegerField(
                        blank=True,
                        help_text="Empty if the message isn't queued.",
                        null=True,
                        verbose_name="queue position",
                    ),
                ),
            ],
            options={
                "verbose_name": "message",
                "verbose_name_plural": "messages",
                "ordering": ["pk"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("author", "client_id"), name="one_message_a_client_id"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("place__isnull", False)),
                        fields=("session", "place"),
                        name="one_message_a_place",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("place", None), ("run", None), _connector="OR"),
                        name="no_run_while_it_waits",
                    ),
                ],
            },
        ),
    ]
