"""Chats: who sees and writes them, their invitations, folders and pins."""

from typing import Any, Self, TypeAlias

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agents.db.installation import configured
from agents.models import Membership, Project, Run

# Compiled queries only have the user's id.
UserOrPk: TypeAlias = User | int


class ChatSessionQuerySet(models.QuerySet["ChatSession"]):
    def present(self) -> Self:
        """Leave out deleted chats."""
        return self.filter(deleted_at__isnull=True)

    def saved(self) -> Self:
        """Return chats that appear in lists, which temporary ones don't."""
        return self.filter(is_temporary=False)

    def for_user(self, user: UserOrPk) -> Self:
        """Return the chats this user can see: their own and those shared with them."""
        mine = models.Q(user=user) | models.Q(pk__in=_member_sessions(user))
        return self.present().filter(mine)

    def owned_by(self, user: UserOrPk) -> Self:
        """Return the chats this user can rename, delete and share."""
        return self.present().filter(user=user)

    def shared_with(self, user: UserOrPk) -> Self:
        """Return chats of others that are shared with this user."""
        return self.present().filter(pk__in=_member_sessions(user)).exclude(user=user)

    def writable_by(self, user: UserOrPk) -> Self:
        """Return the chats in which this user can send messages and stop runs."""
        writes = _member_sessions(user).filter(may_write=True)
        return self.present().filter(models.Q(user=user) | models.Q(pk__in=writes))

    def unfiled_by(self, user: UserOrPk) -> Self:
        """Return saved chats that this user hasn't pinned, archived or put into a folder."""
        filed = Filing.objects.filed().filter(user=user, session=models.OuterRef("pk"))
        return self.saved().exclude(models.Exists(filed))


def _member_sessions(user: UserOrPk) -> models.QuerySet["Member", Any]:
    return Member.objects.filter(user=user).order_by().values("session")


