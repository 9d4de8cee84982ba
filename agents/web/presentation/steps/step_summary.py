"""The summary of a row: one line that says what the step does or did."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.db.sentences import translate
from agents.engine.loop import AskPersonTool
from agents.engine.plans import JUDGE, MODERATOR, MONITOR, PLANNER
from agents.engine.sentences import without_error_prefix
from agents.models import AgentStep
from agents.tools.read_document import ReadDocumentTool
from agents.tools.search import SearchTool

from ..decisions.limit_requests import LimitRequestView
from ..formats import status_text
from ..formats.formatting import format_compact, one_line
from ..formats.structured_output import inline_text
from ..markdown import reveal_invisible
from ..plans import panel_view

if TYPE_CHECKING:
    from .step_view import StepView

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
        case AgentStep.Kind.TOOL:
            return one_line(_call_summary(row))
        case AgentStep.Kind.GUARDRAIL:
            # With the tool or the file it is about.
            target = row.facts.get("tool") or row.facts.get("file")
            sentence = translate(step.observation)
            return one_line(f"{target}: {sentence}" if target else sentence)
        case AgentStep.Kind.TASK:
            return one_line(_task_summary(row))
        case AgentStep.Kind.PLAN:
            return one_line(_plan_summary(row))
        case AgentStep.Kind.EVALUATION if "is_met" not in row.facts:
            return one_line(_("Checking the result: %(name)s") % {"name": step.action})
        case AgentStep.Kind.EVALUATION:
            sentence = (
                _("As expected: %(why)s") if row.is_met else _("Not as expected: %(why)s")
            )
            return one_line(sentence % {"why": translate(row.facts.get("reason", ""))})
        case AgentStep.Kind.BUDGET:
            limit = LimitRequestView.of(row.facts)
            return one_line(f"{limit.title}: {limit.summary}")
        case AgentStep.Kind.ANSWER if not step.thought and not row.job:
            return _("Writing the answer")
    if step.is_live and (waits := status_text.waiting_sentence(step.notes)):
        return one_line(waits)
    if step.status == AgentStep.Status.FAILED and step.observation:
        return one_line(translate(without_error_prefix(step.observation)))
    if row.job in JOB_LABELS:
        return JOB_LABELS[row.job]()
    return one_line(row.thought) or (_("Thinking…") if step.is_live else _("Thinking"))


def _call_summary(row: "StepView") -> str:
    """Return what a call does: a handoff, a question to people, a search or any other."""
    step = row.step
    arguments = step.action_input if isinstance(step.action_input, dict) else {}
    if row.handoff_agent:
        params = {"agent": row.handoff_agent, "task": format_compact(step.action_input)}
        if step.status != AgentStep.Status.FAILED:
            return _("Handoff to %(agent)s: %(task)s") % params
        params["why"] = translate(without_error_prefix(step.observation))
        return _("%(agent)s failed: %(why)s") % params
    if step.action == AskPersonTool.name:
        if not isinstance(step.action_input, dict):
            arguments = {"question": format_compact(step.action_input)}
        params = {
            "question": reveal_invisible(inline_text(str(arguments.get("question", "")))),
            "role": reveal_invisible(str(arguments.get("role") or "")),
        }
        if params["role"]:
            return _("Question for “%(role)s”: %(question)s") % params
        return _("Question for the user: %(question)s") % params
    content = format_compact(step.action_input)
    if step.action in SEARCH_TOOLS:
        content = arguments.get("query") or content
        # Runs of earlier versions didn't save their passages.
        if step.status == AgentStep.Status.DONE and step.is_untrusted:
            count = len(step.sources)
            passages = ngettext("%(count)d passage", "%(count)d passages", count)
            return f"{step.action} ({passages % {'count': count}}): {content}"
    return f"{step.action}: {content}"


def _task_summary(row: "StepView") -> str:
    """Return a plan step and who does it, or why it failed or was skipped."""
    step = row.step
    if step.status in {AgentStep.Status.FAILED, AgentStep.Status.SKIPPED}:
        detail = translate(step.observation)
    else:
        # The question is in the row below, with its references filled in.
        detail = "" if row.facts.get("work") == "ask" else row.facts.get("what", "")
    return step.action if detail in {"", step.action} else f"{step.action} · {detail}"


def _plan_summary(row: "StepView") -> str:
    step = row.step
    is_given_up = step.status in {AgentStep.Status.FAILED, AgentStep.Status.CANCELLED}
    if is_given_up and step.observation:
        return translate(step.observation)
    if not row.plan_facts:
        return _("Writing the plan") if step.turn < 2 else _("Revising the plan")
    description = row.plan_facts.plan.description or _("Untitled plan")
    difference = row.plan_facts.difference
    return f"{description} ({difference})" if difference else description
