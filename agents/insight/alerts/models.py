"""Channels, rules, deliveries, notifications and scheduled summaries.

Addresses and webhooks have no rights of their own, so a reviewer with a scope changes only what
stays within it: otherwise they could have alerts about other agents sent to themselves.
"""

from datetime import time
from typing import Self
from urllib.parse import urlsplit

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from agents.insight.problems.models import Problem
from agents.models import Agent, Collection, ReviewScope, Run
from agents.models.secret import EncryptedTextField
from agents.models.types import AnyUser

VIEW_DELIVERIES = "alerts.view_delivery"
REVIEW_PERMISSION = "agents.review_runs"


class Event(models.TextChoices):
    """What is sent; the values are part of the webhook format."""

    NEW = "problem.new", _("New problem")
    REOPENED = "problem.reopened", _("Problem opened again")
    SPIKING = "problem.spiking", _("Problem spiking")
    SCHEDULE_WAITING = "schedule.waiting", _("Scheduled workflow pending approval")
    COLLECTION_SHARED = "collection.shared", _("Collection shared")
    SUMMARY = "summary", _("Summary")
    TEST = "test", _("Test")


RULE_EVENTS = [
    (event.value, event.label)
    for event in (Event.NEW, Event.REOPENED, Event.SPIKING, Event.SCHEDULE_WAITING)
]


class AlertChannelQuerySet(models.QuerySet["AlertChannel"]):
    def editable_by(self, user: AnyUser) -> Self:
        """Return what doesn't also receive what this user can't see."""
        if ReviewScope.objects.agents_of(user) is None:
            return self.all()
        other_rules = AlertRule.objects.exclude(pk__in=AlertRule.objects.editable_by(user))
        # What waits is sent to the URL that the channel has then.
        waiting = Delivery.objects.filter(status=Delivery.Status.PENDING)
        hidden = waiting.exclude(pk__in=Delivery.objects.for_user(user).values("pk"))
        rows = self.exclude(rules__in=other_rules).filter(summaries=None)
        return rows.exclude(pk__in=hidden.values("channel"))


class AlertChannel(models.Model):
    """Where alerts and summaries go."""

    class Kind(models.TextChoices):
        NOTIFICATION = "notification", _("Notification")
        EMAIL = "email", _("Email")
        WEBHOOK = "webhook", _("Webhook")

    name = models.CharField(_("name"), max_length=64, unique=True)
    kind = models.CharField(_("type"), max_length=12, choices=Kind, default=Kind.NOTIFICATION)
    people = models.ManyToManyField(
        settings.AUTH_USER_MODEL,
        verbose_name=_("users"),
        blank=True,
        related_name="+",
        help_text=_("Users who can't see a problem aren't notified of it."),
    )
    addresses = models.TextField(
        _("more email addresses"),
        blank=True,
        help_text=_("One per line, e.g. a mailing list."),
    )
    url = models.CharField(
        _("URL"), max_length=500, blank=True, help_text=_("Receives a POST request with JSON.")
    )
    secret = EncryptedTextField(
        _("signing secret"),
        blank=True,
        help_text=_("Requests are signed with it, so that the receiver can verify them."),
    )
    base_url = models.CharField(max_length=200, blank=True, editable=False)
    enabled = models.BooleanField(_("enabled"), default=True)

    objects = AlertChannelQuerySet.as_manager()

    class Meta:
        verbose_name = _("alert channel")
        verbose_name_plural = _("alert channels")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def host(self) -> str:
        """The receiver of a webhook; the rest of its URL may be a secret, as Slack's is."""
        return urlsplit(self.url).netloc

    @property
    def address_list(self) -> list[str]:
        lines = self.addresses.replace(",", "\n").splitlines()
        return list(dict.fromkeys(line.strip() for line in lines if line.strip()))


class AlertRuleQuerySet(models.QuerySet["AlertRule"]):
    def for_user(self, user: AnyUser) -> Self:
        """Return the rules that name no agent outside a user's scope."""
        agents = ReviewScope.objects.agents_of(user)
        if agents is None:
            return self.all()
        return self.exclude(agents__in=Agent.objects.exclude(pk__in=agents))

    def editable_by(self, user: AnyUser) -> Self:
        """Leave out rules for all agents, which reach beyond a scope."""
        rows = self.for_user(user)
        if ReviewScope.objects.agents_of(user) is None:
            return rows
        return rows.exclude(agents=None)


class AlertRule(models.Model):
    """What is announced, and where."""

    name = models.CharField(_("name"), max_length=64, unique=True)
    event = models.CharField(
        _("when"), max_length=20, choices=RULE_EVENTS, default=Event.NEW.value
    )
    agents = models.ManyToManyField(
        Agent,
        verbose_name=_("agents"),
        blank=True,
        related_name="+",
        help_text=_("None selected means all agents."),
    )
    channels = models.ManyToManyField(
        AlertChannel, verbose_name=_("channels"), related_name="rules"
    )
    quiet_minutes = models.PositiveIntegerField(
        _("quiet period (minutes)"),
        default=60,
        validators=[MaxValueValidator(43_200)],
        help_text=_("No second alert about the same problem within this time."),
    )
    enabled = models.BooleanField(_("enabled"), default=True)

    objects = AlertRuleQuerySet.as_manager()

    class Meta:
        verbose_name = _("alert rule")
        verbose_name_plural = _("alert rules")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class QuietPeriod(models.Model):
    """When a rule last announced a problem."""

    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE, related_name="+")
    problem = models.ForeignKey(Problem, on_delete=models.CASCADE, related_name="+")
    announced_at = models.DateTimeField()

    class Meta:
        verbose_name = _("quiet period")
        verbose_name_plural = _("quiet periods")
        constraints = [
            models.UniqueConstraint(
                fields=["rule", "problem"], name="one_quiet_period_a_problem"
            )
        ]

    def __str__(self) -> str:
        return f"{self.rule_id}/{self.problem_id}"


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    def for_user(self, user: AnyUser) -> Self:
        """Return the messages about what this user can see, and those sent to them."""
        if not user.has_perm(VIEW_DELIVERIES):
            return self.none()
        sees_all = ReviewScope.objects.agents_of(user) is None
        # Summaries, and alerts about problems that were deleted.
        general = models.Q(problem=None)
        if not (sees_all and user.has_perm(REVIEW_PERMISSION)):
            general &= models.Q(person=user.pk)
        return self.filter(general | models.Q(problem__in=Problem.objects.in_scope(user)))


