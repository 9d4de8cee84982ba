"""Learning: what agents learned that others use, and what waits for a review.

What was learned from one person for themselves isn't here: it is theirs.
"""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agents.access.requests import signed_in_user
from agents.engine.text import shorten
from agents.memory import NoteRejected, experiences
from agents.models import Agent, Experience, ExperienceRun, ReviewScope, Run
from agents.web.presentation.formats.badges import badge

from ..admin_classes.agent_filter import ReviewedAgentFilter
from ..admin_classes.model_admin import ConsoleAdmin

TONES = {"active": "green", "review": "amber", "off": ""}
MAX_RUNS = 20
Status = Experience.Status
OffReason = Experience.OffReason


class ExperienceForm(forms.ModelForm):
    """The words of an experience, checked like those that the job finds."""

    class Meta:
        model = Experience
        fields = ("agent", "kind", "question", "text")
        widgets = {
            "question": forms.Textarea({"rows": 2}),
            "text": forms.Textarea({"rows": 4}),
        }

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        row = self.instance
        if not row.pk:
            row.scope = Experience.Scope.AGENT
            row.agent = cleaned.get("agent")
        if "question" in cleaned and "text" in cleaned and row.agent_id is not None:
            try:
                experiences.edit(row, cleaned["question"], cleaned["text"])
            except NoteRejected as reason:
                raise forms.ValidationError({"text": str(reason)}) from reason
            cleaned |= {"question": row.question, "text": row.text}
        return cleaned


@admin.register(Experience)
class ExperienceAdmin(ConsoleAdmin):
    """Approve, edit, turn off and delete what others use."""

    tells_values = False  # they are users' text
    form = ExperienceForm
    list_display = ["lesson", "question", "agent", "scope", "state", "outcome", "created_at"]
    list_filter = ["status", "scope", "kind", "source", ("agent", ReviewedAgentFilter)]
    list_select_related = ["agent"]
    search_fields = ["question", "text"]
    actions = ["approve", "reject", "turn_off"]
    change_form_template = "admin/agents/experience/change_form.html"
    change_list_template = "admin/agents/experience/change_list.html"
    readonly_fields = ["scope", "project", "source", "state", "outcome", "evidence"]
    list_per_page = 50

    def get_queryset(self, request: HttpRequest) -> QuerySet[Experience]:
        return Experience.objects.present().reviewable_by(request.user)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        fields = ["agent", "kind", "question", "text"]
        if obj is None:
            return fields
        fields += ["scope", "project"] if obj.project_id else ["scope"]
        return [*fields, "source", "state", "outcome", "expires_at", "evidence"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        if obj is None:
            return []
        return [*self.readonly_fields, "agent", "kind", "expires_at"]

    def formfield_for_foreignkey(self, db_field: Any, request: Any, **options: Any) -> Any:
        if db_field.name == "agent":
            agents = ReviewScope.objects.reviewed_agents(signed_in_user(request))
            options["queryset"] = agents.filter(enabled=True)
        return super().formfield_for_foreignkey(db_field, request, **options)

    @admin.display(description=gettext_lazy("lesson"), ordering="text")
    def lesson(self, row: Experience) -> str:
        return shorten(row.text, 90)

    @admin.display(description=gettext_lazy("status"), ordering="status")
    def state(self, row: Experience) -> SafeString:
        reason = f" · {row.get_off_reason_display()}" if row.off_reason else ""
        return format_html("{}{}", badge(row.get_status_display(), TONES[row.status]), reason)

    @admin.display(description=gettext_lazy("outcome"), ordering="helpful")
    def outcome(self, row: Experience) -> str:
        if not (row.helpful or row.harmful):
            return "—"
        figures = {"helpful": row.helpful, "harmful": row.harmful}
        return _("helped %(helpful)d×, harmed %(harmful)d×") % figures

    @admin.display(description=gettext_lazy("evidence"))
    def evidence(self, row: Experience) -> SafeString:
        """Link the runs it comes from and that used it, as far as this user can open them."""
        visible_run_ids: set[int] = getattr(row, "visible_runs", set())
        items = []
        for link in row.evidence.select_related("run").order_by("role", "-run_id")[:MAX_RUNS]:
            if link.run_id not in visible_run_ids:
                continue
            label = link.get_role_display()
            if link.role == ExperienceRun.Role.USED and link.outcome:
                label = f"{label} · {link.get_outcome_display()}"
            url = reverse("trace:run", args=[link.run_id])
            items.append((url, _("Run %(run)d") % {"run": link.run_id}, label))
        lines = format_html_join("", '<li><a href="{}">{}</a> <span>{}</span></li>', items)
        return format_html('<ul class="learned-runs">{}</ul>', lines)

    def get_object(self, request: HttpRequest, *args: Any) -> Any:
        row = super().get_object(request, *args)
        if row is not None:
            runs = Run.objects.for_user(signed_in_user(request))
            mine = runs.filter(pk__in=row.evidence.values("run"))
            row.visible_runs = set(mine.values_list("pk", flat=True))
        return row

    def save_model(self, request: Any, obj: Experience, form: Any, change: bool) -> None:
        if not change:
            obj.source = Experience.Source.PAGE
            obj.status = Status.ACTIVE
            obj.reviewed_by = request.user
        super().save_model(request, obj, form, change)
        if "_approve" in request.POST:
            experiences.approve(obj, request.user)
        elif "_reject" in request.POST:
            experiences.reject(obj, request.user)
        elif "_off" in request.POST:
            experiences.switch(obj, is_on=False, reason=OffReason.CONSOLE)

    def response_change(self, request: HttpRequest, obj: Experience) -> HttpResponse:
        sentences = {
            "_approve": _("Approved. Used for similar messages from now on."),
            "_reject": _("Rejected. Other users won't get it."),
            "_off": _("Turned off."),
        }
        for name, sentence in sentences.items():
            if name in request.POST:
                self.message_user(request, sentence, messages.SUCCESS)
                return self.response_post_save_change(request, obj)
        return super().response_change(request, obj)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        rows = self.get_queryset(request)
        context = {
            "title": _("Learning"),
            "waiting": rows.filter(status=Status.REVIEW).count(),
            "learners": Agent.objects.filter(learns=True, enabled=True).count(),
        }
        return super().changelist_view(request, context | (extra_context or {}))

    @admin.action(description=gettext_lazy("Approve"), permissions=["change"])
    def approve(self, request: HttpRequest, rows: QuerySet[Experience]) -> None:
        count = 0
        for row in rows:
            try:
                experiences.approve(row, signed_in_user(request))
            except NoteRejected as reason:
                self.message_user(request, str(reason), messages.ERROR)
                continue
            self.log_change(request, row, "approve")
            count += 1
        self._report(request, count)

    @admin.action(description=gettext_lazy("Reject"), permissions=["change"])
    def reject(self, request: HttpRequest, rows: QuerySet[Experience]) -> None:
        for row in rows:
            experiences.reject(row, signed_in_user(request))
            self.log_change(request, row, "reject")
        self._report(request, len(rows))

    @admin.action(description=gettext_lazy("Turn off"), permissions=["change"])
    def turn_off(self, request: HttpRequest, rows: QuerySet[Experience]) -> None:
        for row in rows:
            experiences.switch(row, is_on=False, reason=OffReason.CONSOLE)
            self.log_change(request, row, "off")
        self._report(request, len(rows))

    def _report(self, request: HttpRequest, count: int) -> None:
        if count:
            text = ngettext(
                "%(count)d lesson was changed.",
                "%(count)d lessons were changed.",
                count,
            )
            self.message_user(request, text % {"count": count}, messages.SUCCESS)
