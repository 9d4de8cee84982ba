"""Rows of agents that people decide on: a list with a tab per status, and a page per row."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from agents.console.admin_classes.read_only import ReadOnlyAdmin
from agents.db.sanitize import parse_id
from agents.insight.problems.status import ChangeRejected
from agents.models.types import LazyText
from agents.web.presentation.formats import dates
from agents.web.presentation.formats.badges import badge
from agents.web.presentation.formats.icons import icon

TAB_PARAMETER = "view"
OPEN = "open"
ALL = "all"


class TabFilter(admin.SimpleListFilter):
    """Which tab is open; displayed above the list, not among its filters."""

    title = _("status")
    parameter_name = TAB_PARAMETER

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        self.tab_filter = model_admin.tab_filter
        return list(model_admin.tab_labels.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(self.tab_filter(self.value() or OPEN, request))


class StatusAdmin(ReadOnlyAdmin):
    """Its rows have a status and the agent they are about; readers see those of their scope."""

    list_display_links = None
    list_per_page = 50
    tab_labels: ClassVar[dict[str, LazyText]]
    tones: ClassVar[dict[Any, str]]
    related: ClassVar[tuple[str, ...]] = ()

    def get_urls(self) -> list[URLPattern]:
        decide = self.admin_site.admin_view(self.decide_view)
        return [
            path("<int:pk>/decide/", decide, name=self._url_name("decide")),
            *super().get_urls(),
        ]

    def _url_name(self, page: str) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{page}"

    @property
    def template_dir(self) -> str:
        return f"admin/{self.opts.app_label}/{self.opts.model_name}"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: Any = self.model._default_manager
        visible: QuerySet[Any] = rows.for_user(request.user)
        return visible

    def check_reader(self, request: HttpRequest) -> None:
        if not request.user.has_perm(f"{self.opts.app_label}.view_{self.opts.model_name}"):
            raise PermissionDenied

    # List

    def tab_filter(self, tab: str, request: HttpRequest) -> Q:
        """Return which rows a tab has: those with the status of its name."""
        if tab == ALL:
            return Q()
        return Q(status=tab if tab in self.tones else OPEN)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        self.check_reader(request)
        columns = {
            name: Count("pk", filter=self.tab_filter(name, request)) for name in self.tab_labels
        }
        counts = self.get_queryset(request).order_by().aggregate(**columns)
        current_tab = request.GET.get(TAB_PARAMETER) or OPEN
        # Links of tabs keep the other filters.
        parameters = request.GET.copy()
        parameters.pop("p", None)
        tabs = []
        for name, label in self.tab_labels.items():
            parameters[TAB_PARAMETER] = name
            tab = {"label": label, "count": counts[name], "is_here": name == current_tab}
            tabs.append(tab | {"url": f"?{parameters.urlencode()}", "name": name})
        context = {"tabs": tabs} | (extra_context or {})
        response: HttpResponse = super().changelist_view(request, context)
        return response

    def link(self, row: Any, icon_name: str, title: str, details: str) -> SafeString:
        """Return a row's title with a link to its page."""
        return format_html(
            '<a class="status-title" href="{}">{}<span>{}</span></a><small>{}</small>',
            reverse(f"admin:{self._url_name('change')}", args=[row.pk]),
            icon(icon_name),
            title,
            details,
        )

    @admin.display(description=_("last seen"), ordering="last_seen")
    def last(self, row: Any) -> SafeString:
        return dates.timestamp(row.last_seen)

    @admin.display(description=_("first seen"), ordering="first_seen")
    def first(self, row: Any) -> SafeString:
        return dates.timestamp(row.first_seen)

    @admin.display(description=_("status"))
    def state(self, row: Any) -> SafeString:
        return badge(row.get_status_display(), self.tones[row.status])

    # Page

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: Any = None,
    ) -> HttpResponse:
        row = self._get_row(request, object_id)
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            str(self.opts.model_name): row,
            "may_decide": self.may_decide(request, row),
            **self.page_context(request, row),
        }
        return render(request, f"{self.template_dir}/change_form.html", context)

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return what the page of a row displays, with its title."""
        raise NotImplementedError

    def _get_row(self, request: HttpRequest, object_id: str) -> Any:
        self.check_reader(request)
        rows = self.get_queryset(request).select_related(*self.related)
        return get_object_or_404(rows, pk=parse_id(object_id) or 0)

    def may_decide(self, request: HttpRequest, row: Any) -> bool:
        rows: Any = self.model._default_manager
        return bool(rows.changeable_by(request.user).filter(pk=row.pk).exists())

    def decide_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Do what the user chose on the page, and say so."""
        row = target = self._get_row(request, str(pk))
        if not self.may_decide(request, row):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        try:
            sentence, target = self.decide(request, row)
            messages.success(request, sentence)
        except ChangeRejected as reason:
            messages.error(request, str(reason))
        return redirect(f"admin:{self._url_name('change')}", target.pk)

    def decide(self, request: HttpRequest, row: Any) -> tuple[Any, Any]:
        """Return the sentence that says what was done, and the row to continue with."""
        raise NotImplementedError
