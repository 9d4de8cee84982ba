"""Dry runs: the steps a workflow would take, without executing any.

Results are unknown, so references to them are displayed as written.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.db.sentences import translate
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
        try:
            outcome, reason = _predict_outcome(step, step_names)
            arguments = [
                (name, _shorten(_fill_known(value, step_names)))
                for name, value in step.arguments.items()
            ]
            preview = StepPreview(
                step=step,
                level=level,
                outcome=outcome,
                why=reason,
                times=times,
                arguments=tuple(arguments),
                question=_shorten(_fill_known(step.ask, step_names)) if step.ask else "",
            )
        except BadExpression as error:
            reason = translate(str(error))
            preview = StepPreview(step=step, level=level, outcome="fails", why=reason)
        yield preview
        if step.plan is not None and preview.outcome != "skipped":
            parameters = {**names["parameters"], **step.plan.parameters}
            plan_names = {**step_names, "parameters": parameters}
            yield from _simulate_steps(step.plan, plan_names, level + 1)


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
    params = {"condition": step.condition}
    if expression.value(names):
        return "runs", _("because %(condition)s") % params
    return "skipped", _("because this is false: %(condition)s") % params


def _repetitions(step: ExecutionStep, names: dict[str, Any]) -> str:
    """Return how often it runs; the first item stands for all."""
    if step.until:
        params = {"rounds": step.rounds, "condition": step.until}
        return _("until %(condition)s, max %(rounds)d times") % params
    if step.for_each is None:
        return ""
    if isinstance(step.for_each, str):
        items: Any = None
        with suppress(BadExpression):
            expression = parse(step.for_each)
            items = expression.value(names) if _is_known(expression, names) else None
    else:
        items = _fill_known(list(step.for_each), names)
    if not isinstance(items, list):
        return _("once per item in %(items)s") % {"items": step.for_each}
    names |= {"item": items[0] if items else None, "index": 0}
    count = len(items)
    return ngettext("%(count)d time", "%(count)d times", count) % {"count": count}


def _is_known(expression: Expression, names: Mapping[str, Any]) -> bool:
    return not expression.steps and expression.names <= names.keys()


def _fill_known(value: Any, names: Mapping[str, Any]) -> Any:
    """Fill in known values and leave the rest as written."""
    if isinstance(value, Mapping):
        return {name: _fill_known(item, names) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_fill_known(item, names) for item in value]
    if not isinstance(value, str):
        return value
    pieces = parse_template(value)
    if all(isinstance(piece, str) or _is_known(piece, names) for piece in pieces):
        return interpolate(value, names)
    texts = []
    for piece in pieces:
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
