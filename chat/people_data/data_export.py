"""Exports a user's data: a ZIP of JSON and Markdown, streamed.

Of what others wrote it has only what the user can see, with personal data masked: the messages
of other members, their answers, and runs that were sent such messages. Their files, which can't
be masked, are left out.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from datetime import date
from typing import IO, Any, TypeAlias

from django.contrib.auth.models import User
from django.db.models import F, Model, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.access import audit, masking
from agents.accounts.users import profiles
from agents.console.admin_classes import deleted_rows
from agents.insight.alerts.models import Notification
from agents.insight.problems.models import ProblemChange
from agents.insight.suggestions.models import Suggestion
from agents.models import (
    AgentDraft,
    ApiKey,
    Approval,
    AuditEntry,
    BudgetCounter,
    Collection,
    CollectionAcceptance,
    CollectionShare,
    EmbedVisitor,
    Experience,
    Membership,
    Memory,
    Personalization,
    Project,
    Quota,
    ReadingUsage,
    Run,
    Schedule,
    Sitemap,
    StyleSignal,
    ToolGrant,
    Trigger,
    WorkflowVersion,
)
from agents.review import exports
from agents.review.experiments.models import Experiment
from agents.review.models import Comment, Label, Note, Rating, SavedView, Score, ShareLink
from agents.web import branding
from agents.web.library import personal_data
from chat.models import Attachment, ChatImport, ChatSession, Filing, Folder, Prompt, PublicLink
from chat.transfer.exports import chat_export, zip_stream
from chat.transfer.exports.zip_stream import File

# A file's name, its rows and their columns.
ExportedTable: TypeAlias = tuple[str, QuerySet[Any], tuple[str, ...]]

PAGE_SIZE = 100
PIECE_BYTES = 256 * 1024
SCHEMA = "ashiato.person/1"
USER_COLUMNS = [
    "username",
    "first_name",
    "last_name",
    "email",
    "is_active",
    "is_staff",
    "is_superuser",
]
PROFILE_COLUMNS = [
    "display_name",
    "language",
    "time_zone",
    "date_format",
    "clock",
    "has_single_keys",
    "has_memory",
    "has_instructions",
    "has_setup_guide",
    "about_me",
    "answer_style",
]
SIGN_IN_ACTIONS = r"^(signin|password|mfa)\."


def archive(user: User) -> Iterator[bytes]:
    """Yield the ZIP in pieces."""
    return zip_stream.archive(files(user))


def files(user: User) -> Iterator[File]:
    yield "README.md", iter([_readme(user)])
    account = {
        "schema": SCHEMA,
        **_row_dict(user, USER_COLUMNS),
        "date_joined": _json_value(user.date_joined),
        "last_login": _json_value(user.last_login),
        "groups": sorted(user.groups.values_list("name", flat=True)),
        "permissions": sorted(user.get_all_permissions()),
        "profile": _row_dict(profiles.of_user(user), PROFILE_COLUMNS),
    }
    yield "account.json", iter([json.dumps(account, ensure_ascii=False, indent=1) + "\n"])
    for name, rows, columns in _tables(user):
        entries = (_row_dict(row, columns) for row in _paginate(rows))
        yield f"{name}.json", _json_list(entries)
    yield "recently-deleted.json", _recently_deleted(user)
    yield "sign-ins.json", _signins(user)
    for document in _paginate(personal_data.exported_documents(user).select_related("file")):
        # The name is unique and harmless on every system.
        ending = _ending(document.name) or ("" if document.file else ".md")
        title = re.sub(r"[^\w -]+", "_", document.name.removesuffix(ending))[:80].strip(" _")
        yield f"documents/{document.pk}-{title}{ending}", personal_data.content(document)
    for chat in _paginate(ChatSession.objects.for_user(user).saved()):
        pieces = chat_export.as_json(chat, user, has_steps=False, masks_others=True)
        yield f"sessions/{chat.pk}.json", pieces
        yield f"sessions/{chat.pk}.md", chat_export.as_markdown(chat, user, masks_others=True)
    for row in _paginate(Attachment.objects.filter(user=user).select_related("file")):
        name = re.sub(r"[^\w.-]+", "_", row.name)[-80:]
        yield f"files/{row.pk}-{name}", _pieces(row.file.open)
    # The user's runs and those in shared chats, not those they can review.
    in_shared_chats = Q(topic__in=Membership.objects.shared_topics(user))
    visible_runs = Run.objects.listed().filter(Q(user=user) | in_shared_chats)
    for run in _paginate(visible_runs.select_related("user", "origin")):
        is_own = masking.is_own(run, user)
        # The history of a run has what other members wrote before.
        is_masked = (
            not is_own or Run.objects.filter(topic=run.topic).exclude(user=user).exists()
        )
        hides_rules = not masking.sees_rules(user)
        pieces = exports.as_json(run, is_masked=is_masked, hides_rules=hides_rules)
        yield f"runs/{run.pk}.json", pieces
        yield f"runs/{run.pk}.md", exports.as_markdown(run, is_masked=is_masked)
        for row in run.attachments.select_related("file").order_by("pk") if is_own else ():
            ending = _ending(row.name) or f".{row.extension}"
            yield f"runs/{run.pk}-attachments/{row.digest}{ending}", _pieces(row.open)


def _ending(name: str) -> str:
    match = re.search(r"\.[A-Za-z0-9]{1,8}$", name)
    return match[0] if match else ""


def _pieces(open_file: Callable[[], AbstractContextManager[IO[Any]]]) -> Iterator[bytes]:
    try:
        with open_file() as content:
            while piece := content.read(PIECE_BYTES):
                yield piece
    except OSError:
        yield b""  # the bytes are gone; the export goes on


def _readme(user: User) -> str:
    contents = {
        "account.json": _("account, groups and permissions"),
        "sessions/": _("chats, owned and shared"),
        "files/": _("files attached to messages"),
        "runs/": _("every run with its steps, events and files"),
        "documents/": _("documents in your collections, and those you added elsewhere"),
        "recently-deleted.json": _("what administrators deleted and can still restore"),
        "sign-ins.json": _("sign-in history: when and from where"),
        "*.json": _("ratings, comments, decisions, share links and more"),
    }
    name = " ".join(user.get_username().split())
    escaped_name = re.sub(r"([\\`*_<>\[\]#|])", r"\\\1", name)
    paragraphs = [
        f"# {escaped_name}",
        _("Data that %(installation)s stores about this user, as of %(time)s.")
        % {
            "installation": branding.current().name,
            "time": timezone.localtime().strftime("%Y-%m-%d %H:%M"),
        },
        "\n".join(f"- `{file}`: {description}" for file, description in contents.items()),
        _(
            "In shared chats, personal data is masked in what other members wrote, in its "
            "answers and in runs; this user's own messages and answers are complete. "
            "Documents that others added aren't included, except in this user's collections. "
            "Files that MCP servers save for this user and data sent to monitoring or written "
            "to trace files aren't included either; ask your administrator."
        ),
    ]
    return "\n\n".join(paragraphs) + "\n"


def _tables(user: User) -> Iterable[ExportedTable]:
    yield from _review_tables(user)
    yield from _chat_tables(user)
    yield from _knowledge_tables(user)
    yield from _learning_tables(user)
    yield from _account_tables(user)


def _review_tables(user: User) -> Iterable[ExportedTable]:
    """Return what the user said about runs."""
    step_columns = ("run_id", "step")
    approval_columns = (*step_columns, "tool", "verdict", "reason", "decided_at")
    link_columns = ("run_id", "level", "made_at", "expires_at", "revoked_at", "opened")
    rating_columns = ("run_id", "is_good", "reason", "comment", "rated_at")
    view_columns = ("name", "query", "columns", "sort", "grouping")
    experiment_columns = (
        "kind",
        "state",
        "agent_id",
        "count",
        "score",
        "cost",
        "started_at",
        "ended_at",
    )
    change_columns = ("problem_id", "action", "at")
    suggestion_columns = ("agent_id", "kind", "subject", "status", "decided_at")
    scores = Score.objects.filter(scored_by=user).annotate(
        run_id=F("review__run"), criterion_name=F("criterion__name")
    )
    return [
        ("ratings", Rating.objects.filter(user=user), rating_columns),
        ("comments", _authored_by(Comment, user), (*step_columns, "text", "written_at")),
        ("experiments", Experiment.objects.filter(started_by=user), experiment_columns),
        ("suggestions", Suggestion.objects.filter(decided_by=user), suggestion_columns),
        ("problem-changes", ProblemChange.objects.filter(by=user), change_columns),
        ("notes", _authored_by(Note, user), (*step_columns, "text", "written_at", "edited_at")),
        ("labels", _authored_by(Label, user), (*step_columns, "name", "put_at")),
        ("scores", scores, ("run_id", "criterion_name", "value", "scored_at")),
        ("approvals", Approval.objects.filter(decided_by=user), approval_columns),
        ("share-links", ShareLink.objects.filter(made_by=user), link_columns),
        ("saved-views", SavedView.objects.filter(user=user), view_columns),
    ]


def _chat_tables(user: User) -> Iterable[ExportedTable]:
    """Return what belongs to chats and projects, besides the messages."""
    link_columns = ("session_id", "level", "made_at", "updated_at", "expires_at", "opened")
    import_columns = ("files", "status", "sources", "found", "created_at", "ended_at")
    project_columns = ("name", "description", "instructions", "created_at")
    filing_columns = ("session_id", "pinned_at", "archived_at", "folder_id")
    return [
        ("memberships", Membership.objects.filter(user=user), ("topic", "may_write", "since")),
        ("public-links", PublicLink.objects.filter(made_by=user), link_columns),
        ("prompts", Prompt.objects.filter(user=user), ("name", "title", "text", "sharing")),
        ("projects", Project.objects.filter(members__user=user), project_columns),
        ("imports", ChatImport.objects.filter(user=user), import_columns),
        ("folders", Folder.objects.filter(user=user), ("name", "order", "created_at")),
        ("filed-chats", Filing.objects.filter(user=user), filing_columns),
    ]


def _knowledge_tables(user: User) -> Iterable[ExportedTable]:
    """Return memories, collections and documents."""
    memory_columns = (
        "id",
        "project_id",
        "subject",
        "kind",
        "text",
        "status",
        "source",
        "run_id",
        "valid_from",
        "valid_to",
        "superseded_by_id",
    )
    collection_columns = ("id", "name", "description", "is_open", "created_at", "deleted_at")
    document_columns = (
        "id",
        "collection_id",
        "title",
        "source",
        "url",
        "mime_type",
        "size",
        "added_at",
        "fetch_interval",
    )
    sitemap_columns = ("collection_id", "url", "max_pages", "fetch_interval", "fetched_at")
    shares = CollectionShare.objects.filter(user=user)
    sitemaps = Sitemap.objects.filter(Q(collection__owner=user) | Q(scheduled_by=user))
    return [
        ("memories", Memory.objects.present().filter(user=user), memory_columns),
        ("collections", Collection.objects.filter(owner=user), collection_columns),
        ("shared-collections", shares, ("collection_id", "may_edit")),
        (
            "accepted-collections",
            CollectionAcceptance.objects.filter(user=user),
            ("collection_id", "is_accepted"),
        ),
        ("documents", personal_data.exported_documents(user), document_columns),
        ("sitemaps", sitemaps, sitemap_columns),
    ]


def _learning_tables(user: User) -> Iterable[ExportedTable]:
    """Return what was learned from the user."""
    experience_columns = (
        "id",
        "agent_id",
        "project_id",
        "scope",
        "kind",
        "source",
        "status",
        "question",
        "text",
        "run_id",
        "helpful",
        "harmful",
        "created_at",
    )
    signal_columns = ("run_id", "trait", "value", "source", "is_lasting", "quote", "created_at")
    personalization_columns = ("learns", "learns_style", "chosen", "learned")
    return [
        ("experiences", Experience.objects.present().filter(user=user), experience_columns),
        ("style-signals", StyleSignal.objects.filter(user=user), signal_columns),
        ("personalization", Personalization.objects.filter(user=user), personalization_columns),
    ]


def _account_tables(user: User) -> Iterable[ExportedTable]:
    """Return sign-ins, permissions, schedules and usage."""
    grant_columns = ("agent_name", "tool_name", "topic", "created_at", "used_at")
    counter_columns = (
        "window",
        "start",
        "runs",
        "messages",
        "calls",
        "tokens",
        "cost",
        "seconds",
    )
    key_columns = (
        "name",
        "prefix",
        "scopes",
        "requests_per_minute",
        "created_at",
        "expires_at",
        "last_used_at",
        "revoked_at",
    )
    notification_columns = ("event", "problem_id", "text", "created_at", "read_at")
    visit_columns = ("embed_id", "subject", "email", "created_at", "last_used_at")
    apps = ApiKey.objects.filter(user=user, app__isnull=False).annotate(app_name=F("app__name"))
    start_columns = ("workflow_id", "agent_id", "question", "parameters", "enabled")
    webhook_columns = ("description", "url", "events", "agent_id", "with_answer", "enabled")
    return [
        ("connected-apps", apps, ("app_name", "scopes", "created_at", "last_used_at")),
        ("tool-permissions", ToolGrant.objects.filter(user=user), grant_columns),
        ("notifications", Notification.objects.filter(user=user), notification_columns),
        ("schedules", Schedule.objects.filter(user=user), ("cron", *start_columns)),
        ("triggers", Trigger.objects.filter(user=user), ("name", *start_columns)),
        ("webhooks", user.webhooks.all(), webhook_columns),
        ("agent-drafts", AgentDraft.objects.filter(editor=user), ("agent_id", "values")),
        ("workflows", _authored_by(WorkflowVersion, user), ("workflow_id", "number", "text")),
        ("visits", user.visits.all(), ("way", "device", "address", "began_at", "seen_at")),
        ("api-keys", ApiKey.objects.filter(user=user, app=None), key_columns),
        ("passkeys", user.passkeys.all(), ("name", "added_at", "used_at")),
        ("identities", user.identities.all(), ("issuer", "subject", "added_at")),
        ("embedded-chats", EmbedVisitor.objects.filter(user=user), visit_columns),
        ("quotas", Quota.objects.filter(user=user), ("measure", "window", "limit")),
        ("usage", BudgetCounter.objects.filter(scope=f"user:{user.pk}"), counter_columns),
        ("reading-usage", ReadingUsage.objects.filter(user=user), ("model", "cost")),
    ]


def _recently_deleted(user: User) -> Iterator[str]:
    """Yield the user's rows in what administrators deleted and can still restore."""
    tables = {rows.model: (name, columns) for name, rows, columns in _tables(user)}
    entries = []
    for row in deleted_rows.rows_of(user):
        if type(row) in tables:
            name, columns = tables[type(row)]
            names = {field.attname for field in row._meta.concrete_fields}.intersection(columns)
            entries.append({"table": name, **_row_dict(row, sorted(names))})
    yield from _json_list(entries)


