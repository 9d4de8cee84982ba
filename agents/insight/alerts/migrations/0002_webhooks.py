import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import agents.models.secret


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0018_triggers"),
        ("alerts", "0001_tables"),
        ("problems", "0002_longer_messages"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="alertchannel",
            name="agent",
            field=models.ForeignKey(
                blank=True,
                help_text="Leave empty for all agents.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="agents.agent",
                verbose_name="agent",
            ),
        ),
        migrations.AddField(
            model_name="alertchannel",
            name="changed_at",
            field=models.DateTimeField(auto_now=True),
        ),
        migrations.AddField(
            model_name="alertchannel",
            name="description",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                max_length=200,
                verbose_name="description",
            ),
        ),
        migrations.AddField(
            model_name="alertchannel",
            name="events",
            field=models.JSONField(
                blank=True,
                db_default=models.Value([], models.JSONField()),
                default=list,
                help_text="Sent without a rule, for every run. Alert rules can use the webhook, too.",
                verbose_name="events",
            ),
        ),
        migrations.AddField(
            model_name="alertchannel",
            name="failing_since",
            field=models.DateTimeField(
                blank=True, editable=False, null=True, verbose_name="failing since"
            ),
        ),
        migrations.AddField(
            model_name="alertchannel",
            name="owner",
            field=models.ForeignKey(
                blank=True,
                editable=False,
                help_text="The user whose runs it reports; empty for the installation.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="webhooks",
                to=settings.AUTH_USER_MODEL,
                verbose_name="owner",
            ),
        ),
        migrations.AddField(
            model_name="alertchannel",
            name="paused_at",
            field=models.DateTimeField(
                blank=True, editable=False, null=True, verbose_name="paused"
            ),
        ),
        migrations.AddField(
            model_name="alertchannel",
            name="previous_secret",
            field=agents.models.secret.EncryptedTextField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                verbose_name="previous signing secret",
            ),
        ),
        migrations.AddField(
            model_name="alertchannel",
            name="previous_until",
            field=models.DateTimeField(
                blank=True,
                editable=False,
                null=True,
                verbose_name="previous secret works until",
            ),
        ),
        migrations.AddField(
            model_name="alertchannel",
            name="with_answer",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Adds the answer to “Run finished”, with personal data masked.",
                verbose_name="include answers",
            ),
        ),
        migrations.AddField(
            model_name="delivery",
            name="key",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="What happened, so that it is sent once to each recipient.",
                max_length=120,
            ),
        ),
        migrations.AddField(
            model_name="delivery",
            name="responses",
            field=models.JSONField(
                blank=True,
                db_default=models.Value([], models.JSONField()),
                default=list,
                help_text="What a webhook's receiver answered to each attempt.",
                verbose_name="responses",
            ),
        ),
        migrations.AlterField(
            model_name="alertchannel",
            name="name",
            field=models.CharField(max_length=64, null=True, unique=True, verbose_name="name"),
        ),
        migrations.AlterField(
            model_name="alertchannel",
            name="secret",
            field=agents.models.secret.EncryptedTextField(
                blank=True, editable=False, verbose_name="signing secret"
            ),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="event",
            field=models.CharField(
                choices=[
                    ("problem.new", "New problem"),
                    ("problem.reopened", "Problem opened again"),
                    ("problem.spiking", "Problem spiking"),
                    ("schedule.waiting", "Scheduled workflow pending approval"),
                    ("collection.shared", "Collection shared"),
                    ("summary", "Summary"),
                    ("run.finished", "Run finished"),
                    ("approval.waiting", "Approval pending"),
                    ("guardrail.hit", "Guardrail hit"),
                    ("problem.opened", "Problem opened"),
                    ("budget.warning", "Usage limit almost reached"),
                    ("webhook.paused", "Webhook paused"),
                    ("test", "Test"),
                ],
                max_length=20,
                verbose_name="event",
            ),
        ),
        migrations.AlterField(
            model_name="notification",
            name="event",
            field=models.CharField(
                choices=[
                    ("problem.new", "New problem"),
                    ("problem.reopened", "Problem opened again"),
                    ("problem.spiking", "Problem spiking"),
                    ("schedule.waiting", "Scheduled workflow pending approval"),
                    ("collection.shared", "Collection shared"),
                    ("summary", "Summary"),
                    ("run.finished", "Run finished"),
                    ("approval.waiting", "Approval pending"),
                    ("guardrail.hit", "Guardrail hit"),
                    ("problem.opened", "Problem opened"),
                    ("budget.warning", "Usage limit almost reached"),
                    ("webhook.paused", "Webhook paused"),
                    ("test", "Test"),
                ],
                max_length=20,
                verbose_name="event",
            ),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.UniqueConstraint(
                condition=models.Q(("key", ""), _negated=True),
                fields=("channel", "event", "key", "address"),
                name="one_delivery_an_event",
            ),
        ),
    ]
