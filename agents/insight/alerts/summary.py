"""The summary of a period: main figures against the period before, top cost, new problems."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from agents.insight.dashboard.reports import AgentCost, load_report
from agents.insight.problems import presentation
from agents.insight.problems.models import Problem
from agents.metering.figures.selection import PERMISSION
from agents.web.presentation.formats import formatting

from .messages import Message, facts
from .models import Event, SummarySchedule

MAX_AGENTS = 5
MAX_PROBLEMS = 5
Frequency = SummarySchedule.Frequency
# Figures of the dashboard, by the names they have in what is sent.
FIGURES = {
    "runs": "runs",
    "completion_rate": "completion",
    "error_rate": "errors",
    "cost": "cost",
    "p50_seconds": "active_p50",
    "p95_seconds": "active_p95",
    "satisfaction": "satisfaction",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryPeriod:
    """Whole days in the installation's time zone."""

    first: date
    last: date

    @property
    def start(self) -> datetime:
        return _midnight(self.first)

    @property
    def end(self) -> datetime:
        return _midnight(self.last + timedelta(days=1))

    @property
    def label(self) -> str:
        first, last = (date_format(day, "DATE_FORMAT") for day in (self.first, self.last))
        if first == last:
            return first
        return _("%(first)s to %(last)s") % {"first": first, "last": last}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    key: str
    label: str
    value: str
    previous: str
    number: float | None
    previous_number: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    period: SummaryPeriod
    figures: list[Figure]
    agents: list[AgentCost]
    problems: list[Problem]
    open_count: int
    path: str  # of the dashboard with this period, or of the console


def period_before(frequency: str, due: datetime) -> SummaryPeriod:
    """Return the last whole day, week or month before a moment."""
    today = timezone.localtime(due, timezone.get_default_timezone()).date()
    last = today - timedelta(days=1)
    if frequency == Frequency.DAILY:
        return SummaryPeriod(first=last, last=last)
    if frequency == Frequency.WEEKLY:
        return SummaryPeriod(first=today - timedelta(days=7), last=last)
    last = today.replace(day=1) - timedelta(days=1)
    return SummaryPeriod(first=last.replace(day=1), last=last)


def load(period: SummaryPeriod, reader: User | None = None) -> Summary:
    """Count the period: the runs and problems that a person can see, or all of them."""
    problems = Problem.objects.filter(merged_into=None)
    if reader is not None:
        problems = Problem.objects.for_user(reader)
    days = (period.last - period.first).days + 1
    report = load_report(reader, days, until=period.last)
    figures = [
        Figure(
            key=key,
            label=report[name].label,
            value=report[name].text,
            previous=report[name].previous_text,
            number=report[name].value,
            previous_number=report[name].previous,
        )
        for key, name in FIGURES.items()
    ]
    may_open = reader is None or reader.has_perm(PERMISSION)
    new = problems.filter(first_seen__gte=period.start, first_seen__lt=period.end)
    return Summary(
        period=period,
        figures=figures,
        agents=list(report.agents[:MAX_AGENTS]),
        problems=list(new.order_by("-count")[:MAX_PROBLEMS]),
        open_count=problems.open().count(),
        path=report.path if may_open else reverse("admin:index"),
    )


def build_message(summary: Summary, name: str, base_url: str) -> Message:
    """Return the summary as text, HTML and JSON, in the active language."""
    base = base_url.rstrip("/")
    subject = _("%(name)s: %(period)s") % {"name": name, "period": summary.period.label}
    problems = [
        {
            "title": presentation.title(problem),
            "facts": facts(problem),
            "url": base + reverse("admin:problems_problem_change", args=[problem.pk]),
        }
        for problem in summary.problems
    ]
    agents = [
        {"name": agent.name, "cost": formatting.cost(agent.cost)} for agent in summary.agents
    ]
    pages = {
        summary.path: _("Dashboard"),
        reverse("admin:problems_problem_changelist"): _("Problems"),
        reverse("trace:list"): _("Runs"),
    }
    links = [{"label": label, "url": base + path} for path, label in pages.items()]
    context = {
        "subject": subject,
        "summary": summary,
        "problems": problems,
        "agents": agents,
        "links": links,
    }
    return Message(
        event=Event.SUMMARY,
        subject=subject,
        text=_plain_text(subject, summary, agents, problems, links),
        html=render_to_string("alerts/summary_email.html", context),
        data={
            "period": {
                "first": summary.period.first.isoformat(),
                "last": summary.period.last.isoformat(),
            },
            "figures": {
                figure.key: {"value": figure.number, "before": figure.previous_number}
                for figure in summary.figures
            },
            "cost_by_agent": [
                {"agent": agent.name, "cost": agent.cost} for agent in summary.agents
            ],
            "new_problems": [
                {"title": problem["title"], "url": problem["url"]} for problem in problems
            ],
            "open_problems": summary.open_count,
            "url": links[0]["url"],
        },
    )


def _plain_text(
    subject: str,
    summary: Summary,
    agents: Sequence[dict[str, str]],
    problems: Sequence[dict[str, str]],
    links: Sequence[dict[str, str]],
) -> str:
    compared = _("%(label)s: %(value)s (before: %(before)s)")
    lines = [subject, ""]
    lines += [
        compared % {"label": figure.label, "value": figure.value, "before": figure.previous}
        for figure in summary.figures
    ]
    if agents:
        lines += ["", _("Cost by agent")]
        lines += [f"- {agent['name']}: {agent['cost']}" for agent in agents]
    lines += ["", _("New problems")]
    lines += [
        f"- {problem['title']} ({problem['facts']})\n  {problem['url']}" for problem in problems
    ]
    lines += [] if problems else [_("None.")]
    lines += ["", *(f"{link['label']}: {link['url']}" for link in links)]
    return "\n".join(lines)


def _midnight(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time()), timezone.get_default_timezone())
