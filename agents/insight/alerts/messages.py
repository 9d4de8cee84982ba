"""What is sent: subject, text, HTML and the JSON of webhooks, in the active language."""

from dataclasses import dataclass, field
from typing import Any

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agents.insight.problems import presentation
from agents.insight.problems.models import Problem, ProblemChange
from agents.models import Approval, Run, Schedule

from .models import Event

VERSION = 1
SUBJECTS: dict[str, Promise] = {
    Event.NEW: gettext_lazy("New problem: %(title)s"),
    Event.REOPENED: gettext_lazy("Problem opened again: %(title)s"),
    Event.SPIKING: gettext_lazy("Problem spiking: %(title)s"),
}
MAX_SUBJECT_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    event: str
    subject: str
    text: str
    html: str = ""
    data: dict[str, Any] = field(default_factory=dict)

    def payload(self) -> dict[str, Any]:
        """Return the JSON of a webhook; `text` is what Slack and others display."""
        return {
            "version": VERSION,
            "type": self.event,
            "created_at": timezone.now().isoformat(),
            "text": self.text,
            **self.data,
        }


def problem_message(
    event: str, problem: Problem, change: ProblemChange | None, base_url: str
) -> Message:
    """Return the alert about a problem."""
    title = presentation.title(problem)
    url = base_url.rstrip("/") + reverse("admin:problems_problem_change", args=[problem.pk])
    subject = _one_line(str(SUBJECTS[event]) % {"title": title})
    lines = [subject, facts(problem)]
    if change is not None and change.action == ProblemChange.Action.SPIKED:
        lines.append(presentation.change_sentence(change, {}))
    lines = [line for line in lines if line]
    context = {"subject": subject, "lines": lines[1:], "url": url}
    data = {
        "id": problem.pk,
        "title": title,
        "kind": problem.kind,
        "agent": problem.agent_name,
        "cause": problem.subject,
        "status": problem.status,
        "count": problem.count,
        "first_seen": problem.first_seen.isoformat(),
        "last_seen": problem.last_seen.isoformat(),
        "agent_version": change.version if change else None,
        "url": url,
    }
    if change and change.details.get("recent"):
        data |= change.details
    return Message(
        event=event,
        subject=subject,
        text="\n".join([*lines, url]),
        html=render_to_string("alerts/problem_email.html", context),
        data={"problem": data},
    )


def schedule_message(run: Run, schedule: Schedule, base_url: str) -> Message:
    """Return the alert about a scheduled run that waits: why, and what to do."""
    subject = _("“%(workflow)s” is pending approval") % {"workflow": schedule.workflow.name}
    pending = run.approvals.filter(verdict=Approval.Verdict.WAITING)
    if pending.filter(why=Approval.Why.UNKNOWN).exists():
        reason = _(
            "The server stopped during a tool call that can't be retried. Open the run and "
            "select whether the call was completed."
        )
    else:
        reason = _("Open the run and approve or reject the pending step.")
    if schedule.overlap == Schedule.Overlap.WAIT:
        effect = _("The next run starts after that.")
    else:
        effect = _("Until then, the schedule skips its runs.")
    url = base_url.rstrip("/") + reverse("trace:run", args=[run.pk]) if base_url else ""
    lines = [_one_line(subject), f"{reason} {effect}"]
    return Message(
        event=Event.SCHEDULE_WAITING,
        subject=lines[0],
        text="\n".join([*lines, url] if url else lines),
        data={
            "schedule": {
                "id": schedule.pk,
                "workflow": schedule.workflow.name,
                "run": run.pk,
                "url": url,
            }
        },
    )


def test_message(base_url: str) -> Message:
    sentence = _("This is a test of an alert channel. Alerts will arrive here.")
    return Message(
        event=Event.TEST,
        subject=_("Test of an alert channel"),
        text=f"{sentence}\n{base_url}",
        data={"url": base_url},
    )


def notification_title(event: str, problem: Problem) -> str:
    return str(SUBJECTS[event]) % {"title": presentation.title(problem)}


def facts(problem: Problem) -> str:
    """Return type, agent, cause and count on one line."""
    count = ngettext("%(count)d time", "%(count)d times", problem.count)
    facts_of_problem = [
        str(problem.get_kind_display()),
        problem.agent_name,
        presentation.subject_label(problem),
        count % {"count": problem.count},
    ]
    return " · ".join(filter(None, facts_of_problem))


def _one_line(text: str) -> str:
    """Return a mail's subject: a line break in it would be rejected."""
    return " ".join(text.split())[:MAX_SUBJECT_CHARS]
