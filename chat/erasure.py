"""Everything of a person, taken away: what they said, what was made of it, and their name.

Each bit is a transaction of its own, and none depends on a later one: whoever is cut off in
the middle begins again, and finds less. The account goes last.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.auth import SESSION_KEY, get_user_model
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from agents import audit, database, runs
from agents.engine.events import Type
from agents.models import (
    AgentStep,
    Approval,
    AuditEntry,
    AuditPerson,
    Membership,
    Run,
    RunEvent,
    Schedule,
)
from agents.people import roles, visits
from agents.review.models import Comment, Note, Rating
from chat import queue, removal, sharing
from chat.models import ChatSession, Message

GONE = "‹…›"
A_PAGE = 200
# What is shorter may be anybody's: it goes only where it stands alone.
TELLING = 12
HELD = {Type.RUN_STARTED, Type.STEP_STARTED, Type.STEP, Type.STATUS, Type.HANDOFF}


class NotErased(Exception):
    """This person stays; the text says why, to whoever wanted them gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One kind of thing, and how many there are."""

    what: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What goes, and what stays without a name."""

    goes: list[Line]
    stays: list[Line]


def plan(user: Any) -> Plan:
    own, said = ChatSession.objects.owned_by(user), Message.objects.filter(author=user)
    theirs = Run.objects.filter(_of(user))
    return Plan(
        goes=[
            Line(what=_("Sessions, with all that was said in them"), count=own.count()),
            Line(
                what=_("of these shared with others"), count=own.filter(is_shared=True).count()
            ),
            Line(
                what=_("Messages in sessions of others"),
                count=said.exclude(session__user=user).count(),
            ),
            Line(what=_("Runs"), count=theirs.count()),
            Line(what=_("Steps"), count=AgentStep.objects.filter(run__in=theirs).count()),
            Line(what=_("Events"), count=RunEvent.objects.filter(run__in=theirs).count()),
            Line(what=_("Ratings"), count=Rating.objects.filter(user=user).count()),
            Line(what=_("Comments"), count=Comment.objects.filter(author=user).count()),
            Line(what=_("Schedules"), count=Schedule.objects.filter(user=user).count()),
        ],
        stays=[
            Line(
                what=_("Decisions about calls of others"),
                count=_decided(user).count(),
            ),
            Line(
                what=_("Notes on runs of others"),
                count=Note.objects.filter(author=user).exclude(run__in=theirs).count(),
            ),
            Line(
                what=_("Entries of the audit log"),
                count=AuditEntry.objects.filter(_about(user)).count(),
            ),
        ],
    )


async def erase(user: Any, by: Any) -> None:
    """All of it: nothing new begins, what runs is stopped, and then it goes, bit by bit."""
    await database.ask(begin, user, by)
    async for run in Run.objects.live().filter(_of(user)):
        await runs.stop(run)
    await database.ask(finish, user)


def check(user: Any) -> None:
    """Raises NotErased for the last one who could let anybody in again."""
    with transaction.atomic():
        is_last = roles.is_last_administrator(user)
    if is_last:
        raise NotErased(_("This is the last administrator: make somebody else one first."))


def begin(user: Any, by: Any) -> None:
    """From now on they are out, and it is known that they leave."""
    with transaction.atomic():
        check(user)
        person = audit.person(user)
        is_new = person.leaves_at is None
        AuditPerson.objects.filter(pk=person.pk).update(leaves_at=timezone.now())
        get_user_model().objects.filter(pk=user.pk).update(is_active=False)
        Schedule.objects.filter(user=user).update(enabled=False)
        if is_new:
            audit.record(by, audit.ERASURE_BEGUN, person)
    _end_visits(user)


def finish(user: Any) -> None:
    """What is left, to the end."""
    for chat in ChatSession.objects.owned_by(user):
        queue.clear(chat)
        while removal.shrink(chat):
            pass
    _forget_words(user)
    while removal.shrink_runs(Run.objects.filter(_of(user))):
        pass
    _leave(user)
    _forget_decisions(user)
    with transaction.atomic():
        _forget_account(user)


