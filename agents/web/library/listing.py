"""Rows of the library: collections, and the documents of one."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.core.paginator import Page, Paginator
from django.db.models import Count, Q, QuerySet, Sum
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy

from agents.access.names import display_name
from agents.db.installation import configured
from agents.db.sentences import translate
from agents.engine.attachments import format_size
from agents.knowledge.files import sizes, store
from agents.models import Collection, CollectionAcceptance, Document, Project, Sitemap
from agents.models.catalog.rights import group_label
from agents.models.sharing.collections import MANAGE_PERMISSION, PROJECT_TOPIC_PREFIX
from agents.models.types import LazyText

ROWS_PER_PAGE = 100
PENDING = (Document.Status.QUEUED, Document.Status.READING, Document.Status.INDEXING)
STATUSES: dict[str, tuple[LazyText, Q]] = {
    "ready": (gettext_lazy("Ready"), Q(status=Document.Status.READY)),
    "pending": (pgettext_lazy("document", "In progress"), Q(status__in=PENDING)),
    "failed": (
        gettext_lazy("Failed"),
        Q(status__in=[Document.Status.FAILED, Document.Status.CANCELLED]),
    ),
    "outdated": (gettext_lazy("Last fetch failed"), ~Q(fetch_problem="")),
}
SORTS: dict[str, tuple[LazyText, tuple[str, ...]]] = {
    "newest": (gettext_lazy("Newest first"), ("-added_at", "-pk")),
    "title": (gettext_lazy("Title"), ("title", "pk")),
    "size": (gettext_lazy("Largest first"), ("-size", "pk")),
}
# Text on a row by the type of the original; others have the ending of their name.
TYPE_LABELS = {
    "application/pdf": "PDF",
    "text/html": "HTML",
    "text/markdown": "Markdown",
    "text/csv": "CSV",
    "message/rfc822": gettext_lazy("Email"),
}
ICONS = {"image": "picture", "audio": "speak", "video": "play"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionRow:
    """A collection in the list."""

    collection: Collection
    documents: int
    pending: int
    failed: int
    size: int
    access: str
    may_edit: bool
    # Whether its user wants it in their search: "pending", "accepted", "dismissed"; empty if
    # that isn't theirs to decide.
    decision: str = ""

    @property
    def size_text(self) -> str:
        return format_size(self.size) if self.size else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRow:
    """A document in the list, as it is now."""

    document: Document
    may_edit: bool

    @property
    def percent(self) -> int | None:
        """How much is done, if that is known."""
        document = self.document
        if not document.is_pending or not document.total:
            return None
        return min(100, round(100 * document.done / document.total))

    @property
    def progress(self) -> str:
        """What is happening, in words."""
        document = self.document
        label = str(document.get_status_display())
        if not document.total or document.status == Document.Status.QUEUED:
            return label
        return f"{label} · {document.done:,} / {document.total:,}"

    @property
    def facts(self) -> list[str]:
        """Type, pages, size and language."""
        return document_facts(self.document)

    @property
    def place(self) -> str:
        """The address or the file's name, if it says more than the title and the type."""
        name = self.document.name
        title = self.document.title
        if self.document.url:
            return self.document.url.partition("://")[2].rstrip("/")
        return "" if title in {name, name.rpartition(".")[0]} else name

    @property
    def icon(self) -> str:
        if self.document.url:
            return "globe"
        return ICONS.get(self.document.mime_type.partition("/")[0], "document")

    @property
    def can_open(self) -> bool:
        return self.document.indexed_at is not None or self.document.file_id is not None

    @property
    def problem(self) -> str:
        """Why it couldn't be read, or what is missing in it."""
        return translate(self.document.problem)

    @property
    def fetch_problem(self) -> str:
        """Why a web page couldn't be fetched again; the text from before stays."""
        return translate(self.document.fetch_problem)

    @property
    def intervals(self) -> list[tuple[str, str]]:
        """How often it can be fetched again; pages of a sitemap have the schedule of that."""
        can_choose = self.may_edit and self.document.url and self.document.sitemap_id is None
        return [(str(item), str(item.label)) for item in Document.Interval if can_choose]

    @property
    def can_refresh(self) -> bool:
        """Whether it is a web page that can be fetched again."""
        is_ready = self.document.status == Document.Status.READY
        return self.may_edit and bool(self.document.url) and is_ready

    @property
    def can_retry(self) -> bool:
        return self.may_edit and self.document.status in {
            Document.Status.FAILED,
            Document.Status.CANCELLED,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SitemapRow:
    """A sitemap above the list of documents."""

    sitemap: Sitemap
    pages: int

    @property
    def fetch_problem(self) -> str:
        return translate(self.sitemap.fetch_problem)


def sitemap_rows(collection: Collection) -> list[SitemapRow]:
    is_inside = Q(documents__collection=collection)
    sitemaps = collection.sitemaps.annotate(pages=Count("documents", filter=is_inside))
    return [SitemapRow(sitemap=sitemap, pages=sitemap.pages) for sitemap in sitemaps]


def document_facts(document: Document) -> list[str]:
    facts = [
        type_label(document),
        count_parts(document),
        format_size(document.size) if document.size else "",
        str(document.get_language_display()) if document.language else "",
    ]
    return [fact for fact in facts if fact]


def count_parts(document: Document) -> str:
    """Return how many pages, slides or sheets it has; an image has none."""
    count = document.pages
    ending = document.name.rpartition(".")[2].lower()
    if not count or document.mime_type.startswith("image/"):
        return ""
    if ending in {"pptx", "ppt", "odp"}:
        text = ngettext("%(count)d slide", "%(count)d slides", count)
    elif ending in {"xlsx", "xls", "ods"}:
        text = ngettext("%(count)d sheet", "%(count)d sheets", count)
    else:
        text = ngettext("%(count)d page", "%(count)d pages", count)
    return text % {"count": count}


def type_label(document: Document) -> str:
    if label := TYPE_LABELS.get(document.mime_type):
        return str(label)
    ending = document.name.rpartition(".")[2]
    return ending.upper() if "." in document.name and len(ending) <= 5 else ""


def collection_rows(user: User) -> dict[str, list[CollectionRow]]:
    """Return the user's library by how a collection came to it."""
    rows = _rows(Collection.objects.for_user(user).library(), user)
    return {
        "own": [row for row in rows if row.collection.owner_id == user.pk],
        "pending": [row for row in rows if row.decision == "pending"],
        "shared": [
            row
            for row in rows
            if row.collection.owner_id not in {user.pk, None}
            and row.decision in {"", "accepted"}
        ],
        "dismissed": [row for row in rows if row.decision == "dismissed"],
        "installation": [row for row in rows if row.collection.owner_id is None],
    }


def collection_row(collection: Collection, user: User) -> CollectionRow:
    return _rows(Collection.objects.filter(pk=collection.pk), user)[0]


def _rows(collections: QuerySet[Collection], user: User) -> list[CollectionRow]:
    listed = list(
        collections.select_related("owner__profile")
        .prefetch_related("groups", "shares")
        .order_by("name", "pk")
    )
    editable = set(Collection.objects.editable_by(user).values_list("pk", flat=True))
    decisions = _decisions(listed, user)
    documents = Document.objects.filter(collection__in=[row.pk for row in listed])
    count_rows = (
        documents.order_by()
        .values("collection")
        .annotate(
            all=Count("pk"),
            pending=Count("pk", filter=STATUSES["pending"][1]),
            failed=Count("pk", filter=STATUSES["failed"][1]),
            bytes=Sum("size"),
        )
    )
    counts: dict[int, dict[str, Any]] = {row["collection"]: dict(row) for row in count_rows}
    no_documents: dict[str, Any] = {"all": 0, "pending": 0, "failed": 0, "bytes": 0}
    return [
        CollectionRow(
            collection=collection,
            documents=(count := counts.get(collection.pk, no_documents))["all"],
            pending=count["pending"],
            failed=count["failed"],
            size=count["bytes"] or 0,
            access=access_text(collection, user),
            may_edit=collection.pk in editable,
            decision=decisions.get(collection.pk, ""),
        )
        for collection in listed
    ]


def _decisions(collections: Iterable[Collection], user: User) -> dict[int, str]:
    """Return what the user decided about collections that other users share with them."""
    offered = {
        collection.pk
        for collection in collections
        if collection.owner_id not in {user.pk, None}
        and not collection.topic
        and not collection.is_open
    }
    if not offered:
        return {}
    is_manager = user.has_perm(MANAGE_PERMISSION)
    searched = Collection.objects.searched_for(user.pk, is_manager=is_manager)
    pks = set(searched.filter(pk__in=offered).values_list("pk", flat=True))
    answers = CollectionAcceptance.objects.filter(user=user, collection__in=offered)
    own = set(answers.values_list("collection", flat=True))
    open_or_dismissed = {pk: "dismissed" if pk in own else "pending" for pk in offered - pks}
    # What an administrator shares is searched without an answer, until there is one.
    return open_or_dismissed | dict.fromkeys(pks, "accepted")


def project_of(collection: Collection) -> Project | None:
    """Return the project to which a collection belongs, if any."""
    pk = collection.topic.removeprefix(PROJECT_TOPIC_PREFIX)
    return Project.objects.filter(pk=pk).first() if collection.topic else None


def access_text(collection: Collection, user: User) -> str:
    """Return who can read a collection, in words."""
    if collection.topic:
        return _("Members of the project")
    if collection.is_open:
        return _("Everyone")
    if collection.owner is not None and collection.owner_id != user.pk:
        return _("Shared by %(name)s") % {"name": display_name(collection.owner)}
    readers = [str(group_label(group)) for group in collection.groups.all()]
    if people := len(collection.shares.all()):
        readers.append(
            ngettext("%(count)d user", "%(count)d users", people) % {"count": people}
        )
    if readers:
        return ", ".join(readers)
    return _("Administrators") if collection.owner_id is None else _("Only you")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFilter:
    """What a page of documents displays, from its URL."""

    words: str = ""
    status: str = ""
    sort: str = "newest"

    def rows(self, collection: Collection) -> QuerySet[Document]:
        documents = collection.documents.select_related("owner__profile")
        for term in self.words.split()[:8]:
            documents = documents.filter(Q(title__icontains=term) | Q(source__icontains=term))
        if self.status:
            documents = documents.filter(STATUSES[self.status][1])
        return documents.order_by(*SORTS[self.sort][1])

    def page(self, collection: Collection, number: str | None) -> Page[Document]:
        return Paginator(self.rows(collection), ROWS_PER_PAGE).get_page(number)


def parse_filter(query: Any) -> DocumentFilter:
    status = query.get("status", "")
    sort = query.get("sort", "")
    return DocumentFilter(
        words=query.get("name", "").strip()[:200],
        status=status if status in STATUSES else "",
        sort=sort if sort in SORTS else "newest",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """How much of their storage a user has used."""

    used: str
    limit: str


def usage(user: User) -> Usage | None:
    """Return the user's storage; None if half of it is free or there is no limit."""
    megabytes = configured.USER_FILES_MB.value
    if not megabytes:
        return None
    used = store.used_bytes(user)
    limit = megabytes * 1_000_000
    if used * 2 < limit:  # it matters when it gets scarce
        return None
    return Usage(
        used=sizes.format_megabytes(used),
        limit=sizes.format_megabytes(limit),
    )
