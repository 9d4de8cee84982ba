"""What a run does or did, in a few words: the one line its steps fold to."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agents.engine.loop import AskPersonTool
from agents.engine.plans import JUDGE, MODERATOR, MONITOR, PLANNER
from agents.models import AgentStep, Approval
from agents.models.types import LazyText
from agents.tools.calculator import CalculatorTool
from agents.tools.images import DescribeImageTool, GenerateImageTool
from agents.tools.python import RunPythonTool
from agents.tools.read_document import ReadDocumentTool
from agents.tools.search import SearchTool

if TYPE_CHECKING:
    from .step_view import StepView


class Phrases(NamedTuple):
    """A tool's work, while it goes on and afterwards."""

    doing: LazyText
    done: LazyText


MAX_PHRASES = 4
BY_TOOL = {
    CalculatorTool.name: Phrases(gettext_lazy("Calculating…"), gettext_lazy("calculated")),
    GenerateImageTool.name: Phrases(
        gettext_lazy("Generating an image…"), gettext_lazy("generated an image")
    ),
    DescribeImageTool.name: Phrases(
        gettext_lazy("Looking at an image…"), gettext_lazy("looked at an image")
    ),
    RunPythonTool.name: Phrases(
        gettext_lazy("Running Python code…"), gettext_lazy("ran Python code")
    ),
    AskPersonTool.name: Phrases(
        gettext_lazy("Asking a question…"), gettext_lazy("asked a question")
    ),
}
THINKING = gettext_lazy("Thinking…")
WRITING = gettext_lazy("Writing the answer…")
PLANNING = gettext_lazy("Writing the plan…")
CHECKING = gettext_lazy("Checking the result…")
COMPARING = gettext_lazy("Comparing the answers…")
BY_KIND: dict[str, LazyText] = {
    AgentStep.Kind.THOUGHT: THINKING,
    AgentStep.Kind.ANSWER: WRITING,
    AgentStep.Kind.PLAN: PLANNING,
    AgentStep.Kind.EVALUATION: CHECKING,
}
BY_JOB = {PLANNER: PLANNING, MONITOR: CHECKING, MODERATOR: COMPARING, JUDGE: COMPARING}
SEARCHES = {SearchTool.name, ReadDocumentTool.name}
# What visitors of other sites may know: names of other tools and of agents are the product's.
PUBLIC_TOOLS = SEARCHES | BY_TOOL.keys()
DECIDED = {Approval.Verdict.APPROVED, Approval.Verdict.EDITED, Approval.Verdict.REJECTED}


def current_activity(phrases: Mapping[int, str]) -> str:
    """Return what the newest of the open steps does; between two steps, the model thinks."""
    newest = max((number for number in phrases if phrases[number]), default=None)
    return str(THINKING) if newest is None else phrases[newest]


def doing(step: "StepView") -> str:
    """Return what an open step does; empty for one that only has others."""
    if step.kind == AgentStep.Kind.TOOL:
        return _doing_call(step)
    return str(BY_JOB.get(step.job) or BY_KIND.get(step.kind, ""))


def public_doing(step: "StepView") -> str:
    """Return what an open step does, for visitors; empty if they must not know."""
    is_call = step.kind == AgentStep.Kind.TOOL
    return "" if is_call and step.step.action not in PUBLIC_TOOLS else doing(step)


def _doing_call(step: "StepView") -> str:
    name = step.step.action
    if name in SEARCHES:
        return _("Searching the documents…")
    if agent := step.handoff_agent:
        return _("Asking %(agent)s…") % {"agent": agent}
    if name in BY_TOOL:
        return str(BY_TOOL[name].doing)
    if _is_query(step):
        return _("Querying %(name)s…") % {"name": name.replace("_", " ")}
    return _("Using %(tool)s…") % {"tool": name}


def activity(steps: Sequence["StepView"]) -> list[str]:
    """Return what the steps did, each thing once, in the order of its first step."""
    calls = [step for step in steps if step.kind == AgentStep.Kind.TOOL]
    phrases = []
    if any(step.kind == AgentStep.Kind.PLAN for step in steps):
        phrases.append(_("planned"))
    for name in dict.fromkeys(step.step.action for step in calls):
        phrases.append(_done(name, [step for step in calls if step.step.action == name]))
    if len(phrases) > MAX_PHRASES:
        more = len(phrases) - MAX_PHRASES + 1
        rest = ngettext("%(count)d more tool", "%(count)d more tools", more)
        phrases = [*phrases[: MAX_PHRASES - 1], rest % {"count": more}]
    if not phrases and any(step.thought for step in steps):
        phrases.append(_("thought it through"))
    failed = sum(step.status == AgentStep.Status.FAILED for step in calls)
    if failed:
        text = ngettext("%(count)d failed call", "%(count)d failed calls", failed)
        phrases.append(text % {"count": failed})
    phrases += _decisions(steps)
    comments = sum(len(step.thread.comments) for step in steps if step.thread)
    if comments:
        text = ngettext("%(count)d comment", "%(count)d comments", comments)
        phrases.append(text % {"count": comments})
    return _capitalized(phrases)


def public_activity(steps: Sequence["StepView"]) -> list[str]:
    """Return what the steps did, for visitors: without names, failures and decisions."""
    calls = [step for step in steps if step.kind == AgentStep.Kind.TOOL]
    names = dict.fromkeys(step.step.action for step in calls)
    return _capitalized(
        [
            _done(name, [step for step in calls if step.step.action == name])
            for name in names
            if name in PUBLIC_TOOLS
        ]
    )


def _capitalized(phrases: list[str]) -> list[str]:
    return [capfirst(phrase) if index == 0 else phrase for index, phrase in enumerate(phrases)]


def _done(name: str, calls: Sequence["StepView"]) -> str:
    """Return what the calls of one tool did."""
    if name in SEARCHES:
        titles = {source.get("title") for step in calls for source in step.step.sources}
        if not titles:
            return _("searched the documents")
        text = ngettext(
            "searched %(count)d document", "searched %(count)d documents", len(titles)
        )
        return text % {"count": len(titles)}
    if agent := calls[0].handoff_agent:
        return _("asked %(agent)s") % {"agent": agent}
    if name in BY_TOOL:
        return str(BY_TOOL[name].done)
    if all(_is_query(step) for step in calls):
        return _("queried %(name)s") % {"name": name.replace("_", " ")}
    if len(calls) == 1:
        return _("used %(tool)s") % {"tool": name}
    return _("used %(tool)s %(count)d times") % {"tool": name, "count": len(calls)}


def _is_query(step: "StepView") -> bool:
    arguments = step.step.action_input
    return isinstance(arguments, dict) and set(arguments) == {"sql"}


def _decisions(steps: Iterable["StepView"]) -> list[str]:
    """Return what people decided about calls, without what is always allowed."""
    decisions = [
        step.approval.decision
        for step in steps
        if step.approval is not None
        and step.approval.is_call
        and step.approval.verdict in DECIDED
        and not step.approval.granted_scope
    ]
    return list(dict.fromkeys(decisions))
