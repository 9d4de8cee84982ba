"""The periods of the home: the last hours, or calendar days with today, as on the dashboard."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.translation import gettext_lazy as _

from agents.metering.figures.windows import HOUR, Window, between, last_days
from agents.models.types import LazyText


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    key: str
    label: LazyText
    sentence: LazyText
    window: Callable[[datetime], Window]


PERIODS = {
    period.key: period
    for period in (
        Period(
            key="24h",
            label=_("24 h"),
            sentence=_("Last 24 hours, compared with the 24 hours before"),
            window=lambda end: between(end - timedelta(hours=24), end, HOUR),
        ),
        Period(
            key="7d",
            label=_("7 days"),
            sentence=_("Last 7 days, compared with the 7 days before"),
            window=lambda end: last_days(7, end, 6 * HOUR),
        ),
        Period(
            key="30d",
            label=_("30 days"),
            sentence=_("Last 30 days, compared with the 30 days before"),
            window=lambda end: last_days(30, end),
        ),
    )
}
DEFAULT_PERIOD = PERIODS["7d"]
