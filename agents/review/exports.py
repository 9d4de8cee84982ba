"""A run as a file: JSON for programs (docs/trace-schema.md), Markdown for people.

Both come in pieces, because a run can be longer than what should be held at once.
"""

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.access import masking
from agents.engine.events import Type
from agents.models import Absence, AgentStep, Approval, Run, RunEvent
from agents.review.replay import since
from agents.web.presentation import RunView, StepView
from agents.web.presentation.formatting import cost, count, duration

from .replay_timeline import told_away

SCHEMA = "ashiato.trace/1"
A_PAGE = 100
WORDS = [Type.DELTA, Type.THOUGHT_DELTA]
WHO = {"by", "by_name"}


def as_json(run: Run, *, is_masked: bool) -> Iterator[str]:
    """Words as they were streamed are left out: whole texts are in the steps."""
    head = {"schema": SCHEMA, "exported_at": _time(timezone.now()), "masked": is_masked}
    yield f"{_dumped(head)[:-1]},\n"
    yield f'"run": {_dumped(_run(_shown(run, is_masked), is_masked))},\n'
    yield from _list("steps", map(_step, _rows(run.steps.all(), "number", is_masked)))
    yield ",\n"
    approvals = run.approvals.select_related("decided_by")
    told = (_approval(row, is_masked) for row in _rows(approvals, "step", is_masked))
    yield from _list("approvals", told)
    yield ",\n"
    yield from _list("absences", map(_absence, run.absences.order_by("left_at", "pk")))
    yield ",\n"
    events = run.events.exclude(type__in=WORDS)
    told = (_event(row, is_masked) for row in _rows(events, "seq", is_masked))
    yield from _list("events", told)
    yield "}\n"


def as_markdown(run: Run, *, is_masked: bool) -> Iterator[str]:
    """A document: the question, the answer, every step, and what it came to."""
    view = RunView(_shown(run, is_masked), place="trace")
    yield f"# {_one_line(view.query)}\n\n{_summary(view)}\n"
    if len(view.query.splitlines()) > 1:
        yield f"\n## {_('Question')}\n\n{_fenced(view.query)}"
    yield f"\n## {_('Answer')}\n\n{_answer(view)}\n"
    yield f"\n## {_('Steps')}\n"
    for step in _rows(run.steps.all(), "number", is_masked):
        yield _told(StepView(step, view.run, "trace", job=view.job(step)))
    if told := [_came_and_went(row, run) for row in run.absences.order_by("left_at", "pk")]:
        heading = _("Away from the page")
        yield f"\n## {heading}\n\n{''.join(told)}"


def _shown(row: Any, is_masked: bool) -> Any:
    return masking.masked(row) if is_masked else row


def _rows(rows: QuerySet[Any], key: str, is_masked: bool) -> Iterator[Any]:
    """All of them, a page at a time."""
    last = -1
    while page := list(rows.filter(**{f"{key}__gt": last}).order_by(key)[:A_PAGE]):
        yield from (_shown(row, is_masked) for row in page)
        last = getattr(page[-1], key)


def _list(name: str, items: Iterator[Any]) -> Iterator[str]:
    yield f'"{name}": ['
    for at, item in enumerate(items):
        yield f"{',' if at else ''}\n{_dumped(item)}"
    yield "]"


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _run(run: Run, is_masked: bool) -> dict[str, Any]:
    named = ("dialect", "road", "version", "history", "answer", "output", "status")
    told = ("stopped_reason", "detail", "advice", "max_steps", "turns", "step_count")
    took = ("tool_calls", "seconds", "waited")
    person = run.user.get_username() if run.user and not is_masked else None
    origin = {"run": run.origin_id, "step": run.origin_step, "overrides": run.overrides}
    return {
        "id": run.pk,
        "person": person,
        "agent": run.agent_name,
        "agent_version": run.agent_version,
        "model": run.model,
        "question": run.query,
        **{name: getattr(run, name) for name in (*named, *told, *took)},
        "origin": origin if run.is_rerun else None,
        "usage": _usage(run),
        "started_at": _time(run.started_at),
        "ended_at": _time(run.ended_at),
    }


def _step(step: AgentStep) -> dict[str, Any]:
    named = ("number", "parent", "depth", "turn", "kind", "status", "call_id", "thought")
    told = ("action", "action_input", "observation", "request", "attempts", "notes")
    return {
        **{name: getattr(step, name) for name in (*named, *told)},
        "agent": step.agent_name,
        "usage": _usage(step),
        "started_at": _time(step.started_at),
        "ended_at": _time(step.ended_at),
    }


