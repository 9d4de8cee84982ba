"""Who can see what."""

from typing import TypeVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from ..catalog.agents import Agent
from ..types import AnyUser


class ReviewScopeQuerySet(models.QuerySet["ReviewScope"]):
    def agents_of(self, user: AnyUser) -> models.QuerySet[Agent] | None:
        """Return the agents in a reviewer's scope; None without a scope, which means all."""
        scope = self.filter(user=user.pk).first()
        return None if scope is None else scope.agents.all()

    def reviewed_agents(self, user: AnyUser) -> models.QuerySet[Agent]:
        """Return the agents that pages may name to this user, also if that is all."""
        agents = self.agents_of(user)
        return Agent.objects.all() if agents is None else agents


class ReviewScope(models.Model):
    """The agents whose runs a reviewer sees. A reviewer without one sees all."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        verbose_name=_("reviewer"),
        on_delete=models.CASCADE,
        related_name="review_scope",
    )
    agents = models.ManyToManyField(
        Agent, verbose_name=_("agents"), blank=True, related_name="+"
    )

    objects = ReviewScopeQuerySet.as_manager()

    class Meta:
        verbose_name = _("reviewer access")
        verbose_name_plural = _("reviewer access")

    def __str__(self) -> str:
        return str(self.user)


Row = TypeVar("Row", bound="Membership")


class MembershipQuerySet(models.QuerySet[Row]):
    def shared_topics(self, user: AnyUser) -> frozenset[str]:
        """Return topics shared with this user, queried once per request."""
        topics: frozenset[str] | None = getattr(user, "_topics", None)
        if topics is None:
            mine = self.filter(user=user.pk) if user.pk else self.none()
            topics = frozenset(mine.values_list("topic", flat=True))
            user._topics = topics  # type: ignore[union-attr]  # a cache
        return topics


class Membership(models.Model):
    """A member of a shared topic: who sees its runs, and who can write.

    The owner has one too, as soon as anyone else does, to see what others ask there.
    """

    topic = models.CharField(_("topic"), max_length=80)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="memberships",
    )
    may_write = models.BooleanField(_("edit access"), default=False)
    since = models.DateTimeField(_("since"), auto_now_add=True)

    objects = MembershipQuerySet.as_manager()

    class Meta:
        verbose_name = _("membership")
        verbose_name_plural = _("memberships")
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["topic", "user"], name="one_membership_a_person")
        ]

    def __str__(self) -> str:
        return f"{self.topic} {self.user}"


class HiddenTopicQuerySet(models.QuerySet["HiddenTopic"]):
    def hide_like(self, origin: str, topic: str) -> None:
        """Hide another topic from the same people, such as that of a rerun."""
        for row in self.filter(topic=origin):
            self.update_or_create({"user": row.user}, topic=topic)

    def hidden_from(self, user: AnyUser) -> models.QuerySet["HiddenTopic", str]:
        """Return the topics whose runs this user can't see."""
        # An anonymous user has no topics of their own: all are hidden from them.
        hidden = self.filter(models.Q(user=None) | ~models.Q(user=user.pk)) if user.pk else self
        return hidden.values_list("topic", flat=True)


class HiddenTopic(models.Model):
    """A topic whose runs are hidden from everyone, or from everyone but one user.

    Deleted chats that aren't erased yet, and temporary chats.
    """

    topic = models.CharField(_("topic"), max_length=80, unique=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("visible to"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
    )

    objects = HiddenTopicQuerySet.as_manager()

    class Meta:
        verbose_name = _("hidden topic")
        verbose_name_plural = _("hidden topics")

    def __str__(self) -> str:
        return self.topic


class OutsideTextTopicQuerySet(models.QuerySet["OutsideTextTopic"]):
    def mark(self, *topics: str) -> None:
        """Remember for good that runs of these topics have read text from outside."""
        rows = [OutsideTextTopic(topic=topic) for topic in sorted(topics)]
        OutsideTextTopic.objects.bulk_create(rows, ignore_conflicts=True)


class OutsideTextTopic(models.Model):
    """A topic whose runs have read text that isn't its user's own.

    Tool results, files, projects, other members' messages, imported chats. The mark stays when
    messages are deleted or left out of the history, because answers may repeat what they said.
    """

    topic = models.CharField(_("topic"), max_length=80, unique=True)

    objects = OutsideTextTopicQuerySet.as_manager()

    class Meta:
        verbose_name = _("topic with text from outside")
        verbose_name_plural = _("topics with text from outside")

    def __str__(self) -> str:
        return self.topic
