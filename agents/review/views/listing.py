"""The list of runs."""

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from agents import display, masking
from agents.models import Run

A_PAGE = 50
MOST_QUERY = 200


@require_GET
def run_list(request: HttpRequest) -> HttpResponse:
    status = request.GET.get("status", "")
    query = request.GET.get("q", "").replace("\0", "")[:MOST_QUERY]
    runs = Run.objects.for_user(request.user).select_related("user")
    if status in Run.Status:
        runs = runs.filter(status=status)
    if query:
        runs = runs.filter(query__icontains=query)
    page = Paginator(runs, A_PAGE).get_page(request.GET.get("page"))
    page.object_list = display.rows(
        run if run.is_of(request.user) else masking.masked(run) for run in page.object_list
    )
    context = {
        "page": page,
        "status": status,
        "statuses": Run.Status.choices,
        "q": query,
        "show_people": request.user.has_perm("agents.review_runs"),
    }
    return render(request, "trace/list.html", context)
