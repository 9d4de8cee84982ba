"""Imports of chats: the job, its result per chat, and what was imported from where."""

from typing import Self

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from agents.models.knowledge.leases import Leased


class ChatImportQuerySet(models.QuerySet["ChatImport"]):
    def for_user(self, user: models.Model | int) -> Self:
        return self.filter(user=user)

    def active(self) -> Self:
        """Return imports that a process works on, or should."""
        return self.filter(status__in=ChatImport.ACTIVE)


class ChatImport(Leased):
    """Uploaded files whose chats are counted first, then imported."""

    class Status(models.TextChoices):
        COUNTING = "counting", _("reading files")
        READY = "ready", _("ready to import")
        RUNNING = "running", _("importing")
        DONE = "done", _("finished")
        CANCELLED = "cancelled", _("canceled")
        FAILED = "failed", _("failed")

    ACTIVE = (Status.COUNTING, Status.RUNNING)

    personal = ("files",)

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="chat_imports",
    )
    status = models.CharField(
        _("status"), max_length=10, choices=Status, default=Status.COUNTING
    )
    files = models.JSONField(_("files"), default=list, help_text=_("Names of uploaded files."))
    sources = models.JSONField(
        pgettext_lazy("chat import", "sources"),
        default=dict,
        help_text=_("Chats found, by product."),
    )
    found = models.PositiveIntegerField(_("chats found"), default=0)
    is_new = models.PositiveIntegerField(_("not imported yet"), default=0)
    done = models.PositiveIntegerField(_("chats processed"), default=0)
    problem = models.CharField(_("problem"), max_length=32, blank=True, default="")
    attempts = models.PositiveSmallIntegerField(_("attempts"), default=0)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)

    objects = ChatImportQuerySet.as_manager()

    class Meta:
        verbose_name = _("chat import")
        verbose_name_plural = _("chat imports")
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"#{self.pk} {self.status}"

    @property
    def is_active(self) -> bool:
        return self.status in self.ACTIVE


class ImportResult(models.Model):
    """What became of one chat in an import."""

    class Outcome(models.TextChoices):
        IMPORTED = "imported", _("imported")
        KNOWN = "known", _("already imported")
        SKIPPED = "skipped", _("skipped")
        FAILED = "failed", _("failed")

    personal = ("title",)

    chat_import = models.ForeignKey(
        ChatImport,
        verbose_name=_("import"),
        on_delete=models.CASCADE,
        related_name="results",
    )
    number = models.PositiveIntegerField(_("number"))
    outcome = models.CharField(_("outcome"), max_length=10, choices=Outcome)
    source = models.CharField(
        pgettext_lazy("chat import", "source"), max_length=20, blank=True, default=""
    )
    title = models.CharField(_("title"), max_length=80, blank=True, default="")
    problem = models.CharField(_("problem"), max_length=32, blank=True, default="")
    file = models.CharField(_("file"), max_length=200, blank=True, default="")
    session = models.ForeignKey(
        "chat.ChatSession",
        verbose_name=_("chat"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )

    class Meta:
        verbose_name = _("import result")
        verbose_name_plural = _("import results")
        ordering = ["chat_import", "number"]
        constraints = [
            models.UniqueConstraint(
                fields=["chat_import", "number"], name="one_result_a_number"
            )
        ]

    def __str__(self) -> str:
        return f"{self.chat_import_id}.{self.number} {self.outcome}"


class ImportedChat(models.Model):
    """Where a chat was imported from, so that it isn't imported twice."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="+",
    )
    session = models.OneToOneField(
        "chat.ChatSession",
        verbose_name=_("chat"),
        on_delete=models.CASCADE,
        related_name="imported",
    )
    source = models.CharField(pgettext_lazy("chat import", "source"), max_length=20)
    original_id = models.CharField(_("original ID"), max_length=200)
    imported_at = models.DateTimeField(_("imported"), auto_now_add=True)

    class Meta:
        verbose_name = _("imported chat")
        verbose_name_plural = _("imported chats")
        constraints = [
            models.UniqueConstraint(
                fields=["user", "source", "original_id"], name="one_import_a_chat"
            )
        ]

    def __str__(self) -> str:
        return f"{self.source} {self.original_id}"
