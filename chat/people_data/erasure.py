"""Erases a user: their messages, everything derived from them, and their name.

Their text is replaced in other users' data first, while it is still known; then their own data
is deleted. Each part is its own transaction and depends on no later one, so an interrupted
erasure can be repeated. The account is deleted last.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.auth import SESSION_KEY, get_user_model
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import Model, Q, QuerySet
from django.db.models.functions import Length
from django.utils import timezone
from django.utils.translation import gettext as _

from agents import runs
from agents.access import audit
from agents.accounts import roles, sessions
from agents.accounts.models import Profile
from agents.db import database
from agents.engine.events import EventType
from agents.models import (
    AgentStep,
    AgentVersion,
    Approval,
    AuditEntry,
    AuditPerson,
    Membership,
    Run,
    RunAttachment,
    RunEvent,
    Schedule,
    ToolGrant,
)
from agents.review.models import Comment, Example, Label, Note, Rating, Review, SavedView
from chat.imports import jobs
from chat.messages import queue
from chat.models import ChatSession, Folder, Message, Prompt, PublicLink
from chat.sessions import batched_delete, branches, server_files
from chat.sharing import members

from . import free_space, quotations

PAGE_SIZE = 200
DECISION_WORDS = ("approved", "declined")


class ErasureRejected(Exception):
    """Raised when a user can't be erased; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureCount:
    """A kind of row and how many there are."""

    what: str
    count: int
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasurePlan:
    """What is deleted, and what stays without a name."""

    goes: list[ErasureCount]
    stays: list[ErasureCount]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was deleted, replaced and left.

    `storage` says whether the database has overwritten it.
    """

    removed: list[ErasureCount]
    replaced: list[ErasureCount]
    left: list[ErasureCount]
    storage: str

    @property
    def sentences(self) -> list[str]:
        """Return the report as sentences."""
        parts = [
            (_("Removed: %(found)s."), self.removed),
            (_("Text removed from other users' data: %(found)s."), self.replaced),
            (
                _("The configuration still quotes this user: %(found)s. Edit it manually."),
                self.left,
            ),
        ]
        sentences = [
            heading % {"found": _format_counts(lines)}
            for heading, lines in parts
            if _format_counts(lines)
        ]
        return [*sentences, *([_storage_messages()[self.storage]] if self.storage else [])]

    @property
    def facts(self) -> dict[str, Any]:
        """Return the counts for the audit log, without the user's name."""
        kinds = {"removed": self.removed, "replaced": self.replaced, "left": self.left}
        return {name: {line.kind: line.count for line in kinds[name]} for name in kinds}


def _format_counts(lines: list[ErasureCount]) -> str:
    return ", ".join(f"{line.what} ({line.count:,})" for line in lines if line.count)


def _storage_messages() -> dict[str, str]:
    return {
        free_space.OVERWRITTEN: _(
            "The database and its log have been overwritten where this data was stored."
        ),
        free_space.VACUUMED: _(
            "PostgreSQL has freed the space and will overwrite it with new rows."
        ),
        free_space.LATER: _(
            "The database was busy, so the rest of its log will be overwritten later."
        ),
    }


