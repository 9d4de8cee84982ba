"""What an erasure will delete, and what it has deleted: counted, and in sentences."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.models import (
    AgentStep,
    ApiKey,
    Approval,
    AuditEntry,
    Collection,
    Experience,
    Memory,
    Project,
    Run,
    RunAttachment,
    RunEvent,
    Schedule,
    ToolGrant,
    Trigger,
)
from agents.review.models import Comment, Example, Note, Rating, SavedView
from agents.web.library import personal_data
from chat.models import Attachment, ChatSession, Folder, Message, Prompt
from chat.sessions import server_files

from . import erasure_scope, free_space

STORAGE_SENTENCES = {
    free_space.OVERWRITTEN: gettext_lazy(
        "The database and its log have been overwritten where this data was stored."
    ),
    free_space.VACUUMED: gettext_lazy(
        "PostgreSQL has freed the space and will overwrite it with new rows."
    ),
    free_space.TOO_LARGE: gettext_lazy(
        "The database is too large to be rewritten while it is in use. Until you stop the "
        "server and run VACUUM on it, its free space may still contain parts of this data."
    ),
    free_space.AUTOMATIC: gettext_lazy(
        "PostgreSQL will free the space by itself and overwrite it with new rows."
    ),
    free_space.LATER: gettext_lazy(
        "The database was busy. Its free space and its log will be overwritten in a few "
        "minutes."
    ),
}


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
        in_config = _("The settings still quote this user: %(found)s. Edit them manually.")
        templates = {
            _("Removed: %(found)s."): self.removed,
            _("Text removed from other users' data: %(found)s."): self.replaced,
            in_config: self.left,
        }
        sentences = []
        for template, lines in templates.items():
            counts = [f"{line.what} ({line.count:,})" for line in lines if line.count]
            if counts:
                sentences.append(template % {"found": ", ".join(counts)})
        if self.storage:
            sentences.append(str(STORAGE_SENTENCES[self.storage]))
        return sentences

    @property
    def facts(self) -> dict[str, Any]:
        """Return the counts for the audit log, without the user's name."""
        kinds = {"removed": self.removed, "replaced": self.replaced, "left": self.left}
        return {name: {line.kind: line.count for line in kinds[name]} for name in kinds}


def plan(user: User) -> ErasurePlan:
    own_chats = ChatSession.objects.filter(user=user)
    messages = Message.objects.filter(author=user)
    runs = Run.objects.filter(erasure_scope.runs_filter(user))
    attached = Attachment.objects.filter(Q(user=user) | Q(message__session__in=own_chats))
    collections = Collection.objects.filter(owner=user, deleted_at=None)
    folders = server_files.count_for_person(user, erasure_scope.own_topics(user))
    goes = [
        _count(_("Chats, including all messages"), own_chats),
        _count(_("of which shared with others"), own_chats.filter(is_shared=True)),
        _count(_("Messages in other users' chats"), messages.exclude(session__user=user)),
        _count(_("Runs"), runs),
        _count(_("Steps"), AgentStep.objects.filter(run__in=runs)),
        _count(_("Events"), RunEvent.objects.filter(run__in=runs)),
        _count(_("Attachments"), RunAttachment.objects.filter(run__in=runs)),
        _count(_("Files attached to messages"), attached),
        _count(_("Ratings"), Rating.objects.filter(user=user)),
        _count(_("Comments"), Comment.objects.filter(author=user)),
        _count(_("Prompts"), Prompt.objects.filter(user=user)),
        _count(_("Document collections"), collections),
        _count(_("Documents"), personal_data.erasable_documents(user)),
        _count(_("Memories"), Memory.objects.filter(user=user)),
        _count(_("Lessons"), Experience.objects.filter(user=user)),
        _count(_("Projects"), Project.objects.filter(owner=user)),
        _count(_("Schedules"), Schedule.objects.filter(user=user)),
        _count(_("Triggers"), Trigger.objects.filter(user=user)),
        _count(_("Webhooks"), user.webhooks.all()),
        _count(_("API keys"), ApiKey.objects.filter(user=user)),
        ErasureCount(
            what=_("Folders that MCP servers have for this user and their chats"), count=folders
        ),
    ]
    notes = Note.objects.filter(author=user).exclude(run__in=runs)
    documents = personal_data.staying_documents(user)
    audit_entries = AuditEntry.objects.filter(erasure_scope.audit_filter(user))
    stays = [
        _count(_("Decisions on other users' tool calls"), erasure_scope.decisions(user)),
        _count(_("Notes on other users' runs"), notes),
        _count(_("Documents added to the installation's collections"), documents),
        _count(_("Audit log entries"), audit_entries),
    ]
    return ErasurePlan(goes=goes, stays=stays)


def _count(what: str, rows: QuerySet[Any]) -> ErasureCount:
    return ErasureCount(what=what, count=rows.count())


def to_counts(counter: Counter) -> list[ErasureCount]:
    return [
        ErasureCount(
            what=str(model._meta.verbose_name_plural), count=count, kind=model._meta.model_name
        )
        for model, count in counter.items()
        if count
    ]


def count_rows(user: User) -> list[ErasureCount]:
    """Count the rows that will be deleted."""
    runs = Run.objects.filter(erasure_scope.runs_filter(user))
    own_chats = ChatSession.objects.filter(user=user)
    querysets: list[QuerySet[Any]] = [
        own_chats,
        Message.objects.filter(Q(author=user) | Q(session__in=own_chats)),
        runs,
        AgentStep.objects.filter(run__in=runs),
        RunEvent.objects.filter(run__in=runs),
        RunAttachment.objects.filter(run__in=runs),
        Attachment.objects.filter(Q(user=user) | Q(message__session__in=own_chats)),
        Approval.objects.filter(run__in=runs),
        Rating.objects.filter(Q(user=user) | Q(run__in=runs)),
        Comment.objects.filter(Q(author=user) | Q(run__in=runs)),
        Note.objects.filter(run__in=runs),
        Example._base_manager.filter(run__in=runs),
        Schedule.objects.filter(user=user),
        Trigger.objects.filter(user=user),
        user.webhooks.all(),
        SavedView.objects.filter(user=user),
        ToolGrant.objects.filter(user=user),
        ApiKey.objects.filter(user=user),
        Folder.objects.filter(user=user),
        Collection.objects.filter(owner=user),
        personal_data.erasable_documents(user),
        Memory.objects.filter(user=user),
        Experience.objects.filter(user=user),
    ]
    return to_counts(
        Counter({queryset.model: queryset.distinct().count() for queryset in querysets})
    )


def count_server_folders(user: User, topics: set[str]) -> list[ErasureCount]:
    count = server_files.count_for_person(user, topics)
    if not count:
        return []
    return [ErasureCount(what=_("folders of MCP servers"), count=count, kind="mcpfolder")]
