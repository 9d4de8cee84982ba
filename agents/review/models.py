"""Feedback on runs and examples made from them. The runs themselves never change."""

from typing import Self

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.db.models.functions import Lower, Now
from django.utils.translation import gettext_lazy as _

from agents.models import Agent, HiddenTopic, Membership, Run
from agents.models.types import AnyUser, LazyText

MAX_NAME_CHARS = 64
DEFAULT_SET_NAME = "Saved examples"
REVIEW_PERMISSION = "agents.review_runs"
QUEUE_PERMISSION = "review.change_reviewqueue"


def _user_foreign_key(
    label: LazyText, related_name: str = "+"
) -> "models.ForeignKey[User | None, User | None]":
    """Return a foreign key to a user whose account may be deleted."""
    return models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=label,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name=related_name,
    )


def _run_foreign_key(related_name: str) -> "models.ForeignKey[Run, Run]":
    return models.ForeignKey(
        Run, verbose_name=_("run"), on_delete=models.CASCADE, related_name=related_name
    )


class Rating(models.Model):
    """A user's rating, from the chat."""

    personal = ("comment",)

    class Reason(models.TextChoices):
        WRONG = "wrong", _("Incorrect")
        INCOMPLETE = "incomplete", _("Incomplete")
        IGNORED = "ignored", _("Didn't follow my instructions")
        LONG = "long", _("Too long")
        BRIEF = "brief", _("Not enough detail")
        SLOW = "slow", _("Too slow")
        UNSAFE = "unsafe", _("Harmful or reveals sensitive data")
        OTHER = "other", _("Other")

    run = _run_foreign_key("ratings")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="ratings",
    )
    is_good = models.BooleanField(_("good"))
    reason = models.CharField(_("reason"), max_length=12, choices=Reason, blank=True)
    comment = models.TextField(_("comment"), blank=True)
    rated_at = models.DateTimeField(_("rated"), auto_now=True)

    class Meta:
        verbose_name = _("rating")
        verbose_name_plural = _("ratings")
        constraints = [
            models.UniqueConstraint(fields=["run", "user"], name="one_rating_a_person")
        ]

    def __str__(self) -> str:
        return f"{self.run_id} {'+' if self.is_good else '-'}"


class Note(models.Model):
    """A reviewer's note on a run or a step."""

    personal = ("text",)

    run = _run_foreign_key("review_notes")
    step = models.PositiveIntegerField(_("step"), default=0, help_text=_("0 = the whole run."))
    author = _user_foreign_key(_("author"))
    text = models.TextField(_("text"))
    written_at = models.DateTimeField(_("created"), auto_now_add=True)
    edited_at = models.DateTimeField(_("edited"), null=True, blank=True)

    class Meta:
        verbose_name = _("note")
        verbose_name_plural = _("notes")
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.text[:60]


class CommentQuerySet(models.QuerySet["Comment"]):
    def for_user(self, user: AnyUser) -> Self:
        """Return comments in chats this user is in. Reviewers have notes of their own."""
        return self.filter(run__topic__in=Membership.objects.shared_topics(user))


class Comment(models.Model):
    """A comment on an answer or a step, for everyone in the chat.

    Comments aren't notes with another audience: one forgotten filter would show users what
    reviewers say to each other.
    """

    run = _run_foreign_key("comments")
    step = models.PositiveIntegerField(_("step"), default=0, help_text=_("0 = the whole run."))
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("author"),
        on_delete=models.CASCADE,
        related_name="+",
    )
    text = models.TextField(_("text"))
    written_at = models.DateTimeField(_("created"), auto_now_add=True)

    objects = CommentQuerySet.as_manager()

    class Meta:
        verbose_name = _("comment")
        verbose_name_plural = _("comments")
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.text[:60]


class Label(models.Model):
    """A label on a run or a step, to find it again."""

    run = _run_foreign_key("labels")
    step = models.PositiveIntegerField(_("step"), default=0, help_text=_("0 = the whole run."))
    name = models.CharField(_("name"), max_length=MAX_NAME_CHARS, db_index=True)
    author = _user_foreign_key(_("author"))
    put_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("label")
        verbose_name_plural = _("labels")
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["run", "step", "name"], name="one_label_a_step")
        ]

    def __str__(self) -> str:
        return self.name


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
    flagged_by = _user_foreign_key(_("flagged by"))
    flagged_at = models.DateTimeField(_("flagged"), auto_now_add=True)
    assignee = _user_foreign_key(_("assigned to"), related_name="reviews")
    verdict = models.CharField(_("verdict"), max_length=10, choices=Verdict, blank=True)
    decided_by = _user_foreign_key(_("decided by"))
    decided_at = models.DateTimeField(_("decided"), null=True, blank=True)
    correction = models.TextField(_("corrected answer"), blank=True)
    corrected_by = _user_foreign_key(_("corrected by"))
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
    scored_by = _user_foreign_key(_("scored by"))
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


