"""What agents learn from outcomes and feedback: experiences, and each user's answer style."""

from typing import Any, Self

from django.conf import settings
from django.core.validators import MinLengthValidator
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from ..catalog.agents import Agent
from ..runs.runs import Run
from ..sharing.access import HiddenTopic, ReviewScope
from ..sharing.projects import Project
from ..types import AnyUser
from .notes import Note, NoteQuerySet

REVIEW_PERMISSION = "agents.review_runs"


class ExperienceQuerySet(NoteQuerySet["Experience"]):
    def for_user(self, user: AnyUser) -> Self:
        """Return what was learned from this user's own runs, for their runs."""
        if not user.pk or not user.is_active:
            return self.none()
        rows = self.present().filter(user=user.pk, scope=Experience.Scope.PERSON)
        return rows.from_present_chats()

    def editable_by(self, user: AnyUser) -> Self:
        """Return what this user can change: their own."""
        if not user.pk or not user.is_active:
            return self.none()
        return self.filter(user=user.pk, scope=Experience.Scope.PERSON)

    def reviewable_by(self, user: AnyUser) -> Self:
        """Return what this reviewer decides on: what others would use, of their agents."""
        if not user.has_perm(REVIEW_PERMISSION):
            return self.none()
        rows = self.exclude(scope=Experience.Scope.PERSON).from_present_chats()
        agents = ReviewScope.objects.agents_of(user)
        return rows if agents is None else rows.filter(agent__in=agents)

    def from_present_chats(self) -> Self:
        """Leave out what was learned in a chat that is deleted."""
        hidden = HiddenTopic.objects.filter(topic=models.OuterRef("run__topic"))
        return self.exclude(models.Exists(hidden))

    def current(self) -> Self:
        """Return what a run may use: active, not expired, from a chat that still exists."""
        is_fresh = models.Q(expires_at=None) | models.Q(expires_at__gt=Now())
        rows = self.present().filter(is_fresh, status=Experience.Status.ACTIVE)
        return rows.from_present_chats()


class Experience(Note):
    """A lesson of one question: what worked, or what was wrong and is right."""

    words = ("question", "text")  # not `personal`: they are masked before they are saved
    MAX_QUESTION_CHARS = 300
    MAX_CHARS = 600

    class Kind(models.TextChoices):
        SUCCESS = "success", _("What worked")
        CORRECTION = "correction", _("Correction")

    class Scope(models.TextChoices):
        PERSON = "person", _("One user")
        PROJECT = "project", _("Project")
        AGENT = "agent", _("All users of the agent")

    class Status(models.TextChoices):
        ACTIVE = "active", pgettext_lazy("experience", "Active")
        REVIEW = "review", pgettext_lazy("experience", "Pending review")
        OFF = "off", pgettext_lazy("experience", "Off")

    class Source(models.TextChoices):
        RATING = "rating", _("Rating")
        FOLLOW_UP = "follow_up", _("Correction in the chat")
        REVIEW = "review", _("Reviewer's correction")
        EXAMPLE = "example", _("Saved example")
        PAGE = "page", _("Added by hand")

    class OffReason(models.TextChoices):
        NONE = "", ""
        HARMFUL = "harmful", _("It made answers worse.")
        REJECTED = "rejected", _("A reviewer rejected it.")
        PERSON = "person", _("You turned it off.")
        CONSOLE = "console", _("Turned off in the console.")

    agent = models.ForeignKey(
        Agent, verbose_name=_("agent"), on_delete=models.CASCADE, related_name="experiences"
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="experiences",
        help_text=_("Whose run it comes from; it is deleted with their account."),
    )
    project = models.ForeignKey(
        Project,
        verbose_name=_("project"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="experiences",
        help_text=_("Only runs of this project use it."),
    )
    scope = models.CharField(
        pgettext_lazy("experience", "used by"),
        max_length=10,
        choices=Scope,
        default=Scope.PERSON,
    )
    kind = models.CharField(_("kind"), max_length=12, choices=Kind)
    source = models.CharField(
        pgettext_lazy("experience", "source"),
        max_length=12,
        choices=Source,
        default=Source.PAGE,
    )
    status = models.CharField(_("status"), max_length=10, choices=Status, default=Status.ACTIVE)
    off_reason = models.CharField(
        _("reason"), max_length=10, choices=OffReason, blank=True, default=""
    )
    question = models.CharField(
        _("question"),
        max_length=MAX_QUESTION_CHARS,
        help_text=_("Used for similar messages. E.g. What was the GMV in May?"),
    )
    text = models.CharField(
        _("lesson"),
        max_length=MAX_CHARS,
        validators=[MinLengthValidator(3)],
        help_text=_("What worked, or what is right. E.g. GMV means revenue."),
    )
    tools = models.JSONField(
        _("tools"),
        default=list,
        blank=True,
        help_text=_("Tools it is about; runs without them don't use it."),
    )
    collections = models.JSONField(
        _("collections"),
        default=list,
        blank=True,
        help_text=_("Collections it quotes; only users who can open them use it."),
    )
    run = models.ForeignKey(
        Run,
        verbose_name=_("run"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="experiences",
        help_text=_("The run it comes from; it is deleted with it."),
    )
    helpful = models.PositiveIntegerField(_("helpful"), default=0)
    harmful = models.PositiveIntegerField(_("harmful"), default=0)
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True)
    reviewed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("reviewed by"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    reviewed_at = models.DateTimeField(_("reviewed"), null=True, blank=True)

    objects = ExperienceQuerySet.as_manager()

    class Meta:
        verbose_name = _("lesson")
        verbose_name_plural = _("lessons")
        ordering = ["-pk"]
        indexes = [models.Index(fields=["agent", "status"], name="experiences_of_an_agent")]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "agent", "digest"],
                condition=models.Q(scope="person", deleted_at=None),
                name="one_experience_a_person",
            ),
            models.UniqueConstraint(
                fields=["project", "agent", "digest"],
                condition=models.Q(scope="project", deleted_at=None),
                name="one_experience_a_project",
            ),
            models.UniqueConstraint(
                fields=["agent", "digest"],
                condition=models.Q(scope="agent", deleted_at=None),
                name="one_experience_an_agent",
            ),
        ]

    def __str__(self) -> str:
        return self.question[:60]

    @property
    def compared(self) -> str:
        """What is compared with a question; the calls of a success are unlike any question."""
        return self.question if self.kind == self.Kind.SUCCESS else super().compared

    def same(self) -> ExperienceQuerySet:
        people: dict[str, Any] = {}
        if self.scope == self.Scope.PERSON:
            people = {"user": self.user_id}
        elif self.scope == self.Scope.PROJECT:
            people = {"project": self.project_id}
        rows = Experience.objects.present().filter(agent=self.agent_id, scope=self.scope)
        return rows.filter(digest=self.digest, **people).exclude(pk=self.pk)


