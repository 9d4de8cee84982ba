"""Channels, rules, deliveries, notifications and scheduled summaries.

A webhook of a user is a channel with an owner: it gets the events of their runs that it chose,
and no rule or summary can use it.

Addresses and webhooks have no rights of their own, so a reviewer with a scope changes only what
stays within it: otherwise they could have alerts about other agents sent to themselves.
"""

from datetime import datetime, time
from typing import Any, Self
from urllib.parse import urlsplit

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from agents.insight.problems.models import Problem
from agents.models import Agent, Collection, ReviewScope, Run
from agents.models.rotating_secret import RotatingSecret
from agents.models.types import AnyUser

VIEW_DELIVERIES = "alerts.view_delivery"
REVIEW_PERMISSION = "agents.review_runs"
CHANGE_CHANNELS = "alerts.change_alertchannel"


class Event(models.TextChoices):
    """What is sent; the values are part of the webhook format."""

    NEW = "problem.new", _("New problem")
    REOPENED = "problem.reopened", _("Problem opened again")
    SPIKING = "problem.spiking", _("Problem spiking")
    SCHEDULE_WAITING = "schedule.waiting", _("Scheduled workflow pending approval")
    COLLECTION_SHARED = "collection.shared", _("Collection shared")
    SUMMARY = "summary", _("Summary")
    RUN_FINISHED = "run.finished", _("Run finished")
    APPROVAL_WAITING = "approval.waiting", _("Approval pending")
    GUARDRAIL_HIT = "guardrail.hit", _("Guardrail hit")
    PROBLEM_OPENED = "problem.opened", _("Problem opened")
    BUDGET_WARNING = "budget.warning", _("Usage limit almost reached")
    PAUSED = "webhook.paused", _("Webhook paused")
    TEST = "test", _("Test")


RULE_EVENTS = [
    (event.value, event.label)
    for event in (Event.NEW, Event.REOPENED, Event.SPIKING, Event.SCHEDULE_WAITING)
]
# What a webhook can choose without a rule; users don't see problems.
RUN_EVENTS = (Event.RUN_FINISHED, Event.APPROVAL_WAITING, Event.GUARDRAIL_HIT)
OWN_EVENTS = (*RUN_EVENTS, Event.BUDGET_WARNING)
WEBHOOK_EVENTS = (*OWN_EVENTS, Event.PROBLEM_OPENED)


class AlertChannelQuerySet(models.QuerySet["AlertChannel"]):
    def of_installation(self) -> Self:
        """Leave out users' own webhooks."""
        return self.filter(owner=None)

    def usable_by(self, user: AnyUser) -> Self:
        """Return where a user can have results sent: their own, and those they can change."""
        own = models.Q(owner=user.pk) if user.is_authenticated else models.Q(pk__in=())
        if user.has_perm(CHANGE_CHANNELS):
            editable = AlertChannel.objects.of_installation().editable_by(user)
            own |= models.Q(pk__in=editable.values("pk"))
        return self.filter(own, enabled=True)

    def editable_by(self, user: AnyUser) -> Self:
        """Return what doesn't also receive what this user can't see."""
        agents = ReviewScope.objects.agents_of(user)
        if agents is None:
            return self.all()
        other_rules = AlertRule.objects.exclude(pk__in=AlertRule.objects.editable_by(user))
        # What waits is sent to the URL that the channel has then.
        waiting = Delivery.objects.filter(status=Delivery.Status.PENDING)
        hidden = waiting.exclude(pk__in=Delivery.objects.for_user(user).values("pk"))
        rows = self.exclude(rules__in=other_rules).filter(summaries=None)
        rows = rows.filter(models.Q(events=[]) | models.Q(agent__in=agents))
        return rows.exclude(pk__in=hidden.values("channel"))


class AlertChannel(RotatingSecret):
    """Where alerts, summaries and results go; a webhook can also choose events itself."""

    class Kind(models.TextChoices):
        NOTIFICATION = "notification", _("Notification")
        EMAIL = "email", _("Email")
        WEBHOOK = "webhook", _("Webhook")

    # Those of users have none: names are unique in the installation.
    name = models.CharField(_("name"), max_length=64, unique=True, null=True)  # noqa: DJ001
    kind = models.CharField(_("type"), max_length=12, choices=Kind, default=Kind.NOTIFICATION)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("owner"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        editable=False,
        related_name="webhooks",
        help_text=_("The user whose runs it reports; empty for the installation."),
    )
    description = models.CharField(
        _("description"), max_length=200, blank=True, default="", db_default=""
    )
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
    events = models.JSONField(
        _("events"),
        default=list,
        blank=True,
        db_default=models.Value([], models.JSONField()),
        help_text=_(
            "Sent without a rule, for every run. Alert rules can use the webhook, too."
        ),
    )
    agent = models.ForeignKey(
        Agent,
        verbose_name=_("agent"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        help_text=_("Leave empty for all agents."),
    )
    with_answer = models.BooleanField(
        _("include answers"),
        default=False,
        db_default=False,
        help_text=_("Adds the answer to “Run finished”, with personal data masked."),
    )
    base_url = models.CharField(max_length=200, blank=True, editable=False)
    enabled = models.BooleanField(_("enabled"), default=True)
    failing_since = models.DateTimeField(
        _("failing since"), null=True, blank=True, editable=False
    )
    paused_at = models.DateTimeField(_("paused"), null=True, blank=True, editable=False)
    changed_at = models.DateTimeField(auto_now=True, editable=False)

    objects = AlertChannelQuerySet.as_manager()

    class Meta:
        verbose_name = _("alert channel")
        verbose_name_plural = _("alert channels")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name or self.description or self.host

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
        agents = ReviewScope.objects.agents_of(user)
        sees_all = agents is None
        # Summaries, events of webhooks, and alerts about problems that were deleted.
        general = models.Q(problem=None)
        if not (sees_all and user.has_perm(REVIEW_PERMISSION)):
            own_agents = models.Q(channel__agent__in=agents or (), event__in=RUN_EVENTS)
            general &= models.Q(person=user.pk) | own_agents
        visible = general | models.Q(problem__in=Problem.objects.in_scope(user))
        return self.filter(visible, channel__owner=None)


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
    key = models.CharField(
        max_length=120,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="What happened, so that it is sent once to each recipient.",
    )
    responses = models.JSONField(
        _("responses"),
        default=list,
        blank=True,
        db_default=models.Value([], models.JSONField()),
        help_text=_("What a webhook's receiver answered to each attempt."),
    )

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
        constraints = [
            models.UniqueConstraint(
                fields=["channel", "event", "key", "address"],
                condition=~models.Q(key=""),
                name="one_delivery_an_event",
            )
        ]

    def __str__(self) -> str:
        return self.subject

    @property
    def response_log(self) -> list[dict[str, Any]]:
        """The attempts with their times, the newest first."""
        log = [
            {**values, "at": datetime.fromisoformat(values["at"])} for values in self.responses
        ]
        return log[::-1]


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