def _usage(row: Run | AgentStep) -> dict[str, Any]:
    return {
        "prompt_tokens": row.prompt_tokens,
        "completion_tokens": row.completion_tokens,
        "cost_usd": row.cost,
    }


def _approval(approval: Approval, is_masked: bool) -> dict[str, Any]:
    named = ("step", "tool", "arguments", "new_arguments", "why", "verdict", "reason")
    person = None if is_masked else approval.decided_by
    return {
        **{name: getattr(approval, name) for name in named},
        "agent": approval.agent_name,
        "decided_by": person.get_username() if person else None,
        "asked_at": _time(approval.asked_at),
        "decided_at": _time(approval.decided_at),
    }


def _absence(absence: Absence) -> dict[str, Any]:
    times = {name: _time(getattr(absence, name)) for name in ("left_at", "came_back_at")}
    return {"reason": absence.reason, **times}


def _came_and_went(absence: Absence, run: Run) -> str:
    told = (f"{duration(since(run, time))}: {words}" for time, words in told_away(absence))
    return f"- {' · '.join(told)}\n"


def _event(row: RunEvent, is_masked: bool) -> dict[str, Any]:
    told = row.value.to_dict()
    hidden = WHO if is_masked else ()
    return told | {"data": {n: value for n, value in told["data"].items() if n not in hidden}}


def _summary(view: RunView) -> str:
    """One line a fact, as people read them."""
    started = timezone.localtime(view.started_at).strftime("%Y-%m-%d %H:%M:%S")
    facts = {
        _("Run"): f"#{view.pk}",
        _("Status"): f"{view.status_label}. {view.sentence}".strip(". "),
        _("Agent"): f"{_named(view)} ({view.model_label}) {view.version}".strip(),
        _("Started"): started,
        _("Steps"): count(view.step_count),
        _("Time"): duration(view.duration_ms),
        **({_("Waited for people"): duration(view.waited_ms)} if view.has_waited else {}),
        _("Tokens"): count(view.tokens),
        _("Cost"): cost(view.cost),
    }
    return "\n".join(f"- **{name}**: {_one_line(fact)}" for name, fact in facts.items())


def _named(view: RunView) -> str:
    if view.agent_version is None:
        return view.agent_name
    about = {"name": view.agent_name, "number": view.agent_version}
    return _("%(name)s, version %(number)d") % about


def _answer(view: RunView) -> str:
    """Quoted, so that whatever it leaves open ends with it."""
    if view.output is not None:
        return _fenced(view.output_text, "json").rstrip()
    lines = (view.answer or _("There is no answer.")).splitlines()
    return "\n".join(f"> {line}".rstrip() for line in lines)


def _told(step: StepView) -> str:
    """Headings, and what was said and seen as it is, so that no text can be taken for ours."""
    speaker = f"{step.agent_name} · " if step.depth else ""
    title = f"### #{step.number} {step.kind_label} · {speaker}{_one_line(step.intent)}\n\n"
    facts = [step.status_label, duration(step.duration_ms)]
    if step.tokens:
        facts.append(_("%(tokens)s tokens") % {"tokens": count(step.tokens)})
    parts = [f"\n{title}{' · '.join(facts)}\n"]
    texts = {_("Thought"): step.thought} | _exchange(step)
    parts += [f"\n{name}:\n\n{_fenced(text)}" for name, text in texts.items() if text]
    parts += [f"\n- {_one_line(note)}\n" for note in step.notes]
    return "".join(parts)


def _exchange(step: StepView) -> dict[str, str]:
    if step.kind == AgentStep.Kind.TOOL:
        return {_("Input"): step.input_text, _("Observation"): step.result_text}
    if step.planned:
        return {_("Plan"): step.planned.text, _("Why it was planned anew"): step.planned.why}
    if step.facts.get("expected"):
        return {_("Expected"): step.facts["expected"], _("Result"): step.result_text}
    return {_("Request"): step.request_text, _("Result"): step.result_text}


def _fenced(text: str, language: str = "") -> str:
    """Between marks that are longer than any in it."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}\n"


def _one_line(text: str) -> str:
    """A line in which nothing is Markdown."""
    return re.sub(r"([\\`*_<>\[\]#|])", r"\\\1", " ".join(text.split()))
