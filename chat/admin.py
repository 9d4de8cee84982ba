from django.contrib import admin

from agents.admin.read_only import ReadOnlyAdmin
from chat.models import ChatSession, Message


@admin.register(ChatSession)
class ChatSessionAdmin(ReadOnlyAdmin):
    list_display = ["title", "user", "created_at", "updated_at"]
    search_fields = ["title"]
    list_select_related = ["user"]


@admin.register(Message)
class MessageAdmin(ReadOnlyAdmin):
    list_display = ["__str__", "session", "author", "run_id", "created_at"]
    search_fields = ["text"]
    list_select_related = ["session", "author"]
