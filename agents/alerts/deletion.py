"""What happens to rules when their agents are deleted."""

from typing import Any

from agents.models import Agent

from .models import AlertRule


def disable_rules_of(sender: type[Agent], instance: Agent, **more: Any) -> None:
    """Disable the rules of a deleted agent only, which would otherwise apply to all agents."""
    for rule in AlertRule.objects.filter(agents=instance):
        # Removed now, because several agents may be deleted at once.
        rule.agents.remove(instance)
        if not rule.agents.exists():
            AlertRule.objects.filter(pk=rule.pk).update(enabled=False)
