"""Suggestions in the console: a list by status, and a page with evidence and measurement."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from agents.access.requests import signed_in_user
from agents.console.agent_filter import ReviewedAgentFilter
from agents.console.read_only import ReadOnlyAdmin
from agents.suggestions import decisions, presentation
from agents.suggestions.errors import SuggestionRejected
from agents.suggestions.models import VIEW_PERMISSION, Suggestion
from agents.suggestions.presentation import SuggestionView
from agents.web.presentation import dates
from agents.web.presentation.badges import badge
from agents.web.presentation.icons import icon

Status = Suggestion.Status
LIST_URL = "admin:suggestions_suggestion_changelist"
PAGE_URL = "admin:suggestions_suggestion_change"
DIR = "admin/suggestions/suggestion"
TAB_PARAMETER = "view"
TAB_LABELS = {
    "open": pgettext_lazy("suggestion", "Open"),
    "applied": _("Applied"),
    "dismissed": _("Dismissed"),
    "all": _("All"),
}
ICONS = {
    Suggestion.Kind.TOOL_FAILS: "failed",
    Suggestion.Kind.TOOL_UNUSED: "tool",
    Suggestion.Kind.INSTRUCTION: "note",
}


class TabFilter(admin.SimpleListFilter):
    """Which tab is open; displayed above the list, not among its filters."""

    title = _("status")
    parameter_name = TAB_PARAMETER

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return list(TAB_LABELS.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(_tab_filter(self.value() or "open"))


def _tab_filter(tab: str) -> Q:
    return Q() if tab == "all" else Q(status=tab if tab in Status.values else Status.OPEN)


class SuggestionAdmin(ReadOnlyAdmin):
    list_display = ["finding", "agent", "measured", "last", "state"]
    list_display_links = None
    list_filter = [TabFilter, "kind", ("agent", ReviewedAgentFilter)]
    list_select_related = ["agent", "before", "after"]
    search_fields = ["subject", "text", "agent__name"]
    sortable_by = ["agent", "last"]
    list_per_page = 50
    change_list_template = f"{DIR}/change_list.html"

    def get_urls(self) -> list[URLPattern]:
        decide = self.admin_site.admin_view(self.decide_view)
        own = [path("<int:pk>/decide/", decide, name="suggestions_suggestion_decide")]
        return [*own, *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Suggestion]:
        return Suggestion.objects.for_user(request.user)

    # List

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not request.user.has_perm(VIEW_PERMISSION):
            raise PermissionDenied
        context = {"tabs": self._tabs(request)} | (extra_context or {})
        response: HttpResponse = super().changelist_view(request, context)
        return response

    def _tabs(self, request: HttpRequest) -> list[dict[str, Any]]:
        rows = self.get_queryset(request).order_by()
        counts = rows.aggregate(
            **{name: Count("pk", filter=_tab_filter(name)) for name in TAB_LABELS}
        )
        current_tab = request.GET.get(TAB_PARAMETER) or "open"
        parameters = request.GET.copy()
        parameters.pop("p", None)
        entries = []
        for name, label in TAB_LABELS.items():
            parameters[TAB_PARAMETER] = name
            entry = {"label": label, "count": counts[name], "is_here": name == current_tab}
            entries.append(entry | {"url": f"?{parameters.urlencode()}", "name": name})
        return entries

    @admin.display(description=_("suggestion"))
    def finding(self, suggestion: Suggestion) -> SafeString:
        return format_html(
            '<a class="suggestion-title" href="{}">{}<span>{}</span></a><small>{}</small>',
            reverse(PAGE_URL, args=[suggestion.pk]),
            icon(ICONS[Suggestion.Kind(suggestion.kind)]),
            presentation.title(suggestion),
            suggestion.get_kind_display(),
        )

    @admin.display(description=_("measured"))
    def measured(self, suggestion: Suggestion) -> str:
        if suggestion.after is None:
            return "—"
        return str(_("In progress") if suggestion.after.is_running else _("Yes"))

    @admin.display(description=_("last seen"), ordering="last_seen")
    def last(self, suggestion: Suggestion) -> SafeString:
        return dates.timestamp(suggestion.last_seen)

    @admin.display(description=_("status"))
    def state(self, suggestion: Suggestion) -> SafeString:
        tone = presentation.TONES[Status(suggestion.status)]
        return badge(suggestion.get_status_display(), tone)

    # Page

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: Any = None,
    ) -> HttpResponse:
        suggestion, user = self._get_suggestion(request, object_id), signed_in_user(request)
        view = SuggestionView(suggestion, user, request.session)
        context = {
            **self.admin_site.each_context(request),
            "title": view.title,
            "opts": self.opts,
            "suggestion": suggestion,
            "view": view,
            "may_decide": _may_decide(request, suggestion),
        }
        return render(request, f"{DIR}/change_form.html", context)

    def _get_suggestion(self, request: HttpRequest, object_id: str) -> Suggestion:
        if not request.user.has_perm(VIEW_PERMISSION):
            raise PermissionDenied
        is_number = object_id.isascii() and object_id.isdigit() and len(object_id) < 18
        rows = self.get_queryset(request).select_related("agent", "before", "after")
        return get_object_or_404(rows, pk=int(object_id) if is_number else 0)

    def decide_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Measure, apply, take back or dismiss a suggestion."""
        suggestion = self._get_suggestion(request, str(pk))
        if not _may_decide(request, suggestion):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        try:
            messages.success(request, self._decide(request, suggestion))
        except SuggestionRejected as reason:
            messages.error(request, str(reason))
        return redirect(PAGE_URL, suggestion.pk)

    def _decide(self, request: HttpRequest, suggestion: Suggestion) -> Any:
        """Do what was chosen; return the sentence that says so."""
        user, action = signed_in_user(request), request.POST.get("action")
        if action in {"measure", "apply"} and "text" in request.POST:
            decisions.set_text(suggestion, request.POST["text"])
        match action:
            case "measure":
                decisions.measure(suggestion, user)
                return _("The backtests started. This page displays their results.")
            case "apply":
                number = decisions.apply(suggestion, user)
                return _("Published as version %(number)d.") % {"number": number}
            case "take_back":
                number = decisions.take_back(suggestion, user)
                return _("Taken back in version %(number)d.") % {"number": number}
            case "dismiss":
                decisions.dismiss(suggestion, user)
                return _("Dismissed. It won't be suggested again.")
            case "reopen":
                decisions.reopen(suggestion, user)
                return _("Opened again.")
        raise SuggestionRejected(_("Choose what to do with this suggestion."))


def _may_decide(request: HttpRequest, suggestion: Suggestion) -> bool:
    changeable = Suggestion.objects.changeable_by(request.user)
    return changeable.filter(pk=suggestion.pk).exists()


admin.site.register(Suggestion, SuggestionAdmin)
