"""Approval requests and decisions."""

from typing import Self

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import models
from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from agents.engine.loop import APPROVERS

from ..catalog.embeds import Embed, EmbedVisitor
from ..sentence_fields import SentenceField
from ..sharing.access import Membership
from ..types import AnyUser
from .runs import Run

# Requests that people outside of the run may get.
PERSON_REASONS = ("question", "step")


class ApprovalQuerySet(models.QuerySet["Approval"]):
    def for_user(self, user: AnyUser) -> Self:
        """Return what this user can decide: in their runs, or because they are asked.

        If a role must approve and has members, only they can. What a running tool asks is for
        the run's user alone. Calls of a program's functions are for that program. In runs of
        visitors of other sites, the approver of the embedded chat decides.
        """
        if not user.is_authenticated:
            return self.none()
        shared = Membership.objects.filter(topic=models.OuterRef("run__topic"))
        own = models.Q(run__user=user) & ~models.Exists(shared)
        writes = models.Exists(shared.filter(user=user, may_write=True))
        has_members = models.Exists(users_with_role(models.OuterRef("role_name")))
        inside = (own | writes) & ~(models.Q(why=Approval.Why.STEP) & has_members)
        is_own = ~models.Q(why=Approval.Why.ELICITATION) | models.Q(run__user=user)
        # The user's roles are the groups they are in.
        roles = user.groups.order_by().values_list(Lower("name"))
        permitted = (inside & is_own) | models.Q(why__in=PERSON_REASONS, role_name__in=roles)
        visitors = EmbedVisitor.objects.filter(embed__approver=user).values("user")
        permitted |= models.Q(run__user__in=visitors) & is_own
        if can_raise_budgets(user):
            permitted |= models.Q(why=Approval.Why.BUDGET, role=APPROVERS)
        by_people = self.exclude(why=Approval.Why.CLIENT)
        return by_people.alias(role_name=Lower("role")).filter(permitted)

    def waiting(self) -> Self:
        return self.filter(verdict=Approval.Verdict.WAITING)


def can_raise_budgets(user: AnyUser) -> bool:
    """Whether this user decides about more than the users of runs may spend themselves."""
    return user.is_staff and user.has_perm(f"agents.{APPROVERS}")


def users_with_role(role_name: models.F | models.Func) -> models.QuerySet[User]:
    """Return the members of this role's group; the name is in lower case."""
    people = get_user_model().objects.alias(group_name=Lower("groups__name"))
    return people.filter(is_active=True, group_name=role_name)