class ExampleSetManager(models.Manager["ExampleSet"]):
    def default(self) -> "ExampleSet":
        """Return the set of examples without a chosen one."""
        return self.get_or_create(name=DEFAULT_SET_NAME)[0]


class ExampleSet(models.Model):
    """Examples that are run and scored together."""

    name = models.CharField(_("name"), max_length=MAX_NAME_CHARS, unique=True)
    description = models.CharField(
        _("description"), max_length=200, blank=True, help_text=_("What this set tests.")
    )
    agent = models.ForeignKey(
        Agent,
        verbose_name=_("agent"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text=_("Agent that is selected when you run the set."),
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    objects = ExampleSetManager()

    class Meta:
        verbose_name = _("example set")
        verbose_name_plural = _("example sets")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class ExampleManager(models.Manager["Example"]):
    """Leaves out examples of runs in deleted chats, which are erased with them."""

    def get_queryset(self) -> "models.QuerySet[Example]":
        deleted_topics = HiddenTopic.objects.filter(user=None).values("topic")
        return super().get_queryset().exclude(run__topic__in=deleted_topics)


class Example(models.Model):
    """A question with an expected answer or checks, by hand or from a run.

    `observations` are the recorded tool results, so that it can be rerun at any time.
    """

    name = models.CharField(_("name"), max_length=120, unique=True)
    example_set = models.ForeignKey(
        ExampleSet,
        verbose_name=_("example set"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="examples",
    )
    checks = models.JSONField(
        _("checks"), default=list, blank=True, db_default=models.Value([], models.JSONField())
    )
    tags = models.CharField(
        _("tags"),
        max_length=200,
        blank=True,
        default="",
        db_default="",
        help_text=_("Separated by commas, e.g. billing, regression."),
    )
    run = models.ForeignKey(
        Run,
        verbose_name=_("run"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="examples",
    )
    agent = models.ForeignKey(
        Agent,
        verbose_name=_("agent"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    agent_name = models.CharField(_("agent name"), max_length=MAX_NAME_CHARS, blank=True)
    question = models.TextField(_("question"))
    history = models.JSONField(_("earlier messages"), default=list, blank=True)
    observations = models.JSONField(_("tool results"), default=list, blank=True)
    expected = models.TextField(_("expected answer"), blank=True)
    saved_by = _user_foreign_key(_("saved by"))
    saved_at = models.DateTimeField(_("saved"), auto_now_add=True)
    score = models.FloatField(_("last score"), null=True, blank=True)
    scored_at = models.DateTimeField(_("last run"), null=True, blank=True)

    objects = ExampleManager()

    class Meta:
        verbose_name = _("example")
        verbose_name_plural = _("examples")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class SavedView(models.Model):
    """A saved filter of the list with its look; without a name, a user's own columns."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="saved_views",
    )
    name = models.CharField(_("name"), max_length=MAX_NAME_CHARS)
    query = models.TextField(_("filter"), blank=True)
    columns = models.CharField(
        _("columns"), max_length=300, blank=True, default="", db_default=""
    )
    sort = models.CharField(_("sort"), max_length=32, blank=True, default="", db_default="")
    grouping = models.CharField(
        _("group by"), max_length=32, blank=True, default="", db_default=""
    )

    class Meta:
        verbose_name = _("saved view")
        verbose_name_plural = _("saved views")
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="one_view_a_name")]

    def __str__(self) -> str:
        return self.name


class ShareLinkQuerySet(models.QuerySet["ShareLink"]):
    def open(self) -> Self:
        """Return links that still work, by the database's clock."""
        return self.filter(revoked_at=None, expires_at__gt=Now())


class ShareLink(models.Model):
    """A temporary link to one run for anyone who has it. Only the token's digest is saved."""

    class Level(models.TextChoices):
        PERSON = "person", _("question, answer and steps, without details")
        REVIEWER = "reviewer", _("everything, with personal data masked")
        AUDITOR = "auditor", _("everything")

    run = _run_foreign_key("share_links")
    digest = models.CharField(_("digest"), max_length=64, unique=True)
    level = models.CharField(_("shared content"), max_length=10, choices=Level)
    made_by = _user_foreign_key(_("created by"))
    made_at = models.DateTimeField(_("created"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires"))
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True)
    opened = models.PositiveIntegerField(_("times opened"), default=0)

    objects = ShareLinkQuerySet.as_manager()

    class Meta:
        verbose_name = _("share link")
        verbose_name_plural = _("share links")
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.run_id} {self.level}"
