"""The steps of a plan as text: who, with what, when, and the expected result."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.engine.plans import FAILURE, SUCCESS, ExecutionPlan, ExecutionStep

from ..formats.formatting import format_compact, format_value, one_line
from ..markdown import reveal_invisible
from .plan_graph import ICONS, StepState


@dataclass(frozen=True, kw_only=True)
class PlanLine:
    """A plan step as listed."""

    number: int
    step: ExecutionStep
    change: str = ""  # change since the previous version
    state: StepState = StepState()
    href: str = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.step, name)

    @property
    def icon(self) -> str:
        return ICONS[self.step.kind]

    @property
    def what(self) -> str:
        """The tool, agent or person that does it."""
        step = self.step
        if step.plan is not None:
            count = len(step.plan.steps)
            return ngettext("%(count)d step", "%(count)d steps", count) % {"count": count}
        return step.tool or step.agent or step.role or _("user")

    @property
    def values(self) -> list[tuple[str, str]]:
        question = {_("Question"): reveal_invisible(self.step.ask)} if self.step.ask else {}
        arguments = {**question, **self.step.arguments}
        return [(name, format_value(value)) for name, value in arguments.items()]

    @property
    def change_label(self) -> str:
        return CHANGE_LABELS[self.change]() if self.change in CHANGE_LABELS else ""

    @property
    def terms(self) -> list[str]:
        """When and how often it runs, unless simply once."""
        step = self.step
        terms = []
        if step.depends_on:
            terms.append(_("after %(names)s") % {"names": ", ".join(step.depends_on)})
        if step.condition == FAILURE:
            terms.append(_("only if an earlier step failed"))
        elif step.condition != SUCCESS:
            terms.append(_("condition: %(words)s") % {"words": one_line(step.condition)})
        if step.for_each is not None:
            items = one_line(format_compact(step.for_each))
            terms.append(_("for each: %(words)s") % {"words": items})
        if step.until:
            terms.append(_("until: %(words)s") % {"words": one_line(step.until)})
        if step.retry:
            template = ngettext("%(n)d retry", "%(n)d retries", step.retry)
            terms.append(template % {"n": step.retry})
        if step.timeout is not None:
            terms.append(_("timeout %(seconds)s s") % {"seconds": f"{step.timeout:g}"})
        return terms

    @property
    def text(self) -> str:
        if self.change == "removed":
            return f"- {self.step.name} ({self.change_label})"
        details = " · ".join(filter(None, [self.what, self.change_label, *self.terms]))
        lines = [f"   {name}: {one_line(text)}" for name, text in self.values]
        if self.step.expected_outcome:
            lines.append(f"   {_('Expected')}: {self.step.expected_outcome}")
        return "\n".join([f"{self.number}. {self.step.name} ({details})", *lines])


CHANGE_LABELS: dict[str, Callable[[], str]] = {
    "changed": lambda: _("changed"),
    "added": lambda: _("added"),
    "removed": lambda: _("removed"),
    "kept": lambda: _("unchanged"),
}


def plan_lines(
    plan: ExecutionPlan, changes: Mapping[str, str] | None = None, **fields: Any
) -> list[PlanLine]:
    """Return the plan's steps and those removed since the previous version."""
    changes = changes or {}
    listed = [
        PlanLine(number=number, step=step, change=changes.get(step.name, ""), **fields)
        for number, step in enumerate(plan.with_step_names().steps, 1)
    ]
    removed = [name for name, change in changes.items() if change == "removed"]
    return listed + [
        PlanLine(number=0, step=ExecutionStep(name=name), change="removed") for name in removed
    ]


def change_summary(changes: Mapping[str, str]) -> str:
    """Summarize changes: 1 changed, 1 added, 2 kept."""
    counted = Counter(changes.values())
    counts = [
        (counted["changed"], _("%(count)d changed")),
        (counted["added"], _("%(count)d added")),
        (counted["removed"], _("%(count)d removed")),
        (counted["kept"], _("%(count)d unchanged")),
    ]
    return ", ".join(text % {"count": count} for count, text in counts if count)
