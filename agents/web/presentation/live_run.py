"""HTML for a page that watches a run: whole elements, identified by id."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from agents.access import masking
from agents.access.masking import ANSWER_STEP, Masker
from agents.db.compiled_queries import compiled_query
from agents.engine.events import DELTA_TYPES, EventType, StatusKind
from agents.models import AgentStep, Approval, Run, RunEvent
from agents.runs import event_store, projection

from . import (
    EMBED,
    EMBED_QUIET,
    MAX_THOUGHT_CHARS,
    CommentThread,
    Outline,
    PlanView,
    RunView,
    StepView,
    answer_fragments,
    embedded_run,
    run_fragments,
    step_fragments,
    step_views,
    visible_steps,
)
from .markdown import BoundedMarkdown, StreamingMarkdown
from .steps.activity import WRITING, current_activity, doing, public_doing

START_TYPES = [EventType.RUN_STARTED, EventType.STEP_STARTED]
REDRAW_TYPES = {EventType.RUN_FINISHED, EventType.RUN_PAUSED}
# Whatever changes a step's row; a thought ends what streamed into it.
ROW_TYPES = {*projection.HANDLERS, EventType.THOUGHT} - {EventType.RUN_STARTED} - REDRAW_TYPES
PLAN_KINDS = {"plan", "task"}
# Pages with one line about what a live run does.
ACTIVE_PLACES = {"chat", EMBED, EMBED_QUIET}


@dataclass
class LiveRunView:
    """What one page has rendered of one run."""

    run_pk: int
    place: str = "chat"
    may_decide: bool = True
    viewer: int | None = None  # the viewer, if it may not be the run's user
    is_discussed: bool = False  # if several people can comment
    seq: int = 0
    is_live: bool = True
    has_asked: bool = True
    is_judged: bool = True
    outline: Outline = field(default_factory=Outline)
    folded: set[int] = field(default_factory=set)
    is_owed: bool = False  # whether the plan has changed since it was sent
    rests_until: float = 0.0
    streaming_steps: set[int] = field(default_factory=set)
    thought_chars: dict[int, int] = field(default_factory=dict)  # characters sent, per step
    speaker: str = ""  # agent of the last event
    open_steps: dict[int, str] = field(default_factory=dict)  # what each of them does
    markdown: StreamingMarkdown = field(default_factory=BoundedMarkdown)
    masker: Masker | None = None  # masks personal data for this page
    new_run: Run | None = None  # the row of a run that was just created

    # A plan of a thousand steps takes long to render, so it is sent less often.
    rest: ClassVar[float] = 8.0

    def snapshot(self) -> SafeString:
        """Render the whole run; later frames add to it."""
        return run_fragments.run_section(self.view())

    def view(self) -> RunView:
        # The number first: events saved while the row is read will be announced. If the run has
        # ended by then, everything was saved before.
        self.seq = self.last_saved_seq()
        self.has_asked = True
        self.is_judged = True
        self.speaker = ""
        run = self._row()
        if not run.is_live:
            self.seq = event_store.last_seq(run)
        return self._reset_view(run)

    def begin(self, run: Run) -> RunView:
        """Start with a run that was just created and has no events."""
        self.seq = 0
        self.has_asked = False
        self.new_run = run
        return self._reset_view(run)

    def feedback_frames(self) -> str:
        """Return the feedback on the run, if it has ended."""
        run = next(iter(_runs_by_pk(self.run_pk)), None)
        if run is None or run.is_live:
            return ""
        view = RunView(self._mask(run), self.place, viewer=self.viewer, masker=self.masker)
        frames = [
            answer_fragments.corrected_note(view),
            answer_fragments.correction_section(view),
        ]
        if view.is_embedded:
            return embedded_run.rating(view)
        if self.place == "chat" and view.is_own:
            frames.insert(0, answer_fragments.rating(view))
        return "".join(frames)

    def memory_frames(self) -> str:
        """Return what the run saved to memory, for its user."""
        run = next(iter(_runs_by_pk(self.run_pk)), None)
        cards = [] if run is None else self._view(run).memory_cards
        return "".join(_render("people/_memory_card.html", {"card": card}) for card in cards)

    def comment_frames(self, step: int) -> str:
        """Return the comments on a step and their number."""
        run = next(iter(_runs_by_pk(self.run_pk)), None)
        if run is None or not self.is_discussed:
            return ""
        context = {"thread": CommentThread.of(run, step, self.viewer)}
        frames = _render("run/_comments.html#comment_list", context)
        if step:  # an answer has no row with a count
            frames += _render("run/_comments.html#count", context)
        return frames

    def _reset_view(self, run: Run) -> RunView:
        view = self._view(run)
        self.is_live = run.is_live
        self.is_owed = False
        self.folded = set()
        self.outline = Outline()
        rows = self._visible_steps(view.steps)
        self.outline.take(rows)
        self.open_steps = {}
        self._follow_steps(view.steps)
        self.streaming_steps = {step.number for step in rows if step.is_streaming}
        self.markdown = view.markdown if run.is_live else BoundedMarkdown()
        # Counted where a row is sent whole; later text is sent piece by piece.
        self.thought_chars = {
            step.number: len(step.live_text) for step in rows if step.is_streaming
        }
        return view

    def last_saved_seq(self) -> int:
        return event_store.last_seq(Run(pk=self.run_pk))

    def is_behind(self, moment: datetime) -> bool:
        """Whether this page misses an event from before that moment."""
        return any(
            event_time < moment for event_time in _event_times(self.run_pk, self.seq + 1)
        )

    def is_contiguous(self, events: Sequence[dict[str, Any]]) -> bool:
        """Whether these follow directly on what was sent."""
        return events[0]["seq"] == self.seq + 1

    def are_deltas(self, events: Sequence[dict[str, Any]]) -> bool:
        """Whether these are only text, and the next events."""
        return self.is_contiguous(events) and all(
            event["type"] in DELTA_TYPES for event in events
        )

    def can_render_within(self, max_cost: int, events: Sequence[dict[str, Any]]) -> bool:
        """Whether rendering this text costs at most so much, as in `markdown.limits.weight`."""
        # The length is nearly always enough to tell, and weighing each piece takes longer.
        chars = sum(len(event["data"]["content"]) for event in events)
        if self.markdown.max_render_cost(chars) <= max_cost:
            return True
        return self.markdown.render_cost(_collect_deltas(events)[0]) <= max_cost

    def delta_frames(self, events: Sequence[dict[str, Any]]) -> str:
        """Return frames for text events, without reading a row."""
        self.seq = events[-1]["seq"]
        answer, thoughts = self._masked_deltas(events)
        frames: list[str] = [self._thought_frame(step, text) for step, text in thoughts.items()]
        is_first = not self.markdown.shown_chars
        frames.append(self._answer_frame(answer))
        if answer and is_first and self.place in ACTIVE_PLACES:
            frames.append(run_fragments.run_activity(self.run_pk, self._activity()))
        return "".join(frames)

    def changes(self, events: Sequence[dict[str, Any]]) -> str:
        """Return frames for any events."""
        run, started_step = self._rows_after(events)
        types = {event["type"] for event in events}
        self.seq = events[-1]["seq"]
        # Of the last event that isn't a delta.
        self.speaker = next(
            (event["agent"] for event in reversed(events) if event["type"] not in DELTA_TYPES),
            "",
        )
        self.has_asked |= EventType.APPROVAL_REQUESTED in types
        answer, thoughts = self._masked_deltas(events)
        # A decision can resume a paused run; the answer to a running call's question can't.
        is_decided = any(
            event["type"] == EventType.APPROVAL_RESOLVED
            and event["data"].get("why") != Approval.Why.ELICITATION
            for event in events
        )
        if types & REDRAW_TYPES or (is_decided and not run.is_waiting):
            self.is_judged = False
            self.markdown.feed(answer)
            return run_fragments.run_section(self._reset_view(run))
        view = self._view(run)
        self.is_owed |= not view.is_embedded and any(
            event["type"] == EventType.PLAN or event["data"].get("kind") in PLAN_KINDS
            for event in events
        )
        folded_count = len(self.folded)
        rows = self._row_frames(view, events, thoughts, started_step)
        answer_frames = self._answer_frame(answer)
        if any(map(_is_thought, events)):
            answer_frames += self._restart_answer(events)
        header = run_fragments.run_header(view, self._activity())
        frames = [header, self._plan_frame(view), *rows]
        if len(self.folded) > folded_count:
            hidden_count = len(self.folded - self.outline.visible_numbers)
            frames.append(run_fragments.folded_note(self.run_pk, hidden_count))
        frames.append(answer_frames)
        return "".join(frames)

    def deferred_plan(self) -> str:
        """Return the plan, if it has changed since it was sent."""
        if not self.is_owed:
            return ""
        self.rests_until = 0.0
        return self._plan_frame(self._view(self._row()))

    def _plan_frame(self, view: RunView) -> str:
        began = time.monotonic()
        if not self.is_owed or began < self.rests_until:
            return ""
        plan = PlanView.of(view.run, self.place, view.visible_row)
        html = run_fragments.plan_section(view, plan)
        if plan is not None and not step_fragments.fits(html):
            # The trace has the earlier versions.
            newest_only = replace(plan, versions=plan.versions[-1:])
            html = run_fragments.plan_section(view, newest_only)
        ended = time.monotonic()
        self.is_owed = False
        self.rests_until = ended + self.rest * (ended - began)
        return html

    def _masked_deltas(self, events: Sequence[dict[str, Any]]) -> tuple[str, dict[int, str]]:
        """Return the new text that this page may display by now."""
        answer, thoughts = _collect_deltas(events)
        if self.masker is None:
            return answer, thoughts
        masked = {step: self.masker.add(step, text) for step, text in thoughts.items()}
        return self.masker.add(ANSWER_STEP, answer), masked

    def _row_frames(
        self,
        run_view: RunView,
        events: Sequence[dict[str, Any]],
        thoughts: dict[int, str],
        started_step: AgentStep | None,
    ) -> list[str]:
        changed = [event for event in events if event["type"] in ROW_TYPES]
        changed_steps = {event["data"]["step"] for event in changed}
        redrawn_steps = {
            event["data"]["step"]
            for event in changed
            if event["data"].get("kind") != StatusKind.TOOL_PROGRESS
        }
        step_rows: list[StepView] = []
        if changed_steps:
            loaded = None if started_step is None else [started_step]
            all_rows = step_views(run_view, changed_steps, loaded)
            self._follow_steps(all_rows)
            step_rows = self._visible_steps(all_rows)
        frames: list[str] = []
        for step in step_rows:
            number = step.number
            if number not in redrawn_steps and number in self.outline:
                # Often, so only the bar: a row has much else, and perhaps a form being filled.
                frames.append(step_fragments.call_progress(step, is_oob=True))
                continue
            if step.first_seq >= events[0]["seq"]:
                step = replace(step, streamed_thought=thoughts.get(number, ""))
            row = step_fragments.step_row(step)
            frames.append(row if number in self.outline else self._insert_row(step, row))
            # What a row contains now: its step may end before its last text is announced.
            if step.is_streaming:
                self.streaming_steps.add(number)
                self.thought_chars[number] = len(step.live_text)
            else:
                self.streaming_steps.discard(number)
        for number, text in thoughts.items():
            if number not in changed_steps:
                frames.append(self._thought_frame(number, text))
        return frames

    def _activity(self) -> str:
        """Return what the run does at the moment, without reading a row."""
        if self.open_steps and self.markdown.shown_chars:
            return str(WRITING)
        return current_activity({} if self.place == EMBED_QUIET else self.open_steps)

    def _follow_steps(self, steps: Iterable[StepView]) -> None:
        say = public_doing if self.place in {EMBED, EMBED_QUIET} else doing
        for step in steps:
            self.open_steps.pop(step.number, None)
            if step.is_open:
                self.open_steps[step.number] = say(step)

    def _visible_steps(self, steps: list[StepView]) -> list[StepView]:
        if self.place in {EMBED, EMBED_QUIET}:
            return []
        if self.place != "chat":
            return steps
        return visible_steps(steps, self.folded, self.outline.visible_numbers)

    def _rows_after(self, events: Sequence[dict[str, Any]]) -> tuple[Run, AgentStep | None]:
        """Return the run's row; at its start without reading, with the step that has begun."""
        run = self.new_run
        self.new_run = None
        if run is None or [event["type"] for event in events] != START_TYPES:
            return self._row(), None
        run_started, step_started = events
        data = step_started["data"]
        run.route = run_started["data"].get("route", "")
        run.turns = data["turn"]
        step = AgentStep(
            run=run,
            number=data["step"],
            turn=data["turn"],
            agent_name=step_started["agent"],
            kind=data["kind"],
            request=data["request"],
            first_seq=step_started["seq"],
            started_at=datetime.fromisoformat(step_started["time"]),
        )
        return run, step

    def _row(self) -> Run:
        for run in _runs_by_pk(self.run_pk):
            return self._mask(run)
        raise Run.DoesNotExist

    def _mask(self, run: Run) -> Run:
        return run if self.masker is None else masking.mask_row(run)

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
            grown=self.markdown,
            masker=self.masker,
        )

    def _insert_row(self, step: StepView, row: SafeString) -> SafeString:
        """Insert a new row below its parent, even if others have started since."""
        match self.outline.add(step):
            case None:
                target = f"beforeend:#run-{self.run_pk}-steps"
            case 0:
                target = f"afterbegin:#run-{self.run_pk}-steps"
            case number:
                target = f"afterend:#step-{self._step_key(number)}"
        return format_html('<ol hx-swap-oob="{}">{}</ol>', target, row)

    def _thought_frame(self, step: int, text: str) -> SafeString:
        if step not in self.streaming_steps:
            return SafeString()
        sent_chars = self.thought_chars.get(step, 0)
        text = text[: max(0, MAX_THOUGHT_CHARS - sent_chars)]
        self.thought_chars[step] = sent_chars + len(text)
        if not text:
            return SafeString()
        target = f"beforeend:#step-{self._step_key(step)}-live"
        return format_html('<p hx-swap-oob="{}">{}</p>', target, text)

    def _step_key(self, step: int) -> str:
        return str(step) if self.place == "trace" else f"{self.run_pk}-{step}"

    def _answer_frame(self, text: str) -> str:
        if not text:
            return ""
        shown_chars = self.markdown.shown_chars
        ended = self.markdown.feed(text)
        if self.markdown.left_out:
            # A truncated answer doesn't grow; only its length is updated.
            tail = self._tail() if self.markdown.shown_chars > shown_chars else ""
            tail += self._more_frame()
        else:
            tail = self._tail()
        target = f"beforeend:#answer-{self.run_pk}-frozen"
        return f'<div hx-swap-oob="{target}">{ended}</div>{tail}' if ended else tail

    def _tail(self) -> str:
        if (added := self.markdown.take_more()) is not None:
            return f'<span hx-swap-oob="beforeend:#answer-{self.run_pk}-rest">{added}</span>'
        content = f'class="tail" hx-swap-oob="true">{self.markdown.tail_html}'
        return f'<div id="answer-{self.run_pk}-tail" {content}</div>'

    def _more_frame(self) -> str:
        """Return a frame with the length of the hidden rest."""
        shown_chars = self.markdown.shown_chars
        size = shown_chars + self.markdown.left_out
        return answer_fragments.answer_more(self.run_pk, shown_chars, size, is_live=True)

    def _restart_answer(self, events: Sequence[dict[str, Any]]) -> str:
        """Start the answer over, because the text was a thought."""
        last = max(index for index, event in enumerate(events) if _is_thought(event))
        text = _collect_deltas(events[last + 1 :])[0]
        text = self.masker.begin(ANSWER_STEP, text) if self.masker else text
        was_cut = bool(self.markdown.left_out)
        self.markdown = BoundedMarkdown(text, f"answer-{self.run_pk}")
        content = f'class="frozen" hx-swap-oob="true">{self.markdown.frozen_html}'
        note = self._more_frame() if was_cut or self.markdown.left_out else ""
        return f'<div id="answer-{self.run_pk}-frozen" {content}</div>{self._tail()}{note}'


@compiled_query
def _runs_by_pk(pk: int) -> QuerySet[Run]:
    return Run.objects.filter(pk=pk).defer("history")  # long, and not displayed here


@compiled_query
def _event_times(run: int, seq: int) -> QuerySet[RunEvent, datetime]:
    return RunEvent.objects.filter(run=run, seq=seq).values_list("time", flat=True)


def _is_thought(event: dict[str, Any]) -> bool:
    return event["type"] == EventType.THOUGHT and "parent" not in event["data"]


def _collect_deltas(events: Iterable[dict[str, Any]]) -> tuple[str, dict[int, str]]:
    """Return the text in these events: of the answer, and per step of thoughts."""
    answer: list[str] = []
    thoughts: dict[int, str] = {}
    for event in events:
        data = event["data"]
        if event["type"] == EventType.DELTA and "parent" not in data:
            answer.append(data["content"])
        elif event["type"] in DELTA_TYPES:
            thoughts[data["step"]] = thoughts.get(data["step"], "") + data["content"]
    return "".join(answer), thoughts


def _render(template: str, context: dict[str, Any]) -> SafeString:
    return mark_safe(render_to_string(template, context))
