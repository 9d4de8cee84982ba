"""One row of a run, for display."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.functional import cached_property
from django.utils.translation import gettext as _

from agents.access.masking import Masker
from agents.catalog import custom_instructions
from agents.db.sentences import translate
from agents.engine.events import StatusKind
from agents.engine.loop import HANDOFF_PREFIX, AskPersonTool
from agents.engine.result_cache import CACHED_NOTE
from agents.engine.text import shorten, shorten_line
from agents.models import AgentStep, Run
from agents.runs import clocks, event_store, projection

from ..attachments import AttachmentView
from ..comments import CommentThread
from ..decisions.approvals import ApprovalView
from ..formats import status_text
from ..formats.formatting import (
    MAX_ROW_CHARS,
    MAX_SHOWN_CHARS,
    format_value,
    parse_json_text,
    unwrap_single,
)
from ..formats.links import milliseconds, trace_url
from ..formats.structured_output import OutputView, table_preview
from ..plans import panel_view
from ..plans.plan_view import PlanFacts
from . import step_notes
from .progress import ProgressView
from .step_summary import summarize
from .waterfall import StepBar

MAX_EXCERPT_CHARS = 300
MAX_THOUGHT_CHARS = 8_000  # of a live thought; the trace has all of it
PLAIN_KINDS = {AgentStep.Kind.THOUGHT, AgentStep.Kind.ANSWER}
PLAIN_STATUSES = {AgentStep.Status.RUNNING, AgentStep.Status.DONE}
WaitInterval = tuple[datetime, datetime | None]  # requested and decided


@dataclass(frozen=True)
class StepView:
    """One row. `place` is its page: a chat has many runs."""

    step: AgentStep
    run: Run
    place: str = "chat"
    until: int | None = None
    approval: ApprovalView | None = None
    streamed_thought: str | None = None  # text so far, if known
    masker: Masker | None = None
    now: datetime | None = None  # the time of a replayed moment
    waits: tuple[WaitInterval, ...] = ()  # when a person was waited for
    bar: StepBar | None = None  # on the timeline, once the run has ended
    thread: CommentThread | None = None  # if several people can comment
    path: tuple[str, ...] = ()  # agents it was handed through
    job: str = ""  # agent that writes a plan or an evaluation: data, not text to read
    is_brief: bool = False  # True if its content doesn't fit

    def __getattr__(self, name: str) -> Any:
        return getattr(self.step, name)

    @property
    def pk(self) -> str:
        """The id of its element."""
        number = str(self.step.number)
        return number if self.place == "trace" else f"{self.run.pk}-{number}"

    @property
    def href(self) -> str:
        return f"{trace_url(self.run.pk)}#step-{self.step.number}"

    @property
    def files(self) -> list[AttachmentView]:
        """The images, sounds and files in its result."""
        return [AttachmentView(ref) for ref in self.step.attachments]

    @property
    def run_href(self) -> str:
        return trace_url(self.run.pk)

    @property
    def detail_href(self) -> str:
        """The URL of its details: request, cost and events."""
        return f"{trace_url(self.run.pk)}steps/{self.step.number}/"

    @property
    def is_trace(self) -> bool:
        return self.place == "trace"

    @property
    def effect_label(self) -> str:
        effect = self.step.effect
        return str(AgentStep.Effect(effect).label) if effect else ""

    @property
    def outcome_label(self) -> str:
        """The outcome of a call with effects, clear about any uncertainty."""
        is_unknown = self.status == AgentStep.Status.UNKNOWN
        return _("may have completed") if is_unknown else self.status_label

    @property
    def kind(self) -> str:
        """The kind; writing a plan or an evaluation isn't an answer."""
        return AgentStep.Kind.THOUGHT.value if self.job else self.step.kind

    @property
    def kind_label(self) -> str:
        return str(AgentStep.Kind(self.kind).label)

    @property
    def thought(self) -> str:
        """The thought; interrupted structured output is only data, visible in the details."""
        is_data = self.job and self.step.status != AgentStep.Status.DONE
        return "" if is_data else self.step.thought

    @property
    def thought_excerpt(self) -> str:
        """The part of the thought that fits in a row."""
        return shorten(self.thought, self.max_chars)

    @property
    def is_replayed(self) -> bool:
        """Whether this happened in another run and was replayed here."""
        return self.step.number < (self.run.origin_step or 0)

    @property
    def is_live(self) -> bool:
        """Whether it is running; nothing is while a person is waited for."""
        return self.step.is_live and not self.run.is_waiting

    @property
    def status(self) -> str:
        is_held_up = self.step.is_live and self.run.is_waiting
        return AgentStep.Status.WAITING.value if is_held_up else self.step.status

    @property
    def status_label(self) -> str:
        return str(AgentStep.Status(self.status).label)

    @property
    def speaker(self) -> str:
        """The agents a step was handed through, if any."""
        return " → ".join(self.path[1:])

    @property
    def full_path(self) -> str:
        return " → ".join(self.path)

    @property
    def handoff_agent(self) -> str:
        """The agent a task is handed to; the call itself has no effect."""
        is_asked = self.step.action.startswith(HANDOFF_PREFIX) and not self.step.effect
        name = self.step.action.removeprefix(HANDOFF_PREFIX)
        return name if is_asked and self.step.action != AskPersonTool.name else ""

    intent = cached_property(summarize)

    @property
    def is_plain(self) -> bool:
        """Whether it only wrote the answer: no thought, no problem, nothing to look at."""
        is_writing = self.step.kind in PLAIN_KINDS and not self.step.thought and not self.job
        has_comments = self.thread is not None and bool(self.thread.comments)
        is_quiet = not has_comments and not self._wait
        return is_writing and is_quiet and self.status in PLAIN_STATUSES

    @property
    def _wait(self) -> str:
        """What a live step waits for, such as a busy provider."""
        return status_text.waiting_sentence(self.step.notes) if self.is_live else ""

    @property
    def facts(self) -> dict[str, Any]:
        """The facts of a plan, task or evaluation row."""
        facts = self.step.action_input
        return facts if isinstance(facts, dict) else {}

    @property
    def rule(self) -> str:
        """The guardrail rule of a finding, if the reader can know it."""
        is_finding = self.step.kind == AgentStep.Kind.GUARDRAIL
        return str(self.facts.get("rule", "")) if is_finding else ""

    @property
    def judge_reason(self) -> str:
        """Why a model check found a violation, or none, if the reader can know its rule."""
        return str(self.facts.get("judge", {}).get("reason", "")) if self.rule else ""

    @cached_property
    def plan_facts(self) -> PlanFacts:
        is_plan = self.step.kind == AgentStep.Kind.PLAN
        return PlanFacts.of(self.step) if is_plan else PlanFacts()

    @property
    def panel(self) -> panel_view.PanelView | None:
        """The panel's result, if this row compares answers."""
        return panel_view.from_step(self.step)

    @property
    def is_met(self) -> bool:
        return bool(self.facts.get("is_met"))

    @property
    def why(self) -> str:
        """The evaluation's reason, translated."""
        return translate(self.facts.get("reason", ""))

    @property
    def notes(self) -> list[str]:
        # While a call runs, its progress is a bar.
        visible_notes = [
            note
            for note in self.step.notes
            if not (self.is_open and note["kind"] == StatusKind.TOOL_PROGRESS)
        ]
        return [
            sentence for note in visible_notes if (sentence := step_notes.note_sentence(note))
        ]

    @property
    def samples(self) -> list[dict[str, str]]:
        """What a tool asked the model, and its replies."""
        return [
            {
                "sentence": step_notes.note_sentence(note),
                "prompt": str(note.get("prompt", "")),
                "reply": str(note.get("reply", "")),
            }
            for note in self.step.notes
            if note["kind"] == StatusKind.SAMPLING
        ]

    @property
    def is_cached(self) -> bool:
        """Whether its result was saved earlier, so nothing was called."""
        return any(note["kind"] == CACHED_NOTE for note in self.step.notes)

    @property
    def short_notes(self) -> list[str]:
        """The notes without what is expandable."""
        sentences = {sample["sentence"] for sample in self.samples}
        return [note for note in self.notes if note not in sentences]

    @cached_property
    def progress(self) -> ProgressView | None:
        """The progress of a running call, if it reports any."""
        return ProgressView.of(self.step.notes) if self.is_open and self.step.notes else None

    @property
    def live_note(self) -> str:
        """What a running call is waiting for before it is repeated."""
        is_call = self.is_live and self.step.kind == AgentStep.Kind.TOOL
        return status_text.waiting_sentence(self.step.notes) if is_call else ""

    @property
    def duration_ms(self) -> float | None:
        """How long it worked, without waiting for people."""
        if self.step.status == AgentStep.Status.UNSTARTED or self.run.is_imported:
            return None
        began = self.step.started_at
        ended = self.step.ended_at
        took = milliseconds(began, ended)
        if took is None or ended is None or not self.waits:
            return took
        waits = [
            (max(requested, began), answered)
            for requested, answered in self.waits
            if requested < ended
        ]
        return max(0.0, took - projection.waited_seconds(waits, ended) * 1000)

    @property
    def waited_ms(self) -> float:
        """How long people were waited for in this step."""
        closed = [(requested, answered) for requested, answered in self.waits if answered]
        until = max((answered for _, answered in closed), default=self.step.started_at)
        return projection.waited_seconds(closed, until) * 1000

    @property
    def elapsed_ms(self) -> float:
        return milliseconds(self.step.started_at, self._clock) or 0

    @property
    def tokens(self) -> int:
        return self.step.total_tokens

    @property
    def bar_start(self) -> float:
        return self._clock_percent(self.step.started_at)

    @property
    def bar_width(self) -> float:
        return self._width(self.step.started_at, self.step.ended_at)

    @property
    def bar_waits(self) -> list[tuple[float, float]]:
        """Position and width of waits on its bar."""
        return [
            (self._clock_percent(requested), self._width(requested, answered))
            for requested, answered in self.waits
        ]

    def _width(self, start: datetime, end: datetime | None) -> float:
        until = self._clock_percent(end or self.run.ended_at or self._clock)
        return round(max(1.0, min(until, 100) - self._clock_percent(start)), 2)

    @property
    def max_chars(self) -> int:
        """Maximum characters per text."""
        return MAX_ROW_CHARS if self.place == "chat" else MAX_SHOWN_CHARS

    @property
    def is_cut(self) -> bool:
        """Whether its content doesn't fit in a chat."""
        if self.place != "chat":
            return False
        texts = self.step.thought, self.input_text, self.request_text
        return self._observation_size > self.max_chars or any(
            len(text) > self.max_chars for text in texts
        )

    @cached_property
    def input_text(self) -> str:
        return format_value(unwrap_single(self.step.action_input), self.max_chars)

    @cached_property
    def request_text(self) -> str:
        return format_value(self.step.request, self.max_chars)

    @property
    def shared_request_text(self) -> str:
        """The request as a shared link shows it: without the user's profile."""
        return format_value(custom_instructions.remove(self.step.request), self.max_chars)

    @cached_property
    def result_text(self) -> str:
        """The result; in a trace only its beginning, with the rest in the details."""
        if self.left_out:
            return self.step.observation[: event_store.MAX_OBSERVATION_CHARS]
        if self._observation_size > MAX_SHOWN_CHARS:  # no more may be loaded
            left_out = _("%(count)d characters omitted") % {
                "count": self._observation_size - self.max_chars
            }
            return f"{self.step.observation[: self.max_chars]}\n\n[… {left_out} …]"
        return format_value(parse_json_text(self.step.observation), self.max_chars)

    @property
    def _observation_size(self) -> int:
        return getattr(self.step, "found_size", None) or len(self.step.observation)

    @property
    def left_out(self) -> int:
        """Number of characters that the row doesn't display."""
        return (
            max(0, self._observation_size - event_store.MAX_OBSERVATION_CHARS)
            if self.is_trace
            else 0
        )

    @property
    def excerpt(self) -> str:
        """The beginning of a tool's result."""
        return shorten_line(self.step.observation[: MAX_EXCERPT_CHARS * 2], MAX_EXCERPT_CHARS)

    @cached_property
    def few_rows(self) -> OutputView | None:
        """The first rows of the result, if it is a table."""
        return table_preview(self.step.observation)

    @property
    def is_streaming(self) -> bool:
        """Whether its text is streamed to readers."""
        return self.is_live and not self.job

    @cached_property
    def live_text(self) -> str:
        if not self.is_streaming or self.step.kind != AgentStep.Kind.THOUGHT:
            return ""
        if self.streamed_thought is not None:
            return self.streamed_thought[:MAX_THOUGHT_CHARS]
        text = event_store.streamed_thought(self.run, self.step, self.until)
        visible = text if self.masker is None else self.masker.begin(self.step.number, text)
        return visible[:MAX_THOUGHT_CHARS]

    def _clock_percent(self, moment: datetime) -> float:
        """Return the position on the timeline, in percent."""
        start = self.run.started_at
        end = self.run.ended_at or self._clock
        total = max((end - start).total_seconds(), 0.001)
        return round(min(99.0, max(0.0, (moment - start).total_seconds() / total * 100)), 2)

    @property
    def _clock(self) -> datetime:
        return self.now or clocks.now(self.run.pk)
