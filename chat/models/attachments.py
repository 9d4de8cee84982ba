"""Files that users attach to messages."""

from typing import Self

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models import Document, StoredFile

from .messages import Message
from .sessions import ChatSession, UserOrPk


class AttachmentQuerySet(models.QuerySet["Attachment"]):
    def for_user(self, user: UserOrPk) -> Self:
        """Return files this user can open: their unsent ones, and those in chats they see."""
        in_chat = models.Q(message__session__in=ChatSession.objects.for_user(user))
        return self.filter(in_chat | models.Q(message=None, user=user))

    def editable_by(self, user: UserOrPk) -> Self:
        """Return their unsent files, and those in chats they can write in."""
        in_chat = models.Q(message__session__in=ChatSession.objects.writable_by(user))
        return self.filter(in_chat | models.Q(message=None, user=user))

    def unsent_by(self, user: UserOrPk) -> Self:
        """Return the files in this user's composers, which only they can see and remove."""
        return self.filter(message=None, user=user)


class Attachment(models.Model):
    """A file of a message, or of a composer until its message is sent."""

    personal = ("name",)

    class Kind(models.TextChoices):
        IMAGE = "image", _("Image")
        AUDIO = "audio", _("Audio")
        VIDEO = "video", _("Video")
        TABLE = "table", _("Table")
        DOCUMENT = "document", _("Document")

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="chat_attachments",
    )
    message = models.ForeignKey(
        Message,
        verbose_name=_("message"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="attachments",
        help_text=_("Empty until it is sent."),
    )
    file = models.ForeignKey(
        StoredFile,
        verbose_name=_("file"),
        on_delete=models.PROTECT,
        related_name="chat_attachments",
    )
    document = models.ForeignKey(
        Document,
        verbose_name=_("document"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="chat_attachments",
        help_text=_("The file's text. Empty until it has been read."),
    )
    name = models.CharField(_("name"), max_length=200)
    mime_type = models.CharField(_("type"), max_length=130)
    kind = models.CharField(_("kind"), max_length=10, choices=Kind)
    width = models.PositiveIntegerField(_("width"), null=True, blank=True)
    height = models.PositiveIntegerField(_("height"), null=True, blank=True)
    created_at = models.DateTimeField(_("uploaded"), auto_now_add=True)

    objects = AttachmentQuerySet.as_manager()

    class Meta:
        verbose_name = _("attached file")
        verbose_name_plural = _("attached files")
        ordering = ["pk"]
        indexes = [
            models.Index(
                fields=["user", "created_at"],
                condition=models.Q(message=None),
                name="unsent_attachments",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_image(self) -> bool:
        return self.kind == self.Kind.IMAGE
