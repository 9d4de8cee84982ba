from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models import Run


class ChatSessionQuerySet(models.QuerySet):
    def for_user(self, user):
        """The sessions this person may see and write in: their own."""
        return self.filter(user=user)


class ChatSession(models.Model):
    live: Run | None = None  # the run that goes on in it, for those who show it in a list

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("person"),
        on_delete=models.CASCADE,
        related_name="chat_sessions",
    )
    title = models.CharField(_("title"), max_length=80)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("last used"), auto_now_add=True)

    objects = ChatSessionQuerySet.as_manager()

    class Meta:
        verbose_name = _("session")
        verbose_name_plural = _("sessions")
        ordering = ["-updated_at", "-pk"]
        indexes = [models.Index(fields=["user", "-updated_at"], name="sessions_of_a_person")]

    def __str__(self) -> str:
        return self.title

    @property
    def topic(self) -> str:
        return f"chat.{self.pk}"

    @property
    def is_running(self) -> bool:
        return self.live is not None and not self.live.is_waiting

    @property
    def is_waiting(self) -> bool:
        return self.live is not None and self.live.is_waiting


class Message(models.Model):
    """What a person said, and the run that answers it."""

    is_new = False  # whether it was made just now, rather than found

    session = models.ForeignKey(
        ChatSession,
        verbose_name=_("session"),
        on_delete=models.CASCADE,
        related_name="messages",
    )
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("person"),
        on_delete=models.CASCADE,
        related_name="+",
    )
    run = models.OneToOneField(
        Run,
        verbose_name=_("run"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="message",
    )
    text = models.TextField(_("text"))
    client_id = models.CharField(_("client's id"), max_length=64)
    created_at = models.DateTimeField(_("sent"), auto_now_add=True)

    class Meta:
        verbose_name = _("message")
        verbose_name_plural = _("messages")
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["author", "client_id"], name="one_message_a_client_id"
            )
        ]

    def __str__(self) -> str:
        return self.text[:60]
