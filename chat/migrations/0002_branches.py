import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

BATCH_SIZE = 1_000


def link_messages(apps, schema_editor):
    """Make each posted message follow the one before it in its chat."""
    messages = apps.get_model("chat", "Message").objects
    posted = messages.filter(place=None).order_by("session_id", "pk")
    last, linked = (None, None), []
    for pk, session in posted.values_list("pk", "session_id").iterator(BATCH_SIZE):
        if session == last[0]:
            linked.append(messages.model(pk=pk, parent_id=last[1]))
        last = session, pk
        if len(linked) == BATCH_SIZE:
            messages.bulk_update(linked, ["parent"])
            linked = []
    messages.bulk_update(linked, ["parent"])


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0001_baseline"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="message",
            name="edited_at",
            field=models.DateTimeField(
                blank=True,
                help_text="When the text was corrected. The run has the original question.",
                null=True,
                verbose_name="edited",
            ),
        ),
        migrations.AddField(
            model_name="message",
            name="parent",
            field=models.ForeignKey(
                blank=True,
                help_text="Empty for the first message. Messages with the same one are branches.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="children",
                to="chat.message",
                verbose_name="previous message",
            ),
        ),
        migrations.CreateModel(
            name="BranchPosition",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "branch",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="chat.message",
                        verbose_name="branch",
                    ),
                ),
                (
                    "leaf",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="chat.message",
                        verbose_name="last message",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="branch_positions",
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
            ],
            options={
                "verbose_name": "branch position",
                "verbose_name_plural": "branch positions",
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("branch", None)),
                        fields=("session", "user"),
                        name="one_visible_leaf_a_person",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("branch__isnull", False)),
                        fields=("branch", "user"),
                        name="one_last_leaf_a_branch",
                    ),
                ],
            },
        ),
        migrations.RunPython(link_messages, migrations.RunPython.noop),
    ]
