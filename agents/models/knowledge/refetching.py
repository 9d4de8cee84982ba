"""Web pages and sitemaps that are fetched again on a schedule."""

from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.utils.translation import gettext_lazy as _

from ..sentence_fields import SentenceField


class Refetched(models.Model):
    """A page or a sitemap with a schedule, which needs someone with edit access."""

    class Interval(models.TextChoices):
        NEVER = "never", _("Never")
        DAILY = "daily", _("Every day")
        WEEKLY = "weekly", _("Every week")
        MONTHLY = "monthly", _("Every month")

    fetch_interval = models.CharField(
        _("fetch automatically"),
        max_length=10,
        choices=Interval,
        default=Interval.NEVER,
        db_default=Interval.NEVER.value,
    )
    scheduled_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("scheduled by"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    fetched_at = models.DateTimeField(_("last fetched"), null=True, blank=True)
    next_fetch_at = models.DateTimeField(_("next fetch"), null=True, blank=True)
    fetch_problem = SentenceField(
        _("fetch error"),
        blank=True,
        default="",
        db_default="",
        help_text=_("Why the last fetch failed. The previous text stays."),
    )

    class Meta:
        abstract = True

    def schedule(self, interval: str, user: User, now: datetime) -> None:
        """Set when this is fetched again, counted from the last time; save it yourself."""
        self.fetch_interval = self.Interval(interval)
        self.scheduled_by = None if interval == self.Interval.NEVER else user
        self.next_fetch_at = next_fetch(interval, self.fetched_at or now, now)


DAYS = {
    Refetched.Interval.DAILY: 1,
    Refetched.Interval.WEEKLY: 7,
    Refetched.Interval.MONTHLY: 30,
}
SCHEDULE_FIELDS = ("fetch_interval", "scheduled_by", "next_fetch_at")


def next_fetch(interval: str, last: datetime, now: datetime) -> datetime | None:
    """Return the next time, not in the past; None if it is never fetched again."""
    days = DAYS.get(Refetched.Interval(interval))
    return max(last + timedelta(days=days), now) if days else None


class Sitemap(Refetched):
    """A sitemap whose pages are documents of a collection."""

    collection = models.ForeignKey(
        "agents.Collection",
        verbose_name=_("collection"),
        on_delete=models.CASCADE,
        related_name="sitemaps",
    )
    url = models.CharField(_("address"), max_length=2_000)
    max_pages = models.PositiveIntegerField(_("max pages"), default=200)
    known = models.JSONField(
        _("known pages"),
        default=list,
        help_text=_("Digests of pages already added; a deleted one isn't added again."),
    )
    added_at = models.DateTimeField(_("added"), auto_now_add=True)

    class Meta:
        verbose_name = _("sitemap")
        verbose_name_plural = _("sitemaps")
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.url
