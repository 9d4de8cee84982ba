"""Caches rendered parts of a run that only differ in a few values.

Rendering a template costs as much for the thousandth run as for the first.
"""

from dataclasses import replace
from datetime import timedelta
from functools import cache, lru_cache
from types import SimpleNamespace

from django.conf import settings
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language

from agents.models import AgentStep, Approval, Run

from . import BARE, BRIEF, FULL, RunView, StepView
from .evidence import Evidence
from .formatting import cost, count, duration, integer

RUN_PLACEHOLDER = 987_654_321_987_654_321
# Values that don't occur within others on the page, so they can be found and replaced.
STEP_PLACEHOLDER, TURN_PLACEHOLDER, COST_PLACEHOLDER = 246_813_579, 357_924_681, 468_135_792.0
PROMPT_TOKENS_PLACEHOLDER, COMPLETION_TOKENS_PLACEHOLDER = 579_246_813, 681_357_924
DURATION_PLACEHOLDER = timedelta(milliseconds=135_792_468)
WAIT_PLACEHOLDER = timedelta(milliseconds=246_813_580)
BAR_PLACEHOLDER = 'x="0.0" width="99.0"'
REQUEST_PLACEHOLDER, WORDS_PLACEHOLDER = "\ue000", "\ue001"
ANSWER_PLACEHOLDER, SOURCE_PLACEHOLDER = "\ue002", "\ue003"
MAX_CACHED = 512
Tuning = tuple[str, float | None]  # effort and temperature, as in `Run.tuning`
MAX_RUN_BYTES = 200_000  # bytes of HTML


def tuning_overrides(tuning: Tuning) -> dict[str, object]:
    """Return a run's overrides with this effort and temperature."""
    effort, temperature = tuning
    return {"effort": effort, "temperature": temperature}


def cached_part(template: str, view: RunView) -> SafeString:
    """Return a part that is the same in all runs without content for it."""
    return mark_safe(_part_format(get_language(), template) % {"run": view.pk})


@cache
def _part_format(language: str, template: str) -> str:
    view = RunView(Run(pk=RUN_PLACEHOLDER))
    return to_format_string(render_to_string(template, {"view": view, "pk": view.pk}))


def run_section(view: RunView) -> SafeString:
    """Render the whole run as far as it fits: pages and frames have limits."""
    if view.is_plain and fits(html := _plain_run(view)):
        return html
    for size in (FULL, BRIEF, BARE):
        html = render_to_string(
            view.template, {"view": view if size == FULL else view.of(size)}
        )
        if fits(html):
            break
    return html


def _plain_run(view: RunView) -> SafeString:
    parts: dict[str, object] = {
        "run": view.pk,
        "header": run_header(view),
        "rows": "".join(map(_plain_row, view.first_steps)),
        "answer": view.frozen_html,
        "source": escape(view.answer),
        "actions": answer_actions(view),
        "rating": rating(view),
    }
    return mark_safe(_run_format(get_language(), view.is_own) % parts)


@cache
def _run_format(language: str, is_own: bool) -> str:
    now, status = timezone.now(), Run.Status.COMPLETED
    times = {"started_at": now, "ended_at": now}
    run = Run(pk=RUN_PLACEHOLDER, status=status, answer=SOURCE_PLACEHOLDER, **times)
    viewer = None if is_own else RUN_PLACEHOLDER
    view = RunView(run, viewer=viewer, has_asked=False, is_judged=False, now=now)
    kind, done = AgentStep.Kind.ANSWER, AgentStep.Status.DONE
    step = AgentStep(number=STEP_PLACEHOLDER, kind=kind, status=done, **times)
    row = StepView(step, run, now=now)
    vars(view).update(steps=[row], evidence=Evidence(mark_safe(ANSWER_PLACEHOLDER)))
    html = render_to_string(view.template, {"view": view})
    parts = {
        "header": run_header(view),
        "rows": _plain_row(row),
        "answer": ANSWER_PLACEHOLDER,
        "source": SOURCE_PLACEHOLDER,
        "actions": answer_actions(view),
        "rating": rating(view),
    }
    return to_format_string(
        html, **{name: _escape_percent(part) for name, part in parts.items()}
    )


