"""Which runs, topics and decisions an erasure concerns."""

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from agents.access import audit
from agents.models import Approval, Run
from chat.models import ChatSession, Message


def own_topics(user: User) -> set[str]:
    """Return the topics of the user's chats, and of runs outside chats."""
    outside = Run.objects.filter(runs_filter(user)).filter(message=None)
    topics = set(outside.values_list("topic", flat=True))
    return topics | {chat.topic for chat in ChatSession.objects.filter(user=user)}


def shared_topics(user: User) -> set[str]:
    """Return topics in which the user wrote or decided something."""
    messages = Message.objects.filter(author=user).exclude(session__user=user)
    pks = set(messages.values_list("session", flat=True))
    # Deleted messages are in a chat of their own until they are erased.
    deleted = ChatSession.objects.exclude(deleted_at=None)
    removals = deleted.filter(options__has_key=ChatSession.TAKEN_FROM)
    origins = {row.pk: row.options[ChatSession.TAKEN_FROM]["chat"] for row in removals}
    pks |= {origins[pk] for pk in pks if pk in origins}
    pks |= {pk for pk, origin in origins.items() if origin in pks}
    chats = ChatSession.objects.filter(pk__in=pks)
    shared = Run.objects.filter(message__session__in=chats)
    decided = Run.objects.filter(approvals__decided_by=user)
    topics = set((shared | decided).values_list("topic", flat=True))
    return topics | {chat.topic for chat in chats}


def related_runs(user: User, topics: Iterable[str] = ()) -> set[int]:
    """Return other users' runs that may repeat the texts: shared ones and their reruns."""
    all_topics = {*topics, *shared_topics(user)}
    judged = Q(comments__author=user) | Q(review_notes__author=user) | Q(ratings__user=user)
    judged |= Q(review__flagged_by=user) | Q(review__corrected_by=user)
    runs = Run.objects.filter(Q(topic__in=all_topics) | judged)
    related = set(runs.exclude(runs_filter(user)).values_list("pk", flat=True))
    new = related
    while new:
        reruns = Run.objects.filter(origin__in=new).exclude(runs_filter(user))
        new = set(reruns.values_list("pk", flat=True)) - related
        related |= new
    return related


def runs_filter(user: User) -> Q:
    """Select the user's runs, runs in their chats, and reruns of these."""
    own = Q(user=user) | Q(message__session__user=user)
    return own | Q(origin__user=user) | Q(origin__message__session__user=user)


def audit_filter(user: User) -> Q:
    person = audit.person(user)
    return Q(person=person) | Q(subject=person.subject)


def decisions(user: User) -> QuerySet[Approval]:
    return Approval.objects.filter(decided_by=user).exclude(run__user=user)