class Delivery(models.Model):
    """A message to one recipient, sent again until it arrives or is given up."""

    class Status(models.TextChoices):
        PENDING = "pending", _("pending")
        SENT = "sent", pgettext_lazy("delivery", "sent")
        FAILED = "failed", _("failed")

    channel = models.ForeignKey(
        AlertChannel,
        verbose_name=_("channel"),
        on_delete=models.CASCADE,
        related_name="deliveries",
    )
    event = models.CharField(_("event"), max_length=20, choices=Event)
    problem = models.ForeignKey(
        Problem,
        verbose_name=_("problem"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
    )
    address = models.CharField(pgettext_lazy("message", "address"), max_length=500, blank=True)
    subject = models.CharField(pgettext_lazy("message", "subject"), max_length=300)
    text = models.TextField(_("text"), blank=True)
    html = models.TextField(_("HTML"), blank=True)
    payload = models.JSONField(_("payload"), default=dict, blank=True)
    status = models.CharField(_("status"), max_length=8, choices=Status, default=Status.PENDING)
    attempts = models.PositiveSmallIntegerField(_("attempts"), default=0)
    next_at = models.DateTimeField(_("next attempt"))
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    sent_at = models.DateTimeField(_("sent"), null=True, blank=True)
    last_error = models.TextField(_("last error"), blank=True)

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        verbose_name = _("delivery")
        verbose_name_plural = _("deliveries")
        ordering = ["-pk"]
        default_permissions = ("view",)
        indexes = [
            models.Index(
                fields=["next_at"],
                condition=models.Q(status="pending"),
                name="deliveries_that_wait",
            ),
            models.Index(fields=["created_at"], name="deliveries_by_age"),
        ]

    def __str__(self) -> str:
        return self.subject


class Notification(models.Model):
    """A message inside the product."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="notifications",
    )
    event = models.CharField(_("event"), max_length=20, choices=Event)
    problem = models.ForeignKey(
        Problem,
        verbose_name=_("problem"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
    )
    run = models.ForeignKey(
        Run,
        verbose_name=_("run"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
    )
    collection = models.ForeignKey(
        Collection,
        verbose_name=_("collection"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
    )
    text = models.TextField(_("text"), blank=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    read_at = models.DateTimeField(pgettext_lazy("notification", "read"), null=True, blank=True)

    class Meta:
        verbose_name = _("notification")
        verbose_name_plural = _("notifications")
        ordering = ["-pk"]
        default_permissions = ()
        indexes = [
            models.Index(
                fields=["user"],
                condition=models.Q(read_at__isnull=True),
                name="unread_notifications",
            )
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.event}"


class SummaryScheduleQuerySet(models.QuerySet["SummarySchedule"]):
    def editable_by(self, user: AnyUser) -> Self:
        """Return none for a scoped reviewer: addresses get the figures of all agents."""
        return self.all() if ReviewScope.objects.agents_of(user) is None else self.none()


class SummarySchedule(models.Model):
    """When a summary of the main figures is sent."""

    class Frequency(models.TextChoices):
        DAILY = "daily", _("Daily")
        WEEKLY = "weekly", _("Weekly")
        MONTHLY = "monthly", _("Monthly")

    class Weekday(models.IntegerChoices):
        MONDAY = 0, _("Monday")
        TUESDAY = 1, _("Tuesday")
        WEDNESDAY = 2, _("Wednesday")
        THURSDAY = 3, _("Thursday")
        FRIDAY = 4, _("Friday")
        SATURDAY = 5, _("Saturday")
        SUNDAY = 6, _("Sunday")

    name = models.CharField(_("name"), max_length=64, unique=True)
    frequency = models.CharField(
        _("frequency"), max_length=8, choices=Frequency, default=Frequency.WEEKLY
    )
    at = models.TimeField(_("time"), default=time(8, 0))
    weekday = models.PositiveSmallIntegerField(
        _("day of the week"),
        choices=Weekday,
        default=Weekday.MONDAY,
        help_text=_("Only for weekly summaries."),
    )
    day = models.PositiveSmallIntegerField(
        _("day of the month"),
        default=1,
        validators=[MinValueValidator(1), MaxValueValidator(28)],
        help_text=_("Only for monthly summaries: 1 to 28."),
    )
    channels = models.ManyToManyField(
        AlertChannel, verbose_name=_("channels"), related_name="summaries"
    )
    enabled = models.BooleanField(_("enabled"), default=True)
    next_at = models.DateTimeField(_("next"), null=True, blank=True, editable=False)
    last_sent_at = models.DateTimeField(_("last sent"), null=True, blank=True, editable=False)

    objects = SummaryScheduleQuerySet.as_manager()

    class Meta:
        verbose_name = _("scheduled summary")
        verbose_name_plural = _("scheduled summaries")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
