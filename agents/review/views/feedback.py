"""Feedback on runs: as fragments, and as plain forms without JavaScript."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps

from django.contrib.auth import get_user_model
from django.db import IntegrityError
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import resolve, reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from agents.access import audit
from agents.access.requests import UserRequest
from agents.console.guardrail_admin.guardrail_testing import hits
from agents.db import errors
from agents.db.sanitize import parse_id, sanitize_text
from agents.models import Run
from agents.review.annotations import examples, feedback, queues
from agents.review.models import REVIEW_PERMISSION, Note, Review, ReviewQueue
from agents.review.run_details import run_page
from agents.web.presentation import RunView
from agents.web.presentation.answer_fragments import rating
from agents.web.presentation.markdown import render_markdown
from agents.web.referrer import previous_page
from agents.web.sandbox import allow_frames

QUEUE_FILTERS = ("open", "mine", "unassigned", "decided")
AUDIT_SOURCE = "queue"
# URLs that only accept POST.
POST_ONLY_URLS = {
    *("annotate", "note", "label", "flag", "hit"),
    *("assign", "decide", "score", "correct", "keep", "rate"),
}
TEXT_FIELDS = ("text", "label", "why", "correction", "name", "expected")


@require_POST
def rate(request: UserRequest, pk: int) -> HttpResponse:
    """Save or remove a rating by the run's user; others give verdicts."""
    run = get_object_or_404(Run.objects.for_user(request.user), pk=pk, user=request.user)
    problem = ""
    try:
        with deleted_as_404(run), errors.reraise_as(feedback.FeedbackRejected):
            choice = request.POST.get("rating", "bad")
            ratings = run.ratings.filter(user=request.user)
            reason = ratings.values_list("reason", flat=True).first() or ""
            pressed = request.POST.get("reason")
            if pressed is not None:
                reason = "" if pressed == reason else pressed  # pressed again, it is removed
            rating_input = feedback.RatingInput(
                is_good={"good": True, "none": None}.get(choice, False),
                reason=reason,
                comment=request.POST.get(f"comment-{run.pk}", ""),
                asks_reviewer=choice == "flag",
            )
            feedback.rate(request.user, run, rating_input)
    except feedback.FeedbackRejected as rejection:
        problem = str(rejection)
    if request.htmx:
        is_asking = "reason" in request.POST
        return HttpResponse(rating(RunView(run), problem=problem, is_asking=is_asking))
    if not problem:
        return redirect(_return_url(request, run.pk, f"rating-{run.pk}"))
    case = run_page.build_case(request, run, problem=problem)
    return render(request, "trace/case.html", {"case": case}, status=422)


def reviewer_action(view: Callable[..., None]) -> Callable[..., HttpResponse]:
    """Make a view for reviewers' feedback, which renders the result."""

    @require_POST
    @wraps(view)
    def wrapper(request: UserRequest, pk: int, **url_numbers: int) -> HttpResponse:
        run = get_object_or_404(feedback.reviewable_runs(request.user), pk=pk)
        return _apply_feedback(request, run, lambda: view(request, run, **url_numbers))

    return wrapper


@contextmanager
def deleted_as_404(run: Run) -> Iterator[None]:
    """Turn a deletion in the meantime into a 404."""
    try:
        yield
    except IntegrityError:
        if Run.objects.filter(pk=run.pk).exists():
            raise
        raise Http404 from None


def _apply_feedback(
    request: UserRequest, run: Run, action: Callable[[], object]
) -> HttpResponse:
    try:
        with deleted_as_404(run), errors.reraise_as(feedback.FeedbackRejected):
            action()
    except feedback.FeedbackRejected as rejection:
        return _render_feedback(request, run, str(rejection))
    except Note.DoesNotExist:
        raise Http404 from None
    return _render_feedback(request, run)


@reviewer_action
def add_note(request: UserRequest, run: Run) -> None:
    feedback.add_note(request.user, run, request.POST.get("text", ""), parse_step(request))


@reviewer_action
def edit_note(request: UserRequest, run: Run, note: int) -> None:
    """Change or delete one's own note."""
    if "delete" in request.POST:
        feedback.delete_note(request.user, run, note)
    else:
        feedback.edit_note(request.user, run, note, request.POST.get("text", ""))


@reviewer_action
def edit_label(request: UserRequest, run: Run) -> None:
    if "remove" in request.POST:
        feedback.remove_label(run, request.POST["remove"], parse_step(request))
    else:
        feedback.add_label(
            request.user, run, request.POST.get("label", ""), parse_step(request)
        )


@reviewer_action
def judge_hit(request: UserRequest, run: Run, hit: int) -> None:
    """Save whether a guardrail was right."""
    guardrail_hit = get_object_or_404(run.hits.select_related("pattern", "run"), pk=hit)
    verdict = request.POST.get("word", "")
    if verdict not in hits.VERDICTS:
        raise feedback.FeedbackRejected(_("Choose a verdict."))
    hits.judge(request.user, guardrail_hit, hits.VERDICTS[verdict])


@reviewer_action
def assign(request: UserRequest, run: Run) -> None:
    name = request.user.get_username() if "me" in request.POST else request.POST.get("to", "")
    name = sanitize_text(name)
    person = get_user_model().objects.filter(username=name).first() if name else None
    if name and person is None:
        raise Http404
    feedback.assign(request.user, run, person, parse_id(request.POST.get("queue")))


@reviewer_action
def decide(request: UserRequest, run: Run) -> None:
    verdict = request.POST.get("verdict", "")
    seen_stamp = request.POST.get("seen", "")
    feedback.decide(request.user, run, verdict, seen_stamp)


