"""The log of deliveries."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from agents.console.admin_classes.read_only import ReadOnlyAdmin
from agents.insight.alerts.models import Delivery
from agents.web.presentation.formats.badges import badge_column

TONES = {"pending": "amber", "sent": "green", "failed": "red"}
RETRY_PERMISSION = "alerts.change_alertchannel"


@admin.register(Delivery)
class DeliveryAdmin(ReadOnlyAdmin):
    list_display = ["created_at", "channel", "event", "subject"]
    list_display += [badge_column("status", _("status"), TONES), "attempts", "error"]
    list_display_links = ["subject"]
    # Only channels of the list: others are users' own webhooks.
    list_filter = [
        *("status", "event", "created_at"),
        ("channel", admin.RelatedOnlyFieldListFilter),
    ]
    list_select_related = ["channel"]
    search_fields = ["subject"]
    fields = ["channel", "event", "subject", "status", "attempts", "next_at", "created_at"]
    fields += ["sent_at", "last_error", "text", "payload"]
    actions = ["send_again"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Delivery]:
        return Delivery.objects.for_user(request.user)

    def has_retry_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm(RETRY_PERMISSION))

    @admin.display(description=_("last error"))
    def error(self, row: Delivery) -> str:
        return row.last_error[:120] or "—"

    @admin.action(description=_("Send again"), permissions=["retry"])
    def send_again(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        failed = queryset.filter(status=Delivery.Status.FAILED)
        count = failed.update(
            status=Delivery.Status.PENDING, attempts=0, next_at=timezone.now()
        )
        sentence = ngettext(
            "Sending %(n)d delivery again.", "Sending %(n)d deliveries again.", count
        )
        messages.success(request, sentence % {"n": count})
