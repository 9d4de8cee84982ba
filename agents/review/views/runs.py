"""The page of one run."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from agents import display
from agents.models import Run


@require_GET
def run(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(Run.objects.for_user(request.user), pk=pk)
    is_own = row.user_id == request.user.pk
    view = display.RunView(row, place="trace", may_decide=is_own)
    chat_url = view.chat_url if is_own else ""
    context = {"view": view, "question": row.query, "chat_url": chat_url}
    return render(request, "trace/run.html", context)
