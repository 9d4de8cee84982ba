"""Figures over time, as charts: a point per day, or per bucket of a window that has any."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from agents.metering.figures.query import By, FiguresQuery
from agents.metering.figures.totals import Totals
from agents.metering.figures.windows import HOUR, Window, day_start
from agents.web.presentation.formats import charts, dates

from .metrics import DASH, Metric

Moment = date | datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Totals by moment, without gaps."""

    window: Window
    points: dict[Moment, Totals]

    def label(self, moment: Moment) -> str:
        """Return a point's name in the installation's time zone, which days are in."""
        zone = timezone.get_default_timezone()
        if isinstance(moment, datetime) and self.window.bucket == HOUR:
            return f"{timezone.localtime(moment, zone):%H:%M}"
        with timezone.override(zone):
            start = moment if isinstance(moment, datetime) else day_start(moment)
            return dates.short_date_text(start)

    @property
    def axis(self) -> tuple[str, str]:
        moments = list(self.points)
        return self.label(moments[0]), self.label(moments[-1])

    def chart(self, metric: Metric) -> SafeString:
        values = [metric.value(totals) for totals in self.points.values()]
        if metric.key == "runs":
            bars = [value or 0.0 for value in values]
            return charts.bar_chart(bars, metric.tone, self._describe(metric, values))
        has_runs = [totals["runs"] > 0 for totals in self.points.values()]
        visible_values = [
            v if has_any else None for v, has_any in zip(values, has_runs, strict=True)
        ]
        return charts.sparkline(
            visible_values, metric.tone, self._describe(metric, visible_values)
        )

    def _describe(self, metric: Metric, values: Sequence[float | None]) -> str:
        """Return a chart in words."""
        numbers = [value for value in values if value is not None]
        maximum = metric.unit.text(max(numbers)) if numbers else DASH
        minimum = metric.unit.text(min(numbers)) if numbers else DASH
        first, last = self.axis
        return _("%(title)s from %(first)s to %(last)s: between %(least)s and %(most)s.") % {
            "title": metric.label,
            "first": first,
            "last": last,
            "least": minimum,
            "most": maximum,
        }


def load(query: FiguresQuery) -> Series:
    window = query.window
    moments: Sequence[Moment] = window.edges if window.bucket else window.days
    totals_by_key = query.split(By.BUCKET if window.bucket else By.DAY)
    keys = range(len(moments)) if window.bucket else moments
    return Series(
        window=window,
        points={
            moment: totals_by_key.get((key,), Totals())
            for moment, key in zip(moments, keys, strict=True)
        },
    )
