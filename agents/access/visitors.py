"""Visitors of embedded chats: accounts with which nobody signs in."""

from django.contrib.auth.models import User
from django.db.models import QuerySet

from agents.db.compiled_queries import compiled_query
from agents.models import EmbedVisitor


def visitor_accounts() -> QuerySet[User]:
    return User.objects.filter(embed_visit__isnull=False)


def is_visitor(user: int) -> bool:
    """Whether the account with this id is a visitor's."""
    return bool(_visits_of(user))


@compiled_query
def _visits_of(user: int) -> QuerySet[EmbedVisitor, tuple[int]]:
    return EmbedVisitor.objects.filter(user=user).order_by().values_list("pk")
