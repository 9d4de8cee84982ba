"""The installation's documents: lists with links to the library, where they are managed.

Users' own collections aren't listed: an administrator can't read them.
"""

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from agents.db.installation import default_models
from agents.knowledge import ingestion, sources
from agents.models import Chunk, Collection, Document, EmbeddingIndex

from ..admin_classes.read_only import ReadOnlyAdmin
from .deletion import CascadeDeleteAdmin, DeletionContents

# Adds the page of a collection's documents, which the library has.
document_pages: list[Callable[[admin.AdminSite], list[URLPattern]]] = []
PENDING = [Document.Status.QUEUED, Document.Status.READING, Document.Status.INDEXING]
OF_INSTALLATION = {"owner": None, "topic": "", "deleted_at": None}


@admin.register(Collection)
class CollectionAdmin(ReadOnlyAdmin):
    list_display = ["name", "description", "is_open", "documents", "progress", "open_link"]
    list_filter = ["is_open"]
    search_fields = ["name", "description"]
    fields = ["name", "description", "is_open", "groups", "created_at", "open_link"]
    change_list_template = "admin/agents/collection/change_list.html"

    def get_urls(self) -> list[URLPattern]:
        added = [url for make in document_pages for url in make(self.admin_site)]
        return [*added, *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Collection]:
        collections = super().get_queryset(request).filter(**OF_INSTALLATION)
        return collections.annotate(
            document_count=Count("documents"),
            pending_count=Count("documents", filter=Q(documents__status__in=PENDING)),
            failed_count=Count("documents", filter=Q(documents__status="failed")),
        )

    @admin.display(description=_("documents"), ordering="document_count")
    def documents(self, collection: Any) -> int:
        return collection.document_count

    @admin.display(description=_("progress"))
    def progress(self, collection: Any) -> str:
        """What isn't ready, in words."""
        counts = {
            _("%(count)d in progress"): collection.pending_count,
            _("%(count)d failed"): collection.failed_count,
        }
        return ", ".join(str(text % {"count": n}) for text, n in counts.items() if n)

    @admin.display(description=_("library"))
    def open_link(self, collection: Collection) -> SafeString:
        url = reverse("admin:agents_collection_documents", args=[collection.pk])
        return format_html('<a class="button" href="{}">{}</a>', url, _("Add documents"))


class CollectionFilter(admin.RelatedFieldListFilter):
    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[Any]:
        rows = Collection.objects.filter(**OF_INSTALLATION).order_by("name")
        return list(rows.values_list("pk", "name"))


@admin.register(Document)
class DocumentAdmin(CascadeDeleteAdmin):
    """Documents; deleted with their passages, so that a search finds all or nothing."""

    list_display = [
        "title",
        "collection",
        "status",
        "progress",
        "pages",
        "language",
        "added_at",
        "problem",
        "open_link",
    ]
    list_filter = ["status", ("collection", CollectionFilter), "language"]
    list_select_related = ["collection"]
    search_fields = ["title", "source"]
    fields = [
        "title",
        "collection",
        "source",
        "url",
        "mime_type",
        "size",
        "pages",
        "language",
        "status",
        "problem",
        "added_at",
        "indexed_at",
        "open_link",
    ]
    change_list_template = "admin/agents/collection/change_list.html"
    actions = ["read_again"]
    tells_values = True

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """Offer the collections to which documents can be added."""
        rows = Collection.objects.editable_by(request.user).filter(**OF_INSTALLATION)
        context = {"targets": rows.order_by("name")[:50]}
        return super().changelist_view(request, context | (extra_context or {}))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Document]:
        of_installation = Collection.objects.filter(**OF_INSTALLATION)
        return super().get_queryset(request).filter(collection__in=of_installation)

    @admin.action(description=_("Read and index again"), permissions=["delete"])
    def read_again(self, request: HttpRequest, documents: QuerySet[Document]) -> None:
        """Queue documents again; their passages stay until the new ones are ready."""
        # What came from a text without a file has nothing to be read again.
        readable = documents.exclude(file=None, url="")
        count = sum(ingestion.retry(document) for document in readable)
        sentence = ngettext(
            "%(count)d document is being read again.",
            "%(count)d documents are being read again.",
            count,
        )
        self.message_user(request, sentence % {"count": count})

    @admin.display(description=_("progress"))
    def progress(self, document: Document) -> str:
        is_known = document.is_pending and document.total
        return f"{document.done:,} / {document.total:,}" if is_known else ""

    @admin.display(description=_("library"))
    def open_link(self, document: Document) -> SafeString:
        url = reverse("library:document", args=[document.pk])
        return format_html('<a href="{}">{}</a>', url, _("Open"))

    def contents(self, document: Document) -> DeletionContents:
        return DeletionContents(counts={Chunk: document.chunks.count()})

    def remove(self, row: Document) -> None:
        with transaction.atomic():
            sources.mark_removed([row], is_removed=True)
        ingestion.delete(row)


@admin.register(Chunk)
class ChunkAdmin(ReadOnlyAdmin):
    list_display = ["__str__", "heading"]
    search_fields = ["heading", "text"]
    list_select_related = ["document"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Chunk]:
        of_installation = Collection.objects.filter(**OF_INSTALLATION)
        return super().get_queryset(request).filter(document__collection__in=of_installation)


@admin.register(EmbeddingIndex)
class EmbeddingIndexAdmin(ReadOnlyAdmin):
    """Vectors of each model, with how many passages have theirs."""

    list_display = ["name", "version", "dimension", "status", "progress", "problem"]

    @admin.display(description=_("model"), ordering="model")
    def name(self, index: EmbeddingIndex) -> str:
        return default_models.label_of(index.model)

    @admin.display(description=_("progress"))
    def progress(self, index: EmbeddingIndex) -> str:
        return f"{index.done:,} / {index.total:,}" if index.total else ""
