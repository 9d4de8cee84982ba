"""Formats figures: counts, shares and durations."""

from django.utils.formats import number_format
from django.utils.translation import gettext as _

from .usage import ToolUsage


def calls(usage: ToolUsage) -> str:
    """Return the number of calls and how many failed."""
    count = number_format(usage.calls, force_grouping=True)
    if not usage.errors:
        return count
    failed = _("%(rate)s failed") % {"rate": percent(usage.error_rate)}
    return _("%(name)s (%(detail)s)") % {"name": count, "detail": failed}


def percent(share: float) -> str:
    """Format a percentage; only an exact 0 or 1 is displayed as 0% or 100%."""
    value = min(max(share * 100, 0.1), 99.9) if 0 < share < 1 else share * 100
    # Rounded first: Django cuts off what is too much.
    return f"{number_format(round(value, 1), 0 if value in (0, 100) else 1)}%"


def seconds(value: float) -> str:
    if value < 1:
        return milliseconds(value * 1000)
    return _("%(seconds)s s") % {"seconds": number_format(value, 1)}


def milliseconds(value: float) -> str:
    is_whole = value >= 100 or float(round(value, 1)).is_integer()
    return f"{number_format(value, 0 if is_whole else 1)} ms"
