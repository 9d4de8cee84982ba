"""HTML for a page that watches a run: whole elements, found by id, as they are now."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Max
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from agents import trace
from agents.display import RunView, StepView, step_views
from agents.engine.events import Type
from agents.models import Run
from agents.prose import GrowingProse

WORDS = {Type.DELTA, Type.THOUGHT_DELTA}
NEW_ROW = {Type.STEP_STARTED, Type.APPROVAL_REQUESTED, Type.TOOL_CALL, Type.GUARDRAIL}
CHANGED_ROW = {
    Type.TOOL_RESPONSE,
    Type.APPROVAL_RESOLVED,
    Type.STATUS,
    Type.STEP,
    Type.ERROR,
    Type.USAGE,
    Type.THOUGHT,
}


@dataclass
class Watched:
    """What one page has been shown of one run."""

    run_pk: int
    place: str = "chat"
    may_decide: bool = True
    seq: int = 0
    is_live: bool = True
    rows: set[int] = field(default_factory=set)
    growing: set[int] = field(default_factory=set)
    prose: GrowingProse = field(default_factory=GrowingProse)

    def snapshot(self) -> SafeString:
        """The whole run as it is now; what comes afterwards is added to it."""
        return _element("_run.html", {"view": self.view()})

    def view(self) -> RunView:
        run = Run.objects.annotate(seq=Max("events__seq")).get(pk=self.run_pk)
        self.seq = run.seq or 0
        self.is_live = run.is_live
        view = self._view(run)
        self.rows = {step.number for step in view.steps}
        self.growing = {step.number for step in view.steps if step.is_live}
        self.prose = view.prose if run.is_live else GrowingProse()
        return view

    def is_behind(self) -> bool:
        return trace.last_seq(Run(pk=self.run_pk)) > self.seq

    def follows(self, events: Sequence[dict[str, Any]]) -> bool:
        """Whether these come right after what was shown."""
        return events[0]["seq"] == self.seq + 1

    def needs_rows(self, events: Iterable[dict[str, Any]]) -> bool:
        return any(event["type"] not in WORDS for event in events)

    def words(self, events: Sequence[dict[str, Any]]) -> SafeString:
        """Frames for events that are nothing but words: no row has to be read."""
        self.seq = events[-1]["seq"]
        answer, thoughts = _words(events)
        frames = [self._thought(step, text) for step, text in thoughts.items()]
        return SafeString().join([*frames, self._answer(answer)])

    def changes(self, events: Sequence[dict[str, Any]]) -> SafeString:
        """Frames for whatever happened."""
        if self._is_turning_point(events):
            return self.snapshot()
        self.seq = events[-1]["seq"]
        answer, thoughts = _words(events)
        frames = [self._head(), *self._rows(events, thoughts), self._answer(answer)]
        if any(map(_is_thought, events)):
            frames.append(self._taken_back(events))
        return SafeString().join(frames)

    def _is_turning_point(self, events: Sequence[dict[str, Any]]) -> bool:
        """Whether the run is another one now: it ended, it waits, or it goes on again."""
        types = {event["type"] for event in events}
        if types & {Type.RUN_FINISHED, Type.RUN_PAUSED}:
            return True
        resolved = Type.APPROVAL_RESOLVED in types
        return resolved and not Run.objects.waiting().filter(pk=self.run_pk).exists()

    def _rows(self, events: Sequence[dict[str, Any]], thoughts: dict[int, str]) -> list[str]:
        named = {e["data"]["step"] for e in events if e["type"] in NEW_ROW | CHANGED_ROW}
        run = self._view(Run.objects.get(pk=self.run_pk))
        frames = []
        for view in step_views(run, only=named):
            row = _element("_step.html", {"step": view})
            frames.append(row if view.number in self.rows else self._added(row))
            self._shown(view)
        said = {n: text for n, text in thoughts.items() if n not in named}
        return frames + [self._thought(step, text) for step, text in said.items()]

    def _shown(self, step: StepView) -> None:
        """A row is shown as it is now: its step may be over before its last words are told."""
        self.rows.add(step.number)
        if step.is_live:
            self.growing.add(step.number)
        else:
            self.growing.discard(step.number)

    def _head(self) -> SafeString:
        view = self._view(Run.objects.get(pk=self.run_pk))
        return _element("_run_head.html", {"view": view})

    def _view(self, run: Run) -> RunView:
        return RunView(run, self.place, until=self.seq, may_decide=self.may_decide)

    def _added(self, row: SafeString) -> SafeString:
        target = f"beforeend:#run-{self.run_pk}-steps"
        return format_html('<ol hx-swap-oob="{}">{}</ol>', target, row)

    def _thought(self, step: int, text: str) -> SafeString:
        if step not in self.growing:
            return SafeString()
        key = step if self.place == "trace" else f"{self.run_pk}-{step}"
        target = f"beforeend:#step-{key}-live"
        return format_html('<p hx-swap-oob="{}">{}</p>', target, text)

    def _answer(self, text: str) -> SafeString:
        if not text:
            return SafeString()
        ended, key = self.prose.feed(text), f"answer-{self.run_pk}"
        frozen = format_html('<div hx-swap-oob="beforeend:#{}-frozen">{}</div>', key, ended)
        return (frozen if ended else SafeString()) + self._tail()

    def _tail(self) -> SafeString:
        return format_html(
            '<div id="answer-{}-tail" class="tail" hx-swap-oob="true">{}</div>',
            self.run_pk,
            self.prose.tail_html,
        )

    def _taken_back(self, events: Sequence[dict[str, Any]]) -> SafeString:
        """What looked like an answer was a thought: the answer begins anew."""
        last = max(at for at, event in enumerate(events) if _is_thought(event))
        self.prose = GrowingProse(_words(events[last + 1 :])[0])
        empty = format_html(
            '<div id="answer-{}-frozen" class="frozen" hx-swap-oob="true">{}</div>',
            self.run_pk,
            self.prose.frozen,
        )
        return empty + self._tail()


def _is_thought(event: dict[str, Any]) -> bool:
    return event["type"] == Type.THOUGHT and "parent" not in event["data"]


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
