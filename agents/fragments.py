"""HTML for a page that watches a run: whole elements, found by id, as they are now."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Max
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from agents import trace
from agents.display import RunView, StepView
from agents.engine.events import Type
from agents.models import AgentStep, Run
from agents.prose import GrowingProse

NEW_ROW = {Type.STEP_STARTED, Type.TOOL_CALL, Type.GUARDRAIL}
CHANGED_ROW = {Type.TOOL_RESPONSE, Type.STATUS, Type.STEP, Type.ERROR, Type.USAGE, Type.THOUGHT}


@dataclass
class Watched:
    """What one page has been shown of one run."""

    run_pk: int
    place: str = "chat"
    seq: int = 0
    is_live: bool = True
    growing: set[int] = field(default_factory=set)
    prose: GrowingProse = field(default_factory=GrowingProse)

    def snapshot(self) -> SafeString:
        """The whole run as it is now; what comes afterwards is added to it."""
        return _element("_run.html", {"view": self.view()})

    def view(self) -> RunView:
        run = Run.objects.annotate(seq=Max("events__seq")).get(pk=self.run_pk)
        self.seq = run.seq or 0
        self.is_live = run.is_live
        view = RunView(run, self.place, until=self.seq)
        self.growing = {step.number for step in view.steps if step.is_live}
        self.prose = view.prose if run.is_live else GrowingProse()
        return view

    def is_behind(self) -> bool:
        return trace.last_seq(Run(pk=self.run_pk)) > self.seq

    def follows(self, events: Sequence[dict[str, Any]]) -> bool:
        """Whether these come right after what was shown."""
        return events[0]["seq"] == self.seq + 1

    def needs_rows(self, events: Iterable[dict[str, Any]]) -> bool:
        return any(e["type"] not in {Type.DELTA, Type.THOUGHT_DELTA} for e in events)

    def words(self, events: Sequence[dict[str, Any]]) -> SafeString:
        """Frames for events that are nothing but words: no row has to be read."""
        self.seq = events[-1]["seq"]
        answer, thoughts = _words(events)
        frames = [self._thought(step, text) for step, text in thoughts.items()]
        return SafeString().join([*frames, self._answer(answer)])

    def changes(self, events: Sequence[dict[str, Any]]) -> SafeString:
        """Frames for whatever happened."""
        if events[-1]["type"] == Type.RUN_FINISHED:
            return self.snapshot()
        self.seq = events[-1]["seq"]
        answer, thoughts = _words(events)
        frames = [self._head(), *self._rows(events, thoughts), self._answer(answer)]
        if any(event["type"] == Type.THOUGHT for event in events):
            frames.append(self._taken_back(events))
        return SafeString().join(frames)

    def _rows(self, events: Sequence[dict[str, Any]], thoughts: dict[int, str]) -> list[str]:
        new = {e["data"]["step"] for e in events if e["type"] in NEW_ROW}
        changed = {e["data"]["step"] for e in events if e["type"] in CHANGED_ROW}
        steps = AgentStep.objects.filter(run=self.run_pk, number__in=new | changed)
        frames = []
        for step in steps.select_related("run"):
            view = StepView(step, step.run, self.place, until=self.seq)
            row = _element("_step.html", {"step": view})
            self._shown(step)
            frames.append(self._added(row) if step.number in new else row)
        said = {n: text for n, text in thoughts.items() if n not in new | changed}
        return frames + [self._thought(step, text) for step, text in said.items()]

    def _shown(self, step: AgentStep) -> None:
        """A row is shown as it is now: its step may be over before its last words are told."""
        if step.is_live:
            self.growing.add(step.number)
        else:
            self.growing.discard(step.number)

    def _head(self) -> SafeString:
        view = RunView(Run.objects.get(pk=self.run_pk), self.place, until=self.seq)
        return _element("_run_head.html", {"view": view})

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
        last = max(at for at, e in enumerate(events) if e["type"] == Type.THOUGHT)
        self.prose = GrowingProse(_words(events[last + 1 :])[0])
        empty = format_html(
            '<div id="answer-{}-frozen" class="frozen" hx-swap-oob="true">{}</div>',
            self.run_pk,
            self.prose.frozen,
        )
        return empty + self._tail()


def _words(events: Iterable[dict[str, Any]]) -> tuple[str, dict[int, str]]:
    """What was said in these events: of the answer, and of each step's thought."""
    answer, thoughts = [], {}
    for event in events:
        data = event["data"]
        if event["type"] == Type.DELTA:
            answer.append(data["content"])
        elif event["type"] == Type.THOUGHT_DELTA:
            thoughts[data["step"]] = thoughts.get(data["step"], "") + data["content"]
    return "".join(answer), thoughts


def _element(template: str, context: dict[str, Any]) -> SafeString:
    return mark_safe(render_to_string(template, context))
