"""The scores of an example set over time, drawn as SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from django.urls import reverse
from django.utils.translation import gettext as _

from agents.web.presentation.dates import datetime_text

from .models import Experiment

MAX_POINTS = 40
WIDTH, HEIGHT, PAD = 640, 140, 12
COLOURS = ("blue", "green", "violet", "amber", "red")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendPoint:
    x: str
    y: str
    href: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendLine:
    """The scores of one agent."""

    agent: str
    tone: str
    points: list[TrendPoint]
    path: str
    last: int  # percent


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    lines: list[TrendLine]
    grid: list[tuple[str, str]]

    box: ClassVar[str] = f"0 0 {WIDTH} {HEIGHT}"
    right: ClassVar[int] = WIDTH - PAD


def build(experiments: Sequence[Experiment]) -> Trend | None:
    """Return a line per agent, oldest first; None without a finished experiment."""
    done = [
        experiment
        for experiment in experiments
        if experiment.score is not None and not experiment.is_running
    ]
    recent = sorted(done, key=lambda experiment: experiment.pk)[-MAX_POINTS:]
    if not recent:
        return None
    agents = list(dict.fromkeys(experiment.agent.name for experiment in recent))
    lines = [
        _line(name, COLOURS[index % len(COLOURS)], recent) for index, name in enumerate(agents)
    ]
    grid = [(f"{_y(share):.1f}", f"{share:.0%}") for share in (0.0, 0.5, 1.0)]
    return Trend(lines=lines, grid=grid)


def _line(agent: str, tone: str, recent: Sequence[Experiment]) -> TrendLine:
    """Place an agent's experiments by their number, so that a busy day isn't a blur."""
    step = (WIDTH - 2 * PAD) / max(1, len(recent) - 1)
    points = [
        _point(PAD + index * step if len(recent) > 1 else WIDTH / 2, experiment)
        for index, experiment in enumerate(recent)
        if experiment.agent.name == agent
    ]
    path = " ".join(f"{point.x},{point.y}" for point in points)
    own = [experiment for experiment in recent if experiment.agent.name == agent]
    return TrendLine(
        agent=agent, tone=tone, points=points, path=path, last=round(100 * (own[-1].score or 0))
    )


def _point(x: float, experiment: Experiment) -> TrendPoint:
    when = datetime_text(experiment.started_at)
    score = experiment.score or 0.0
    title = _("%(when)s, %(agent)s %(target)s: %(score)s") % {
        "when": when,
        "agent": experiment.agent.name,
        "target": experiment.target_label,
        "score": f"{score:.0%}",
    }
    href = reverse("admin:experiments_experiment_change", args=[experiment.pk])
    return TrendPoint(x=f"{x:.1f}", y=f"{_y(score):.1f}", href=href, words=title)


def _y(share: float) -> float:
    return PAD + (1 - share) * (HEIGHT - 2 * PAD)
