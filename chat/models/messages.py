"""Messages of a chat, and which branch of them each user sees."""

from typing import Self

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models import Run

from .sessions import ChatSession, UserOrPk


class MessageQuerySet(models.QuerySet["Message"]):
    def for_user(self, user: UserOrPk) -> Self:
        """Return this user's messages in chats they can see."""
        return self.filter(author=user, session__in=ChatSession.objects.for_user(user))

    def withdrawable_by(self, user: UserOrPk) -> Self:
        """Return messages this user can withdraw: their own, and all in their chats."""
        return self.for_user(user) | self.filter(session__user=user)

    def queued(self) -> Self:
        """Return queued messages, the next one first."""
        return self.filter(place__isnull=False).order_by("place")

    def posted(self) -> Self:
        """Return messages that aren't queued, in conversation order."""
        return self.filter(place=None).order_by("pk")


class Message(models.Model):
    """A user's message and the run that answers it."""

    personal = ("text",)
    is_new = False  # whether it was just created

    session = models.ForeignKey(
        ChatSession,
        verbose_name=_("chat"),
        on_delete=models.CASCADE,
        related_name="messages",
    )
    # Before a message is deleted, chat.sessions.branches attaches its children to its parent.
    parent = models.ForeignKey(
        "self",
        verbose_name=_("previous message"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="children",
        help_text=_(
            "Empty for the first message. Messages with the same previous message are branches."
        ),
    )
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
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
    agent_name = models.CharField(
        _("agent name"),
        max_length=64,
        blank=True,
        db_default="",
        help_text=_("The agent chosen to answer, if any."),
    )
    options = models.JSONField(
        _("model options"),
        default=dict,
        blank=True,
        db_default=models.Value({}, models.JSONField()),
        help_text=_(
            "Options for the run of a queued message. Once the run starts, it "
            "stores them itself."
        ),
    )
    is_mention = models.BooleanField(
        _("agent mentioned"),
        default=False,
        db_default=False,
        help_text=_("Whether @ was used to choose another agent for this message only."),
    )
    has_files = models.BooleanField(
        _("files"),
        default=False,
        db_default=False,
        help_text=_("Whether files are attached; most messages have none."),
    )
    place = models.IntegerField(
        _("queue position"),
        null=True,
        blank=True,
        help_text=_("Empty if the message isn't queued."),
    )
    client_id = models.CharField(_("client ID"), max_length=64)
    created_at = models.DateTimeField(_("sent"), auto_now_add=True)
    edited_at = models.DateTimeField(
        _("edited"),
        null=True,
        blank=True,
        help_text=_("When the text was corrected. The run has the original message."),
    )

    objects = MessageQuerySet.as_manager()

    class Meta:
        verbose_name = _("message")
        verbose_name_plural = _("messages")
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["author", "client_id"], name="one_message_a_client_id"
            ),
            models.UniqueConstraint(
                fields=["session", "place"],
                condition=models.Q(place__isnull=False),
                name="one_message_a_place",
            ),
            models.CheckConstraint(
                condition=models.Q(place=None) | models.Q(run=None),
                name="no_run_while_it_waits",
            ),
        ]

    def __str__(self) -> str:
        return self.text[:60]

    @property
    def is_queued(self) -> bool:
        return self.place is not None


class BranchPosition(models.Model):
    """Where a user is in the branches of a chat.

    Without `branch` it is the end of the branch they see. With one, it is where they were below
    that message when they left it for a sibling.
    """

    session = models.ForeignKey(
        ChatSession,
        verbose_name=_("chat"),
        on_delete=models.CASCADE,
        related_name="branch_positions",
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="+",
    )
    branch = models.ForeignKey(
        Message,
        verbose_name=_("branch"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
    )
    leaf = models.ForeignKey(
        Message, verbose_name=_("last message"), on_delete=models.CASCADE, related_name="+"
    )

    class Meta:
        verbose_name = _("branch position")
        verbose_name_plural = _("branch positions")
        constraints = [
            models.UniqueConstraint(
                fields=["session", "user"],
                condition=models.Q(branch=None),
                name="one_visible_leaf_a_person",
            ),
            models.UniqueConstraint(
                fields=["branch", "user"],
                condition=models.Q(branch__isnull=False),
                name="one_last_leaf_a_branch",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.session_id} {self.user_id} {self.leaf_id}"
