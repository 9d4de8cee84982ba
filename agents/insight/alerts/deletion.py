"""What happens to rules when their agents are deleted."""

from collections.abc import Iterable
from typing import Any

from agents.access import audit
from agents.access.audit import request_context
from agents.console.admin_classes import deleted_rows
from agents.models import Agent

from .models import AlertRule


def disable_rules_of(sender: type[Agent], instance: Agent, **options: Any) -> None:
    """Disable the rules of a deleted agent only, which would otherwise apply to all agents."""
    for rule in AlertRule.objects.filter(agents=instance):
        # Removed now, because several agents may be deleted at once.
        rule.agents.remove(instance)
        if rule.enabled and not rule.agents.exists():
            AlertRule.objects.filter(pk=rule.pk).update(enabled=False)
            changes = {"enabled": [True, False]}
            actor = request_context.actor()
            audit.record(actor, audit.CHANGED, rule, name=rule.name, changes=changes)


def rules_to_disable(
    sender: type[Agent], rows: Iterable[Agent], **options: Any
) -> list[dict[str, Any]]:
    """Return the rules that deleting these agents disables, so that an undo enables them."""
    return deleted_rows.rules_to_disable(AlertRule, rows)
