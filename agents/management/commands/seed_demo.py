"""Creates the first account, the built-in tools and the sample data, once each."""

import secrets
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.catalog import agent_versions
from agents.catalog.samples import sample_data, sample_questions
from agents.catalog.tools import databases, tool_factory
from agents.engine.loop import AskPersonTool
from agents.models import Agent, GuardrailPattern, ToolRegistration

# The reporter's output schema: a table with a heading and an optional remark.
REPORT = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "description": "What the table shows."},
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
            "description": "A remark on the table; null if there is none.",
        },
    },
    "required": ["title", "rows"],
    "additionalProperties": False,
}

FROM_DOCUMENTS = """\
You are librarian. Answer only from the documents: search them, and cite passages by their
numbers in brackets. If the documents don't contain the answer, say so. Answer briefly, in
Markdown, and in the language of the question."""


class Command(BaseCommand):
    help = "Creates the first account, the sample agents and tools, and the sample data."

    def handle(self, **options: Any) -> None:
        try:
            make_agents()
        except ImproperlyConfigured as error:
            raise CommandError(error) from error
        agent_versions.save_first()
        make_guardrails()
        sample_data.load(timezone.localdate())
        name = settings.ENVIRONMENT.admin_name
        if (password := make_account()) is not None:
            self.stdout.write(f"Account   {name}, password {password}")
        else:
            self.stdout.write("Account   exists (new password: manage.py changepassword NAME)")


def make_account() -> str | None:
    """Create the first account; return its password, or None if there are accounts."""
    users = get_user_model().objects
    if users.exists():
        return None
    configured = settings.ENVIRONMENT.admin_password
    password = configured.get_secret_value() if configured else secrets.token_urlsafe(9)
    users.create_superuser(settings.ENVIRONMENT.admin_name, password=password)
    return password if configured is None else "from ASHIATO_ADMIN_PASSWORD"


def make_agents() -> None:
    """Create a row per tool; agents only if there are none, so that changes stay."""
    make_tools()
    if Agent.objects.exists():
        return
    helper = make_helper()
    careful = Agent.objects.create(
        name="careful",
        description=_("Like helper, but every tool call requires your approval."),
        auto_execute_tools=False,
    )
    reporter = Agent.objects.create(
        name="reporter",
        description=_("Answers with a table in a fixed format."),
        output_schema=REPORT,
    )
    lead = Agent.objects.create(
        name="lead", description=_("Hands off tasks to helper, careful and reporter.")
    )
    planner = Agent.objects.create(
        name="planner",
        description=_("Writes a plan, runs it and checks each result."),
        mode=Agent.Mode.PLAN,
    )
    librarian = Agent.objects.create(
        name="librarian",
        description=_("Answers only from the documents and cites them."),
        instructions=FROM_DOCUMENTS,
        dialect=Agent.Dialect.REACT,
    )
    panel = Agent.objects.create(
        name="panel",
        description=_("Asks helper and librarian in parallel and compares their answers."),
        mode=Agent.Mode.PANEL,
    )
    careful.tools.set(helper.tools.all())
    reporter.tools.set(helper.tools.all())
    librarian.tools.set(helper.tools.filter(name__in=["search", "read_document"]))
    lead.handoffs.set([helper, careful, reporter])
    panel.handoffs.set([helper, librarian])
    planner.tools.set(ToolRegistration.objects.filter(name__in=tool_factory.usable_names()))
    for agent in (careful, reporter, lead, planner, librarian, panel):
        agent.example_questions = "\n".join(map(_, sample_questions.BY_AGENT[agent.name]))
        agent.save(update_fields=["example_questions"])


def make_tools() -> None:
    rows = [ToolRegistration(name=name) for name in tool_factory.installed_names()]
    ToolRegistration.objects.bulk_create(rows, ignore_conflicts=True)
    databases.add_sample()


def make_helper() -> Agent:
    helper = Agent.objects.create(
        name="helper",
        description=_(
            "Calculates, searches the documents and queries the sample shop's database."
        ),
        is_default=True,
        allows_model_choice=True,
        allows_parameter_choice=True,
    )
    # Only built-in tools: an administrator decides which agents use the installation's own.
    usable = ToolRegistration.objects.filter(name__in=tool_factory.usable_names())
    # Small questions shouldn't be answered with a question.
    helper.tools.set(usable.exclude(name=AskPersonTool.name))
    return helper


def make_guardrails() -> None:
    if GuardrailPattern.objects.exists():
        return
    GuardrailPattern.objects.create(
        name=_("Private keys"),
        pattern="-----BEGIN [A-Z ]*PRIVATE KEY-----",
        stage=GuardrailPattern.Stage.INPUT,
        message=_("This looks like a private key. It wasn't sent to the model."),
    )
    GuardrailPattern.objects.create(
        name=_("Instruction override"),
        pattern=r"(?i)\b(ignore|disregard) (all |any )?(previous|earlier|above) instructions\b",
        stage=GuardrailPattern.Stage.INPUT,
        action=GuardrailPattern.Action.WARN,
        message=_("This asks the agent to ignore its instructions."),
    )
