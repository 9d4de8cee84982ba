"""Who can read and write in a chat."""

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy

from agents.db.compiled_queries import compiled_query
from chat.models import ChatSession, Member

READ_ONLY_MESSAGE = gettext_lazy("You have read-only access to this chat.")


def guests(session: ChatSession) -> QuerySet[Member]:
    """Return all members but the owner."""
    return session.members.exclude(user=session.user_id)


def has_members(session: ChatSession) -> bool:
    """Whether the chat is or was shared: what others wrote stays."""
    return session.is_shared or bool(_members(session.pk))


@compiled_query
def _members(session: int) -> QuerySet[Member, tuple[int]]:
    return Member.objects.filter(session=session).order_by().values_list("pk")[:1]


def may_write(session: ChatSession, user: User) -> bool:
    """Whether the user, who can see the chat, can write in it."""
    return session.user_id == user.pk or bool(_writers(session.pk, user.pk))


@compiled_query
def _writers(session: int, user: int) -> QuerySet[Member, tuple[int]]:
    members = Member.objects.filter(session=session, user=user, may_write=True)
    return members.order_by().values_list("pk")
