"""What is sent: subject, text, HTML and the JSON of webhooks, in the active language."""

from dataclasses import dataclass, field
from typing import Any

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agents.db.sentences import translate
from agents.insight.problems import presentation
from agents.insight.problems.models import Problem, ProblemChange
from agents.metering.budgets import BudgetState
from agents.metering.budgets.measures import limit_sentence, short_amount
from agents.models import Approval, GuardrailHit, GuardrailPattern, Run, Schedule, Trigger

from .models import AlertChannel, Event

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
            "type": self.event,
            "timestamp": timezone.now().isoformat(),
            "text": self.text,
            "data": self.data,
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


def schedule_message(run: Run, origin: Schedule | Trigger, base_url: str) -> Message:
    """Return the alert about a run of a schedule or trigger that waits, and what to do."""
    subject = _("“%(workflow)s” is pending approval") % {"workflow": origin.target}
    pending = run.approvals.filter(verdict=Approval.Verdict.WAITING)
    if pending.filter(why=Approval.Why.UNKNOWN).exists():
        reason = _(
            "The server stopped during a tool call that can't be retried. Open the run and "
            "select whether the call was completed."
        )
    else:
        reason = _("Open the run and approve or reject the pending step.")
    effect = ""
    if isinstance(origin, Schedule):
        effect = _("Until then, the schedule skips its runs.")
        if origin.overlap == Schedule.Overlap.WAIT:
            effect = _("The next run starts after that.")
    url = base_url.rstrip("/") + reverse("trace:run", args=[run.pk]) if base_url else ""
    lines = [_one_line(subject), f"{reason} {effect}".strip()]
    return Message(
        event=Event.SCHEDULE_WAITING,
        subject=lines[0],
        text="\n".join([*lines, url] if url else lines),
        data={
            "schedule": {
                "id": origin.pk,
                "workflow": origin.target,
                "run": run.pk,
                "url": url,
            }
        },
    )


def run_message(run: Run, base_url: str) -> Message:
    """Return the event of a run that has ended."""
    names = {"agent": run.agent_name, "run": run.pk, "status": run.get_status_display()}
    subject = _("%(agent)s: run %(run)s %(status)s") % names
    return _run_event(Event.RUN_FINISHED, run, base_url, subject)


def approval_message(approval: Approval, base_url: str) -> Message:
    names = {"agent": approval.agent_name, "run": approval.run_id}
    subject = _("%(agent)s: run %(run)s is pending approval") % names
    return _run_event(
        Event.APPROVAL_WAITING,
        approval.run,
        base_url,
        subject,
        approval={"id": approval.pk, "tool": approval.tool, "reason": approval.why},
    )


def hit_message(hit: GuardrailHit, base_url: str, *, with_rule: bool) -> Message:
    """Return the event of a guardrail hit; the name of its rule is for reviewers."""
    names = {"agent": hit.agent_name, "run": hit.run_id}
    subject = _("%(agent)s: guardrail hit in run %(run)s") % names
    details = {"id": hit.pk, "stage": hit.stage, "action": hit.action}
    if with_rule:
        rules = GuardrailPattern.objects.filter(pk=hit.pattern_id)
        details["rule"] = rules.values_list("name", flat=True).first()
    return _run_event(Event.GUARDRAIL_HIT, hit.run, base_url, subject, guardrail=details)


def _run_event(event: str, run: Run, base_url: str, subject: str, **details: Any) -> Message:
    """Return an event of a run: ids, names and where to read on, but nobody's text."""
    url = base_url.rstrip("/") + reverse("trace:run", args=[run.pk])
    data = {
        "id": run.pk,
        "agent": run.agent_name,
        "status": run.status,
        "reason": run.stopped_reason,
        "user": run.user_id,
        "started_by": run.topic.partition(".")[0],
        "started_at": run.started_at.isoformat(),
        "ended_at": run.ended_at and run.ended_at.isoformat(),
        "url": url,
    }
    subject = _one_line(subject)
    text = f"{subject}\n{url}"
    return Message(event=event, subject=subject, text=text, data={"run": data, **details})


def limit_message(state: BudgetState, base_url: str) -> Message:
    """Return the event of a limit of which little is left."""
    limit = state.limit
    amount = limit.amount or 0
    names = {
        "share": round(100 * state.share),
        "limit": translate(limit_sentence(limit.measure, amount, limit.window)),
        "name": limit.name,
    }
    subject = _("%(share)s%% of the limit is used: %(limit)s") % names
    if limit.name:
        subject = _("%(name)s: %(share)s%% of the limit is used: %(limit)s") % names
    url = base_url.rstrip("/") + reverse("people:usage")
    data = {
        "scope": limit.kind,
        "name": limit.name,
        "measure": limit.measure,
        "window": limit.window,
        "used": short_amount(limit.measure, state.spent),
        "limit": short_amount(limit.measure, amount),
        "share": round(state.share, 3),
        "resets_at": state.resets_at.isoformat(),
        "url": url,
    }
    return Message(
        event=Event.BUDGET_WARNING,
        subject=_one_line(subject),
        text=f"{subject}\n{url}",
        data={"limit": data},
    )


def paused_message(channel: AlertChannel, reason: str) -> str:
    """Return the notification about a webhook that was paused: title and what to do."""
    title = _("Webhook “%(name)s” was paused") % {"name": channel}
    text = _(
        "It kept failing: %(why)s. Fix its receiver, then enable it and replay deliveries."
    )
    return f"{title}\n{text % {'why': reason.rstrip('.')}}"


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
