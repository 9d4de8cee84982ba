"""Figures on pages: with the runs behind them, their change and their chart."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.safestring import SafeString

from agents.metering.figures.query import FiguresQuery
from agents.metering.figures.selection import Selection, Viewer, runs_url
from agents.metering.figures.totals import Totals
from agents.metering.figures.windows import Window

from . import metrics, series
from .metrics import DASH, Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A figure with the runs behind it; `note` is what a rate is of."""

    text: str
    value: float | None
    url: str = ""
    note: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    metric: Metric
    cell: Cell
    change: str
    tone: str
    chart: SafeString
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """A period's figures, those of the period before, and cards of some of them."""

    current: Totals
    previous: Totals
    axis: tuple[str, str]
    cards: list[Card]

    @property
    def is_empty(self) -> bool:
        return not (self.current["runs"] or self.previous["runs"])


def load_overview(
    query: FiguresQuery, previous_query: FiguresQuery, chosen: Iterable[Metric]
) -> Overview:
    totals_series = series.load(query)
    previous = previous_query.total()
    current = (
        # Buckets are counted from summaries, without deleted runs.
        query.total() if query.window.bucket else sum(totals_series.points.values(), Totals())
    )
    cards = []
    for metric in chosen:
        metric_cell = cell(metric, current, query.viewer, query.window, query.selection)
        cards.append(
            Card(
                metric=metric,
                cell=metric_cell,
                change=metrics.change_text(metric, current, previous),
                tone=metrics.tone(metric, current, previous),
                chart=totals_series.chart(metric),
                note=metric.note(current) if metric.note else metric_cell.title,
            )
        )
    return Overview(current=current, previous=previous, axis=totals_series.axis, cards=cards)


def cell(
    metric: Metric, totals: Totals, viewer: Viewer, window: Window, selection: Selection
) -> Cell:
    value = metric.value(totals)
    title = metric.basis_text(totals)
    has_runs = bool(totals["runs"]) and value is not None and bool(value or metric.is_rate)
    url = runs_url(viewer, window, selection, *metric.terms, sort=metric.unit.sort)
    return Cell(
        text=DASH if value is None else metric.unit.text(value),
        value=value,
        url=url if has_runs else "",
        note=title if metric.has_basis else "",
        title=title,
    )
