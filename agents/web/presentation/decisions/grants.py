"""A user's standing permissions for display."""

from django.contrib.auth.models import User

from agents.engine.text import shorten
from agents.models import Run, ToolGrant

MAX_TITLE_CHARS = 80


def grants_with_chats(user: User) -> list[ToolGrant]:
    """Return the permissions, each with the first question of its chat, if that exists."""
    grants = list(ToolGrant.objects.filter(user=user).select_related("tool"))
    topics = {grant.topic for grant in grants if grant.topic}
    runs = Run.objects.filter(user=user, topic__in=topics).order_by("-pk")
    titles = dict(runs.values_list("topic", "query"))
    for grant in grants:
        vars(grant)["chat_title"] = shorten(titles.get(grant.topic, ""), MAX_TITLE_CHARS)
    return grants
