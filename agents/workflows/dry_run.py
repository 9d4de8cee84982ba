"""Dry runs: the steps a workflow would take, without executing any.

Results are unknown, so references to them are displayed as written.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.engine.errors import BadExpression
from agents.engine.expressions import Expression, interpolate, parse, parse_template
from agents.engine.plans import (
    ALWAYS,
    FAILURE,
    SUCCESS,
    ExecutionPlan,
    ExecutionStep,
    topological_order,
)
from agents.engine.text import shorten
from agents.runs.engine_messages import translate

MAX_STEPS = 200
MAX_VALUE_CHARS = 400

PredictedOutcome = Literal["runs", "skipped", "depends", "fails"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPreview:
    """A step as it would run; `level` is its nesting depth."""

    step: ExecutionStep
    level: int
    outcome: PredictedOutcome
    why: str = ""
    times: str = ""
    arguments: tuple[tuple[str, str], ...] = ()
    question: str = ""


def simulate(plan: ExecutionPlan, parameters: Mapping[str, Any]) -> list[StepPreview]:
    """Return the steps in a possible order, up to a limit."""
    names = {"parameters": {**plan.parameters, **parameters}}
    previews = []
    for preview in _simulate_steps(plan, names, 0):
        previews.append(preview)
        if len(previews) == MAX_STEPS:
            break
    return previews


def _simulate_steps(
    plan: ExecutionPlan, names: Mapping[str, Any], level: int
) -> Iterator[StepPreview]:
    for step in topological_order(plan.steps):
        step_names = dict(names)
        times = _repetitions(step, step_names)
        preview = _simulate_step(step, step_names, level, times)
        yield preview
        if step.plan is not None and preview.outcome != "skipped":
            more = {"parameters": {**names["parameters"], **step.plan.parameters}}
            yield from _simulate_steps(step.plan, step_names | more, level + 1)


def _simulate_step(
    step: ExecutionStep, names: Mapping[str, Any], level: int, times: str
) -> StepPreview:
    try:
        outcome, why = _predict_outcome(step, names)
        arguments = [
            (name, _shorten(_fill_known(v, names))) for name, v in step.arguments.items()
        ]
        return StepPreview(
            step=step,
            level=level,
            outcome=outcome,
            why=why,
            times=times,
            arguments=tuple(arguments),
            question=_shorten(_fill_known(step.ask, names)) if step.ask else "",
        )
    except BadExpression as error:
        return StepPreview(step=step, level=level, outcome="fails", why=translate(str(error)))


def _predict_outcome(
    step: ExecutionStep, names: Mapping[str, Any]
) -> tuple[PredictedOutcome, str]:
    if step.condition == FAILURE:
        return "depends", _("only if an earlier step failed")
    if step.condition in (ALWAYS, SUCCESS):
        always = _("even if earlier steps failed")
        return "runs", always if step.condition == ALWAYS and step.depends_on else ""
    expression = parse(step.condition)
    if not _is_known(expression, names):
        return "depends", _("only if %(condition)s") % {"condition": step.condition}
    about = {"condition": step.condition}
    if expression.value(names):
        return "runs", _("because %(condition)s") % about
    return "skipped", _("because this is false: %(condition)s") % about


def _repetitions(step: ExecutionStep, names: dict[str, Any]) -> str:
    """Return how often it runs; the first item stands for all."""
    if step.until:
        about = {"rounds": step.rounds, "condition": step.until}
        return _("until %(condition)s, max %(rounds)d times") % about
    if step.for_each is None:
        return ""
    items = _loop_items(step, names)
    if not isinstance(items, list):
        return _("once per item in %(items)s") % {"items": step.for_each}
    names |= {"item": items[0] if items else None, "index": 0}
    count = len(items)
    return ngettext("%(count)d time", "%(count)d times", count) % {"count": count}


def _loop_items(step: ExecutionStep, names: Mapping[str, Any]) -> Any:
    if not isinstance(step.for_each, str):
        return _fill_known(list(step.for_each), names)
    try:
        expression = parse(step.for_each)
        return expression.value(names) if _is_known(expression, names) else None
    except BadExpression:
        return None


def _is_known(expression: Expression, names: Mapping[str, Any]) -> bool:
    return not expression.steps and expression.names <= names.keys()


def _fill_known(value: Any, names: Mapping[str, Any]) -> Any:
    """Fill in known values and leave the rest as written."""
    if isinstance(value, Mapping):
        return {name: _fill_known(one, names) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_fill_known(one, names) for one in value]
    if not isinstance(value, str):
        return value
    unknown = [
        p
        for p in parse_template(value)
        if isinstance(p, Expression) and not _is_known(p, names)
    ]
    return interpolate(value, names) if not unknown else _fill_template(value, names)


def _fill_template(template: str, names: Mapping[str, Any]) -> str:
    texts = []
    for piece in parse_template(template):
        if isinstance(piece, str):
            texts.append(piece)
        elif _is_known(piece, names):
            texts.append(_to_text(piece.value(names)))
        else:
            texts.append(f"⟨{piece.text}⟩")
    return "".join(texts)


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _shorten(value: Any) -> str:
    return shorten(_to_text(value), MAX_VALUE_CHARS)