class Approval(models.Model):
    """One call that waits for a decision, made once and for exactly these arguments."""

    class Verdict(models.TextChoices):
        WAITING = "waiting", pgettext_lazy("approval", "waiting")
        APPROVED = "approved", _("approved")
        EDITED = "edited", _("approved with edits")
        REJECTED = "rejected", _("rejected")
        WITHDRAWN = "withdrawn", _("withdrawn")

    class Why(models.TextChoices):
        AGENT = "agent", _("This agent requires approval for every tool call.")
        TOOL = "tool", _("This tool requires approval.")
        UNKNOWN = (
            "unknown",
            _("The server stopped during this call. It may already have completed."),
        )
        PLAN = "plan", _("This agent's plan requires approval before it runs.")
        STEP = "step", _("The next steps require approval.")
        QUESTION = "question", _("The run needs an answer to continue.")
        SHARING = (
            "sharing",
            _("This question will be sent to experts. They see only the question."),
        )
        ELICITATION = "elicitation", _("A running tool needs information from you.")
        UNTRUSTED = (
            "untrusted",
            _("This run has read text that could contain instructions to the model."),
        )
        BUDGET = "budget", _("This run has reached one of its limits.")
        CLIENT = (
            "client",
            _("The program that asked calls this function and returns its result."),
        )

    run = models.ForeignKey(
        Run, verbose_name=_("run"), on_delete=models.CASCADE, related_name="approvals"
    )
    step = models.PositiveIntegerField(_("step"))
    call_id = models.TextField(_("call ID"))
    agent_name = models.CharField(_("agent name"), max_length=64)
    tool = models.TextField(_("tool"))
    arguments = models.TextField(_("arguments"))
    digest = models.CharField(_("digest"), max_length=64)
    why = models.CharField(
        _("reason for request"), max_length=12, choices=Why, default=Why.TOOL
    )
    role = models.CharField(
        _("role"),
        max_length=150,
        blank=True,
        default="",
        db_default="",
        help_text=_("Members of the group with this name can also answer."),
    )
    verdict = models.CharField(
        _("verdict"), max_length=10, choices=Verdict, default=Verdict.WAITING
    )
    new_arguments = models.TextField(_("edited arguments"), blank=True)
    reason = SentenceField(_("reason"), blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("decided by"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    granted_scope = models.CharField(
        _("approved automatically"),
        max_length=8,
        blank=True,
        default="",
        db_default="",
        help_text=_("Scope of the user's permission for this tool. Empty if a user decided."),
    )
    asked_at = models.DateTimeField(_("asked"))
    decided_at = models.DateTimeField(_("decided"), null=True, blank=True)

    objects = ApprovalQuerySet.as_manager()

    class Meta:
        verbose_name = _("approval")
        verbose_name_plural = _("approvals")
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["run", "step"], name="one_approval_a_step")
        ]
        indexes = [models.Index(fields=["verdict", "run"], name="approvals_that_wait")]
        permissions = [(APPROVERS, "Can raise the limits of other users' runs")]

    def __str__(self) -> str:
        return f"{self.run_id}#{self.step} {self.tool}"

    @property
    def is_unknown(self) -> bool:
        return self.why == self.Why.UNKNOWN

    @property
    def is_question(self) -> bool:
        return self.why == self.Why.QUESTION

    @property
    def is_sharing(self) -> bool:
        """Whether it is about sending a question to others."""
        return self.why == self.Why.SHARING

    @property
    def is_elicitation(self) -> bool:
        """Whether a running call asks the run's user."""
        return self.why == self.Why.ELICITATION

    @property
    def is_plan(self) -> bool:
        return self.why == self.Why.PLAN

    @property
    def is_client(self) -> bool:
        """Whether only the program that asked can make this call."""
        return self.why == self.Why.CLIENT

    @property
    def is_budget(self) -> bool:
        """Whether it is about a limit that the run has reached."""
        return self.why == self.Why.BUDGET

    def can_be_raised_by(self, user: AnyUser) -> bool:
        """Whether this user can raise the limit: the run's user up to a maximum, or others."""
        is_own = user.pk is not None and user.pk == self.run.user_id
        return (is_own and self.role != APPROVERS) or can_raise_budgets(user)

    def embed_for(self, user: AnyUser) -> Embed | None:
        """Return the embedded chat of the visitor in whose place this user decides, if so."""
        if self.run.is_owned_by(user):
            return None
        embeds = Embed.objects.filter(approver=user.pk)
        return embeds.filter(group__user__embed_visit__user=self.run.user_id).first()

    @property
    def asks_person(self) -> bool:
        """Whether a person is asked to answer or approve, not about a tool."""
        return self.why in PERSON_REASONS

    @property
    def role_members(self) -> models.QuerySet[User]:
        """The members of the requested role."""
        return users_with_role(Lower(models.Value(self.role)))

    def is_forbidden_for(self, user: int | None) -> bool:
        """Whether only others can decide: the run's user, or the role's members, if any."""
        if self.is_client:
            return True
        if self.is_elicitation:
            return user is None or user != self.run.user_id
        if self.why != self.Why.STEP or not self.role:
            return False
        is_member = user is not None and self.role_members.filter(pk=user).exists()
        return not is_member and self.role_members.exists()

    @property
    def is_waiting(self) -> bool:
        return self.verdict == self.Verdict.WAITING
