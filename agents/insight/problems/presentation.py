"""Problems in words and figures, for lists, pages and alerts."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Count, Sum
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agents.access import masking
from agents.access.names import display_name
from agents.db.sentences import translate
from agents.engine.text import shorten
from agents.models import Run
from agents.review.models import Rating
from agents.web.presentation.formats import charts

from .models import Problem, ProblemChange, ProblemHour, ProblemRun

Kind = Problem.Kind
Status = Problem.Status
Action = ProblemChange.Action
TREND_DAYS = 14
MAX_QUESTION_CHARS = 100
TONES = {Status.OPEN: "red", Status.RESOLVED: "green", Status.IGNORED: ""}
ICONS: dict[str, str] = {
    Kind.GUARDRAIL: "guardrail",
    Kind.RATING: "bad",
    Kind.STEP_LIMIT: "timer",
    Kind.TOOL_LIMIT: "timer",
    Kind.REPLAN_LIMIT: "plan",
    Kind.NO_PLAN: "plan",
    Kind.LOOP: "again",
    Kind.REJECTED: "rejected",
    Kind.TOOL_ERROR: "tool",
    Kind.EMPTY_ANSWER: "answer",
}
# With a subject: a tool, a guardrail or a reason.
SUBJECT_TITLES: dict[str, Promise] = {
    Kind.TOOL_ERROR: gettext_lazy("%(subject)s failed"),
    Kind.LOOP: gettext_lazy("Called %(subject)s repeatedly with the same arguments"),
    Kind.TOOL_LIMIT: gettext_lazy("Called %(subject)s too many times"),
    Kind.GUARDRAIL: gettext_lazy("Blocked by the guardrail %(subject)s"),
    Kind.REJECTED: gettext_lazy("Users rejected a call to %(subject)s"),
    Kind.RATING: gettext_lazy("Bad rating: %(subject)s"),
}
TITLES: dict[str, Promise] = {
    Kind.EMPTY_ANSWER: gettext_lazy("The model returned an empty answer"),
    Kind.REPLAN_LIMIT: gettext_lazy("Gave up because its plans failed"),
    Kind.STEP_LIMIT: gettext_lazy("Reached its max steps without an answer"),
    Kind.LOOP: gettext_lazy("Repeated the same tool call"),
    Kind.TOOL_LIMIT: gettext_lazy("Called one tool too many times"),
    Kind.GUARDRAIL: gettext_lazy("Blocked by a guardrail"),
    Kind.REJECTED: gettext_lazy("Users rejected a plan or a tool call"),
    Kind.RATING: gettext_lazy("Bad rating without a reason"),
    Kind.INTERRUPTED: gettext_lazy("Interrupted because the server stopped"),
}


def title(problem: Problem) -> str:
    """Return the problem as a heading in the reader's language."""
    if problem.message:
        return translate(problem.message)
    cause = problem.subject
    if problem.kind == Kind.RATING and cause in Rating.Reason:
        cause = str(Rating.Reason(cause).label)
    if cause and problem.kind in SUBJECT_TITLES:
        return str(SUBJECT_TITLES[problem.kind]) % {"subject": cause}
    return str(TITLES.get(problem.kind, "")) or str(problem.get_kind_display())


def icon_name(problem: Problem) -> str:
    return ICONS.get(problem.kind, "failed")


def subject_label(problem: Problem) -> str:
    """Return the tool, provider or rule, where the title doesn't name it."""
    return problem.subject if problem.message else ""


def trends(
    problems: Sequence[Problem], current_time: datetime | None = None
) -> dict[int, list[int]]:
    """Return occurrences per day of the last two weeks, in the reader's time zone."""
    today = timezone.localtime(current_time).date()
    first = today - timedelta(days=TREND_DAYS - 1)
    rows = ProblemHour.objects.filter(
        problem__in=[problem.pk for problem in problems],
        hour__gte=(current_time or timezone.now()) - timedelta(days=TREND_DAYS),
    )
    counts = {problem.pk: [0] * TREND_DAYS for problem in problems}
    for pk, hour, count in rows.values_list("problem", "hour", "count"):
        day = (timezone.localtime(hour).date() - first).days
        if 0 <= day < TREND_DAYS:
            counts[pk][day] += count
    return counts


