"""A run for reviewers: rows → what the templates display."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Prefetch, Q, prefetch_related_objects
from django.http import Http404
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.safestring import SafeString

from agents.access import masking
from agents.access.masking import Masker
from agents.access.requests import UserRequest
from agents.models import Run
from agents.models.types import LazyText
from agents.review.models import (
    ExampleSet,
    Label,
    Note,
    Rating,
    Review,
    ReviewQueue,
    Score,
)
from agents.web.presentation import RunView
from agents.web.presentation.markdown import render_markdown

from ..annotations import feedback, queues
from ..annotations.queues import ScoredCriterion

PAGE_SIZE = 30
MAX_SETS = 100
REVIEW_USERS = [
    f"review__{role}__profile"
    for role in ("flagged_by", "assignee", "decided_by", "corrected_by")
]


@dataclass(frozen=True)
class CaseView:
    """One run with its feedback. `typed` is rejected input, to be corrected."""

    run: Run
    user: User
    reviewers: Sequence[Any] = ()
    example_sets: Sequence[ExampleSet] = ()
    queues: Sequence[ReviewQueue] = ()  # that this user reviews, besides the general one
    may_review: bool = True
    problem: str = ""
    typed: Mapping[str, str] = field(default_factory=dict)
    masker: Masker | None = None  # for another user's run: it and its feedback are masked
    original_answer: str = ""  # never masked

    @property
    def pk(self) -> str:
        return str(self.run.pk)

    @property
    def may_flag(self) -> bool:
        """Whether the user can request a review, again if decided."""
        review = self.review
        is_done = not review or not review.is_open
        is_asker = is_done and self.run.is_owned_by(self.user)
        is_reviewer = self.may_review and (not is_done or self.may_decide)
        return is_reviewer or (is_asker and feedback.is_saved(self.run))

    @cached_property
    def view(self) -> RunView:
        return RunView(self.run, place="trace", masker=self.masker)

    @property
    def question(self) -> str:
        return self.run.query

    @property
    def answer_text(self) -> str:
        """The original answer."""
        return self.run.answer

    @property
    def answer(self) -> SafeString:
        return render_markdown(self.answer_text)

    @cached_property
    def review(self) -> Review | None:
        review = getattr(self.run, "review", None)
        return review and self.view.visible_row(review)

    @property
    def stamp(self) -> str:
        return self.review.stamp if self.review else ""

    @property
    def may_decide(self) -> bool:
        """Whether the user can review this run, which isn't in a queue of other reviewers."""
        review = self.review
        if not self.may_review or review is None or review.queue is None:
            return self.may_review
        return review.queue in self.queues or review.assignee_id == self.user.pk

    @property
    def queue(self) -> ReviewQueue | None:
        return self.review.queue if self.review and self.may_decide else None

    @property
    def queue_choices(self) -> Sequence[ReviewQueue]:
        """The queues that the user can send the run to; none if it is in one of others."""
        queue = self.review.queue if self.review else None
        return self.queues if queue is None or queue in self.queues else ()

    @cached_property
    def rubric(self) -> list[ScoredCriterion]:
        return queues.rubric(self.review) if self.review and self.queue else []

    @property
    def verdicts(self) -> list[tuple[int, str, LazyText]]:
        """The verdicts with their shortcut keys."""
        choices = enumerate(Review.Verdict.choices, start=1)
        return [(number, value, label) for number, (value, label) in choices]

    @property
    def ratings(self) -> list[Rating]:
        return [self.view.visible_row(rating) for rating in self.run.ratings.all()]

    @property
    def is_begun(self) -> bool:
        """Whether a reviewer has something to read: a request, a verdict, notes or labels."""
        return bool(self.review or self.may_review and (self.notes or self.labels))

    @cached_property
    def notes(self) -> list[Note]:
        """The notes; the reviewer's own unmasked, because they can be edited."""
        return [
            note if note.author_id == self.user.pk else self.view.visible_row(note)
            for note in self.run.review_notes.all()
        ]

    @cached_property
    def labels(self) -> list[Label]:
        return list(self.run.labels.all())

    @cached_property
    def is_best_masked(self) -> bool:
        """Whether the best answer contains masked data."""
        return (
            self.masker is not None
            and masking.mask_text(self._best_answer) != self._best_answer
        )

    @property
    def best(self) -> str:
        """The initial text of answer forms; empty rather than masked."""
        return "" if self.is_best_masked else self._best_answer

    @property
    def _best_answer(self) -> str:
        review = getattr(self.run, "review", None)
        return (review.correction if review else "") or self.original_answer

    @property
    def correction_draft(self) -> str:
        """The initial text of the correction form."""
        return self.typed.get("correction") or self.best

    @property
    def example_name(self) -> str:
        return self.typed.get("name") or " ".join(self.question.split())[:60]

    @property
    def example_answer(self) -> str:
        return self.typed.get("expected") or self.best

    @property
    def saved_as(self) -> str:
        """The name of the example that the run was saved as, which can quote the question."""
        names = [example.name for example in self.run.examples.all()]
        name = names[0] if names else ""
        return masking.mask_text(name) if self.masker else name

    @property
    def can_save_example(self) -> bool:
        is_question = self.run.agent_id is not None and self.run.workflow_id is None
        return not self.run.is_live and is_question


