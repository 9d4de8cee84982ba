"""Calendar windows of limits, in the installation's time zone."""

from datetime import UTC, datetime, timedelta

from django.utils import timezone

from agents.models import Quota

Window = Quota.Window


def window_start(window: str, moment: datetime | None = None) -> datetime:
    """Return when the window of this moment began, in UTC."""
    return _local_start(window, moment).astimezone(UTC)


def window_end(window: str, moment: datetime | None = None) -> datetime:
    """Return when the window of this moment ends and its count starts over, in UTC."""
    began = _local_start(window, moment)
    if window == Window.MINUTE:
        return began.astimezone(UTC) + timedelta(minutes=1)
    # By the calendar, not by hours: a day has 23 or 25 of them when clocks change.
    day = began.date() + timedelta(days=1)
    if window == Window.MONTH:
        day = (began.date().replace(day=1) + timedelta(days=32)).replace(day=1)
    zone = timezone.get_default_timezone()
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)


def _local_start(window: str, moment: datetime | None) -> datetime:
    zone = timezone.get_default_timezone()
    local = (moment or timezone.now()).astimezone(zone)
    if window == Window.MINUTE:
        return local.replace(second=0, microsecond=0)
    day = local.date() if window == Window.DAY else local.date().replace(day=1)
    return datetime(day.year, day.month, day.day, tzinfo=zone)
