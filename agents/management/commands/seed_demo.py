import secrets

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from agents.catalog import sample_data, tool_factory
from agents.engine.loop import AskPersonTool
from agents.models import Agent, GuardrailPattern, ToolRegistration

# What the reporter's answers look like: a table with a heading and, if need be, a remark.
REPORT = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "description": "What the table is about."},
        "rows": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "value": {"type": "number"}},
                "required": ["name", "value"],
                "additionalProperties": False,
            },
        },
        "note": {
            "type": ["string", "null"],
            "description": "What the rows do not say; null where there is nothing to add.",
        },
    },
    "required": ["title", "rows"],
    "additionalProperties": False,
}

FROM_DOCUMENTS = """\
You are librarian. You answer from the documents and from nothing else: search them, and cite
the passages by their numbers in brackets. Where they do not say it, say so. Answer in the
language of the question, in Markdown, and briefly."""


class Command(BaseCommand):
    help = "Creates the first account, the sample agents and tools, and the sample data."

    def handle(self, **options) -> None:
        try:
            make_agents()
        except ImproperlyConfigured as error:
            raise CommandError(error) from error
        make_guardrails()
        sample_data.load(timezone.localdate())
        name = settings.ENVIRONMENT.admin_name
        if (password := make_account()) is not None:
            self.stdout.write(f"Account   {name}, password {password}")
        else:
            self.stdout.write("Account   exists (new password: manage.py changepassword NAME)")


def make_account() -> str | None:
    """The first account and its password; None where there is somebody already."""
    people = get_user_model().objects
    if people.exists():
        return None
    given = settings.ENVIRONMENT.admin_password
    password = given.get_secret_value() if given else secrets.token_urlsafe(9)
    people.create_superuser(settings.ENVIRONMENT.admin_name, password=password)
    return password if given is None else "from ASHIATO_ADMIN_PASSWORD"


def make_agents() -> None:
    """A row for each tool; agents only where there are none: what was changed stays."""
    make_tools()
    if Agent.objects.exists():
        return
    helper = make_helper()
    careful = Agent.objects.create(
        name="careful",
        description="The same, but shows every call first and waits for your word.",
        auto_execute_tools=False,
    )
    reporter = Agent.objects.create(
        name="reporter",
        description="Answers as a table, in a fixed form.",
        output_schema=REPORT,
    )
    lead = Agent.objects.create(
        name="lead", description="Gives tasks to helper, careful and reporter."
    )
    planner = Agent.objects.create(
        name="planner",
        description="Writes a plan first, carries it out and checks what came of it.",
        mode=Agent.Mode.PLAN,
    )
    librarian = Agent.objects.create(
        name="librarian",
        description="Answers from the documents alone, and cites them.",
        instructions=FROM_DOCUMENTS,
        dialect=Agent.Dialect.REACT,
    )
    panel = Agent.objects.create(
        name="panel",
        description="Asks helper and librarian at once, and says where they differ.",
        mode=Agent.Mode.PANEL,
    )
    careful.tools.set(helper.tools.all())
    reporter.tools.set(helper.tools.filter(name__in=tool_factory.BUILT_IN_TOOLS))
    librarian.tools.set(helper.tools.filter(name="search"))
    lead.handoffs.set([helper, careful, reporter])
    panel.handoffs.set([helper, librarian])
    planner.tools.set(ToolRegistration.objects.filter(name__in=tool_factory.installed_names()))


def make_tools() -> None:
    rows = [ToolRegistration(name=name) for name in tool_factory.installed_names()]
    ToolRegistration.objects.bulk_create(rows, ignore_conflicts=True)


def make_helper() -> Agent:
    helper = Agent.objects.create(
        name="helper",
        description="Calculates, looks up documents and asks the shop's database.",
        is_default=True,
    )
    own = ToolRegistration.objects.filter(name__in=tool_factory.installed_names())
    # Whoever asks something small does not want to be asked back.
    helper.tools.set(own.exclude(name=AskPersonTool.name))
    return helper


def make_guardrails() -> None:
    if GuardrailPattern.objects.exists():
        return
    GuardrailPattern.objects.create(
        name="Private keys",
        pattern="-----BEGIN [A-Z ]*PRIVATE KEY-----",
        stage=GuardrailPattern.Stage.INPUT,
        message="This looks like a private key. It was not sent to the model.",
    )
    GuardrailPattern.objects.create(
        name="Instruction override",
        pattern=r"(?i)\b(ignore|disregard) (all |any )?(previous|earlier|above) instructions\b",
        stage=GuardrailPattern.Stage.INPUT,
        action=GuardrailPattern.Action.WARN,
        message="This asks the agent to forget its instructions.",
    )
