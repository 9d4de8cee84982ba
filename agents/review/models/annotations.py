"""Feedback, notes, comments and labels. The runs themselves never change."""

from typing import Self

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models import Membership
from agents.models.types import AnyUser

from .fields import MAX_NAME_CHARS, run_foreign_key, user_foreign_key


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

    run = run_foreign_key("ratings")
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

    run = run_foreign_key("review_notes")
    step = models.PositiveIntegerField(_("step"), default=0, help_text=_("0 = the whole run."))
    author = user_foreign_key(_("author"))
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

    run = run_foreign_key("comments")
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

    run = run_foreign_key("labels")
    step = models.PositiveIntegerField(_("step"), default=0, help_text=_("0 = the whole run."))
    name = models.CharField(_("name"), max_length=MAX_NAME_CHARS, db_index=True)
    author = user_foreign_key(_("author"))
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
