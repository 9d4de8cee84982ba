"""Review queues as their page displays them: how many wait, the rubric and its results."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import Avg, Count, QuerySet
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from agents.access import audit
from agents.models.types import LazyText
from agents.review.models import QUEUE_PERMISSION, Criterion, Review, ReviewQueue, Score

from .feedback import GENERAL_QUEUE


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTab:
    """A queue in the row above the reviews; without an ID, all of them."""

    pk: int | None
    name: str
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredCriterion:
    """A criterion with the values to choose from, and the one that was chosen."""

    criterion: Criterion
    score: Score | None

    @property
    def choices(self) -> list[tuple[int, LazyText, bool]]:
        chosen = None if self.score is None else self.score.value
        return [(value, label, value == chosen) for value, label in self.criterion.choices]


def queue_tabs(user: User, queues: Sequence[ReviewQueue]) -> list[QueueTab]:
    """Return the queues with their open reviews; none if there is only the general one."""
    if not queues:
        return []
    open_reviews = Review.objects.for_user(user).open().order_by()
    counts = dict(open_reviews.values_list("queue").annotate(Count("pk")))
    return [
        QueueTab(pk=None, name=_("All"), waiting=sum(counts.values())),
        QueueTab(pk=GENERAL_QUEUE, name=_("General"), waiting=counts.get(None, 0)),
        *(
            QueueTab(pk=queue.pk, name=queue.name, waiting=counts.get(queue.pk, 0))
            for queue in queues
        ),
    ]


def rubric(review: Review) -> list[ScoredCriterion]:
    """Return the rubric of the review's queue with its scores, which are loaded already."""
    if review.queue is None:
        return []
    scores = {score.criterion_id: score for score in review.scores.all()}
    return [
        ScoredCriterion(criterion=criterion, score=scores.get(criterion.pk))
        for criterion in review.queue.criteria.all()
    ]


def results(user: User, queue: ReviewQueue) -> list[str]:
    """Return the mean of each criterion over the decided reviews, and their number."""
    decided = Review.objects.for_user(user).decided().filter(queue=queue)
    count = decided.count()
    if not count:
        return []
    scores = Score.objects.filter(review__in=decided).order_by()
    means = dict(scores.values_list("criterion").annotate(Avg("value")))
    return [
        *(
            _mean_text(criterion, means[criterion.pk])
            for criterion in queue.criteria.all()
            if criterion.pk in means
        ),
        _("%(count)s decided") % {"count": number_format(count, force_grouping=True)},
    ]


def _mean_text(criterion: Criterion, mean: float) -> str:
    if criterion.is_yes_no:
        params = {"name": criterion.name, "percent": round(100 * mean)}
        return _("%(name)s %(percent)d%% yes") % params
    return f"{criterion.name} {number_format(round(mean, 1), 1)}"


def keep_closed(
    sender: type[User], instance: User, origin: object = None, **_signal: object
) -> None:
    """Leave a queue whose last reviewers are deleted to those who can change queues.

    Without reviewers it would be everyone's.
    """
    going = [user.pk for user in (origin if isinstance(origin, QuerySet) else [instance])]
    others = User.objects.exclude(pk__in=going)
    managers = User.objects.with_perm(QUEUE_PERMISSION).exclude(pk__in=going)
    for queue in ReviewQueue.objects.filter(reviewers=instance).exclude(reviewers__in=others):
        queue.reviewers.set(managers)
        people = [audit.person(user) for user in managers]
        audit.record(None, audit.CHANGED, queue, name=queue.name, reviewers=people)
