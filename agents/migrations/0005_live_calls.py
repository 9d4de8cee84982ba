"""Questions of running tools, and whether MCP servers can use an agent's model."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0004_attachments"),
    ]

    operations = [
        migrations.AddField(
            model_name="agent",
            name="allows_sampling",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="When on, a server can have this agent's model answer requests during a tool call (sampling), within the run's limits. When off, such requests are refused.",
                verbose_name="MCP servers can use the model",
            ),
        ),
        migrations.AlterField(
            model_name="approval",
            name="why",
            field=models.CharField(
                choices=[
                    ("agent", "This agent requires approval for every tool call."),
                    ("tool", "This tool can make changes, so it requires approval."),
                    (
                        "unknown",
                        "The server stopped during this call. It may already have completed.",
                    ),
                    ("plan", "This agent's plan requires approval before it runs."),
                    ("step", "The next steps require approval."),
                    ("question", "The run needs an answer to continue."),
                    (
                        "sharing",
                        "This question will be sent to experts. They see only the question.",
                    ),
                    ("elicitation", "A running tool needs information from you."),
                ],
                default="tool",
                max_length=12,
                verbose_name="reason for request",
            ),
        ),
    ]