def trend_chart(values: Sequence[int]) -> SafeString:
    label = _("Last %(days)d days: %(total)d occurrences, up to %(most)d per day") % {
        "days": TREND_DAYS,
        "total": sum(values),
        "most": max(values, default=0),
    }
    return charts.bar_chart(values, "red", label)


def people_counts(problems: Sequence[Problem]) -> dict[int, int]:
    """Return how many people each problem affected, as far as their runs still exist."""
    rows = ProblemRun.objects.filter(problem__in=[problem.pk for problem in problems])
    counted = (
        rows.order_by()
        .values_list("problem")
        .annotate(people=Count("run__user", distinct=True))
    )
    return dict(counted)


def count_since(problem: Problem, since: datetime) -> int:
    """Return how often it occurred since then, as far as the runs still exist."""
    totals = problem.occurrences.filter(at__gt=since).aggregate(total=Sum("times", default=0))
    return int(totals["total"])


def example_questions(runs: Sequence[Run], reader: User, session: Any) -> list[str]:
    """Return the start of what was asked in these runs, masked for those who review them."""
    masking.load_origins(runs)
    questions = []
    for run in runs:
        is_masked = masking.is_masked_for(run, reader, session)
        text = masking.mask_text(run.query) if is_masked else run.query
        questions.append(shorten(text, MAX_QUESTION_CHARS))
    return questions


def status_sentence(problem: Problem) -> str:
    """Return what the status means for new occurrences."""
    version = problem.resolved_version
    if problem.status == Status.RESOLVED and problem.awaits_version:
        count = count_since(problem, problem.resolved_at) if problem.resolved_at else 0
        sentence = _(
            "Resolved in version %(version)d. Runs of earlier versions don't open it again."
        ) % {"version": version}
        if not count:
            return sentence
        count_sentence = ngettext(
            "%(count)d occurrence since then.", "%(count)d occurrences since then.", count
        )
        return f"{sentence} {count_sentence % {'count': count}}"
    if problem.status == Status.RESOLVED:
        return _("Resolved. It opens again if it occurs in a run that starts later.")
    if problem.status == Status.IGNORED and problem.returns_on_spike:
        return _("Ignored until it spikes. Occurrences are counted.")
    if problem.status == Status.IGNORED:
        return _("Ignored. Occurrences are counted, but it stays closed.")
    return ""


def change_sentence(change: ProblemChange, people: dict[int, str]) -> str:
    """Return an entry of the history as a sentence."""
    params = {
        "who": display_name(change.by) or _("A former user"),
        "version": change.version,
        "to": people.get(change.details.get("to", 0), _("a former user")),
        "title": change.details.get("title", ""),
        "recent": change.details.get("recent", 0),
        "usual": change.details.get("usual", 0),
    }
    action = change.action
    if action == Action.ASSIGNED and change.details.get("to") is None:
        return _("%(who)s removed the assignee.") % params
    if action in VERSION_SENTENCES and change.version:
        return str(VERSION_SENTENCES[action]) % params
    return str(SENTENCES[action]) % params


VERSION_SENTENCES: dict[str, Promise] = {
    Action.FOUND: gettext_lazy("First seen in version %(version)d."),
    Action.REOPENED: gettext_lazy("Opened again by a run of version %(version)d."),
    Action.RESOLVED: gettext_lazy("%(who)s resolved it in version %(version)d."),
}
SENTENCES: dict[str, Promise] = {
    Action.FOUND: gettext_lazy("First seen."),
    Action.REOPENED: gettext_lazy("Opened again by a new run."),
    Action.SPIKED: gettext_lazy(
        "Spiked: %(recent)d occurrences within two hours, usually %(usual)s."
    ),
    Action.RESOLVED: gettext_lazy("%(who)s resolved it."),
    Action.RESOLVED_NEXT: gettext_lazy("%(who)s resolved it in the next version."),
    Action.IGNORED: gettext_lazy("%(who)s ignored it."),
    Action.IGNORED_UNTIL_SPIKE: gettext_lazy("%(who)s ignored it until it spikes."),
    Action.OPENED: gettext_lazy("%(who)s opened it again."),
    Action.ASSIGNED: gettext_lazy("%(who)s assigned it to %(to)s."),
    Action.MERGED: gettext_lazy("%(who)s merged “%(title)s” into it."),
}
