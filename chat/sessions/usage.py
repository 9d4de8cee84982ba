"""How many messages users have sent, for their quotas."""

from typing import Any

from agents.metering.budgets import Payer, recorded, starts
from agents.models import Run
from chat.models import Message

MESSAGE_USAGE = recorded.UsageSource(
    measure="messages",
    rows=lambda: Message.objects.exclude(run__route=Run.IMPORTED),
    user="author",
    at="created_at",
)


def keep_messages(instance: Message, origin: Any, **_signal: Any) -> None:
    """Count a message before it is deleted, so that deleting resets no limit."""
    starts.keep_usage(Payer(user=instance.author_id), origin)
