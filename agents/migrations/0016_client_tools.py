from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0015_oauth_apps")]
    operations = [
        migrations.AlterField(
            model_name="approval",
            name="why",
            field=models.CharField(
                choices=[
                    ("agent", "This agent requires approval for every tool call."),
                    ("tool", "This tool requires approval."),
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
                    (
                        "untrusted",
                        "This run has read text that could contain instructions to the model.",
                    ),
                    ("budget", "This run has reached one of its limits."),
                    (
                        "client",
                        "The program that asked calls this function and returns its result.",
                    ),
                ],
                default="tool",
                max_length=12,
                verbose_name="reason for request",
            ),
        ),
    ]