def plan(user: User) -> ErasurePlan:
    own, messages = ChatSession.objects.filter(user=user), Message.objects.filter(author=user)
    theirs = Run.objects.filter(_runs_filter(user))
    return ErasurePlan(
        goes=[
            ErasureCount(what=_("Chats, including all messages"), count=own.count()),
            ErasureCount(
                what=_("of which shared with others"), count=own.filter(is_shared=True).count()
            ),
            ErasureCount(
                what=_("Messages in other users' chats"),
                count=messages.exclude(session__user=user).count(),
            ),
            ErasureCount(what=_("Runs"), count=theirs.count()),
            ErasureCount(
                what=_("Steps"), count=AgentStep.objects.filter(run__in=theirs).count()
            ),
            ErasureCount(
                what=_("Events"), count=RunEvent.objects.filter(run__in=theirs).count()
            ),
            ErasureCount(
                what=_("Attachments"),
                count=RunAttachment.objects.filter(run__in=theirs).count(),
            ),
            ErasureCount(what=_("Ratings"), count=Rating.objects.filter(user=user).count()),
            ErasureCount(what=_("Comments"), count=Comment.objects.filter(author=user).count()),
            ErasureCount(what=_("Prompts"), count=Prompt.objects.filter(user=user).count()),
            ErasureCount(what=_("Schedules"), count=Schedule.objects.filter(user=user).count()),
            ErasureCount(
                what=_("Folders that MCP servers have for this user and their chats"),
                count=server_files.count_for_person(user, _own_topics(user)),
            ),
        ],
        stays=[
            ErasureCount(
                what=_("Decisions on other users' tool calls"),
                count=_decisions(user).count(),
            ),
            ErasureCount(
                what=_("Notes on other users' runs"),
                count=Note.objects.filter(author=user).exclude(run__in=theirs).count(),
            ),
            ErasureCount(
                what=_("Audit log entries"),
                count=AuditEntry.objects.filter(_audit_filter(user)).count(),
            ),
        ],
    )


async def erase(user: User, by: User | None) -> Report:
    """Erase a user: block new runs, stop live ones, then delete in batches.

    Runs in chats they took part in are stopped too, because they would repeat the text.
    """
    await database.run(begin, user, by)
    topics = await database.run(_topics, user)
    near = Run.objects.running().filter(topic__in=topics)
    async for run in (Run.objects.live().filter(_runs_filter(user)) | near).distinct():
        await runs.stop(run)
    return await database.run(finish, user)


def check(user: User) -> None:
    """Raise ErasureRejected for the last administrator."""
    with transaction.atomic():
        is_last = roles.is_last_administrator(user)
    if is_last:
        raise ErasureRejected(
            _("This is the last administrator. Make another user an administrator first.")
        )


def begin(user: User, by: User | None) -> None:
    """Deactivate the account and record that erasure has started."""
    with transaction.atomic():
        check(user)
        person = audit.person(user)
        is_new = person.leaves_at is None
        AuditPerson.objects.filter(pk=person.pk).update(leaves_at=timezone.now())
        get_user_model().objects.filter(pk=user.pk).update(is_active=False)
        Schedule.objects.filter(user=user).update(enabled=False)
        if is_new:
            audit.record(by, audit.ERASURE_STARTED, person)
    jobs.cancel_all(user)
    _end_sessions(user)


def finish(user: User) -> Report:
    """Erase everything that is left."""
    texts = _PersonTexts(user)
    topics = _own_topics(user)
    removed = [*_count_rows(user), *_count_server_folders(user, topics)]
    since = quotations.latest_pks()
    near = _related_runs(user)
    # Not in the rows the text is known from: an interrupted erasure needs them again.
    found = texts.redact(near, {}, but=_source_rows(user))
    _anonymize_decisions(user, texts)
    _anonymize_feedback(user)
    for chat in ChatSession.objects.filter(user=user):
        queue.clear(chat)
        while batched_delete.delete_session_batch(chat):
            pass
    elsewhere = Message.objects.filter(author=user)
    answered = Run.objects.filter(message__in=elsewhere.values("pk"))
    while batched_delete.delete_run_batch(answered):
        pass
    for session in set(elsewhere.values_list("session", flat=True)):
        with transaction.atomic():
            theirs = elsewhere.filter(session=session)
            branches.reattach_children(theirs.values_list("pk", flat=True), session)
            theirs.delete()
    while batched_delete.delete_run_batch(Run.objects.filter(_runs_filter(user))):
        pass
    # Runs started meanwhile were given the earlier history.
    found += texts.redact(near | _related_runs(user, texts.topics), since, but={})
    left = texts.left()
    _leave_sessions(user)
    pk = user.pk
    with transaction.atomic():
        _delete_account(user)
        # Without an actor: the entry for the start names them.
        person = texts.person
        lines = {"removed": removed, "replaced": _to_counts(found), "left": _to_counts(left)}
        audit.record(None, audit.PERSON_ERASED, person, **Report(**lines, storage="").facts)
    server_files.delete_for_person(pk, topics)
    return Report(**lines, storage=free_space.wipe(_table_names()))


