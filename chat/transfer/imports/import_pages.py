"""Pages to import chats: upload, count, import, and the result for each chat."""

from django.core.paginator import Paginator
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.access.requests import UserRequest
from agents.db.installation import configured
from agents.models.types import LazyText
from chat.models import ChatImport, ImportResult
from chat.transfer.imports import jobs
from chat.transfer.imports.formats import FORMATS
from chat.transfer.imports.values import Problem

RESULTS_PER_PAGE = 100
RECENT_IMPORTS = 10
PROBLEMS: dict[str, LazyText] = {
    Problem.BAD_ZIP: gettext_lazy("The ZIP file is damaged or encrypted."),
    Problem.BROKEN: gettext_lazy("This part of the file isn't valid JSON."),
    Problem.CRASHED: gettext_lazy(
        "The process reading this file crashed twice. The file may need more memory than "
        "this server has. Import fewer chats at once; chats already imported aren't "
        "duplicated."
    ),
    Problem.EMPTY: gettext_lazy("This chat has no messages."),
    Problem.FILE_GONE: gettext_lazy(
        "The uploaded file is no longer available. Upload it again; chats already imported "
        "aren't duplicated."
    ),
    Problem.NO_CHATS: gettext_lazy("No chats were found in the file."),
    Problem.NOT_A_CHAT: gettext_lazy("This isn't a chat in a known format."),
    Problem.NOT_JSON: gettext_lazy("This file is neither JSON nor a ZIP file."),
    Problem.OLD: gettext_lazy("This chat is older than this server's retention period."),
    Problem.TOO_DEEP: gettext_lazy(
        "This chat is nested too deeply. Export it again without the option “recursive”."
    ),
    Problem.TOO_LARGE: gettext_lazy("This chat is larger than 32 MB."),
    Problem.TOO_MANY_CHATS: gettext_lazy("The file has more than 50,000 chats."),
    Problem.TOO_MANY_FILES: gettext_lazy(
        "The ZIP file has more than 20,000 files, or their names are too long."
    ),
    Problem.TOO_MANY_MESSAGES: gettext_lazy("This chat has more than 20,000 messages."),
    Problem.TOO_MUCH: gettext_lazy("The unpacked file is larger than 2 GB."),
    Problem.UNEXPECTED: gettext_lazy(
        "An unexpected error occurred. Your administrator can find it in the server log."
    ),
}


@require_http_methods(["GET", "POST"])
def upload(request: UserRequest) -> HttpResponse:
    """Display the form; save uploaded files and start counting."""
    if request.method == "GET":
        return _render_form(request)
    try:
        job = jobs.create(request.user, request.FILES.getlist("files"))
    except jobs.ImportRejected as reason:
        return _render_form(request, problem=_rejection(reason.code), status=422)
    jobs.start(job)
    return redirect("chat:import_job", job.pk)


@require_GET
def show(request: UserRequest, pk: int) -> HttpResponse:
    """Display an import: its progress, and what became of each chat."""
    job = _get_job(request, pk)
    outcome = request.GET.get("outcome", "")
    results = job.results.select_related("session")
    if outcome in ImportResult.Outcome.values:
        results = results.filter(outcome=outcome)
    page = Paginator(results, RESULTS_PER_PAGE).get_page(request.GET.get("page"))
    for result in page:
        vars(result)["reason"] = PROBLEMS.get(result.problem, "")
    counts = dict(
        job.results.order_by().values_list("outcome").annotate(count=Count("pk")).distinct()
    )
    context = {
        "job": job,
        "reason": PROBLEMS.get(job.problem, ""),
        "results": page,
        "outcome": outcome,
        "counts": [
            (value, label, counts[value])
            for value, label in ImportResult.Outcome.choices
            if counts.get(value)
        ],
        "imported": counts.get(ImportResult.Outcome.IMPORTED, 0),
        "already": job.found - job.is_new,
    }
    template = "chat/imports/import_job.html" + ("#progress" if request.htmx else "")
    response = render(request, template, context)
    response["Cache-Control"] = "no-store"
    return response


@require_POST
def start(request: UserRequest, pk: int) -> HttpResponse:
    job = _get_job(request, pk)
    if jobs.confirm(job):
        jobs.start(job)
    return redirect("chat:import_job", pk)


@require_POST
def cancel(request: UserRequest, pk: int) -> HttpResponse:
    jobs.cancel(_get_job(request, pk))
    return redirect("chat:import_job", pk)


def _get_job(request: UserRequest, pk: int) -> ChatImport:
    return get_object_or_404(ChatImport.objects.for_user(request.user), pk=pk)


def _render_form(request: UserRequest, problem: str = "", status: int = 200) -> HttpResponse:
    context = {
        "problem": problem,
        "imports": ChatImport.objects.for_user(request.user)[:RECENT_IMPORTS],
        "most_mb": configured.IMPORT_MB.value,
        "formats": FORMATS,
    }
    return render(request, "chat/imports/import.html", context, status=status)


def _rejection(code: str) -> str:
    sentences = {
        "no_file": _("Choose a file first."),
        "too_many_uploads": _("Upload at most %(most)d files at once.")
        % {"most": jobs.MAX_FILES},
        "too_large_upload": _("The files are larger than %(most)d MB.")
        % {"most": configured.IMPORT_MB.value},
        "disk_full": _("Storage is full, so this wasn't saved. Contact your administrator."),
        "already_running": _("Another import is still in progress. Wait until it's finished."),
    }
    return sentences.get(code, _("The file couldn't be saved. Try again later."))
