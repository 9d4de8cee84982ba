"""The cards with a chart: runs, cost, error rate and latency."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.formats import number_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from agents.web.presentation import charts, dates, formatting

from .. import figures as texts
from .figures import Period, RunFigures
from .links import runs_url

# Below it, classes of latency and rounding say nothing.
MIN_CHANGE = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A figure with its change, its chart and the runs behind it."""

    key: str
    icon: str
    title: str
    value: str
    change: str
    url: str
    chart: SafeString
    tone: str = ""  # of the change: better or worse
    note: str = ""  # below the chart


def build_metrics(figures: RunFigures, period: Period) -> list[Metric]:
    return [
        _runs(figures, period),
        _cost(figures, period),
        _error_rate(figures, period),
        _latency(figures, period),
    ]


def axis(period: Period, now: datetime) -> tuple[str, str]:
    """Return the labels of a chart's ends, in the viewer's time zone and format."""
    since = period.start(now)
    if period.key == "24h":
        return dates.time_text(since), _("Now")
    return dates.short_date_text(since), _("Today")


def _runs(figures: RunFigures, period: Period) -> Metric:
    values = [bucket.runs for bucket in figures.buckets]
    count = figures.now.runs
    value = number_format(count, force_grouping=True)
    return Metric(
        key="runs",
        icon="trace",
        title=_("Runs"),
        value=value,
        change=_relative_change(count, figures.before.runs),
        note=_("%(count)d running now") % {"count": figures.live} if figures.live else "",
        url=runs_url(period, "-status:live"),
        chart=charts.bar_chart(values, label=_describe(_("Runs"), value, values, _count)),
    )


def _cost(figures: RunFigures, period: Period) -> Metric:
    values = [bucket.cost for bucket in figures.buckets]
    value = formatting.cost(figures.now.cost)
    per_run = figures.now.cost / figures.now.runs if figures.now.runs else 0
    note = _("%(cost)s per run") % {"cost": formatting.cost(per_run)} if per_run else ""
    change = _relative_change(figures.now.cost, figures.before.cost)
    return Metric(
        key="cost",
        icon="cost",
        title=_("Cost"),
        value=value,
        change=change,
        url=runs_url(period, sort="-cost"),
        chart=charts.sparkline(
            values, "violet", _describe(_("Cost"), value, values, formatting.cost)
        ),
        note=note,
    )


def _error_rate(figures: RunFigures, period: Period) -> Metric:
    values = [bucket.error_rate for bucket in figures.buckets]
    rate = figures.now.error_rate
    before = figures.before.error_rate
    written = formatting.DASH if rate is None else texts.percent(rate)
    points = 0.0 if rate is None or before is None else round((rate - before) * 100, 1)
    change = _("%(points)s pts") % {"points": _signed(points)} if points else ""
    known = [value or 0.0 for value in values]
    return Metric(
        key="errors",
        icon="failed",
        title=_("Error rate"),
        value=written,
        change=change,
        tone=_tone(points),
        url=runs_url(period, "status:failed"),
        chart=charts.sparkline(
            values, "red", _describe(_("Error rate"), written, known, texts.percent)
        ),
    )


def _latency(figures: RunFigures, period: Period) -> Metric:
    values = [bucket.p95 for bucket in figures.buckets]
    now = figures.p95
    before = figures.p95_before
    written = formatting.DASH if now is None else _seconds(now)
    changed = 0.0 if now is None or before is None else now - before
    is_small = not before or abs(changed) < MIN_CHANGE * before
    known = [value or 0.0 for value in values]
    at_least = [f"duration:>={now:.1f}s"] if now else []
    return Metric(
        key="latency",
        icon="timer",
        title=_("p95 latency"),
        value=written,
        change="" if is_small else f"{'+' if changed > 0 else '−'}{_seconds(abs(changed))}",
        tone="" if is_small else _tone(changed),
        url=runs_url(period, *at_least, sort="-time"),
        chart=charts.sparkline(
            values, "blue", _describe(_("p95 latency"), written, known, _seconds)
        ),
        note=_("Active time"),
    )


def _relative_change(now: float, before: float) -> str:
    if not before or not now:
        return ""
    percent = round((now - before) / before * 100)
    return f"{_signed(percent)}%" if percent else ""


def _signed(number: float) -> str:
    sign = "+" if number > 0 else "−"
    return f"{sign}{number_format(abs(number), force_grouping=True)}"


def _tone(change: float) -> str:
    return "" if not change else "worse" if change > 0 else "better"


def _seconds(value: float) -> str:
    return texts.seconds(value) if value < 60 else formatting.duration(value * 1000)


def _count(value: float) -> str:
    return number_format(int(value), force_grouping=True)


def _describe(
    title: str, amount: str, values: Sequence[float], format_value: Callable[[float], str]
) -> str:
    """Return the chart in words."""
    most = format_value(max(values, default=0.0))
    return _("%(title)s: %(amount)s. Peak: %(most)s.") % {
        "title": title,
        "amount": amount,
        "most": most,
    }
