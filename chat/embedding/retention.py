"""Deletes visitors’ conversations and accounts after the days of their embedded chat."""

import time
from datetime import timedelta

from django.db.models import Exists, OuterRef
from django.utils import timezone

from agents.access.audit import request_context
from agents.access.visitors import visitor_accounts
from agents.db.periodic import periodic
from agents.models import Embed, EmbedVisitor
from chat.models import ChatSession
from chat.people_data.retention import PAUSE_SECONDS, protected_runs
from chat.sessions import batched_delete

# Of visitors whose embedded chat was deleted: it can be restored for so long.
LEFT_DAYS = 30
UNUSED_FOR = timedelta(days=1)


@periodic("embedded chats", every=3_600, once=True)
def delete_old() -> None:
    """Delete what is too old; what is under review or saved as an example stays."""
    days_by_embed = dict(Embed.objects.values_list("pk", "retention_days"))
    embeds = set(EmbedVisitor.objects.order_by().values_list("embed", flat=True).distinct())
    for embed in embeds:
        days = LEFT_DAYS if embed is None else days_by_embed.get(embed, LEFT_DAYS)
        cutoff = timezone.now() - timedelta(days=days)
        users = EmbedVisitor.objects.filter(embed=embed).values("user")
        chats = ChatSession.objects.filter(user__in=users, updated_at__lt=cutoff)
        for chat in chats.exclude(messages__run__in=protected_runs(cutoff)).order_by("pk"):
            while batched_delete.delete_session_batch(chat, cutoff):
                time.sleep(PAUSE_SECONDS)
    chats = ChatSession.objects.filter(user=OuterRef("pk"))
    unused_since = timezone.now() - UNUSED_FOR
    unused = visitor_accounts().filter(embed_visit__last_used_at__lt=unused_since)
    for user in unused.exclude(Exists(chats)).order_by("pk"):
        with request_context.as_system():
            user.delete()
