"""The figures of a period for other packages, such as a scheduled summary."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone

from . import catch_up, metrics, tables
from .figures import FiguresQuery
from .selection import Selection, Viewer
from .windows import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportLine:
    """A figure as text; `value` is for programs."""

    key: str
    label: str
    value: float | None
    text: str
    change: str
    is_worse: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodReport:
    """A period compared with as many days before."""

    first: date
    last: date
    lines: Sequence[ReportLine]
    path: str  # of the dashboard with this period

    def __getitem__(self, key: str) -> ReportLine:
        return next(line for line in self.lines if line.key == key)


def load_report(
    user: User, days: int, *, until: date | None = None, selection: Selection | None = None
) -> PeriodReport:
    """Return what this user's dashboard has for the days up to yesterday, or up to another."""
    catch_up.catch_up()
    last = until or timezone.localdate(timezone=timezone.get_default_timezone()) - timedelta(1)
    window = Window(first=last - timedelta(days=days - 1), last=last)
    viewer, chosen = Viewer(user), selection or Selection()
    earlier = window.before(timezone.now())
    now = FiguresQuery(viewer, window, chosen).total()
    before = FiguresQuery(viewer, earlier, chosen).total()
    groups = tables.compare(now, before, viewer, (window, earlier), chosen)
    lines = [_line(each) for _group, found in groups for each in found]
    path = f"{reverse('dashboard:overview')}?from={window.first}&to={window.last}"
    return PeriodReport(first=window.first, last=window.last, lines=lines, path=path)


def _line(each: tables.Comparison) -> ReportLine:
    metric: metrics.Metric = each.metric
    return ReportLine(
        key=metric.key,
        label=str(metric.label),
        value=each.now.value,
        text=f"{each.now.text} ({each.now.note})" if each.now.note else each.now.text,
        change=each.change,
        is_worse=each.tone == "worse",
    )
