"""Suggestions in the console: a list, and a page per suggestion to measure and apply it."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from agents.access.requests import signed_in_user
from agents.console.admin_classes.agent_filter import ReviewedAgentFilter
from agents.insight.problems.pages.status_admin import ALL, OPEN, StatusAdmin, TabFilter
from agents.insight.problems.status import ChangeRejected
from agents.insight.suggestions import decisions, presentation
from agents.insight.suggestions.models import Suggestion
from agents.insight.suggestions.presentation import SuggestionView

ICONS = {
    Suggestion.Kind.TOOL_FAILS: "failed",
    Suggestion.Kind.TOOL_UNUSED: "tool",
    Suggestion.Kind.INSTRUCTION: "note",
}


class SuggestionAdmin(StatusAdmin):
    list_display = ["finding", "agent", "measured", "last", "state"]
    list_filter = [TabFilter, "kind", ("agent", ReviewedAgentFilter)]
    list_select_related = ["agent", "before", "after"]
    search_fields = ["subject", "text", "agent__name"]
    sortable_by = ["agent", "last"]
    change_list_template = "admin/suggestions/suggestion/change_list.html"
    tab_labels = {
        OPEN: pgettext_lazy("suggestion", "Open"),
        Suggestion.Status.APPLIED: _("Applied"),
        Suggestion.Status.DISMISSED: _("Dismissed"),
        ALL: _("All"),
    }
    tones = presentation.TONES
    related = ("agent", "before", "after")

    @admin.display(description=_("suggestion"))
    def finding(self, suggestion: Suggestion) -> SafeString:
        icon_name = ICONS[Suggestion.Kind(suggestion.kind)]
        title = presentation.title(suggestion)
        return self.link(suggestion, icon_name, title, str(suggestion.get_kind_display()))

    @admin.display(description=_("measured"))
    def measured(self, suggestion: Suggestion) -> str:
        if suggestion.after is None:
            return "—"
        return str(_("In progress") if suggestion.after.is_running else _("Yes"))

    def page_context(self, request: HttpRequest, suggestion: Suggestion) -> dict[str, Any]:
        view = SuggestionView(suggestion, signed_in_user(request), request.session)
        return {"title": view.title, "view": view}

    def decide(self, request: HttpRequest, suggestion: Suggestion) -> tuple[Any, Suggestion]:
        """Measure, apply, take back or dismiss a suggestion."""
        user = signed_in_user(request)
        action = request.POST.get("action")
        sentence: Any
        if action in {"measure", "apply"} and "text" in request.POST:
            decisions.set_text(suggestion, request.POST["text"])
        match action:
            case "measure":
                decisions.measure(suggestion, user)
                sentence = _("The backtests started. This page displays their results.")
            case "apply":
                number = decisions.apply(suggestion, user)
                sentence = _("Published as version %(number)d.") % {"number": number}
            case "take_back":
                number = decisions.take_back(suggestion, user)
                sentence = _("Undone in version %(number)d.") % {"number": number}
            case "dismiss":
                decisions.dismiss(suggestion, user)
                sentence = _("Dismissed. It won't be suggested again.")
            case "reopen":
                decisions.reopen(suggestion, user)
                sentence = _("Opened again.")
            case _:
                raise ChangeRejected(_("Choose what to do with this suggestion."))
        return sentence, suggestion


admin.site.register(Suggestion, SuggestionAdmin)
