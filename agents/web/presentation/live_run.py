"""HTML for a page that watches a run: whole elements, found by id, as they are now."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar

from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from agents.access import masking
from agents.access.masking import ANSWER, Veil
from agents.db.compiled_queries import prepared
from agents.engine.events import Type
from agents.models import Run, RunEvent
from agents.runs import event_store
from agents.web.presentation import template_cache

from . import (
    MOST_THOUGHT,
    Outline,
    PlanView,
    RunView,
    StepView,
    Thread,
    step_views,
    text_url,
    trace_url,
    unfolded,
)
from .markdown import BoundedProse, GrowingProse

WORDS = {Type.DELTA, Type.THOUGHT_DELTA}
NEW_ROW = {
    Type.STEP_STARTED,
    Type.TASK,
    Type.APPROVAL_REQUESTED,
    Type.TOOL_CALL,
    Type.GUARDRAIL,
}
BEGINNING = [Type.RUN_STARTED, Type.STEP_STARTED]
TURNS = {Type.RUN_FINISHED, Type.RUN_PAUSED}
CHANGED_ROW = {
    Type.PLAN,
    Type.EVALUATION,
    Type.TOOL_RESPONSE,
    Type.APPROVAL_RESOLVED,
    Type.STATUS,
    Type.STEP,
    Type.ERROR,
    Type.USAGE,
    Type.THOUGHT,
}
PLANNED = {"plan", "task"}
# What is said of a run that is over; a thumb is only shown to whoever gave it.
JUDGED = {
    "chat": ("_rating.html", "_corrected.html", "_correction.html"),
    "trace": ("_corrected.html", "_correction.html"),
}


@dataclass
class Watched:
    """What one page has been shown of one run."""

    run_pk: int
    place: str = "chat"
    may_decide: bool = True
    viewer: int | None = None  # who looks at it, where that may be somebody else than asked
    is_discussed: bool = False  # where several people can talk about it
    seq: int = 0
    is_live: bool = True
    has_asked: bool = True
    is_judged: bool = True
    rows: Outline = field(default_factory=Outline)
    folded: set[int] = field(default_factory=set)
    is_owed: bool = False  # whether its plan went on, and was not shown again yet
    rests_until: float = 0.0
    growing: set[int] = field(default_factory=set)
    thought: dict[int, int] = field(default_factory=dict)  # characters shown of each
    speaker: str = ""  # the agent that was heard last
    prose: GrowingProse = field(default_factory=BoundedProse)
    veil: Veil | None = None  # where personal data is masked for this page
    begun: Run | None = None  # the row of a run that was asked for just now

    # A plan of a thousand steps takes long to draw: then that is done less often.
    rest: ClassVar[float] = 8.0

    def snapshot(self) -> SafeString:
        """The whole run as it is now; what comes afterwards is added to it."""
        return template_cache.run_section(self.view())

    def view(self) -> RunView:
        # The number first: what is kept while the row is read will be told. Of a run that
        # has ended by then, all was kept before.
        self.seq, self.has_asked, self.is_judged = self.last_kept(), True, True
        self.speaker = ""
        run = self._row()
        if not run.is_live:
            self.seq = event_store.last_seq(run)
        return self._whole(run)

    def begin(self, run: Run) -> RunView:
        """A run that was asked for just now: nothing of it has been told yet."""
        self.seq, self.has_asked, self.begun = 0, False, run
        return self._whole(run)

    def judged(self) -> str:
        """What people say of it by now, if it is over."""
        run = next(iter(_runs(self.run_pk)), None)
        if run is None or run.is_live:
            return ""
        view = RunView(self._masked(run), self.place, viewer=self.viewer, veil=self.veil)
        parts = JUDGED[self.place] if view.is_own else JUDGED["trace"]
        return "".join(_element(name, {"view": view}) for name in parts)

    def commented(self, step: int) -> str:
        """What people say of one step by now, and how many have."""
        run = next(iter(_runs(self.run_pk)), None)
        if run is None or not self.is_discussed:
            return ""
        thread = {"thread": Thread.of(run, step, self.viewer)}
        parts = ("said", "count") if step else ("said",)  # an answer has no row to count on
        return "".join(_element(f"_comments.html#{part}", thread) for part in parts)

    def _whole(self, run: Run) -> RunView:
        view = self._view(run)
        self.is_live, self.is_owed = run.is_live, False
        self.folded, self.rows = set(), Outline()
        rows = self._unfolded(view.steps)
        self.rows.take(rows)
        self.growing = {step.number for step in rows if step.speaks}
        self.prose = view.prose if run.is_live else BoundedProse()
        # Counted where a row is shown whole: from then on its words come one by one.
        self.thought = {step.number: len(step.live_text) for step in rows if step.speaks}
        return view

    def last_kept(self) -> int:
        return event_store.last_seq(Run(pk=self.run_pk))

    def is_behind(self, moment: datetime) -> bool:
        """Whether something happened before that moment that this page was not shown."""
        return any(at < moment for at in _happened(self.run_pk, self.seq + 1))

    def follows(self, events: Sequence[dict[str, Any]]) -> bool:
        """Whether these come right after what was shown."""
        return events[0]["seq"] == self.seq + 1

    def are_words(self, events: Sequence[dict[str, Any]]) -> bool:
        """Whether these are words, and the next ones."""
        return self.follows(events) and all(event["type"] in WORDS for event in events)

    def effort(self, events: Sequence[dict[str, Any]]) -> int:
        """How much has to be read for these words, as with `prose.weight`."""
        return self.prose.effort(_words(events)[0])

    def words(self, events: Sequence[dict[str, Any]]) -> str:
        """Frames for events that are nothing but words: no row has to be read."""
        self.seq = events[-1]["seq"]
        answer, thoughts = self._heard(events)
        frames = [self._thought(step, text) for step, text in thoughts.items()]
        return "".join([*frames, self._answer(answer)])

    def changes(self, events: Sequence[dict[str, Any]]) -> str:
        """Frames for whatever happened."""
        run, types = self._row_after(events), {event["type"] for event in events}
        self.seq, self.speaker = events[-1]["seq"], _speaker(events)
        self.has_asked |= Type.APPROVAL_REQUESTED in types
        answer, thoughts = self._heard(events)
        if types & TURNS or (Type.APPROVAL_RESOLVED in types and not run.is_waiting):
            return self._turned(run, answer)
        view = self._view(run)
        self.is_owed |= any(map(_is_planned, events))
        left_out = len(self.folded)
        rows = self._rows(view, events, thoughts)
        frames = [template_cache.run_head(view), self._plan(view), *rows]
        frames += [self._left_out()] if len(self.folded) > left_out else []
        frames.append(self._answer(answer))
        if any(map(_is_thought, events)):
            frames.append(self._taken_back(events))
        return "".join(frames)

    def owed(self) -> str:
        """The plan as it is by now, if it went on since it was shown."""
        if not self.is_owed:
            return ""
        self.rests_until = 0.0
        return self._plan(self._view(self._row()))

    def _plan(self, view: RunView) -> str:
        began = time.monotonic()
        if not self.is_owed or began < self.rests_until:
            return ""
        plan = PlanView.of(view.run, self.place, view.shown)
        html = _element("_plan.html", {"view": view, "plan": plan})
        if plan is not None and not template_cache.fits(html):
            now = replace(plan, versions=plan.versions[-1:])  # earlier ones are in the trace
            html = _element("_plan.html", {"view": view, "plan": now})
        ended = time.monotonic()
        self.is_owed, self.rests_until = False, ended + self.rest * (ended - began)
        return html

    def _heard(self, events: Sequence[dict[str, Any]]) -> tuple[str, dict[int, str]]:
        """What was said, as far as this page may be shown it by now."""
        answer, thoughts = _words(events)
        if self.veil is None:
            return answer, thoughts
        shown = {step: self.veil.add(step, text) for step, text in thoughts.items()}
        return self.veil.add(ANSWER, answer), shown

    def _turned(self, run: Run, answer: str) -> SafeString:
        """The run is another one now: it ended, it waits, or it goes on again."""
        self.is_judged = False
        self.prose.feed(answer)
        return template_cache.run_section(self._whole(run))

    def _rows(
        self, run: RunView, events: Sequence[dict[str, Any]], thoughts: dict[int, str]
    ) -> list[str]:
        named = {e["data"]["step"] for e in events if e["type"] in NEW_ROW | CHANGED_ROW}
        frames = []
        for view in self._unfolded(step_views(run, only=named)) if named else ():
            if view.first_seq >= events[0]["seq"]:
                view = replace(view, words=thoughts.get(view.number, ""))
            row = template_cache.step_row(view)
            frames.append(row if view.number in self.rows else self._added(view, row))
            self._shown(view)
        said = {n: text for n, text in thoughts.items() if n not in named}
        return frames + [self._thought(step, text) for step, text in said.items()]

    def _unfolded(self, steps: list[StepView]) -> list[StepView]:
        is_chat = self.place == "chat"
        return unfolded(steps, self.folded, self.rows.shown) if is_chat else steps

    def _left_out(self) -> SafeString:
        count = len(self.folded - self.rows.shown)
        about = {"pk": str(self.run_pk), "folded": count, "href": trace_url(self.run_pk)}
        return _element("_folded.html", about)

    def _shown(self, step: StepView) -> None:
        """A row is shown as it is now: its step may be over before its last words are told."""
        if step.speaks:
            self.growing.add(step.number)
            self.thought[step.number] = len(step.live_text)
        else:
            self.growing.discard(step.number)

    def _row_after(self, events: Sequence[dict[str, Any]]) -> Run:
        """The row as it is by now; how each run begins is known without reading it."""
        run, self.begun = self.begun, None
        if run is None or [event["type"] for event in events] != BEGINNING:
            return self._row()
        started, step = (event["data"] for event in events)
        run.road, run.turns = started.get("road", ""), step["turn"]
        return run

    def _row(self) -> Run:
        for run in _runs(self.run_pk):
            return self._masked(run)
        raise Run.DoesNotExist

    def _masked(self, run: Run) -> Run:
        return run if self.veil is None else masking.masked(run)

    def _view(self, run: Run) -> RunView:
        return RunView(
            run,
            self.place,
            until=self.seq,
            may_decide=self.may_decide,
            speaker=self.speaker,
            viewer=self.viewer,
            is_discussed=self.is_discussed,
            has_asked=self.has_asked,
            is_judged=self.is_judged,
            grown=self.prose,
            veil=self.veil,
        )

    def _added(self, step: StepView, row: SafeString) -> SafeString:
        """A new row stands below what it is a part of, though others have begun since."""
        match self.rows.add(step):
            case None:
                target = f"beforeend:#run-{self.run_pk}-steps"
            case 0:
                target = f"afterbegin:#run-{self.run_pk}-steps"
            case number:
                target = f"afterend:#step-{self._key(number)}"
        return format_html('<ol hx-swap-oob="{}">{}</ol>', target, row)

    def _thought(self, step: int, text: str) -> SafeString:
        if step not in self.growing:
            return SafeString()
        shown = self.thought.get(step, 0)
        text = text[: max(0, MOST_THOUGHT - shown)]
        self.thought[step] = shown + len(text)
        if not text:
            return SafeString()
        target = f"beforeend:#step-{self._key(step)}-live"
        return format_html('<p hx-swap-oob="{}">{}</p>', target, text)

    def _key(self, step: int) -> str:
        return str(step) if self.place == "trace" else f"{self.run_pk}-{step}"

    def _answer(self, text: str) -> str:
        if not text:
            return ""
        taken = self.prose.taken
        ended = self.prose.feed(text)
        if self.prose.left_out:
            # A cut answer grows no more; only how long it is by now is told.
            tail = self._tail() if self.prose.taken > taken else ""
            tail += self._more()
        else:
            tail = self._tail()
        target = f"beforeend:#answer-{self.run_pk}-frozen"
        return f'<div hx-swap-oob="{target}">{ended}</div>{tail}' if ended else tail

    def _tail(self) -> str:
        if (more := self.prose.take_more()) is not None:
            return f'<span hx-swap-oob="beforeend:#answer-{self.run_pk}-rest">{more}</span>'
        words = f'class="tail" hx-swap-oob="true">{self.prose.tail_html}'
        return f'<div id="answer-{self.run_pk}-tail" {words}</div>'

    def _more(self) -> str:
        """How much more of the answer there is than is shown."""
        prose, about = self.prose, {"pk": str(self.run_pk), "is_live": True}
        about |= {"size": prose.taken + prose.left_out, "shown": prose.taken}
        return _element("_answer_more.html", about | {"href": text_url(self.run_pk, "answer")})

    def _taken_back(self, events: Sequence[dict[str, Any]]) -> str:
        """What looked like an answer was a thought: the answer begins anew."""
        last = max(at for at, event in enumerate(events) if _is_thought(event))
        said = _words(events[last + 1 :])[0]
        said = self.veil.begin(ANSWER, said) if self.veil else said
        was_cut = bool(self.prose.left_out)
        self.prose = BoundedProse(said, f"answer-{self.run_pk}")
        words = f'class="frozen" hx-swap-oob="true">{self.prose.frozen}'
        more = self._more() if was_cut or self.prose.left_out else ""
        return f'<div id="answer-{self.run_pk}-frozen" {words}</div>{self._tail()}{more}'


@prepared
def _runs(pk):
    return Run.objects.filter(pk=pk).defer("history")  # long, and shown nowhere here


@prepared
def _happened(run, seq):
    return RunEvent.objects.filter(run=run, seq=seq).values_list("time", flat=True)


def _is_thought(event: dict[str, Any]) -> bool:
    return event["type"] == Type.THOUGHT and "parent" not in event["data"]


def _speaker(events: Sequence[dict[str, Any]]) -> str:
    """Who did what came last, unless it is but words."""
    return next((e["agent"] for e in reversed(events) if e["type"] not in WORDS), "")


def _is_planned(event: dict[str, Any]) -> bool:
    """Whether it may have changed how a plan stands."""
    return event["type"] == Type.PLAN or event["data"].get("kind") in PLANNED


def _words(events: Iterable[dict[str, Any]]) -> tuple[str, dict[int, str]]:
    """What was said in these events: of the answer, and of each step's thought."""
    answer, thoughts = [], {}
    for event in events:
        data = event["data"]
        if event["type"] == Type.DELTA and "parent" not in data:
            answer.append(data["content"])
        elif event["type"] in WORDS:
            thoughts[data["step"]] = thoughts.get(data["step"], "") + data["content"]
    return "".join(answer), thoughts


def _element(template: str, context: dict[str, Any]) -> SafeString:
    return mark_safe(render_to_string(template, context))