def build_case(
    request: UserRequest, run: Run, problem: str = "", typed: Mapping[str, str] | None = None
) -> CaseView:
    """Return a run as this user can review it."""
    may_review = feedback.reviewable_runs(request.user).filter(pk=run.pk).exists()
    own_queues = list(ReviewQueue.objects.for_user(request.user)) if may_review else ()
    for case in _build_cases(request, [run.pk], may_review=may_review, own_queues=own_queues):
        return replace(case, problem=problem, typed=typed or {})
    raise Http404  # deleted meanwhile


def queue_page(
    request: UserRequest,
    show: str,
    after: str = "",
    *,
    queue: int | None = None,
    own_queues: Sequence[ReviewQueue] = (),
) -> tuple[list[CaseView], str]:
    """Return a page of one queue or all, and the cursor of the next one."""
    reviews = Review.objects.for_user(request.user)
    if queue is not None:
        reviews = reviews.filter(queue=queue or None)
    reviews = reviews.decided() if show == "decided" else reviews.open()
    if show == "mine":
        reviews = reviews.filter(assignee=request.user)
    elif show == "unassigned":
        reviews = reviews.filter(assignee=None)
    last_review = None
    if after.isascii() and after.isdigit() and len(after) < 19:
        last_review = Review.objects.filter(run=int(after)).first()
    # By longest wait, decided ones by latest decision. What follows the last review doesn't
    # depend on decisions made meanwhile.
    if show == "decided":
        reviews = reviews.order_by("-decided_at", "-pk")
        if last_review is not None:
            decided_at = last_review.decided_at or timezone.now()
            is_earlier = Q(decided_at__lt=decided_at)
            reviews = reviews.filter(
                is_earlier | Q(decided_at=decided_at, pk__lt=last_review.pk)
            )
    else:
        reviews = reviews.order_by("flagged_at", "pk")
        if last_review is not None:
            flagged_at = last_review.flagged_at
            is_later = Q(flagged_at__gt=flagged_at)
            reviews = reviews.filter(is_later | Q(flagged_at=flagged_at, pk__gt=last_review.pk))
    pks = list(reviews.values_list("run_id", flat=True)[: PAGE_SIZE + 1])
    next_cursor = str(pks[PAGE_SIZE - 1]) if len(pks) > PAGE_SIZE else ""
    cases = _build_cases(request, pks[:PAGE_SIZE], may_review=True, own_queues=own_queues)
    return cases, next_cursor


def _build_cases(
    request: UserRequest,
    pks: Iterable[int],
    *,
    may_review: bool,
    own_queues: Sequence[ReviewQueue],
) -> list[CaseView]:
    """Load these runs with their feedback, in a few queries, masked if needed."""
    rows = Run.objects.filter(pk__in=pks).defer("history")
    related = ("user__profile", "review__queue", *REVIEW_USERS)
    rows = rows.select_related(*related).prefetch_related(
        Prefetch("ratings", Rating.objects.select_related("user__profile")),
        Prefetch("review_notes", Note.objects.select_related("author__profile")),
        "labels",
        "examples",
    )
    runs = {run.pk: run for run in masking.load_origins(rows)}
    reviewers = feedback.reviewers() if may_review else ()
    example_sets = list(ExampleSet.objects.all()[:MAX_SETS]) if may_review else ()
    if may_review:
        reviews = [getattr(run, "review", None) for run in runs.values()]
        queued = [review for review in reviews if review is not None and review.queue_id]
        scores = Prefetch("scores", Score.objects.select_related("scored_by__profile"))
        prefetch_related_objects(queued, "queue__criteria", scores)
    cases = []
    for run in (runs[pk] for pk in pks if pk in runs):
        is_masked = masking.is_masked_for(run, request.user, request.session)
        cases.append(
            CaseView(
                masking.mask_row(run) if is_masked else run,
                request.user,
                reviewers=reviewers,
                example_sets=example_sets,
                queues=own_queues,
                may_review=may_review,
                masker=Masker() if is_masked else None,
                original_answer=run.answer,
            )
        )
    return cases
