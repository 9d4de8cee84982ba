"""Parts of a run that are alike in all of them but for some figures: drawn once, and filled in.

A template takes as long for the thousandth run as for the first.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from functools import cache, lru_cache

from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language

from agents.models import AgentStep, Approval, Run

from . import BARE, BRIEF, FULL, RunView, StepView
from .formatting import cost, count, duration, whole

A_NUMBER = 987_654_321_987_654_321
# Of no other figure on the page a part, and so found again when it is drawn.
A_STEP, A_TURN, A_PRICE = 246_813_579, 357_924_681, 468_135_792.0
SOME_READ, SOME_WRITTEN = 579_246_813, 681_357_924
A_WHILE = timedelta(milliseconds=135_792_468)
A_WAIT = timedelta(milliseconds=246_813_580)
A_BAR = 'x="0.0" width="99.0"'
A_REQUEST, SOME_WORDS = "\ue000", "\ue001"
MOST_FORMS = 512
MOST_RUN = 200_000  # bytes of HTML


def alike(template: str, view: RunView) -> SafeString:
    """A part that all runs have, as it is in those that have nothing to say in it."""
    return mark_safe(_alike(get_language(), template) % {"run": view.pk})


@cache
def _alike(language: str, template: str) -> str:
    view = RunView(Run(pk=A_NUMBER))
    return form(render_to_string(template, {"view": view, "pk": view.pk}))


def run_section(view: RunView) -> SafeString:
    """The whole run, as far as there is room for it: a page has many, a frame a limit."""
    for size in (FULL, BRIEF, BARE):
        html = render_to_string("_run.html", {"view": view if size == FULL else view.of(size)})
        if fits(html):
            break
    return html


def run_head(view: RunView) -> SafeString:
    """The line above a run."""
    run = view.run
    head = _head(
        get_language(),
        view.place,
        run.status,
        view.speaking or run.agent_name,
        run.model,
        run.road,
        run.max_steps,
        bool(view.tokens),
        run.cost is not None,
        bool(run.takeovers),
        min(run.step_count, 2),
        view.has_waited,
        view.waits_now,
    )
    figures = {
        "run": view.pk,
        "turns": run.step_count,
        "waited": duration(view.waited_ms),
        "waited_ms": whole(view.waited_ms),
        "read": count(run.prompt_tokens),
        "written": count(run.completion_tokens),
        "tokens": count(view.tokens),
        "cost": cost(run.cost),
    }
    took = view.elapsed_ms if run.is_live else view.duration_ms
    return mark_safe(head % (figures | _took(took)))


@lru_cache(MOST_FORMS)
def _head(
    language: str,
    place: str,
    status: str,
    agent: str,
    model: str,
    road: str,
    max_steps: int,
    has_tokens: bool,
    has_cost: bool,
    was_taken_over: bool,
    steps: int,
    has_waited: bool,
    waits_now: bool,
) -> str:
    now, waited = timezone.now(), A_WAIT if has_waited else timedelta()
    ended = now + A_WHILE + waited
    run = Run(
        pk=A_NUMBER,
        status=status,
        agent_name=agent,
        model=model,
        road=road,
        max_steps=max_steps,
        turns=A_TURN if steps > 1 else steps,
        prompt_tokens=SOME_READ if has_tokens else 0,
        completion_tokens=SOME_WRITTEN if has_tokens else 0,
        cost=A_PRICE if has_cost else None,
        takeovers=int(was_taken_over),
        started_at=now,
        ended_at=ended,
        seconds=(ended - now).total_seconds(),
        waited=waited.total_seconds(),
    )
    view = RunView(run, place, speaker=agent, now=ended)
    said = None if waits_now else ended
    verdict = Approval.Verdict.WAITING if waits_now else Approval.Verdict.APPROVED
    question = Approval(asked_at=ended - waited, decided_at=said, verdict=verdict)
    vars(view)["questions"] = [question] if has_waited else []
    places = {"turns": str(A_TURN)}
    if has_waited:
        took = view.waited_ms
        places |= {"waited": duration(took), "waited_ms": whole(took)}
    return form(render_to_string("_run_head.html", {"view": view}), **places)


def step_row(step: StepView) -> SafeString:
    """The row of a step, as far as there is room for it: a frame has a limit."""
    if step.is_plain:
        return _plain_row(step)
    html = render_to_string("_step.html", {"step": step})
    if step.is_brief or fits(html):
        return html
    return render_to_string("_step.html", {"step": replace(step, is_brief=True)})


def fits(html: str) -> bool:
    """Whether there is room for it among the others on a page, and in a frame."""
    return len(html) * 4 <= MOST_RUN or len(html.encode()) <= MOST_RUN


def _plain_row(step: StepView) -> SafeString:
    about = step.step
    has = bool(step.tokens), about.cost is not None, bool(step.request_text)
    row = _row(get_language(), about.kind, about.status, *has)
    figures = {
        "run": step.run.pk,
        "number": about.number,
        "tokens": count(step.tokens),
        "cost": cost(about.cost),
        "bar": f'x="{step.bar_start}" width="{step.bar_width}"',
        "request": escape(step.request_text),
        "words": escape(step.live_text),
    }
    took = step.elapsed_ms if step.is_open else step.duration_ms
    return mark_safe(row % (figures | _took(took)))


@lru_cache(MOST_FORMS)
def _row(
    language: str, kind: str, status: str, has_tokens: bool, has_cost: bool, has_request: bool
) -> str:
    now = timezone.now()
    row = AgentStep(
        number=A_STEP,
        kind=kind,
        status=status,
        prompt_tokens=SOME_READ if has_tokens else 0,
        completion_tokens=SOME_WRITTEN if has_tokens else 0,
        cost=A_PRICE if has_cost else None,
        request=A_REQUEST if has_request else None,
        started_at=now,
        ended_at=now + A_WHILE,
    )
    run = Run(pk=A_NUMBER, started_at=now)
    step = StepView(row, run, words=SOME_WORDS, now=now + A_WHILE)
    html = render_to_string("_step.html", {"step": step})
    texts = {"bar": A_BAR, "request": A_REQUEST, "words": SOME_WORDS}
    return form(html, number=str(A_STEP), **texts)


def _took(milliseconds: float | None) -> Mapping[str, str]:
    is_known = milliseconds is not None
    return {
        "milliseconds": whole(milliseconds) if is_known else "",
        "duration": duration(milliseconds),
    }


def form(html: str, **places: str) -> str:
    """With places that are filled in all at once: nothing is looked for in what was put in."""
    took = A_WHILE / timedelta(milliseconds=1)
    places |= {
        "run": str(A_NUMBER),
        "tokens": count(SOME_READ + SOME_WRITTEN),
        "read": count(SOME_READ),
        "written": count(SOME_WRITTEN),
        "cost": cost(A_PRICE),
        "milliseconds": whole(took),
        "duration": duration(took),
    }
    html = html.replace("%", "%%")
    for name, drawn in places.items():
        html = html.replace(drawn, f"%({name})s")
    return html


def untold(view: RunView) -> SafeString:
    """A run of which nothing was told yet: like every other that the same agent begins."""
    run = view.run
    html = _untold(get_language(), view.place, run.agent_name, run.model, run.max_steps)
    return mark_safe(html.replace(str(A_NUMBER), view.pk))


@lru_cache(maxsize=256)
def _untold(language: str, place: str, agent: str, model: str, max_steps: int) -> str:
    now, about = timezone.now(), {"agent_name": agent, "model": model, "max_steps": max_steps}
    run = Run(pk=A_NUMBER, started_at=now, **about)
    return render_to_string("_run.html", {"view": RunView(run, place, until=0, now=now)})


def rating(view: RunView) -> SafeString:
    """The thumbs below an answer: most of them nobody has touched, and those are all alike."""
    if view.rating or view.is_flagged:
        return render_to_string("_rating.html", {"view": view})
    return mark_safe(_untouched(get_language()).replace(str(A_NUMBER), view.pk))


@cache
def _untouched(language: str) -> str:
    run = Run(pk=A_NUMBER, status=Run.Status.COMPLETED)
    return render_to_string("_rating.html", {"view": RunView(run, is_judged=False)})


def run_columns() -> SafeString:
    """What the rows of steps hold: the same above all of them."""
    return _columns(get_language())


@cache
def _columns(language: str) -> SafeString:
    return render_to_string("_run_columns.html")