def _authored_by(model: type[Model], user: User) -> QuerySet[Any]:
    return model._default_manager.filter(author=user)


def _signins(user: User) -> Iterator[str]:
    """Yield the user's sign-ins from the audit log, including failed ones."""
    person = audit.person(user)
    is_theirs = Q(person=person) | Q(subject=person.subject)
    rows = AuditEntry.objects.filter(is_theirs, action__regex=SIGN_IN_ACTIONS)
    yield from _json_list(
        {
            "at": _json_value(entry.at),
            "action": entry.action,
            **json.loads(entry.person.decrypt(entry.place) or "{}"),
        }
        for entry in _paginate(rows.select_related("person"))
    )


def _paginate(rows: QuerySet[Any]) -> Iterator[Any]:
    """Yield all rows, a page at a time."""
    last = 0
    while page := list(rows.order_by("pk").filter(pk__gt=last)[:PAGE_SIZE]):
        yield from page
        last = page[-1].pk


def _row_dict(row: Model, columns: Iterable[str]) -> dict[str, Any]:
    return {name: _json_value(getattr(row, name)) for name in columns}


def _json_list(items: Iterable[Any]) -> Iterator[str]:
    yield "["
    for index, item in enumerate(items):
        yield f"{',' if index else ''}\n{json.dumps(item, ensure_ascii=False)}"
    yield "]\n"


def _json_value(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value
