"""Review queues, reviews and their scores."""

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from agents.models import Run
from agents.models.types import AnyUser, LazyText

from .fields import MAX_NAME_CHARS, user_foreign_key

REVIEW_PERMISSION = "agents.review_runs"
QUEUE_PERMISSION = "review.change_reviewqueue"


class ReviewQueueQuerySet(models.QuerySet["ReviewQueue"]):
    def for_user(self, user: AnyUser) -> Self:
        """Return the queues this user reviews; who can change queues sees all."""
        if not user.has_perm(REVIEW_PERMISSION):
            return self.none()
        if user.has_perm(QUEUE_PERMISSION):
            return self.all()
        chosen = ReviewQueue.reviewers.through.objects.filter(reviewqueue=models.OuterRef("pk"))
        is_mine = models.Exists(chosen.filter(user=user.pk))
        return self.filter(~models.Exists(chosen) | is_mine)


class ReviewQueue(models.Model):
    """A review queue besides the general one, with a rubric and reviewers of its own."""

    name = models.CharField(_("name"), max_length=MAX_NAME_CHARS)
    instructions = models.TextField(
        _("instructions"),
        blank=True,
        help_text=_("What reviewers of this queue look at, above its runs. Markdown works."),
    )
    reviewers = models.ManyToManyField(
        settings.AUTH_USER_MODEL,
        verbose_name=_("reviewers"),
        blank=True,
        related_name="review_queues",
        help_text=_("If none is selected, all reviewers."),
    )

    objects = ReviewQueueQuerySet.as_manager()

    class Meta:
        verbose_name = _("review queue")
        verbose_name_plural = _("review queues")
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                Lower("name"),
                name="one_queue_a_name",
                violation_error_message=_("A review queue with this name already exists."),
            )
        ]

    def __str__(self) -> str:
        return self.name


class Criterion(models.Model):
    """A criterion of a queue's rubric, which a reviewer scores."""

    class Scale(models.TextChoices):
        POINTS = "points", _("1 to 5")
        YES_NO = "yes_no", _("Yes or no")

    queue = models.ForeignKey(
        ReviewQueue,
        verbose_name=_("review queue"),
        on_delete=models.CASCADE,
        related_name="criteria",
    )
    name = models.CharField(_("name"), max_length=MAX_NAME_CHARS)
    about = models.CharField(_("description"), max_length=200, blank=True)
    scale = models.CharField(_("scale"), max_length=10, choices=Scale, default=Scale.POINTS)
    position = models.PositiveSmallIntegerField(_("position"), default=0)

    class Meta:
        verbose_name = _("criterion")
        verbose_name_plural = _("criteria")
        ordering = ["position", "pk"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_yes_no(self) -> bool:
        return self.scale == self.Scale.YES_NO

    @property
    def choices(self) -> list[tuple[int, LazyText]]:
        """The values a score can have, with their labels."""
        if self.is_yes_no:
            return [(1, _("Yes")), (0, _("No"))]
        return [(points, str(points)) for points in range(1, 6)]

    def plain_value(self, value: int) -> int | bool:
        """Return a score for a file: a number, or true or false."""
        return bool(value) if self.is_yes_no else value


class ReviewQuerySet(models.QuerySet["Review"]):
    def for_user(self, user: AnyUser) -> Self:
        """Return the reviews this user can decide: of runs in their scope.

        Those in a queue of other reviewers only if they are assigned to this user.
        """
        if not user.has_perm(REVIEW_PERMISSION):
            return self.none()
        # Looked up one by one: there are few reviews, and many runs.
        mine = Run.objects.in_scope(user).filter(pk=models.OuterRef("run"))
        is_open_queue = models.Q(queue=None) | models.Q(
            queue__in=ReviewQueue.objects.for_user(user)
        )
        return self.filter(models.Exists(mine), is_open_queue | models.Q(assignee=user.pk))

    def in_queues_of_others(self, user: AnyUser) -> Self:
        """Return the reviews whose queue this user doesn't know."""
        known = Review.objects.for_user(user).values("pk")
        return self.exclude(queue=None).exclude(pk__in=known)

    def open(self) -> Self:
        return self.filter(verdict="")

    def decided(self) -> Self:
        return self.exclude(verdict="")


class Review(models.Model):
    """A run in the review queue: reason, assignee and verdict.

    A correction is displayed to the user, below the answer it corrects.
    """

    personal = ("why", "correction")

    class Verdict(models.TextChoices):
        CORRECT = "correct", _("correct")
        PARTLY = "partly", _("partly correct")
        WRONG = "wrong", _("wrong")
        UNSAFE = "unsafe", _("unsafe")

    run = models.OneToOneField(
        Run, verbose_name=_("run"), on_delete=models.CASCADE, related_name="review"
    )
    queue = models.ForeignKey(
        ReviewQueue,
        verbose_name=_("review queue"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="reviews",
        help_text=_("If empty, the general queue."),
    )
    why = models.TextField(_("reason for review"), blank=True)
    flagged_by = user_foreign_key(_("flagged by"))
    flagged_at = models.DateTimeField(_("flagged"), auto_now_add=True)
    assignee = user_foreign_key(_("assigned to"), related_name="reviews")
    verdict = models.CharField(_("verdict"), max_length=10, choices=Verdict, blank=True)
    decided_by = user_foreign_key(_("decided by"))
    decided_at = models.DateTimeField(_("decided"), null=True, blank=True)
    correction = models.TextField(_("corrected answer"), blank=True)
    corrected_by = user_foreign_key(_("corrected by"))
    corrected_at = models.DateTimeField(_("corrected"), null=True, blank=True)

    objects = ReviewQuerySet.as_manager()

    class Meta:
        verbose_name = _("review")
        verbose_name_plural = _("reviews")
        ordering = ["flagged_at", "pk"]
        indexes = [models.Index(fields=["verdict", "flagged_at"], name="reviews_to_do")]

    def __str__(self) -> str:
        return f"{self.run_id} {self.verdict or '…'}"

    @property
    def is_open(self) -> bool:
        return not self.verdict

    @property
    def stamp(self) -> str:
        """A stamp that changes with every decision or correction."""
        moments = (self.decided_at, self.corrected_at)
        return " ".join(moment.isoformat() for moment in moments if moment)


class Score(models.Model):
    """How a reviewer scored a run by one criterion."""

    review = models.ForeignKey(
        Review, verbose_name=_("review"), on_delete=models.CASCADE, related_name="scores"
    )
    criterion = models.ForeignKey(
        Criterion, verbose_name=_("criterion"), on_delete=models.CASCADE, related_name="scores"
    )
    value = models.PositiveSmallIntegerField(_("score"))
    scored_by = user_foreign_key(_("scored by"))
    scored_at = models.DateTimeField(_("scored"), auto_now=True)

    class Meta:
        verbose_name = _("score")
        verbose_name_plural = _("scores")
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["review", "criterion"], name="one_score_a_criterion"
            )
        ]

    def __str__(self) -> str:
        return f"{self.criterion_id} {self.value}"