def _of(user: Any) -> Q:
    """Their runs, and those in sessions of theirs, and what others ran again of these."""
    own = Q(user=user) | Q(message__session__user=user)
    return own | Q(origin__user=user) | Q(origin__message__session__user=user)


def _about(user: Any) -> Q:
    person = audit.person(user)
    return Q(person=person) | Q(subject=person.subject)


def _decided(user: Any) -> QuerySet[Approval]:
    return Approval.objects.filter(decided_by=user).exclude(run__user=user)


def _end_visits(user: Any) -> None:
    """Whatever browser they are signed in with; what is open in it closes."""
    visits.end(user.visits.all())
    last = ""
    while page := list(Session.objects.filter(pk__gt=last).order_by("pk")[:A_PAGE]):
        theirs = [row.pk for row in page if row.get_decoded().get(SESSION_KEY) == str(user.pk)]
        Session.objects.filter(pk__in=theirs).delete()
        last = page[-1].pk


def _forget_words(user: Any) -> None:
    """What they said to others is in what these were answered, and is taken out of it."""
    said = Message.objects.filter(author=user).exclude(session__user=user)
    for session in ChatSession.objects.filter(pk__in=said.values("session")):
        here = said.filter(session=session).select_related("run")
        words = {text for message in here for text in _words(message)}
        for run in Run.objects.filter(message__session=session).exclude(user=user):
            with transaction.atomic():
                _rewrite(run, words)
        while removal.shrink_runs(Run.objects.filter(message__in=here.values("pk"))):
            pass
        said.filter(session=session).delete()


def _words(message: Message) -> Iterable[str]:
    yield message.text
    if message.run is not None and message.run.answer:
        yield message.run.answer


def _rewrite(run: Run, words: set[str]) -> None:
    if (history := _without(run.history, words)) != run.history:
        Run.objects.filter(pk=run.pk).update(history=history)
    for step in run.steps.exclude(request=None):
        if (request := _without(step.request, words)) != step.request:
            AgentStep.objects.filter(pk=step.pk).update(request=request)
    for event in run.events.filter(type__in=HELD):
        if (data := _without(event.data, words)) != event.data:
            RunEvent.objects.filter(pk=event.pk).update(data=data)


def _without(value: Any, words: set[str]) -> Any:
    if isinstance(value, str):
        return GONE if value in words else _cleared(value, words)
    if isinstance(value, dict):
        return {name: _without(item, words) for name, item in value.items()}
    return [_without(item, words) for item in value] if isinstance(value, list) else value


def _cleared(text: str, words: set[str]) -> str:
    for word in words:
        if len(word) >= TELLING:
            text = text.replace(word, GONE)
    return text


def _leave(user: Any) -> None:
    """Sessions of others, whose pages are told."""
    Membership.objects.filter(user=user, member__session__user=user).delete()
    for chat in ChatSession.objects.shared_with(user):
        sharing.leave(chat, user)


def _forget_decisions(user: Any) -> None:
    """What was decided stays, for the run's sake; who decided it, and their words, do not."""
    for approval in _decided(user):
        with transaction.atomic():
            told = approval.run.events.filter(type=Type.APPROVAL_RESOLVED, data__by=user.pk)
            for event in told:
                data = event.data | {"by": None, "by_name": "", "reason": ""}
                RunEvent.objects.filter(pk=event.pk).update(data=data)
            Approval.objects.filter(pk=approval.pk).update(reason="", decided_by=None)


def _forget_account(user: Any) -> None:
    """The log keeps a token of which nobody knows whose it was."""
    person = audit.person(user)
    AuditPerson.objects.filter(pk=person.pk).update(name="", key="")
    kind = ContentType.objects.get_for_model(user)
    LogEntry.objects.filter(content_type=kind, object_id=str(user.pk)).delete()
    user.delete()
    audit.record(None, audit.PERSON_ERASED, person)
