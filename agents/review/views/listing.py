"""The list of runs, its filter, and saved filters."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.db import OperationalError
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from agents.access.requests import UserRequest
from agents.db import errors
from agents.models import Membership
from agents.review.filters import filter_controls
from agents.review.filters.filter_controls import Menu, Option
from agents.review.filters.filter_language import Filter, clean, parse
from agents.review.models import MAX_NAME_CHARS, SavedView
from agents.review.run_list import columns, filter_completion, grouping, listing
from agents.review.run_list.charts import build_charts
from agents.review.run_list.columns import Column, Sort
from agents.review.run_list.grouping import Grouping
from agents.review.run_list.listing import MAX_MATCHES, PAGE_SIZE, Cursor, RunPage, is_reviewer

MAX_SAVED_VIEWS = 50
MAX_PK = 2**63 - 1


@require_GET
def run_list(request: UserRequest) -> HttpResponse:
    is_part = request.htmx and not request.htmx.history_restore_request
    run_filter = parse(request.GET.get("q", ""), is_reviewer=is_reviewer(request.user))
    custom = filter_controls.custom_range(
        run_filter, request.GET.get("from", ""), request.GET.get("to", "")
    )
    look = ListLook.of(request)
    if custom is not None:
        return redirect(look.url(custom))
    numbers = _page_numbers(request)
    cursor = Cursor(
        older=numbers.get("older"),
        newer=numbers.get("newer"),
        number=numbers.get("page") or 1,
    )
    page = listing.load_page(request.user, run_filter, cursor, look.sort, look.grouping)
    rows = listing.load_rows(page.pks, request.user, look.names)
    is_first = cursor == Cursor()
    problems = [*run_filter.problems]
    if not page.found:
        problems += filter_completion.suggestions(request.user, run_filter)
    context = {
        "is_part": is_part,
        "asked": run_filter,
        "look": look,
        "page": page,
        "groups": (
            grouping.build_groups(look.grouping, page.found[:MAX_MATCHES], rows, request.user)
            if look.grouping
            else [grouping.Group(rows=rows)]
        ),
        "charts": build_charts(page.found[:MAX_MATCHES]) if is_first else [],
        "is_first": is_first,
        "menus": [
            filter_controls.date_menu(run_filter, look.url),
            filter_controls.status_menu(run_filter, look.url),
            filter_controls.agent_menu(run_filter, look.url),
        ],
        "group_menu": _group_menu(request, run_filter, look),
        "imported": filter_controls.imported_option(run_filter, look.url),
        "chips": [
            {
                "text": run_filter.source_text(term),
                "is_not": term.is_not,
                "url": look.url(run_filter.without(term)),
            }
            for term in run_filter.terms
        ],
        "problems": [
            {
                "sentence": problem.sentence,
                "instead": problem.instead,
                "url": look.url(run_filter.with_suggestion(problem)) if problem.instead else "",
            }
            for problem in problems
        ],
        "quick_filters": filter_controls.quick_filters(run_filter, look.url),
        "saved": _saved_views(run_filter, look),
        "fields": filter_completion.available_fields(request.user),
        "may_review": is_reviewer(request.user),
        "within": look.kept(run_filter.text),
        "counted": _count_text(page, cursor),
        "place": numbers.items(),  # for actions that come back to this page
        "matching": f"{page.count:,}{'+' if page.is_cut or page.unread else ''}",
    }
    response = render(request, f"trace/list.html{'#found' if is_part else ''}", context)
    patch_vary_headers(response, ["HX-Request"])
    return response


@dataclass(frozen=True, kw_only=True)
class ListLook:
    """Columns and order of the list, from the URL or the user's own."""

    columns: list[Column]
    available: list[Column]
    sort: Sort | None
    grouping: Grouping | None
    url_columns: str  # only what the URL has; a user's own columns aren't repeated in links
    views: list[SavedView]

    @classmethod
    def of(cls, request: UserRequest) -> "ListLook":
        rights: set[str] = set()
        if is_reviewer(request.user):
            rights = {columns.PEOPLE, columns.REVIEW}
        elif Membership.objects.shared_topics(request.user):
            rights = {columns.PEOPLE}
        values = request.POST if request.method == "POST" else request.GET
        text = ",".join(columns.split(values.get("columns", "")))
        views = list(SavedView.objects.filter(user=request.user))
        own = next((view for view in views if view.name == columns.OWN_COLUMNS), None)
        return cls(
            columns=columns.chosen(text, own.columns if own else "", rights),
            available=columns.available(rights),
            sort=columns.parse_sort(values.get("sort", ""), rights),
            grouping=grouping.parse(values.get("group", ""), request.user),
            url_columns=text,
            views=[view for view in views if view != own],
        )

    @property
    def names(self) -> set[str]:
        return {column.name for column in self.columns}

    @property
    def sort_text(self) -> str:
        return str(self.sort) if self.sort else ""

    @property
    def group_name(self) -> str:
        return self.grouping.name if self.grouping else ""

    @property
    def headers(self) -> list[dict[str, Any]]:
        """The columns, each with the URL that sorts by it, or turns the order around."""
        sorted_by = self.sort.column.name if self.sort else "started"
        is_descending = self.sort.is_descending if self.sort else True
        headers = []
        for column in self.columns:
            sort = {}
            if column.key is not None:
                turns_descending = column.starts_descending
                order = "none"
                if column.name == sorted_by:
                    turns_descending = not is_descending
                    order = "descending" if is_descending else "ascending"
                text = f"-{column.name}" if turns_descending else column.name
                sort = {"text": text, "order": order}
            headers.append({"column": column, "sort": sort})
        return headers

    def url(self, query: str) -> str:
        """Return the list's URL with another filter, in this look."""
        return list_url(query, self.sort_text, self.url_columns, self.group_name)

    def kept(self, query: str) -> str:
        """Return what a run's page needs to know its neighbors."""
        parameters = {"within": query, "sort": self.sort_text}
        text = urlencode({name: value for name, value in parameters.items() if value})
        return f"?{text}" if text else ""


