"""The summary of a row: one line that says what the step does or did."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.engine.loop import AskPersonTool
from agents.engine.plans import JUDGE, MODERATOR, MONITOR, PLANNER
from agents.models import AgentStep
from agents.runs.engine_messages import translate
from agents.tools.read_document import ReadDocumentTool
from agents.tools.search import SearchTool

from . import panel_view, status_text
from .formatting import format_compact, one_line
from .limit_requests import LimitRequestView
from .markdown import reveal_invisible
from .structured_output import inline_text

if TYPE_CHECKING:
    from .step_view import StepView

ERROR_PREFIX = "Error: "
SEARCH_TOOLS = {SearchTool.name, ReadDocumentTool.name}
JOB_LABELS: dict[str, Callable[[], str]] = {
    PLANNER: lambda: _("Writing the plan"),
    MONITOR: lambda: _("Checking the result"),
    MODERATOR: lambda: _("Comparing the answers"),
    JUDGE: lambda: _("Judging the answers"),
}


def summarize(row: "StepView") -> str:
    """Return the row's summary."""
    step = row.step
    if panel_view.is_panel(step):
        return one_line(panel_view.summary(step))
    match step.kind:
        case AgentStep.Kind.TOOL if row.handoff_agent:
            return one_line(_handoff_summary(row))
        case AgentStep.Kind.TOOL if step.action == AskPersonTool.name:
            return one_line(_question_summary(row))
        case AgentStep.Kind.TOOL if step.action in SEARCH_TOOLS:
            return one_line(_search_summary(row))
        case AgentStep.Kind.TOOL:
            return one_line(f"{step.action}: {format_compact(step.action_input)}")
        case AgentStep.Kind.GUARDRAIL:
            return one_line(_guardrail_summary(row))
        case AgentStep.Kind.TASK:
            return one_line(_task_summary(row))
        case AgentStep.Kind.PLAN:
            return one_line(_plan_summary(row))
        case AgentStep.Kind.EVALUATION:
            return one_line(_evaluation_summary(row))
        case AgentStep.Kind.BUDGET:
            limit = LimitRequestView.of(row.facts)
            return one_line(f"{limit.title}: {limit.summary}")
        case AgentStep.Kind.ANSWER if not step.thought and not row.job:
            return _("Writing the answer")
    if step.is_live and (waits := status_text.waiting_sentence(step.notes)):
        return one_line(waits)
    if step.status == AgentStep.Status.FAILED and step.observation:
        return one_line(translate(step.observation.removeprefix(ERROR_PREFIX)))
    if row.job in JOB_LABELS:
        return JOB_LABELS[row.job]()
    return one_line(row.thought) or (_("Thinking…") if step.is_live else _("Thinking"))


def _search_summary(row: "StepView") -> str:
    """Return what was searched for or read, and how many passages that gave."""
    step = row.step
    arguments = step.action_input if isinstance(step.action_input, dict) else {}
    query = arguments.get("query") or format_compact(step.action_input)
    call = f"{step.action}: {query}"
    # Runs of earlier versions didn't save their passages.
    if step.status != AgentStep.Status.DONE or not step.is_untrusted:
        return call
    count = len(step.sources)
    found = ngettext("%(count)d passage", "%(count)d passages", count) % {"count": count}
    return f"{step.action} ({found}): {query}"


def _handoff_summary(row: "StepView") -> str:
    about = {"agent": row.handoff_agent, "task": format_compact(row.step.action_input)}
    if row.step.status != AgentStep.Status.FAILED:
        return _("Handoff to %(agent)s: %(task)s") % about
    about["why"] = translate(row.step.observation.removeprefix(ERROR_PREFIX))
    return _("%(agent)s failed: %(why)s") % about


def _question_summary(row: "StepView") -> str:
    """Return the question to a person or a group."""
    arguments = row.step.action_input
    arguments = (
        arguments if isinstance(arguments, dict) else {"question": format_compact(arguments)}
    )
    question = reveal_invisible(inline_text(str(arguments.get("question", ""))))
    about = {
        "question": question,
        "role": reveal_invisible(str(arguments.get("role") or "")),
    }
    if about["role"]:
        return _("Question for “%(role)s”: %(question)s") % about
    return _("Question for the user: %(question)s") % about


def _guardrail_summary(row: "StepView") -> str:
    """Return a guardrail's message, with the tool or the file it is about."""
    sentence = translate(row.step.observation)
    subject = row.facts.get("tool") or row.facts.get("file")
    return f"{subject}: {sentence}" if subject else sentence


def _task_summary(row: "StepView") -> str:
    """Return a plan step and who does it, or why it failed or was skipped."""
    step = row.step
    is_well = step.status not in {AgentStep.Status.FAILED, AgentStep.Status.SKIPPED}
    # The question is in the row below, with its references filled in.
    what = "" if row.facts.get("work") == "ask" else row.facts.get("what", "")
    about = what if is_well else translate(step.observation)
    is_told = about in {"", step.action}
    return step.action if is_told else f"{step.action} · {about}"


def _plan_summary(row: "StepView") -> str:
    step = row.step
    is_given_up = step.status in {AgentStep.Status.FAILED, AgentStep.Status.CANCELLED}
    if is_given_up and step.observation:
        return translate(step.observation)
    if not row.plan_facts:
        return _("Writing the plan") if step.turn < 2 else _("Revising the plan")
    description = row.plan_facts.plan.description or _("Untitled plan")
    return (
        f"{description} ({row.plan_facts.difference})"
        if row.plan_facts.difference
        else description
    )


def _evaluation_summary(row: "StepView") -> str:
    if "is_met" not in row.facts:
        return _("Checking the result: %(name)s") % {"name": row.step.action}
    sentence = _("As expected: %(why)s") if row.is_met else _("Not as expected: %(why)s")
    return sentence % {"why": translate(row.facts.get("reason", ""))}
