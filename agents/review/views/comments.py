"""Comments on an answer and on its steps, by whoever is in the conversation."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from agents.db import errors
from agents.models import Run
from agents.review import comments
from agents.review.feedback import NotTaken
from agents.review.models import Comment
from agents.web.presentation import Thread

from .feedback import there

NO_STEP = 10**8


@require_POST
def comment(request: HttpRequest, pk: int) -> HttpResponse:
    run = get_object_or_404(comments.commentable(request.user), pk=pk)
    step = _number(request.POST.get("step", ""))
    text = request.POST.get(f"comment-{pk}-{step}", "")
    try:
        with there(run), errors.refusing(NotTaken):
            comments.say(request.user, run, step, text)
    except NotTaken as reason:
        return _thread(request, run, step, problem=str(reason), typed=text)
    return _thread(request, run, step)


@require_GET
def thread(request: HttpRequest, pk: int, step: int) -> HttpResponse:
    """All comments on a step, or on the answer (0): below it there is room for some of them."""
    run = get_object_or_404(comments.commentable(request.user), pk=pk)
    if step >= NO_STEP or (step and not run.steps.filter(number=step).exists()):
        raise Http404
    said = Thread.of(run, step, request.user.pk, most=None)
    return render(request, "trace/comments.html", {"thread": said})


@require_POST
def delete_comment(request: HttpRequest, pk: int, comment: int) -> HttpResponse:
    run = get_object_or_404(comments.commentable(request.user), pk=pk)
    try:
        gone = comments.take_back(request.user, comment)
    except Comment.DoesNotExist:
        raise Http404 from None
    return _thread(request, run, gone.step)


def _thread(request: HttpRequest, run: Run, step: int, **about: str) -> HttpResponse:
    """What is said there now; with a problem, what was typed as well."""
    if request.htmx:
        thread = Thread.of(run, step, request.user.pk)
        return render(request, "_comments.html", {"thread": thread, **about})
    if about:
        thread = Thread.of(run, step, request.user.pk)
        return render(request, "trace/comments.html", {"thread": thread, **about}, status=422)
    anchor = f"#step-{step}" if step else ""
    return redirect(f"{reverse('trace:run', args=[run.pk])}{anchor}")


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0
