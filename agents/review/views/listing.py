"""The list of runs, its filter, and saved filters."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.db import OperationalError
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from agents.access.requests import UserRequest
from agents.db import errors
from agents.models import Membership
from agents.models.types import LazyText
from agents.review import filter_completion, listing
from agents.review.charts import build_charts
from agents.review.filter_language import Filter, FilterProblem, clean, parse
from agents.review.listing import MAX_MATCHES, PAGE_SIZE, Cursor, RunPage, is_reviewer
from agents.review.models import MAX_NAME_CHARS, SavedView

MAX_SAVED_VIEWS = 50
MAX_PK = 2**63 - 1
BUILT_IN_VIEWS = {
    "status:failed": gettext_lazy("Failed"),
    "duration:>30s": gettext_lazy("Slow"),
    "cost:>0.05": gettext_lazy("Expensive"),
    "rating:down": gettext_lazy("Thumbs down"),
    "flag:open": gettext_lazy("Waiting for review"),
}


@require_GET
def run_list(request: UserRequest) -> HttpResponse:
    is_part = request.htmx and not request.htmx.history_restore_request
    run_filter = _parse_filter(request)
    cursor = Cursor(
        older=_parse_number(request, "older"), newer=_parse_number(request, "newer")
    )
    page = listing.page(request.user, run_filter, cursor)
    topics = Membership.objects.shared_topics(request.user)
    context = {
        "is_part": is_part,
        "asked": run_filter,
        "page": page,
        "charts": [] if cursor != Cursor() else build_charts(page.found[:MAX_MATCHES]),
        "is_first": cursor == Cursor(),
        "chips": _chips(run_filter),
        "problems": _problems(
            run_filter,
            [] if page.found else filter_completion.suggestions(request.user, run_filter),
        ),
        "ready_made": _view_links(run_filter, BUILT_IN_VIEWS.items()),
        "saved": SavedView.objects.filter(user=request.user),
        "fields": filter_completion.available_fields(request.user),
        "show_people": is_reviewer(request.user) or bool(topics),
        "within": f"?{urlencode({'within': run_filter.text})}" if run_filter.text else "",
        "counted": _count_text(page, cursor),
    }
    response = render(request, f"trace/list.html{'#found' if is_part else ''}", context)
    patch_vary_headers(response, ["HX-Request"])
    return response


@require_GET
def completions(request: UserRequest) -> JsonResponse:
    return JsonResponse({"fields": filter_completion.completions(request.user)})


@require_POST
def save_view(request: UserRequest) -> HttpResponse:
    """Save a filter by name, replacing one with the same name."""
    query = clean(request.POST.get("q", ""))
    name = clean(request.POST.get("name", ""))[:MAX_NAME_CHARS] or query[:MAX_NAME_CHARS]
    saved = SavedView.objects.filter(user=request.user)
    if saved.count() >= MAX_SAVED_VIEWS and not saved.filter(name=name).exists():
        messages.error(
            request, _("You've reached the limit for saved views. Delete one first.")
        )
    elif query:
        try:
            saved.update_or_create({"query": query}, user=request.user, name=name)
        except OperationalError as error:
            messages.error(request, errors.error_message(error))
    return redirect(list_url(query))


@require_POST
def delete_view(request: UserRequest, pk: int) -> HttpResponse:
    get_object_or_404(SavedView, user=request.user, pk=pk).delete()
    return redirect(list_url(clean(request.POST.get("q", ""))))


def list_url(query: str) -> str:
    """Return the URL of the list with this filter."""
    return reverse("trace:list") + (f"?{urlencode({'q': query})}" if query else "")


def _parse_filter(request: UserRequest) -> Filter:
    return parse(request.GET.get("q", ""), is_reviewer=is_reviewer(request.user))


def _parse_number(request: UserRequest, name: str) -> int | None:
    text = request.GET.get(name, "")
    is_number = text.isascii() and text.isdigit() and len(text) < 20
    return min(int(text), MAX_PK) if is_number else None


def _chips(run_filter: Filter) -> list[dict[str, Any]]:
    """Return each term with the URL of the list without it."""
    return [
        {
            "text": run_filter.source_text(term),
            "is_not": term.is_not,
            "url": list_url(run_filter.without(term)),
        }
        for term in run_filter.terms
    ]


def _problems(run_filter: Filter, more: list[FilterProblem]) -> list[dict[str, str]]:
    return [
        {
            "sentence": problem.sentence,
            "instead": problem.instead,
            "url": list_url(run_filter.with_suggestion(problem)) if problem.instead else "",
        }
        for problem in (*run_filter.problems, *more)
    ]


def _view_links(
    run_filter: Filter, views: Iterable[tuple[str, LazyText]]
) -> list[dict[str, Any]]:
    return [
        {"name": name, "url": list_url(query), "is_current": query == run_filter.text}
        for query, name in views
    ]


def _count_text(page: RunPage, cursor: Cursor) -> str:
    """Return the number of matches, as far as known."""
    about = {"shown": min(page.count, PAGE_SIZE), "count": f"{page.count:,}"}
    if page.unread:
        return _("%(count)s so far") % about
    if page.is_cut:
        return _("%(shown)s of more than %(count)s") % about
    if cursor == Cursor():
        return _("%(shown)s of %(count)s") % about
    return _("%(shown)s of the last %(count)s") % about
