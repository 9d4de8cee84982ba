import secrets

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand
from django.utils import timezone

from agents import samples
from agents.models import Agent, GuardrailPattern, ToolRegistration

TOOLS = ["calculator", "database", "search"]


class Command(BaseCommand):
    help = "Makes what a first visit needs: an account, an agent, its tools and the samples."

    def handle(self, **options) -> None:
        make_agent()
        make_guardrails()
        samples.load(timezone.localdate())
        name = settings.ENVIRONMENT.admin_name
        if (password := make_account()) is not None:
            self.stdout.write(f"Account   {name}, password {password}")
        else:
            self.stdout.write("Account   as before; forgotten: manage.py changepassword NAME")


def make_account() -> str | None:
    """The first account and its password; None where there is somebody already."""
    people = get_user_model().objects
    if people.exists():
        return None
    given = settings.ENVIRONMENT.admin_password
    password = given.get_secret_value() if given else secrets.token_urlsafe(9)
    people.create_superuser(settings.ENVIRONMENT.admin_name, password=password)
    return password if given is None else "as given in ASHIATO_ADMIN_PASSWORD"


def make_agent() -> None:
    """Only where there is none: what an administrator changed stays changed."""
    if Agent.objects.exists():
        return
    tools = [ToolRegistration.objects.get_or_create(name=name)[0] for name in TOOLS]
    agent = Agent.objects.create(
        name="helper",
        description="Calculates, looks up documents and asks the shop's database.",
        is_default=True,
    )
    agent.tools.set(tools)


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
