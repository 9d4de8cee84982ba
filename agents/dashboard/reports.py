"""The figures of a period for other packages, such as a scheduled summary."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone

from . import catch_up, metrics, tables
from .figures import By, FiguresQuery
from .selection import Selection, Viewer
from .windows import Window

# The periodic job has done the rest; a report may be made inside a transaction.
MAX_CAUGHT_UP = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportLine:
    """A figure as text; `value` is for programs."""

    key: str
    label: str
    value: float | None
    before: float | None
    text: str
    text_before: str
    change: str
    is_worse: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCost:
    name: str
    cost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodReport:
    """A period compared with as many days before."""

    first: date
    last: date
    lines: Sequence[ReportLine]
    agents: Sequence[AgentCost]  # the most expensive first, without free ones
    path: str  # of the dashboard with this period

    def __getitem__(self, key: str) -> ReportLine:
        return next(line for line in self.lines if line.key == key)


def load_report(
    user: User | None,
    days: int,
    *,
    until: date | None = None,
    selection: Selection | None = None,
) -> PeriodReport:
    """Return what this user's dashboard has for the days up to yesterday, or up to another.

    Without a user, all runs are counted.
    """
    catch_up.catch_up(MAX_CAUGHT_UP)
    last = until or timezone.localdate(timezone=timezone.get_default_timezone()) - timedelta(1)
    window = Window(first=last - timedelta(days=days - 1), last=last)
    viewer = Viewer(user)
    selection = selection or Selection()
    earlier = window.before(timezone.now())
    query = FiguresQuery(viewer, window, selection)
    current = query.total()
    previous = FiguresQuery(viewer, earlier, selection).total()
    groups = tables.compare(current, previous, viewer, (window, earlier), selection)
    lines = [_line(comparison) for _group, comparisons in groups for comparison in comparisons]
    path = f"{reverse('dashboard:overview')}?from={window.first}&to={window.last}"
    return PeriodReport(
        first=window.first, last=window.last, lines=lines, agents=_costs(query), path=path
    )


def _costs(query: FiguresQuery) -> list[AgentCost]:
    costs = [
        AgentCost(name=str(name), cost=totals.cost)
        for (name,), totals in query.split(By.AGENT).items()
        if totals.cost
    ]
    return sorted(costs, key=lambda agent_cost: -agent_cost.cost)


def _line(comparison: tables.Comparison) -> ReportLine:
    metric: metrics.Metric = comparison.metric
    return ReportLine(
        key=metric.key,
        label=str(metric.label),
        value=comparison.now.value,
        before=comparison.before.value,
        text=_text(comparison.now),
        text_before=_text(comparison.before),
        change=comparison.change,
        is_worse=comparison.tone == "worse",
    )


def _text(cell: tables.Cell) -> str:
    return f"{cell.text} ({cell.note})" if cell.note else cell.text