@require_GET
def completions(request: UserRequest) -> JsonResponse:
    return JsonResponse({"fields": filter_completion.completions(request.user)})


@require_POST
def save_view(request: UserRequest) -> HttpResponse:
    """Save a filter with its look by name, replacing one with the same name."""
    query = clean(request.POST.get("q", ""))
    look = ListLook.of(request)
    name = clean(request.POST.get("name", ""))[:MAX_NAME_CHARS] or query[:MAX_NAME_CHARS]
    own_views = SavedView.objects.filter(user=request.user).exclude(name=columns.OWN_COLUMNS)
    if own_views.count() >= MAX_SAVED_VIEWS and not own_views.filter(name=name).exists():
        messages.error(
            request, _("You've reached the limit for saved views. Delete one first.")
        )
    elif name:
        values = {
            "query": query,
            "sort": look.sort_text,
            "columns": columns.join(look.columns),
            "grouping": look.group_name,
        }
        try:
            own_views.update_or_create(values, user=request.user, name=name)
        except OperationalError as error:
            messages.error(request, errors.error_message(error))
    return redirect(look.url(query))


@require_POST
def delete_view(request: UserRequest, pk: int) -> HttpResponse:
    get_object_or_404(SavedView, user=request.user, pk=pk).delete()
    return redirect(list_url(clean(request.POST.get("q", ""))))


@require_POST
def save_columns(request: UserRequest) -> HttpResponse:
    """Save the user's own columns, or the default ones again."""
    look = ListLook.of(request)
    names = (
        columns.DEFAULT_COLUMNS if "reset" in request.POST else request.POST.getlist("column")
    )
    chosen_names = {*names, columns.FIXED_COLUMN}
    chosen = [column for column in look.available if column.name in chosen_names]
    try:
        columns.save_own(request.user, chosen)
    except OperationalError as error:
        messages.error(request, errors.error_message(error))
    return redirect(
        list_url(clean(request.POST.get("q", "")), look.sort_text, group=look.group_name)
    )


def list_url(query: str, sort: str = "", column_names: str = "", group: str = "") -> str:
    """Return the URL of the list with this filter, order, columns and grouping."""
    parameters = {"q": query, "sort": sort, "columns": column_names, "group": group}
    text = urlencode({name: value for name, value in parameters.items() if value})
    return reverse("trace:list") + (f"?{text}" if text else "")


def _page_numbers(request: UserRequest) -> dict[str, int]:
    """Return which page of the list is asked for, clamped to what a database accepts."""
    texts = {name: request.GET.get(name, "") for name in ("older", "newer", "page")}
    return {
        name: min(int(text), MAX_PK)
        for name, text in texts.items()
        if text.isascii() and text.isdigit() and len(text) < 20
    }


def _group_menu(request: UserRequest, run_filter: Filter, look: ListLook) -> Menu:
    choices = {"": _("None")}
    choices |= {g.name: str(g.label) for g in grouping.available(request.user)}
    options = [
        Option(
            label=label,
            url=list_url(run_filter.text, look.sort_text, look.url_columns, name),
            is_on=name == look.group_name,
        )
        for name, label in choices.items()
    ]
    label = _("Group by")
    if look.grouping is not None:
        label = f"{label}: {look.grouping.label}"
    return Menu(name="group", label=label, options=options, is_used=bool(look.grouping))


def _saved_views(run_filter: Filter, look: ListLook) -> list[dict[str, Any]]:
    names = columns.join(look.columns)
    current = (run_filter.text, look.sort_text, names, look.group_name)
    return [
        {
            "pk": view.pk,
            "name": view.name,
            "query": view.query,
            "url": list_url(view.query, view.sort, view.columns, view.grouping),
            "is_current": current
            == (view.query, view.sort, view.columns or names, view.grouping),
        }
        for view in look.views
    ]


def _count_text(page: RunPage, cursor: Cursor) -> str:
    """Return the number of matches, as far as known."""
    if page.is_ordered:
        first = (page.number - 1) * PAGE_SIZE
        params = {"first": first + 1, "last": first + len(page.pks), "count": f"{page.count:,}"}
        return _("%(first)s–%(last)s of %(count)s") % params if page.pks else ""
    params = {"shown": min(page.count, PAGE_SIZE), "count": f"{page.count:,}"}
    if page.unread:
        return _("%(count)s so far") % params
    if page.is_cut:
        return _("%(shown)s of more than %(count)s") % params
    if cursor == Cursor():
        return _("%(shown)s of %(count)s") % params
    return _("%(shown)s of the last %(count)s") % params