def _table_names() -> set[str]:
    models: list[type[Model]] = [
        *quotations.TEXT_COLUMNS,
        RunAttachment,
        get_user_model(),
        Session,
    ]
    return {model._meta.db_table for model in models}


def _to_counts(found: Counter) -> list[ErasureCount]:
    return [
        ErasureCount(
            what=str(model._meta.verbose_name_plural), count=count, kind=model._meta.model_name
        )
        for model, count in found.items()
        if count
    ]


def _count_rows(user: User) -> list[ErasureCount]:
    """Count the rows that will be deleted."""
    theirs = Run.objects.filter(_runs_filter(user))
    own = ChatSession.objects.filter(user=user)
    rows: list[QuerySet[Any]] = [
        own,
        Message.objects.filter(Q(author=user) | Q(session__in=own)),
        theirs,
        AgentStep.objects.filter(run__in=theirs),
        RunEvent.objects.filter(run__in=theirs),
        RunAttachment.objects.filter(run__in=theirs),
        Approval.objects.filter(run__in=theirs),
        Rating.objects.filter(Q(user=user) | Q(run__in=theirs)),
        Comment.objects.filter(Q(author=user) | Q(run__in=theirs)),
        Note.objects.filter(run__in=theirs),
        Example.objects.filter(run__in=theirs),
        Schedule.objects.filter(user=user),
        SavedView.objects.filter(user=user),
        ToolGrant.objects.filter(user=user),
        Folder.objects.filter(user=user),
    ]
    return _to_counts(Counter({row.model: row.distinct().count() for row in rows}))


def _own_topics(user: User) -> set[str]:
    """Return the topics of the user's chats, and of runs outside chats."""
    outside = Run.objects.filter(_runs_filter(user)).filter(message=None)
    topics = set(outside.values_list("topic", flat=True))
    return topics | {chat.topic for chat in ChatSession.objects.filter(user=user)}


def _count_server_folders(user: User, topics: set[str]) -> list[ErasureCount]:
    count = server_files.count_for_person(user, topics)
    what = _("folders of MCP servers")
    return [ErasureCount(what=what, count=count, kind="mcpfolder")] if count else []


class _PersonTexts:
    """A user's texts, as far as known, and where to search for them."""

    def __init__(self, user: User) -> None:
        self.person, self.topics = audit.person(user), _topics(user)
        own = set(_authored_texts(user))
        own -= quotations.texts_by_others(user, own)
        runs = Run.objects.filter(message__author=user).exclude(message__session__user=user)
        answers = set(runs.exclude(answer="").values_list("answer", flat=True))
        name = user.get_username()
        self.near = quotations.QuotationMatcher(
            own | answers,
            phrases=[f"{name} {what}" for what in DECISION_WORDS],
            answers=dict(_decisions(user).values_list("call_id", "reason")),
        )
        self._far = quotations.QuotationMatcher(filter(quotations.is_distinctive, own))
        self._decided = list(
            _decisions(user).exclude(reason="").values("run", "step", "reason")
        )

    def redact(
        self, near: set[int], since: dict[Any, int], but: dict[type[Model], Q]
    ) -> Counter:
        """Replace the texts: all of them in related rows, long ones everywhere."""
        runs_, chats = (
            quotations.run_rows(sorted(near)),
            quotations.session_rows(self._session_pks),
        )
        found = quotations.redact_rows(self.near, chain(runs_, chats), but)
        found[RunEvent] += quotations.redact_deltas(self.near, sorted(near))
        found[AgentStep] += self._replace_answers()
        if self._far:
            hit: set[int] = set()
            found += quotations.redact_rows(self._far, quotations.all_rows(since), but, hit)
            found[RunEvent] += quotations.redact_deltas(self._far, sorted(hit - near))
        return found

    def left(self) -> Counter:
        return quotations.count_in_config(self._far) if self._far else Counter()

    @property
    def _session_pks(self) -> list[int]:
        named = (topic.partition(".") for topic in sorted(self.topics))
        return [int(pk) for kind, _dot, pk in named if kind == "chat" and pk.isdecimal()]

    def _replace_answers(self) -> int:
        """Replace answers to questions in their steps, even short ones."""
        count = 0
        for about in self._decided:
            steps = AgentStep.objects.filter(run=about["run"], number=about["step"])
            for step in steps.filter(observation__contains=about["reason"]):
                text = step.observation.replace(about["reason"], quotations.REDACTED)
                count += AgentStep.objects.filter(pk=step.pk).update(observation=text)
            events = RunEvent.objects.filter(run=about["run"], type=EventType.STEP)
            for event in events.filter(data__step=about["step"]):
                observation = str(event.data.get("observation", ""))
                data = {
                    **event.data,
                    "observation": observation.replace(about["reason"], quotations.REDACTED),
                }
                if observation and data != event.data:
                    RunEvent.objects.filter(pk=event.pk).update(data=data)
        return count


