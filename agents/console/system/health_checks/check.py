"""One line of the health page, and how it formats times and numbers."""

from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone
from django.utils.formats import number_format
from django.utils.timesince import timesince
from django.utils.translation import gettext as _


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheck:
    """One line: what was checked, its status, and advice if something is wrong."""

    name: str
    status: str
    advice: str = ""
    page: str = ""

    @property
    def is_good(self) -> bool:
        return not self.advice


def format_duration(time: timedelta) -> str:
    if time < timedelta(minutes=1):
        return _("%(seconds)d s") % {"seconds": time.total_seconds()}
    end = timezone.now()
    return timesince(end - time, end, depth=1)


def format_number(value: float) -> str:
    return number_format(value, 2 if value < 1 else 1)
