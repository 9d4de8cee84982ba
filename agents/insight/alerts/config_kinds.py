"""Channels, rules and scheduled summaries in configuration files.

A reviewer with a scope has no such file: it would name agents outside of it.
"""

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.console.system.config_files.columns import ConfigColumn, editable_columns
from agents.console.system.config_files.kind import (
    ResourceKind,
    ResourceValues,
    ValidationIssue,
)
from agents.console.system.config_files.permissions import ConfigUser
from agents.db.fast_writes import concrete_field
from agents.models import ReviewScope

from . import schedules
from .models import AlertChannel
from .people import selectable_people

Kind = AlertChannel.Kind
# The URL of a webhook may contain a secret, as Slack's does.
HAS_URL = "has_url"
COLUMNS = {
    Kind.NOTIFICATION: ["kind", "people", "enabled"],
    Kind.EMAIL: ["kind", "people", "addresses", "enabled"],
    Kind.WEBHOOK: ["kind", "events", "agent", "with_answer", "enabled"],
}


class AlertKind(ResourceKind):
    """Rules, as their columns are."""

    def is_open_to(self, user: ConfigUser) -> bool:
        return user.pk is None or not ReviewScope.objects.filter(user=user.pk).exists()


class ChannelKind(AlertKind):
    """Channels; people are named by their username, and URLs and secrets aren't in a file."""

    def complete(self, row: Any, values: ResourceValues) -> ResourceValues:
        return {"kind": row.kind, **values} if row else values

    def rows(self) -> QuerySet[AlertChannel]:
        return super().rows().filter(owner=None)

    def columns(self, values: ResourceValues) -> list[ConfigColumn]:
        names = COLUMNS[_kind(values)]
        return [c for c in editable_columns(self.model) if c.field.name in names]

    def describe(self, row: Any) -> ResourceValues:
        values = super().describe(row)
        return values | {HAS_URL: bool(row.url)} if row.kind == Kind.WEBHOOK else values

    def allowed_keys(self, values: ResourceValues) -> list[str]:
        own_keys = [HAS_URL] if _kind(values) == Kind.WEBHOOK else []
        return [*super().allowed_keys(values), *own_keys]

    def mismatches(self, values: ResourceValues) -> Iterator[ValidationIssue]:
        yield from super().mismatches(values)
        if values.get("kind") not in Kind.values:
            yield ValidationIssue(("kind",), _("Must be notification, email or webhook."))
        if not isinstance(values.get(HAS_URL, True), bool):
            yield ValidationIssue((HAS_URL,), _("Must be true or false."))

    def bare(self, name: str, values: ResourceValues) -> Any:
        concrete_field(self.model, self.named).clean(name, None)
        return AlertChannel.objects.create(name=name, kind=_kind(values))

    def keep(self, row: Any, values: ResourceValues, user: ConfigUser) -> list[ValidationIssue]:
        if values["kind"] != row.kind:
            return [ValidationIssue(("kind",), _("A channel's type can't be changed."))]
        return super().keep(row, values, user)

    def missing_references(self, values: ResourceValues) -> Iterator[ValidationIssue]:
        yield from super().missing_references(values)
        people = User.objects.filter(username__in=values.get("people", []))
        rejected = people.exclude(pk__in=selectable_people().values("pk")).order_by("username")
        for name in rejected.values_list("username", flat=True):
            sentence = _("%(name)s has no active account with console access.")
            yield ValidationIssue(("people",), sentence % {"name": name})

    def form(self, row: Any, values: ResourceValues, user: ConfigUser, **options: Any) -> Any:
        form = super().form(row, values, user, **options)
        form.channel_kind = Kind(row.kind)
        return form

    def needs(self, row: Any, values: ResourceValues) -> list[str]:
        needs = super().needs(row, values)
        lacks_url = values.get(HAS_URL) and not row.url
        return [*needs, str(_("URL"))] if lacks_url else needs

    def after_save(self, row: Any) -> None:
        """Have messages link to this installation, and webhooks signed."""
        if row.kind == Kind.WEBHOOK and not row.secret:
            row.new_secret()
            row.save()
        if not row.base_url and settings.ORIGINS:
            row.base_url = f"{settings.ORIGINS[0]}/"
            row.save(update_fields=["base_url"])


class SummaryKind(AlertKind):
    """Scheduled summaries; when each is due next follows from it."""

    def after_save(self, row: Any) -> None:
        row.next_at = schedules.next_time(row, timezone.now())
        row.save(update_fields=["next_at"])


def _kind(values: ResourceValues) -> Any:
    kind = values.get("kind")
    return Kind(kind) if kind in Kind.values else Kind.NOTIFICATION
