"""The figures of a period for other packages, such as a scheduled summary."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone

from agents.metering.figures import catch_up
from agents.metering.figures.query import By, FiguresQuery
from agents.metering.figures.selection import Selection, Viewer
from agents.metering.figures.windows import Window
from agents.web.figures.cards import Cell

from . import tables


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportLine:
    """A figure as text; `value` is for programs."""

    key: str
    label: str
    value: float | None
    previous: float | None
    text: str
    previous_text: str
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
        return {line.key: line for line in self.lines}[key]


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
    catch_up.catch_up(catch_up.MAX_FOR_PAGE)  # it may be inside a transaction
    last = until or timezone.localdate(timezone=timezone.get_default_timezone()) - timedelta(1)
    window = Window(first=last - timedelta(days=days - 1), last=last)
    viewer = Viewer(user)
    selection = selection or Selection()
    earlier = window.before(timezone.now())
    query = FiguresQuery(viewer, window, selection)
    current = query.total()
    previous = FiguresQuery(viewer, earlier, selection).total()
    groups = tables.compare(current, previous, viewer, (window, earlier), selection)
    lines = [
        ReportLine(
            key=comparison.metric.key,
            label=str(comparison.metric.label),
            value=comparison.current.value,
            previous=comparison.previous.value,
            text=_text(comparison.current),
            previous_text=_text(comparison.previous),
            change=comparison.change,
            is_worse=comparison.tone == "worse",
        )
        for _name, _label, comparisons in groups
        for comparison in comparisons
    ]
    costs = [
        AgentCost(name=str(name), cost=totals.cost)
        for (name,), totals in query.split(By.AGENT).items()
        if totals.cost
    ]
    costs.sort(key=lambda agent_cost: -agent_cost.cost)
    path = f"{reverse('dashboard:overview')}?from={window.first}&to={window.last}"
    return PeriodReport(
        first=window.first, last=window.last, lines=lines, agents=costs, path=path
    )


def _text(cell: Cell) -> str:
    return f"{cell.text} ({cell.note})" if cell.note else cell.text
