"""Scheduled summaries, with a preview."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from agents.access import audit
from agents.access.requests import signed_in_user
from agents.insight.alerts import schedules, summary
from agents.insight.alerts.models import REVIEW_PERMISSION, AlertChannel, SummarySchedule
from agents.models import ReviewScope

from .rule_admin import NO_CHANNELS
from .scoped_admin import ScopedAdmin

DIR = "admin/alerts/summaryschedule"
SENT = "alert.summary_sent"


@admin.register(SummarySchedule)
class SummaryScheduleAdmin(ScopedAdmin):
    list_display = ["name", "frequency", "at", "targets", "enabled", "next_at", "last_sent_at"]
    list_filter = ["frequency", "enabled"]
    search_fields = ["name"]
    fields = ["name", "frequency", "at", "weekday", "day", "channels", "enabled"]
    fields += ["next_at", "last_sent_at"]
    readonly_fields = ["next_at", "last_sent_at"]
    change_list_template = f"{DIR}/change_list.html"
    change_form_template = f"{DIR}/change_form.html"

    def get_urls(self) -> list[URLPattern]:
        def admin_path(route: str, view: Any, name: str) -> URLPattern:
            guarded = self.admin_site.admin_view(view)
            pattern: URLPattern = path(route, guarded, name=f"alerts_summaryschedule_{name}")
            return pattern

        own = [
            admin_path("<int:pk>/preview/", self.preview_view, "preview"),
            admin_path("<int:pk>/send/", self.send_view, "send"),
        ]
        return [*own, *super().get_urls()]

    def has_add_permission(self, request: HttpRequest) -> bool:
        is_scoped = ReviewScope.objects.agents_of(request.user) is not None
        return super().has_add_permission(request) and not is_scoped

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Leave out when it is sent until it is saved."""
        fields = super().get_fields(request, obj)
        return fields if obj else [name for name in fields if name not in self.readonly_fields]

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).prefetch_related("channels")

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        context = {"has_channels": AlertChannel.objects.of_installation().exists()}
        return super().changelist_view(request, context | (extra_context or {}))

    @admin.display(description=_("channels"))
    def targets(self, schedule: SummarySchedule) -> str:
        return ", ".join(str(channel) for channel in schedule.channels.all())

    def formfield_for_manytomany(self, db_field: Any, request: Any, **options: Any) -> Any:
        options["widget"] = forms.CheckboxSelectMultiple
        if db_field.name == "channels":
            channels = AlertChannel.objects.of_installation()
            options["queryset"] = channels
            if not channels.exists():
                options["help_text"] = NO_CHANNELS
        return super().formfield_for_manytomany(db_field, request, **options)

    def formfield_for_dbfield(self, db_field: Any, request: Any, **options: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **options)
        if db_field.name == "at" and field is not None:
            zone = _("Time zone: %(zone)s.") % {"zone": timezone.get_default_timezone_name()}
            field.widget = forms.TimeInput(attrs={"type": "time"}, format="%H:%M")
            field.help_text = format_html("{}", zone)
        return field

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        obj.next_at = schedules.next_time(obj, timezone.now())
        super().save_model(request, obj, form, change)

    def preview_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Display the summary as it would be sent now, as HTML and as plain text."""
        schedule = self._get_schedule(request, pk, "view")
        period = summary.period_before(schedule.frequency, timezone.now())
        base_url = request.build_absolute_uri("/")
        period_summary = summary.load(period, signed_in_user(request))
        message = summary.build_message(period_summary, schedule.name, base_url)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Preview of %(name)s") % {"name": schedule.name},
            "opts": self.opts,
            "schedule": schedule,
            "message": message,
            # Rendered from our template, which escapes what it contains.
            "html": mark_safe(message.html),
            "may_send": self.has_change_permission(request, schedule),
        }
        return render(request, f"{DIR}/preview.html", context)

    def send_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Send the summary now, without changing when it is due."""
        schedule = self._get_schedule(request, pk, "change")
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        count = schedules.send(schedule, timezone.now())
        audit.record(request.user, SENT, schedule, name=schedule.name, count=count)
        sentence = ngettext("Sending %(n)d message.", "Sending %(n)d messages.", count)
        messages.success(request, sentence % {"n": count})
        return redirect("admin:alerts_summaryschedule_preview", pk)

    def _get_schedule(self, request: HttpRequest, pk: int, verb: str) -> SummarySchedule:
        """Return the schedule; its figures are for those who can review runs."""
        needed = f"alerts.{verb}_summaryschedule"
        if not all(map(request.user.has_perm, (needed, REVIEW_PERMISSION))):
            raise PermissionDenied
        rows = SummarySchedule.objects.all()
        if verb == "change":
            rows = rows.editable_by(request.user)
        return get_object_or_404(rows, pk=pk)