@reviewer_action
def score(request: UserRequest, run: Run) -> None:
    """Save a score, sent as `criterion:value`; without a value it is removed."""
    criterion, _colon, text = request.POST.get("score", "").partition(":")
    value = parse_id(text)
    if text and value is None:
        raise feedback.FeedbackRejected(_("Choose one of the scores."))
    feedback.score(request.user, run, parse_id(criterion) or 0, value)


@reviewer_action
def correct(request: UserRequest, run: Run) -> None:
    text = "" if "withdraw" in request.POST else request.POST.get("correction", "")
    feedback.correct(request.user, run, text, request.POST.get("seen", ""))


@reviewer_action
def save_example(request: UserRequest, run: Run) -> None:
    """Save the run as an example."""
    name = request.POST.get("name", "")
    expected = request.POST.get("expected", "")
    examples.save(request.user, run, name, expected, request.POST.get("set", ""))


@require_POST
def flag(request: UserRequest, pk: int) -> HttpResponse:
    """Request a review, by a reviewer or the run's user."""
    run = get_object_or_404(Run.objects.in_scope(request.user), pk=pk)
    why = request.POST.get("why", "")
    # Only reviewers choose a queue.
    may_choose = request.user.has_perm(REVIEW_PERMISSION)
    queue = parse_id(request.POST.get("queue")) if may_choose else None
    return _apply_feedback(request, run, lambda: feedback.flag(request.user, run, why, queue))


@require_GET
def step_review(request: UserRequest, pk: int, step: int) -> HttpResponse:
    """Display the feedback on one step, with a form."""
    run = get_object_or_404(feedback.reviewable_runs(request.user), pk=pk)
    if not run.steps.filter(number=step).exists():
        raise Http404
    audit.record_view(request.user, run, AUDIT_SOURCE)
    return _render_step(request, run, step)


def _render_step(
    request: UserRequest,
    run: Run,
    step: int,
    problem: str = "",
    typed: dict[str, str] | None = None,
) -> HttpResponse:
    case = run_page.build_case(request, run, problem=problem, typed=typed)
    context = {"case": case, "number": step}
    if request.htmx:
        return render(request, "trace/_step_judge.html", context)
    return render(request, "trace/case.html", context, status=422 if problem else 200)


@require_GET
@allow_frames
def review_queue(request: UserRequest) -> HttpResponse:
    """Display the reviews of one queue or all."""
    if not request.user.has_perm(REVIEW_PERMISSION):
        raise Http404
    show = request.GET.get("show", "")
    show = show if show in QUEUE_FILTERS else "open"
    visible_queues = list(ReviewQueue.objects.for_user(request.user))
    queue_id = parse_id(request.GET.get("queue"))
    queue = next((row for row in visible_queues if row.pk == queue_id), None)
    if queue is None and queue_id not in (None, feedback.GENERAL_QUEUE):
        raise Http404
    after = request.GET.get("after", "")
    cases, next_cursor = run_page.queue_page(
        request, show, after, queue=queue_id, own_queues=visible_queues
    )
    audit.record_views(request.user, [case.run for case in cases], AUDIT_SOURCE)
    context = {
        "cases": cases,
        "show": show,
        "more": next_cursor,
        "here": "review",
        "tabs": queues.queue_tabs(request.user, visible_queues),
        "queue_id": queue_id,
        "in_queue": "" if queue_id is None else f"queue={queue_id}&",
        "results": queues.results(request.user, queue) if queue else [],
        "instructions": render_markdown(queue.instructions) if queue else "",
    }
    return render(request, "trace/review.html", context)


@require_GET
def open_reviews(request: UserRequest) -> HttpResponse:
    """Return the number of open reviews; pages poll it."""
    if not request.user.has_perm(REVIEW_PERMISSION):
        raise Http404
    waiting = Review.objects.for_user(request.user).open().count()
    return render(request, "layout/_open_reviews.html", {"waiting": waiting})


def _render_feedback(request: UserRequest, run: Run, problem: str = "") -> HttpResponse:
    """Render the saved feedback; with a problem, the typed text as well."""
    # Feedback on steps is between reviewers.
    step = parse_step(request) if request.user.has_perm(REVIEW_PERMISSION) else 0
    if not request.htmx and not problem:
        return redirect(
            _return_url(request, run.pk, f"step-{step}" if step else f"judge-{run.pk}")
        )
    typed = {name: request.POST.get(name, "") for name in TEXT_FIELDS} if problem else {}
    if step:
        return _render_step(request, run, step, problem=problem, typed=typed)
    case = run_page.build_case(request, run, problem=problem, typed=typed)
    if request.htmx:
        return render(request, "trace/_judged.html", {"case": case})
    audit.record_view(request.user, run, AUDIT_SOURCE)
    return render(request, "trace/case.html", {"case": case}, status=422)


def parse_step(request: UserRequest) -> int:
    """Return the number of the step that a form is about; 0 for the answer."""
    text = request.POST.get("step", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0


def _return_url(request: UserRequest, pk: int, anchor: str) -> str:
    """Return the page the feedback was given on, if it is ours and can be displayed."""
    previous_url = previous_page(request)
    # A rejected form is displayed at its own URL, which can't be returned to.
    if previous_url and resolve(previous_url.partition("?")[0]).url_name not in POST_ONLY_URLS:
        return f"{previous_url}#{anchor}"
    return f"{reverse('trace:run', args=[pk])}#{anchor}"
