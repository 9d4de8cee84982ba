"""What is remembered: facts about a user or a project, and summaries of long chats."""

from typing import Self

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from ..runs.runs import Run
from ..sharing.projects import Project
from ..types import AnyUser
from .notes import Note, NoteQuerySet


class MemoryQuerySet(NoteQuerySet["Memory"]):
    def for_user(self, user: AnyUser) -> Self:
        """Return what this user can read and change: their own, and their projects'."""
        if not user.pk or not user.is_active:
            return self.none()
        projects = Project.objects.for_user(user)
        mine = models.Q(user=user.pk, project=None)
        return self.present().filter(mine | models.Q(project__in=projects))

    def editable_by(self, user: AnyUser) -> Self:
        """Return what this user can edit, delete and decide on."""
        if not user.pk or not user.is_active:
            return self.none()
        projects = Project.objects.editable_by(user)
        mine = models.Q(user=user.pk, project=None)
        return self.filter(mine | models.Q(project__in=projects))

    def personal(self) -> Self:
        return self.filter(project=None)

    def current(self) -> Self:
        """Return what holds now: accepted, not replaced and not deleted."""
        return self.present().filter(status=Memory.Status.ACTIVE, valid_to=None)

    def proposed(self) -> Self:
        return self.present().filter(status=Memory.Status.PROPOSED)


class Memory(Note):
    """A fact or preference. A newer one that contradicts it replaces it."""

    personal = words = ("subject", "text")
    MAX_CHARS = 500

    class Status(models.TextChoices):
        ACTIVE = "active", pgettext_lazy("memory", "Saved")
        PROPOSED = "proposed", pgettext_lazy("memory", "Suggested")

    class Kind(models.TextChoices):
        FACT = "fact", _("Fact")
        PREFERENCE = "preference", _("Preference")

    class Source(models.TextChoices):
        STATED = "stated", _("You asked for it in a chat")
        AGENT = "agent", _("An agent suggested it")
        PAGE = "page", _("You added it here")

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="memories",
        help_text=_("The user it is about; in a project, the user who added it."),
    )
    project = models.ForeignKey(
        Project,
        verbose_name=_("project"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="memories",
    )
    subject = models.CharField(
        pgettext_lazy("memory", "subject"),
        max_length=80,
        blank=True,
        help_text=_("E.g. home city. A newer memory that contradicts it replaces it."),
    )
    kind = models.CharField(
        _("kind"),
        max_length=12,
        choices=Kind,
        default=Kind.FACT,
        db_default=Kind.FACT.value,
        help_text=_("Agents always get preferences, and facts when they fit the message."),
    )
    text = models.CharField(_("text"), max_length=MAX_CHARS)
    status = models.CharField(_("status"), max_length=10, choices=Status, default=Status.ACTIVE)
    source = models.CharField(
        pgettext_lazy("memory", "source"), max_length=10, choices=Source, default=Source.PAGE
    )
    run = models.ForeignKey(
        Run,
        verbose_name=_("run"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="memories",
        help_text=_("The run it comes from."),
    )
    step = models.PositiveIntegerField(_("step"), null=True, blank=True)
    reason = models.CharField(
        _("reason"),
        max_length=200,
        blank=True,
        help_text=_("Why it needs the user's approval."),
    )
    valid_from = models.DateTimeField(_("valid from"), default=timezone.now)
    valid_to = models.DateTimeField(_("valid until"), null=True, blank=True)
    superseded_by = models.ForeignKey(
        "self",
        verbose_name=_("replaced by"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="replaces",
    )

    objects = MemoryQuerySet.as_manager()

    class Meta:
        verbose_name = _("memory")
        verbose_name_plural = _("memories")
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "digest"],
                condition=models.Q(project=None, valid_to=None, deleted_at=None),
                name="one_memory_a_text",
            ),
            models.UniqueConstraint(
                fields=["project", "digest"],
                condition=models.Q(project__isnull=False, valid_to=None, deleted_at=None),
                name="one_memory_a_text_in_project",
            ),
        ]

    def __str__(self) -> str:
        return self.text[:60]

    @property
    def is_current(self) -> bool:
        is_valid = self.valid_to is None and self.deleted_at is None
        return is_valid and self.status == self.Status.ACTIVE

    @property
    def siblings(self) -> MemoryQuerySet:
        """All memories of the same user or the same project."""
        if self.project_id is not None:
            return Memory.objects.filter(project=self.project_id)
        return Memory.objects.filter(user=self.user_id, project=None)

    def same(self) -> MemoryQuerySet:
        rows = self.siblings.present().filter(digest=self.digest, valid_to=None)
        return rows.none() if self.valid_to else rows.exclude(pk=self.pk)


class MemoryExclusion(models.Model):
    """A group whose members have no long-term memory."""

    group = models.OneToOneField(
        Group, verbose_name=_("group"), on_delete=models.CASCADE, related_name="+"
    )

    class Meta:
        verbose_name = _("group without memory")
        verbose_name_plural = _("groups without memory")
        ordering = ["group__name"]

    def __str__(self) -> str:
        return str(self.group)


class HistorySummary(models.Model):
    """What a run's model wrote instead of a chat's older turns; later runs use it again."""

    personal = ("text",)

    run = models.OneToOneField(
        Run, verbose_name=_("run"), on_delete=models.CASCADE, related_name="summary"
    )
    text = models.TextField(_("text"))
    kept = models.PositiveIntegerField(
        _("turns after it"), help_text=_("Turns before the run that it doesn't include.")
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("chat summary")
        verbose_name_plural = _("chat summaries")

    def __str__(self) -> str:
        return self.text[:60]
