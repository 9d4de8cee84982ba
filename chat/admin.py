from django.contrib import admin

from agents.admin.read_only import ReadOnlyAdmin
from chat.models import ChatSession, Invitation, Member, Message


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


@admin.register(Member)
class MemberAdmin(ReadOnlyAdmin):
    list_display = ["session", "user", "may_write", "since"]
    search_fields = ["session__title", "user__username"]
    list_select_related = ["session", "user"]


@admin.register(Invitation)
class InvitationAdmin(ReadOnlyAdmin):
    list_display = ["session", "may_write", "made_at", "expires_at", "withdrawn_at"]
    list_select_related = ["session"]
    exclude = ["digest"]
