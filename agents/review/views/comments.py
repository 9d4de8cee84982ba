"""Comments on an answer and its steps, by members of the chat."""

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from agents.access.requests import UserRequest
from agents.db import errors
from agents.models import Run
from agents.review.annotations import comments
from agents.review.annotations.feedback import FeedbackRejected
from agents.review.models import Comment
from agents.web.presentation import CommentThread

from .feedback import deleted_as_404, parse_step

MAX_STEP_NUMBER = 10**8


@require_POST
def add_comment(request: UserRequest, pk: int) -> HttpResponse:
    run = get_object_or_404(comments.commentable_runs(request.user), pk=pk)
    step = parse_step(request)
    text = request.POST.get(f"comment-{pk}-{step}", "")
    try:
        with deleted_as_404(run), errors.reraise_as(FeedbackRejected):
            comments.add(request.user, run, step, text)
    except FeedbackRejected as reason:
        return _render_thread(request, run, step, problem=str(reason), typed=text)
    return _render_thread(request, run, step)


@require_GET
def comment_thread(request: UserRequest, pk: int, step: int) -> HttpResponse:
    """Display all comments on a step or on the answer (0)."""
    run = get_object_or_404(comments.commentable_runs(request.user), pk=pk)
    if step >= MAX_STEP_NUMBER or (step and not run.steps.filter(number=step).exists()):
        raise Http404
    thread = CommentThread.of(run, step, request.user.pk, most=None)
    return render(request, "trace/comments.html", {"thread": thread})


@require_POST
def delete_comment(request: UserRequest, pk: int, comment: int) -> HttpResponse:
    run = get_object_or_404(comments.commentable_runs(request.user), pk=pk)
    try:
        deleted = comments.delete(request.user, comment)
    except Comment.DoesNotExist:
        raise Http404 from None
    return _render_thread(request, run, deleted.step)


def _render_thread(request: UserRequest, run: Run, step: int, **rejected: str) -> HttpResponse:
    """Render the thread; with a problem, the typed text as well."""
    if request.htmx:
        thread = CommentThread.of(run, step, request.user.pk)
        return render(request, "run/_comments.html", {"thread": thread, **rejected})
    if rejected:
        thread = CommentThread.of(run, step, request.user.pk)
        return render(
            request, "trace/comments.html", {"thread": thread, **rejected}, status=422
        )
    anchor = f"#step-{step}" if step else ""
    return redirect(f"{reverse('trace:run', args=[run.pk])}{anchor}")