class ChatSession(models.Model):
    personal = ("title",)
    # In the options of a chat that only has deleted messages of another: where they were.
    TAKEN_FROM = "taken_from"
    live: Run | None = None  # its live run, for lists
    whose = ""  # the owner's name, for other members
    is_pinned = False  # by the user who sees the list

    class TitleSource(models.TextChoices):
        QUESTION = "", _("first message")
        MODEL = "model", _("model")
        PERSON = "person", _("user")

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="chat_sessions",
    )
    title = models.CharField(_("title"), max_length=80)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("last used"), auto_now_add=True)
    is_shared = models.BooleanField(
        _("shared"),
        default=False,
        db_default=False,
        help_text=_("Whether the chat has members besides its owner."),
    )
    public_until = models.DateTimeField(
        _("public until"),
        null=True,
        blank=True,
        help_text=_("When the last public link expires."),
    )

    title_source = models.CharField(
        _("title written by"),
        max_length=8,
        choices=TitleSource,
        default=TitleSource.QUESTION,
        db_default="",
        blank=True,
        help_text=_("A title that a user typed is never replaced."),
    )
    title_tokens = models.PositiveIntegerField(
        _("tokens for the title"), default=0, db_default=0
    )
    is_temporary = models.BooleanField(
        _("temporary"),
        default=False,
        db_default=False,
        help_text=_("Deleted soon after its last page is closed, and never listed."),
    )
    last_open_at = models.DateTimeField(
        _("last open"),
        null=True,
        blank=True,
        help_text=_("When a page of a temporary chat was last open."),
    )
    deleted_at = models.DateTimeField(
        _("deleted"),
        null=True,
        blank=True,
        help_text=_("Invisible from this time on, and erased later."),
    )
    options = models.JSONField(
        _("model options"),
        default=dict,
        blank=True,
        db_default=models.Value({}, models.JSONField()),
        help_text=_("Model, effort and temperature, where they differ from the agent's."),
    )

    project = models.ForeignKey(
        Project,
        verbose_name=_("project"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="chats",
    )

    objects = ChatSessionQuerySet.as_manager()

    class Meta:
        verbose_name = _("chat")
        verbose_name_plural = _("chats")
        ordering = ["-updated_at", "-pk"]
        indexes = [
            models.Index(fields=["user", "-updated_at"], name="sessions_of_a_person"),
            models.Index(
                fields=["deleted_at"],
                condition=models.Q(deleted_at__isnull=False),
                name="deleted_sessions",
            ),
            models.Index(
                fields=["last_open_at"],
                condition=models.Q(is_temporary=True),
                name="temporary_sessions",
            ),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def topic(self) -> str:
        return f"chat.{self.pk}"

    @property
    def is_public(self) -> bool:
        """Whether a public link to it works."""
        return (
            self.public_until is not None
            and self.public_until > timezone.now()
            and configured.PUBLIC_LINKS.value
        )

    @property
    def is_running(self) -> bool:
        return self.live is not None and not self.live.is_waiting

    @property
    def is_waiting(self) -> bool:
        return self.live is not None and self.live.is_waiting


class InvitationQuerySet(models.QuerySet["Invitation"]):
    def open(self) -> Self:
        """Return invitations that still work, by the database's clock."""
        return self.filter(withdrawn_at=None, expires_at__gt=Now())


class Invitation(models.Model):
    """A temporary link into a chat. Only the token's digest is saved."""

    session = models.ForeignKey(
        ChatSession,
        verbose_name=_("chat"),
        on_delete=models.CASCADE,
        related_name="invitations",
    )
    digest = models.CharField(_("digest"), max_length=64, unique=True)
    may_write = models.BooleanField(_("edit access"), default=False)
    made_at = models.DateTimeField(_("created"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires"))
    withdrawn_at = models.DateTimeField(_("revoked"), null=True, blank=True)

    objects = InvitationQuerySet.as_manager()

    class Meta:
        verbose_name = _("invitation")
        verbose_name_plural = _("invitations")
        ordering = ["-pk"]

    def __str__(self) -> str:
        return str(self.session)


class Member(Membership):
    """A member of a shared chat, including its owner."""

    session = models.ForeignKey(
        ChatSession,
        verbose_name=_("chat"),
        on_delete=models.CASCADE,
        related_name="members",
    )
    invitation = models.ForeignKey(
        Invitation,
        verbose_name=_("joined via"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="members",
    )

    class Meta:
        verbose_name = _("member")
        verbose_name_plural = _("members")
        ordering = ["pk"]


class RemovedMember(models.Model):
    """A user whom the owner removed or limited to reading, which no link can undo.

    Only the owner can, by adding them by name.
    """

    session = models.ForeignKey(
        ChatSession,
        verbose_name=_("chat"),
        on_delete=models.CASCADE,
        related_name="removed_members",
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="+",
    )
    may_read = models.BooleanField(_("view access"), default=False)
    removed_at = models.DateTimeField(_("removed"), auto_now_add=True)

    class Meta:
        verbose_name = _("removed member")
        verbose_name_plural = _("removed members")
        constraints = [
            models.UniqueConstraint(fields=["session", "user"], name="one_removal_a_person")
        ]

    def __str__(self) -> str:
        return f"{self.session_id} {self.user}"


class Folder(models.Model):
    """A user's folder in their list of chats."""

    personal = ("name",)

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="chat_folders",
    )
    name = models.CharField(_("name"), max_length=60)
    order = models.IntegerField(_("order"), default=0, db_default=0)
    is_collapsed = models.BooleanField(_("collapsed"), default=False, db_default=False)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("folder")
        verbose_name_plural = _("folders")
        ordering = ["order", "pk"]

    def __str__(self) -> str:
        return self.name


class FilingQuerySet(models.QuerySet["Filing"]):
    def filed(self) -> Self:
        """Return filings that take a chat out of the list by date."""
        return self.filter(
            models.Q(pinned_at__isnull=False)
            | models.Q(archived_at__isnull=False)
            | models.Q(folder__isnull=False)
        )


class Filing(models.Model):
    """Where one user has filed a chat: pinned, archived, in a folder."""

    session = models.ForeignKey(
        ChatSession,
        verbose_name=_("chat"),
        on_delete=models.CASCADE,
        related_name="filings",
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="+",
    )
    pinned_at = models.DateTimeField(_("pinned"), null=True, blank=True)
    archived_at = models.DateTimeField(_("archived"), null=True, blank=True)
    folder = models.ForeignKey(
        Folder,
        verbose_name=_("folder"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="filings",
    )

    objects = FilingQuerySet.as_manager()

    class Meta:
        verbose_name = _("filed chat")
        verbose_name_plural = _("filed chats")
        constraints = [
            models.UniqueConstraint(fields=["user", "session"], name="one_filing_a_person")
        ]

    def __str__(self) -> str:
        return f"{self.session_id} {self.user_id}"
