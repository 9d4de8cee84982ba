"""Erases a user: their messages, everything derived from them, and their name.

Their text is replaced in other users' data first, while it is still known; then their own data
is deleted. Each part is its own transaction and depends on no later one, so an interrupted
erasure can be repeated. The account is deleted last.
"""

from django.contrib.admin.models import LogEntry
from django.contrib.auth import SESSION_KEY, get_user_model
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import Model
from django.db.models.functions import Length
from django.utils import timezone
from django.utils.translation import gettext as _

from agents import runs
from agents.access import audit
from agents.accounts.authentication import sessions
from agents.accounts.users import roles
from agents.catalog import mcp_servers
from agents.db import database
from agents.engine.events import EventType
from agents.knowledge.embeddings.queries import QUERIES
from agents.knowledge.retrieval import full_text
from agents.metering import caches
from agents.models import (
    AgentVersion,
    Approval,
    AuditPerson,
    CacheEntry,
    Chunk,
    ChunkVector,
    Deletion,
    DocumentPart,
    McpSignIn,
    Membership,
    Run,
    RunAttachment,
    RunEvent,
    Schedule,
    Trigger,
)
from agents.review.models import Example, Label, Note, Review
from agents.web.library import personal_data
from chat.messages import queue
from chat.models import ChatSession, Message
from chat.projects import membership
from chat.sessions import batched_delete, branches, server_files
from chat.sharing import members
from chat.transfer.imports import jobs

from . import erasure_report, erasure_scope, free_space, person_texts, quotations
from .erasure_report import Report
from .person_texts import PersonTexts
from .quotation_matcher import MIN_TEXT_CHARS, REDACTED
from .text_columns import TEXT_COLUMNS

PAGE_SIZE = 200
# Their tables are overwritten at the end.
WIPED_MODELS: list[type[Model]] = [
    *TEXT_COLUMNS,
    Chunk,
    ChunkVector,
    DocumentPart,
    RunAttachment,
    CacheEntry,
    Deletion,
    McpSignIn,
    User,
    Session,
]


class ErasureRejected(Exception):
    """Raised when a user can't be erased; the message says why."""


async def erase(user: User, by: User | None) -> Report:
    """Erase a user: block new runs, stop live ones, then delete in batches.

    Runs in chats they took part in are stopped too, because they would repeat the text.
    """
    await database.run(begin, user, by)
    topics = await database.run(erasure_scope.shared_topics, user)
    shared_runs = Run.objects.running().filter(topic__in=topics)
    async for run in (
        Run.objects.live().filter(erasure_scope.runs_filter(user)) | shared_runs
    ).distinct():
        await runs.stop(run)
    await mcp_servers.end_sign_ins_of_user(user)
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
        Trigger.objects.filter(user=user).update(enabled=False)
        user.webhooks.update(enabled=False, changed_at=timezone.now())
        if is_new:
            audit.record(by, audit.ERASURE_STARTED, person)
    jobs.cancel_all(user)
    # End all sessions of the user and close their pages.
    sessions.end(user.visits.all())
    last = ""
    while page := list(Session.objects.filter(pk__gt=last).order_by("pk")[:PAGE_SIZE]):
        theirs = [row.pk for row in page if row.get_decoded().get(SESSION_KEY) == str(user.pk)]
        Session.objects.filter(pk__in=theirs).delete()
        last = page[-1].pk


def finish(user: User) -> Report:
    """Erase everything that is left."""
    texts = PersonTexts(user)
    topics = erasure_scope.own_topics(user)
    removed = [
        *erasure_report.count_rows(user),
        *erasure_report.count_server_folders(user, topics),
    ]
    latest_pks = quotations.latest_pks()
    related_runs = erasure_scope.related_runs(user)
    # Not in the rows the text is known from: an interrupted erasure needs them again.
    replaced = texts.redact(related_runs, {}, excluded=person_texts.source_rows(user))
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
    while batched_delete.delete_run_batch(Run.objects.filter(erasure_scope.runs_filter(user))):
        pass
    # Runs started meanwhile were given the earlier history.
    replaced += texts.redact(
        related_runs | erasure_scope.related_runs(user, texts.topics), latest_pks, excluded={}
    )
    replaced += texts.redact_deleted(user)
    personal_data.erase(user)
    caches.clear()  # anything in it may quote them, and can be made again
    QUERIES.forget()
    remaining = texts.left()
    Membership.objects.filter(user=user, member__session__user=user).delete()
    for chat in ChatSession.objects.shared_with(user):
        members.leave(chat, user)
    membership.leave_all(user)
    pk = user.pk
    with transaction.atomic():
        # The audit log keeps an anonymous token.
        person = texts.person
        AuditPerson.objects.filter(pk=person.pk).update(name="", key="")
        content_type = ContentType.objects.get_for_model(user)
        LogEntry.objects.filter(content_type=content_type, object_id=str(pk)).delete()
        user.delete()
        # Without an actor: the entry for the start names them.
        counts = {
            "removed": removed,
            "replaced": erasure_report.to_counts(replaced),
            "left": erasure_report.to_counts(remaining),
        }
        audit.record(None, audit.PERSON_ERASED, person, **Report(**counts, storage="").facts)
    server_files.delete_for_person(pk, topics)
    return Report(**counts, storage=overwrite_deleted())


def overwrite_deleted() -> str:
    """Overwrite what the database still holds of erased users; return how far that went.

    Until then their erasure isn't finished, and another process continues it.
    """
    unfinished = AuditPerson.objects.filter(user=None, leaves_at__isnull=False)
    erased = list(unfinished.values_list("pk", flat=True))
    tables = {model._meta.db_table for model in WIPED_MODELS}
    is_index_clean = full_text.drop_deleted_words()
    storage = free_space.wipe({*tables, full_text.TABLE})
    if storage == free_space.OVERWRITTEN and not is_index_clean:
        storage = free_space.TOO_LARGE
    if storage != free_space.LATER:
        AuditPerson.objects.filter(pk__in=erased).update(leaves_at=None)
    return storage


def _anonymize_feedback(user: User) -> None:
    """Keep that something was reviewed, but not the author or their text."""
    Note.objects.filter(author=user).update(text=REDACTED, author=None)
    Review.objects.filter(flagged_by=user).exclude(why="").update(why=REDACTED)
    corrected = Review.objects.filter(corrected_by=user).exclude(correction="")
    corrected.update(correction=REDACTED)
    AgentVersion.objects.filter(author=user).update(note="")
    Label.objects.filter(author=user).annotate(size=Length("name")).filter(
        size__gte=MIN_TEXT_CHARS
    ).delete()
    for example in Example._base_manager.filter(saved_by=user):
        name = f"{REDACTED} {example.pk}"
        Example._base_manager.filter(pk=example.pk).update(
            name=name, expected="", checks=[], tags="", saved_by=None
        )


def _anonymize_decisions(user: User, texts: PersonTexts) -> None:
    """Keep decisions for the run's sake, but not who made them or their text."""
    for approval in erasure_scope.decisions(user):
        with transaction.atomic():
            events = approval.run.events.filter(
                type=EventType.APPROVAL_RESOLVED, data__by=user.pk
            )
            for event in events:
                data = event.data | {"by": None, "by_name": "", "reason": ""}
                RunEvent.objects.filter(pk=event.pk).update(data=data)
            Approval.objects.filter(pk=approval.pk).update(
                arguments=texts.matcher.without(approval.arguments),
                new_arguments=texts.matcher.without(approval.new_arguments),
                reason="",
                decided_by=None,
            )
