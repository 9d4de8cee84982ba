"""Exports a run: JSON for programs (docs/trace-schema.md), Markdown for people.

Both are streamed, because a run can be too long for memory.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.access import masking
from agents.engine.events import DELTA_TYPES
from agents.models import AgentStep, Approval, Run, RunEvent
from agents.review.models import Review, Score
from agents.review.replays.replay import elapsed_ms
from agents.web.presentation import RunView, StepView
from agents.web.presentation.evidence_fragments import source_names
from agents.web.presentation.formats.formatting import cost, count, duration

from .replays.replay_timeline import disconnection_events

SCHEMA = "ashiato.trace/1"
PAGE_SIZE = 100
PERSON_FIELDS = {"by", "by_name"}
# As they are saved, and in the order of the schema.
RUN_COLUMNS = [
    "dialect",
    "route",
    "version",
    "history",
    "answer",
    "output",
    "status",
    "stopped_reason",
    "detail",
    "advice",
    "max_steps",
    "turns",
    "step_count",
    "tool_calls",
    "seconds",
    "waited",
]
STEP_COLUMNS = [
    "number",
    "parent",
    "depth",
    "turn",
    "kind",
    "status",
    "call_id",
    "thought",
    "action",
    "action_input",
    "observation",
    "attachments",
    "sources",
    "request",
    "attempts",
    "notes",
]
APPROVAL_COLUMNS = ("step", "tool", "arguments", "new_arguments", "why", "verdict", "reason")


def as_json(
    run: Run,
    *,
    is_masked: bool,
    hides_private: bool = False,
    hides_rules: bool = False,
    reviewer: User | None = None,
) -> Iterator[str]:
    """Export without streamed deltas: the steps have the whole texts.

    Scores are between reviewers: they are only in the export of one who sees the review.
    """
    visible_row = _row_masker(is_masked, hides_private, hides_rules)
    head = {"schema": SCHEMA, "exported_at": _isoformat(timezone.now()), "masked": is_masked}
    yield f"{_to_json(head)[:-1]},\n"
    yield f'"run": {_to_json(_run_dict(visible_row(run), is_masked))},\n'
    steps = _paginate(run.steps.all(), "number", visible_row)
    yield from _json_list("steps", map(step_dict, steps))
    yield ",\n"
    approvals = run.approvals.select_related("decided_by")
    rows = (_approval_dict(row, is_masked) for row in _paginate(approvals, "step", visible_row))
    yield from _json_list("approvals", rows)
    yield ",\n"
    disconnections = (
        {
            "reason": row.reason,
            "left_at": _isoformat(row.left_at),
            "came_back_at": _isoformat(row.came_back_at),
        }
        for row in run.disconnections.order_by("left_at", "pk")
    )
    yield from _json_list("disconnections", disconnections)
    yield ",\n"
    scores = (_score_dict(score, is_masked) for score in _visible_scores(run, reviewer))
    yield from _json_list("scores", scores)
    yield ",\n"
    events = run.events.exclude(type__in=DELTA_TYPES)
    rows = (_event_dict(row, is_masked) for row in _paginate(events, "seq", visible_row))
    yield from _json_list("events", rows)
    yield "}\n"


def as_markdown(run: Run, *, is_masked: bool, hides_private: bool = False) -> Iterator[str]:
    """Export a document: question, answer, steps and totals."""
    visible_row = _row_masker(is_masked, hides_private)
    masker = masking.Masker() if is_masked else None
    view = RunView(visible_row(run), place="trace", masker=masker)
    yield f"# {_escape_line(view.query)}\n\n{_summary(view)}\n"
    if len(view.query.splitlines()) > 1:
        yield f"\n## {_('Question')}\n\n{_code_block(view.query)}"
    if view.output is not None:
        answer = _code_block(view.output_text, "json").rstrip()
    else:
        # Quoted, so that its open Markdown ends with it.
        lines = (view.answer or _("No answer.")).splitlines()
        answer = "\n".join(f"> {line}".rstrip() for line in lines)
    yield f"\n## {_('Answer')}\n\n{answer}\n"
    for heading, names in source_names(view).items():
        lines = (f"- {_escape_line(name)}\n" for name in names)
        yield f"\n## {heading}\n\n{''.join(lines)}"
    yield f"\n## {_('Steps')}\n"
    for step in _paginate(run.steps.all(), "number", visible_row):
        yield _step_markdown(StepView(step, view.run, "trace", job=view.job(step)))
    disconnections = list(run.disconnections.order_by("left_at", "pk"))
    if disconnections:
        heading = _("Page disconnections")
        yield f"\n## {heading}\n\n"
    for row in disconnections:
        moments = (
            f"{duration(elapsed_ms(run, time))}: {text}"
            for time, text in disconnection_events(row)
        )
        yield f"- {' · '.join(moments)}\n"


def _row_masker(
    is_masked: bool, hides_private: bool, hides_rules: bool = False
) -> Callable[[Any], Any]:
    """Return what is done to a row before it is exported."""
    return partial(
        masking.visible_row,
        is_masked=is_masked,
        hides_private=hides_private,
        hides_rules=hides_rules,
    )


def _paginate(
    rows: QuerySet[Any], key: str, visible_row: Callable[[Any], Any]
) -> Iterator[Any]:
    """Yield all rows, a page at a time."""
    last = -1
    while batch := list(rows.filter(**{f"{key}__gt": last}).order_by(key)[:PAGE_SIZE]):
        yield from map(visible_row, batch)
        last = getattr(batch[-1], key)


def _json_list(name: str, items: Iterator[Any]) -> Iterator[str]:
    yield f'"{name}": ['
    for index, item in enumerate(items):
        yield f"{',' if index else ''}\n{_to_json(item)}"
    yield "]"


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _isoformat(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _run_dict(run: Run, is_masked: bool) -> dict[str, Any]:
    person = run.user.get_username() if run.user and not is_masked else None
    origin = {"run": run.origin_id, "step": run.origin_step, "overrides": run.overrides}
    return {
        "id": run.pk,
        "person": person,
        "agent": run.agent_name,
        "agent_version": run.agent_version,
        "model": run.model,
        "question": run.query,
        **{name: getattr(run, name) for name in RUN_COLUMNS},
        "options": run.chosen_options,
        "origin": origin if run.is_rerun else None,
        "usage": _usage_dict(run),
        "started_at": _isoformat(run.started_at),
        "ended_at": _isoformat(run.ended_at),
    }


def step_dict(step: AgentStep) -> dict[str, Any]:
    """Return a step as docs/trace-schema.md describes it."""
    return {
        **{name: getattr(step, name) for name in STEP_COLUMNS},
        "agent": step.agent_name,
        "usage": _usage_dict(step),
        "started_at": _isoformat(step.started_at),
        "ended_at": _isoformat(step.ended_at),
    }


def _usage_dict(row: Run | AgentStep) -> dict[str, Any]:
    return {
        "prompt_tokens": row.prompt_tokens,
        "completion_tokens": row.completion_tokens,
        "cost_usd": row.cost,
    }


def _approval_dict(approval: Approval, is_masked: bool) -> dict[str, Any]:
    person = None if is_masked else approval.decided_by
    return {
        **{name: getattr(approval, name) for name in APPROVAL_COLUMNS},
        "agent": approval.agent_name,
        "decided_by": person.get_username() if person else None,
        "asked_at": _isoformat(approval.asked_at),
        "decided_at": _isoformat(approval.decided_at),
    }


def _visible_scores(run: Run, reviewer: User | None) -> Iterable[Score]:
    if reviewer is None:
        return ()
    review = Review.objects.for_user(reviewer).filter(run=run.pk).first()
    if review is None:
        return ()
    scores = review.scores.filter(criterion__queue=review.queue_id)
    scores = scores.select_related("criterion__queue", "scored_by")
    return scores.order_by("criterion__position", "criterion_id")


def _score_dict(score: Score, is_masked: bool) -> dict[str, Any]:
    criterion = score.criterion
    person = None if is_masked else score.scored_by
    return {
        "queue": criterion.queue.name,
        "criterion": criterion.name,
        "value": criterion.plain_value(score.value),
        "scored_by": person.get_username() if person else None,
        "scored_at": _isoformat(score.scored_at),
    }


def _event_dict(event: RunEvent, is_masked: bool) -> dict[str, Any]:
    values = event.value.to_dict()
    hidden = PERSON_FIELDS if is_masked else ()
    data = {name: value for name, value in values["data"].items() if name not in hidden}
    return values | {"data": data}


def _summary(view: RunView) -> str:
    """Return the facts of a run, one per line."""
    started = timezone.localtime(view.started_at).strftime("%Y-%m-%d %H:%M:%S")
    agent = view.agent_name
    if view.agent_version is not None:
        params = {"name": view.agent_name, "number": view.agent_version}
        agent = _("%(name)s, version %(number)d") % params
    facts = {
        _("Run"): f"#{view.pk}",
        _("Status"): f"{view.status_label}. {view.sentence}".strip(". "),
        _("Agent"): f"{agent} ({view.model_label}) {view.version}".strip(),
        _("Started"): started,
        _("Steps"): count(view.step_count),
        _("Time"): duration(view.duration_ms),
        **({_("Waiting time"): duration(view.waited_ms)} if view.has_waited else {}),
        _("Tokens"): count(view.tokens),
        _("Cost"): cost(view.cost),
    }
    return "\n".join(f"- **{name}**: {_escape_line(fact)}" for name, fact in facts.items())


def _step_markdown(step: StepView) -> str:
    """Render a step with its texts in code blocks, so that none can pass as ours."""
    speaker = f"{step.agent_name} · " if step.depth else ""
    title = f"### #{step.number} {step.kind_label} · {speaker}{_escape_line(step.intent)}\n\n"
    facts = [step.status_label, duration(step.duration_ms)]
    if step.tokens:
        facts.append(_("%(tokens)s tokens") % {"tokens": count(step.tokens)})
    texts = {_("Thought"): step.thought}
    if step.kind == AgentStep.Kind.TOOL:
        texts |= {_("Input"): step.input_text, _("Observation"): step.result_text}
    elif step.plan_facts:
        texts |= {
            _("Plan"): step.plan_facts.text,
            _("Why the plan changed"): step.plan_facts.why,
        }
    elif step.facts.get("expected"):
        texts |= {_("Expected"): step.facts["expected"], _("Result"): step.result_text}
    else:
        texts |= {_("Request"): step.request_text, _("Result"): step.result_text}
    paragraphs = [f"\n{title}{' · '.join(facts)}\n"]
    paragraphs += [f"\n{name}:\n\n{_code_block(text)}" for name, text in texts.items() if text]
    paragraphs += [
        f"\n- {_escape_line(f'{file.kind_label}: {file.label} ({file.about})')}\n"
        for file in step.files
    ]
    paragraphs += [f"\n- {_escape_line(note)}\n" for note in step.notes]
    return "".join(paragraphs)


def _code_block(text: str, language: str = "") -> str:
    """Return a code block with a fence longer than any in the text."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}\n"


def _escape_line(text: str) -> str:
    """Escape Markdown and put the text on one line."""
    return re.sub(r"([\\`*_<>\[\]#|])", r"\\\1", " ".join(text.split()))
