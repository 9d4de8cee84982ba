"""Arguments of commands that name rows."""

from django.core.management import CommandError

from agents.models import Agent


def find_agent(name: str) -> Agent | None:
    """Return an enabled agent, or None without a name; raise CommandError."""
    if not name:
        return None
    try:
        return Agent.objects.get(name=name, enabled=True)
    except Agent.DoesNotExist as error:
        names = ", ".join(Agent.objects.filter(enabled=True).values_list("name", flat=True))
        raise CommandError(
            f"There is no agent named {name!r}. Available agents: {names}."
        ) from error
