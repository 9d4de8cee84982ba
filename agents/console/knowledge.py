from django.contrib import admin

from agents.models import Chunk, Document

from .deletion import CascadeDeleteAdmin, DeletionContents
from .read_only import ReadOnlyAdmin


@admin.register(Document)
class DocumentAdmin(CascadeDeleteAdmin):
    """Documents; deleted with their passages, so that a search finds all or nothing."""

    list_display = ["title", "source", "language", "added_at"]
    list_filter = ["language"]
    search_fields = ["title", "source"]
    tells_values = True

    def contents(self, document: Document) -> DeletionContents:
        return DeletionContents(counts={Chunk: document.chunks.count()})


@admin.register(Chunk)
class ChunkAdmin(ReadOnlyAdmin):
    list_display = ["__str__", "heading"]
    search_fields = ["heading", "text"]
    list_select_related = ["document"]
