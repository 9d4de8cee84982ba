from django.contrib import admin

from agents.models import Chunk, Document

from .read_only import ReadOnlyAdmin


@admin.register(Document)
class DocumentAdmin(ReadOnlyAdmin):
    list_display = ["title", "source", "language", "added_at"]
    list_filter = ["language"]
    search_fields = ["title", "source"]


@admin.register(Chunk)
class ChunkAdmin(ReadOnlyAdmin):
    list_display = ["__str__", "heading"]
    search_fields = ["heading", "text"]
    list_select_related = ["document"]
