"""Chats, messages and members in the admin console."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import URLPattern

from agents.access import audit, masking
from agents.console.activity.deletion import CascadeDeleteAdmin, DeletionContents
from agents.console.activity.runs import RecordAdmin, count_rows, stop_all
from agents.console.activity.runs import visible_row as visible_run
from agents.console.admin_classes.read_only import ReadOnlyAdmin
from agents.models import Run
from agents.models.types import AnyUser
from chat.messages import queue
from chat.models import ChatSession, Invitation, Member, Message
from chat.people_data import console_pages
from chat.sessions import deletion

AUDIT_SOURCE = "admin"


class PersonalTextAdmin(RecordAdmin):
    """Texts that users wrote. Those of others are masked, and viewing them is audited."""

    def visible_row(self, row: Any, user: AnyUser) -> Any:
        if _owner_id(row) == user.pk:
            return row
        masked = masking.mask_row(row)
        if isinstance(masked, Message):  # and the rows displayed with it
            masked.session = masking.mask_row(masked.session)
            masked.run = masked.run and visible_run(masked.run, user)
        return masked

    def look(self, row: Any, user: AnyUser) -> None:
        if _owner_id(row) != user.pk:
            name = f"{row._meta.model_name}:{row.pk}"
            audit.record_hourly(user, audit.VIEWED, name, door=AUDIT_SOURCE)


@admin.register(ChatSession)
class ChatSessionAdmin(PersonalTextAdmin, CascadeDeleteAdmin):
    list_display = ["title", "user", "created_at", "updated_at"]
    personal_search_fields = ("title",)
    search_fields = ["=user__username"]
    list_select_related = ["user"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[ChatSession]:
        return ChatSession.objects.present().saved()

    def get_urls(self) -> list[URLPattern]:
        return [*console_pages.urls(self.admin_site), *super().get_urls()]

    def contents(self, session: ChatSession) -> DeletionContents:
        runs = Run.objects.filter(message__session=session).order_by("pk")
        counts = count_rows(runs)
        counts |= {Message: session.messages.count(), Run: runs.count()}
        numbers = {"runs": list(runs.values_list("pk", flat=True))}
        return DeletionContents(counts=counts, numbers=numbers, owner=session.user)

    def stop(self, session: ChatSession) -> None:
        queue.clear(session)  # queued messages must not start now
        stop_all(Run.objects.filter(topic=session.topic))

    def remove(self, session: ChatSession) -> None:
        deletion.delete_permanently(session)


@admin.register(Message)
class MessageAdmin(PersonalTextAdmin):
    list_display = ["__str__", "session", "author", "run_id", "created_at"]
    personal_search_fields = ("text",)
    search_fields = ["=author__username"]
    list_select_related = ["session", "author"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Message]:
        return Message.objects.filter(session__in=ChatSession.objects.present().saved())


@admin.register(Member)
class MemberAdmin(ReadOnlyAdmin):
    """Lists chats by number, because titles are users' text."""

    list_display = ["session_id", "user", "may_write", "since"]
    search_fields = ["user__username"]
    list_select_related = ["user"]
    fields = ["session_id", "user", "may_write", "since"]


@admin.register(Invitation)
class InvitationAdmin(ReadOnlyAdmin):
    list_display = ["session_id", "may_write", "made_at", "expires_at", "withdrawn_at"]
    fields = ["session_id", "may_write", "made_at", "expires_at", "withdrawn_at"]


def _owner_id(row: ChatSession | Message) -> int:
    return row.author_id if isinstance(row, Message) else row.user_id
