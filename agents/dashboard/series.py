"""Figures over time, as charts: a point per day or, of a single day, per hour."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from agents.web.presentation import charts, dates

from .figures import By, FiguresQuery
from .metrics import DASH, Metric
from .totals import Totals
from .windows import Window, day_start

Moment = date | datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Totals by moment, without gaps."""

    by: By
    points: dict[Moment, Totals]

    def label(self, moment: Moment) -> str:
        """Return a point's name in the installation's time zone, which days are in."""
        if isinstance(moment, datetime):
            return f"{timezone.localtime(moment, timezone.get_default_timezone()):%H:%M}"
        with timezone.override(timezone.get_default_timezone()):
            return dates.short_date_text(day_start(moment))

    @property
    def axis(self) -> tuple[str, str]:
        all_moments = list(self.points)
        return self.label(all_moments[0]), self.label(all_moments[-1])

    def chart(self, metric: Metric, tone: str) -> SafeString:
        values = [metric.value(totals) for totals in self.points.values()]
        if metric.key == "runs":
            bars = [value or 0.0 for value in values]
            return charts.bar_chart(bars, tone, self._describe(metric, values))
        has_runs = [totals["runs"] > 0 for totals in self.points.values()]
        known = [v if has_any else None for v, has_any in zip(values, has_runs, strict=True)]
        return charts.sparkline(known, tone, self._describe(metric, known))

    def _describe(self, metric: Metric, values: Sequence[float | None]) -> str:
        """Return a chart in words."""
        known = [value for value in values if value is not None]
        most = metric.text(max(known)) if known else DASH
        least = metric.text(min(known)) if known else DASH
        first, last = self.axis
        return _("%(title)s from %(first)s to %(last)s: between %(least)s and %(most)s.") % {
            "title": metric.label,
            "first": first,
            "last": last,
            "least": least,
            "most": most,
        }


def load(query: FiguresQuery) -> Series:
    window = query.window
    by = By.HOUR if window.length == 1 else By.DAY
    totals_by_key = query.split(by)
    points: dict[Moment, Totals] = {
        moment: totals_by_key.get((moment,), Totals()) for moment in moments(window, by)
    }
    return Series(by=by, points=points)


def moments(window: Window, by: By) -> Sequence[Moment]:
    """Return the days or, of a single day, the hours that have begun."""
    if by is By.DAY:
        return window.days
    hours = [window.start + timedelta(hours=n) for n in range(26)]
    now = timezone.now()
    return [hour for hour in hours if hour < min(window.end, now)] or [window.start]