def _source_rows(user: User) -> dict[type[Model], Q]:
    """Return the rows the texts are known from, which are deleted or cleared later."""
    theirs = Run.objects.filter(_runs_filter(user)).values("pk")
    return {
        Message: Q(author=user) | Q(session__user=user),
        ChatSession: Q(user=user),
        PublicLink: Q(session__user=user),
        Run: Q(pk__in=theirs),
        RunEvent: Q(run__in=theirs),
        AgentStep: Q(run__in=theirs),
        Approval: Q(run__in=theirs) | Q(decided_by=user),
        Comment: Q(author=user),
        Rating: Q(user=user),
        Note: Q(author=user),
        Review: Q(flagged_by=user) | Q(corrected_by=user),
        Profile: Q(user=user),
        Prompt: Q(user=user),
    }


def _authored_texts(user: User) -> Iterator[str]:
    """Yield everything the user wrote that others may have seen."""
    runs_ = Run.objects.filter(user=user)
    masks = AgentStep.objects.filter(run__user=user, kind=AgentStep.Kind.GUARDRAIL)
    decided = Approval.objects.filter(decided_by=user)
    for rows, column in (
        (Message.objects.filter(author=user), "text"),
        (runs_, "query"),
        (decided, "reason"),
        (decided, "new_arguments"),
        (Comment.objects.filter(author=user), "text"),
        (Rating.objects.filter(user=user), "comment"),
        (Note.objects.filter(author=user), "text"),
        (Prompt.objects.filter(user=user), "text"),
        (Profile.objects.filter(user=user), "about_me"),
        (Profile.objects.filter(user=user), "answer_style"),
        (Review.objects.filter(flagged_by=user), "why"),
        (Review.objects.filter(corrected_by=user), "correction"),
    ):
        yield from rows.values_list(column, flat=True).iterator(PAGE_SIZE)
    for about in masks.values_list("action_input", flat=True).iterator(PAGE_SIZE):
        if isinstance(about, dict) and isinstance(about.get("text"), str):
            yield about["text"]
    for typed in decided.exclude(new_arguments="").values_list("new_arguments", flat=True):
        yield from _string_values(json.loads(typed))


