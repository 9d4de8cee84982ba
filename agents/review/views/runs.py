"""The page of one run."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from agents import display
from agents.review.reading import read


@require_GET
def run(request: HttpRequest, pk: int) -> HttpResponse:
    found = read(request, pk)
    view = display.RunView(found.run, place="trace", may_decide=found.is_own, veil=found.veil)
    context = {
        "view": view,
        "question": view.query,
        "chat_url": view.chat_url if found.is_own else "",
        "is_own": found.is_own,
    }
    return render(request, "trace/run.html", context)
