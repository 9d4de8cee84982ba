"""The scores of an example set over time, drawn as SVG."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from django.urls import reverse
from django.utils.translation import gettext as _

from agents.web.presentation.formats.dates import datetime_text

from .models import Experiment

MAX_POINTS = 40
WIDTH = 640
HEIGHT = 140
PAD = 12
COLOURS = ("blue", "green", "violet", "amber", "red")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendPoint:
    x: str
    y: str
    href: str
    title: str


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
    # Placed by their number, so that a busy day isn't a blur.
    step = (WIDTH - 2 * PAD) / max(1, len(recent) - 1)
    points: dict[str, list[TrendPoint]] = defaultdict(list)
    last_scores = {}
    for index, experiment in enumerate(recent):
        x = PAD + index * step if len(recent) > 1 else WIDTH / 2
        score = experiment.score or 0.0
        title = _("%(when)s, %(agent)s %(target)s: %(score)s") % {
            "when": datetime_text(experiment.started_at),
            "agent": experiment.agent_name,
            "target": experiment.target_label,
            "score": f"{score:.0%}",
        }
        href = reverse("admin:experiments_experiment_change", args=[experiment.pk])
        point = TrendPoint(x=f"{x:.1f}", y=f"{_y(score):.1f}", href=href, title=title)
        points[experiment.agent_name].append(point)
        last_scores[experiment.agent_name] = score
    lines = [
        TrendLine(
            agent=agent,
            tone=COLOURS[index % len(COLOURS)],
            points=own_points,
            path=" ".join(f"{point.x},{point.y}" for point in own_points),
            last=round(100 * last_scores[agent]),
        )
        for index, (agent, own_points) in enumerate(points.items())
    ]
    grid = [(f"{_y(share):.1f}", f"{share:.0%}") for share in (0.0, 0.5, 1.0)]
    return Trend(lines=lines, grid=grid)


def _y(share: float) -> float:
    return PAD + (1 - share) * (HEIGHT - 2 * PAD)