def run_header(view: RunView) -> SafeString:
    """Render the header of a run; on its own page, its status and its figures."""
    if view.place == "trace":
        parts = ("trace/_status.html", "trace/_figures.html")
        return mark_safe("".join(render_to_string(part, {"view": view}) for part in parts))
    run = view.run
    header_format = _header_format(
        get_language(),
        view.place,
        run.status,
        view.active_agent or run.agent_name,
        run.model,
        run.tuning,
        run.route,
        run.max_steps,
        bool(view.tokens),
        run.cost is not None,
        bool(run.takeovers),
        min(run.step_count, 2),
        view.has_waited,
        view.is_waiting_now,
    )
    figures: dict[str, object] = {
        "run": view.pk,
        "turns": run.step_count,
        "waited": duration(view.waited_ms),
        "waited_ms": integer(view.waited_ms),
        "read": count(run.prompt_tokens),
        "written": count(run.completion_tokens),
        "tokens": count(view.tokens),
        "cost": cost(run.cost),
    }
    took = view.elapsed_ms if run.is_live else view.duration_ms
    return mark_safe(header_format % (figures | _duration_fields(took)))


@lru_cache(MAX_CACHED)
def _header_format(
    language: str,
    place: str,
    status: str,
    agent: str,
    model: str,
    tuning: Tuning,
    route: str,
    max_steps: int,
    has_tokens: bool,
    has_cost: bool,
    was_taken_over: bool,
    steps: int,
    has_waited: bool,
    waits_now: bool,
) -> str:
    now = timezone.now()
    waited = WAIT_PLACEHOLDER if has_waited else timedelta()
    ended = now + DURATION_PLACEHOLDER + waited
    run = Run(
        pk=RUN_PLACEHOLDER,
        status=status,
        agent_name=agent,
        model=model,
        overrides=tuning_overrides(tuning),
        route=route,
        max_steps=max_steps,
        turns=TURN_PLACEHOLDER if steps > 1 else steps,
        prompt_tokens=PROMPT_TOKENS_PLACEHOLDER if has_tokens else 0,
        completion_tokens=COMPLETION_TOKENS_PLACEHOLDER if has_tokens else 0,
        cost=COST_PLACEHOLDER if has_cost else None,
        takeovers=int(was_taken_over),
        started_at=now,
        ended_at=ended,
        seconds=(ended - now).total_seconds(),
        waited=waited.total_seconds(),
    )
    view = RunView(run, place, speaker=agent, now=ended)
    end = None if waits_now else ended
    verdict = Approval.Verdict.WAITING if waits_now else Approval.Verdict.APPROVED
    question = Approval(asked_at=ended - waited, decided_at=end, verdict=verdict)
    vars(view)["questions"] = [question] if has_waited else []
    vars(view)["_queue_waits"] = []
    placeholders = {"turns": str(TURN_PLACEHOLDER)}
    if has_waited:
        took = view.waited_ms
        placeholders |= {"waited": duration(took), "waited_ms": integer(took)}
    return to_format_string(
        render_to_string("run/_run_head.html", {"view": view}), **placeholders
    )


def step_row(step: StepView) -> SafeString:
    """Render a step's row as far as it fits in a frame."""
    if step.is_plain:
        return _plain_row(step)
    html = render_to_string("run/_step.html", {"step": step})
    if step.is_brief or fits(html):
        return html
    return render_to_string("run/_step.html", {"step": replace(step, is_brief=True)})


def fits(html: str) -> bool:
    """Whether it fits on a page and in a frame."""
    return len(html) * 4 <= MAX_RUN_BYTES or len(html.encode()) <= MAX_RUN_BYTES


def _plain_row(step: StepView) -> SafeString:
    agent_step = step.step
    has_parts = bool(step.tokens), agent_step.cost is not None, bool(step.request_text)
    row = _row_format(get_language(), agent_step.kind, agent_step.status, *has_parts)
    figures: dict[str, object] = {
        "run": step.run.pk,
        "number": agent_step.number,
        "tokens": count(step.tokens),
        "cost": cost(agent_step.cost),
        "bar": f'x="{step.bar_start}" width="{step.bar_width}"',
        "request": escape(step.request_text),
        "words": escape(step.live_text),
    }
    took = step.elapsed_ms if step.is_open else step.duration_ms
    return mark_safe(row % (figures | _duration_fields(took)))


