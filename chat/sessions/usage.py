"""How many messages users have sent, for their quotas."""

from typing import Any

from agents.access import quota_limits, quota_usage, quotas
from agents.models import Run
from chat.models import Message

MESSAGE_USAGE = quota_usage.UsageSource(
    measure="messages",
    rows=lambda: Message.objects.exclude(run__road=Run.IMPORTED),
    user="author",
    at="created_at",
)


def keep_messages(instance: Message, origin: Any, **_signal: Any) -> None:
    """Count a message that is about to be deleted until the end of the month."""
    if not quota_limits.is_any_set() or _is_imported(instance):
        return
    quotas.keep_usage(instance.author_id, instance.created_at, origin, messages=1)


def _is_imported(message: Message) -> bool:
    return Run.objects.filter(message=message, road=Run.IMPORTED).exists()