class ExperienceRun(models.Model):
    """A run that an experience comes from, or one that used it and how that went."""

    class Role(models.TextChoices):
        ORIGIN = "origin", _("Learned from it")
        USED = "used", _("Used it")

    class Outcome(models.TextChoices):
        UNKNOWN = "", _("No feedback")
        HELPFUL = "helpful", _("Helpful")
        HARMFUL = "harmful", _("Harmful")

    experience = models.ForeignKey(
        Experience,
        verbose_name=_("lesson"),
        on_delete=models.CASCADE,
        related_name="evidence",
    )
    run = models.ForeignKey(
        Run, verbose_name=_("run"), on_delete=models.CASCADE, related_name="+"
    )
    role = models.CharField(_("role"), max_length=10, choices=Role)
    outcome = models.CharField(
        _("outcome"), max_length=10, choices=Outcome, blank=True, default=""
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("run of a lesson")
        verbose_name_plural = _("runs of lessons")
        ordering = ["-run_id"]
        constraints = [
            models.UniqueConstraint(fields=["experience", "run", "role"], name="one_run_a_role")
        ]

    def __str__(self) -> str:
        return f"{self.experience_id} {self.run_id} {self.role}"


class Personalization(models.Model):
    """What a user lets agents learn from them, and how they like answers.

    `chosen` are values that the user set, `learned` those that ratings and chats suggest; a
    chosen one wins.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="personalization",
    )
    learns = models.BooleanField(
        _("learn from my chats"),
        default=True,
        db_default=True,
        help_text=_("Ratings and corrections become lessons for your later chats."),
    )
    learns_style = models.BooleanField(
        _("learn my answer style"), default=True, db_default=True
    )
    chosen = models.JSONField(_("chosen style"), default=dict, blank=True)
    learned = models.JSONField(_("learned style"), default=dict, blank=True)

    class Meta:
        verbose_name = _("personalization")
        verbose_name_plural = _("personalizations")

    def __str__(self) -> str:
        return str(self.user)


class StyleSignal(models.Model):
    """A rating or a sentence that says how a user likes answers."""

    personal = ("quote",)

    class Trait(models.TextChoices):
        LENGTH = "length", _("Length")
        TONE = "tone", _("Tone")
        FORMAT = "format", _("Format")
        LANGUAGE = "language", _("Language")

    class Source(models.TextChoices):
        RATING = "rating", _("Rating")
        STATED = "stated", _("Said in a chat")

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="style_signals",
    )
    run = models.ForeignKey(
        Run, verbose_name=_("run"), on_delete=models.CASCADE, related_name="+"
    )
    trait = models.CharField(_("trait"), max_length=10, choices=Trait)
    value = models.CharField(_("value"), max_length=20)
    source = models.CharField(
        pgettext_lazy("experience", "source"), max_length=10, choices=Source
    )
    is_lasting = models.BooleanField(
        _("lasting"), default=False, help_text=_("The user wants this from now on.")
    )
    quote = models.CharField(_("quote"), max_length=200, blank=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("style signal")
        verbose_name_plural = _("style signals")
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["run", "trait", "source"], name="one_style_signal_a_run"
            )
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.trait} {self.value}"