@lru_cache(MAX_CACHED)
def _row_format(
    language: str, kind: str, status: str, has_tokens: bool, has_cost: bool, has_request: bool
) -> str:
    now = timezone.now()
    row = AgentStep(
        number=STEP_PLACEHOLDER,
        kind=kind,
        status=status,
        prompt_tokens=PROMPT_TOKENS_PLACEHOLDER if has_tokens else 0,
        completion_tokens=COMPLETION_TOKENS_PLACEHOLDER if has_tokens else 0,
        cost=COST_PLACEHOLDER if has_cost else None,
        request=REQUEST_PLACEHOLDER if has_request else None,
        started_at=now,
        ended_at=now + DURATION_PLACEHOLDER,
    )
    run = Run(pk=RUN_PLACEHOLDER, started_at=now)
    step = StepView(
        row, run, streamed_thought=WORDS_PLACEHOLDER, now=now + DURATION_PLACEHOLDER
    )
    html = render_to_string("run/_step.html", {"step": step})
    texts = {"bar": BAR_PLACEHOLDER, "request": REQUEST_PLACEHOLDER, "words": WORDS_PLACEHOLDER}
    return to_format_string(html, number=str(STEP_PLACEHOLDER), **texts)


def _duration_fields(milliseconds: float | None) -> dict[str, object]:
    return {
        "milliseconds": "" if milliseconds is None else integer(milliseconds),
        "duration": duration(milliseconds),
    }


def to_format_string(html: str, **placeholders: str) -> str:
    """Turn HTML into a format string.

    It is filled in one pass, so inserted text is never scanned.
    """
    took = DURATION_PLACEHOLDER / timedelta(milliseconds=1)
    placeholders |= {
        "run": str(RUN_PLACEHOLDER),
        "tokens": count(PROMPT_TOKENS_PLACEHOLDER + COMPLETION_TOKENS_PLACEHOLDER),
        "read": count(PROMPT_TOKENS_PLACEHOLDER),
        "written": count(COMPLETION_TOKENS_PLACEHOLDER),
        "cost": cost(COST_PLACEHOLDER),
        "milliseconds": integer(took),
        "duration": duration(took),
    }
    html = _escape_percent(html)
    for name, placeholder in placeholders.items():
        html = html.replace(placeholder, f"%({name})s")
    return html


def _escape_percent(html: str) -> str:
    return html.replace("%", "%%")


def unstarted_run(view: RunView) -> SafeString:
    """Render a run without events, which is the same for every run of an agent."""
    run = view.run
    html = _unstarted_run(
        get_language(), view.place, run.agent_name, run.model, run.max_steps, run.tuning
    )
    return mark_safe(html.replace(str(RUN_PLACEHOLDER), view.pk))


@lru_cache(maxsize=256)
def _unstarted_run(
    language: str, place: str, agent: str, model: str, max_steps: int, tuning: Tuning
) -> str:
    now = timezone.now()
    columns = {"agent_name": agent, "model": model, "max_steps": max_steps}
    overrides = tuning_overrides(tuning)
    run = Run(pk=RUN_PLACEHOLDER, started_at=now, overrides=overrides, **columns)
    return render_to_string("run/_run.html", {"view": RunView(run, place, until=0, now=now)})


def answer_actions(view: RunView) -> SafeString:
    """Render the buttons below an answer, which differ only in the run's number."""
    actions_format = _actions_format(
        get_language(),
        bool(view.answer),
        bool(view.answer_left_out),
        view.may_decide,
        view.can_ask_again,
        view.agent_name,
        view.run.model,
        settings.ENVIRONMENT.speech_model,
    )
    return mark_safe(actions_format % {"run": view.pk})


@lru_cache(MAX_CACHED)
def _actions_format(
    language: str,
    has_answer: bool,
    is_cut: bool,
    may_decide: bool,
    can_ask_again: bool,
    agent: str,
    model: str,
    voice: str,
) -> str:
    view = SimpleNamespace(
        answer=has_answer,
        answer_left_out=is_cut,
        may_decide=may_decide,
        can_ask_again=can_ask_again,
        agent_name=agent,
        run=Run(pk=RUN_PLACEHOLDER, model=model),
    )
    return to_format_string(render_to_string("run/_answer_actions.html", {"view": view}))


def rating(view: RunView) -> SafeString:
    """Render the rating; most are empty and identical."""
    if view.rating or view.is_flagged:
        return render_to_string("run/_rating.html", {"view": view})
    return mark_safe(_empty_rating(get_language()).replace(str(RUN_PLACEHOLDER), view.pk))


@cache
def _empty_rating(language: str) -> str:
    run = Run(pk=RUN_PLACEHOLDER, status=Run.Status.COMPLETED)
    return render_to_string("run/_rating.html", {"view": RunView(run, is_judged=False)})