def _string_values(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    items: Iterable[Any] = value.values() if isinstance(value, dict) else value
    if isinstance(value, dict | list):
        for item in items:
            yield from _string_values(item)


def _topics(user: User) -> set[str]:
    """Return topics in which the user wrote or decided something."""
    messages = Message.objects.filter(author=user).exclude(session__user=user)
    chats = ChatSession.objects.filter(pk__in=messages.values("session"))
    shared = Run.objects.filter(message__session__in=chats)
    decided = Run.objects.filter(approvals__decided_by=user)
    found = (shared | decided).values_list("topic", flat=True)
    return {*found, *(chat.topic for chat in chats)}


def _related_runs(user: User, topics: Iterable[str] = ()) -> set[int]:
    """Return other users' runs that may repeat the texts: shared ones and their reruns."""
    there = {*topics, *_topics(user)}
    judged = Q(comments__author=user) | Q(review_notes__author=user) | Q(ratings__user=user)
    judged |= Q(review__flagged_by=user) | Q(review__corrected_by=user)
    near = Run.objects.filter(Q(topic__in=there) | judged)
    found = set(near.exclude(_runs_filter(user)).values_list("pk", flat=True))
    newly = found
    while newly:
        again = Run.objects.filter(origin__in=newly).exclude(_runs_filter(user))
        newly = set(again.values_list("pk", flat=True)) - found
        found |= newly
    return found


def _runs_filter(user: User) -> Q:
    """Select the user's runs, runs in their chats, and reruns of these."""
    own = Q(user=user) | Q(message__session__user=user)
    return own | Q(origin__user=user) | Q(origin__message__session__user=user)


def _audit_filter(user: User) -> Q:
    person = audit.person(user)
    return Q(person=person) | Q(subject=person.subject)


def _decisions(user: User) -> QuerySet[Approval]:
    return Approval.objects.filter(decided_by=user).exclude(run__user=user)


def _end_sessions(user: User) -> None:
    """End all sessions of the user and close their pages."""
    sessions.end(user.visits.all())
    last = ""
    while page := list(Session.objects.filter(pk__gt=last).order_by("pk")[:PAGE_SIZE]):
        theirs = [row.pk for row in page if row.get_decoded().get(SESSION_KEY) == str(user.pk)]
        Session.objects.filter(pk__in=theirs).delete()
        last = page[-1].pk


def _anonymize_feedback(user: User) -> None:
    """Keep that something was reviewed, but not the author or their text."""
    Note.objects.filter(author=user).update(text=quotations.REDACTED, author=None)
    Review.objects.filter(flagged_by=user).exclude(why="").update(why=quotations.REDACTED)
    corrected = Review.objects.filter(corrected_by=user).exclude(correction="")
    corrected.update(correction=quotations.REDACTED)
    AgentVersion.objects.filter(author=user).update(note="")
    Label.objects.filter(author=user).annotate(size=Length("name")).filter(
        size__gte=quotations.MIN_TEXT_CHARS
    ).delete()
    for example in Example.objects.filter(saved_by=user):
        name = f"{quotations.REDACTED} {example.pk}"
        Example.objects.filter(pk=example.pk).update(name=name, expected="", saved_by=None)


def _leave_sessions(user: User) -> None:
    """Leave other users' chats and notify their pages."""
    Membership.objects.filter(user=user, member__session__user=user).delete()
    for chat in ChatSession.objects.shared_with(user):
        members.leave(chat, user)


def _anonymize_decisions(user: User, texts: "_PersonTexts") -> None:
    """Keep decisions for the run's sake, but not who made them or their text."""
    for approval in _decisions(user):
        with transaction.atomic():
            events = approval.run.events.filter(
                type=EventType.APPROVAL_RESOLVED, data__by=user.pk
            )
            for event in events:
                data = event.data | {"by": None, "by_name": "", "reason": ""}
                RunEvent.objects.filter(pk=event.pk).update(data=data)
            Approval.objects.filter(pk=approval.pk).update(
                arguments=texts.near.without(approval.arguments),
                new_arguments=texts.near.without(approval.new_arguments),
                reason="",
                decided_by=None,
            )


def _delete_account(user: User) -> None:
    """Delete the account; the audit log keeps an anonymous token."""
    person = audit.person(user)
    AuditPerson.objects.filter(pk=person.pk).update(name="", key="")
    kind = ContentType.objects.get_for_model(user)
    LogEntry.objects.filter(content_type=kind, object_id=str(user.pk)).delete()
    user.delete()
