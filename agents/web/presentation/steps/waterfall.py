"""Steps on the run's timeline: when each started and ended, and how time was spent."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from agents.models import AgentStep, Approval
from agents.runs import projection
from agents.runs.intervals import Interval, clip, subtract, total_length, union

# A wait longer than this is compressed to this share of the time worked.
LONG_WAIT_SECONDS = 2.0
GAP_SHARE = 0.18
HEAT_LEVELS = (0.05, 0.15, 0.3, 0.5)
MIN_WIDTH_PERCENT = 0.8
MAX_GAP_TICKS = 3  # more labels than this would overlap
THINKING_KINDS = {AgentStep.Kind.THOUGHT, AgentStep.Kind.ANSWER}


@dataclass(frozen=True, slots=True)
class TimeSegment:
    """A part of a bar, in percent of the timeline."""

    kind: str
    start: float
    width: float


@dataclass(frozen=True, slots=True)
class Tick:
    """A label on the timeline's scale: a moment, or how long a compressed gap was."""

    at: float
    ms: float
    is_gap: bool = False

    @property
    def anchor(self) -> str:
        return "start" if self.at < 1 else "end" if self.at > 99 else "middle"


@dataclass(frozen=True, slots=True)
class StepBar:
    """One step on the real and on the compressed timeline."""

    pieces: list[TimeSegment]
    short: list[TimeSegment]
    share: float
    parallel_count: int = 1
    gaps: Sequence[TimeSegment] = ()  # compressed waits, on the compressed timeline

    @property
    def heat(self) -> int:
        """From 0 (hardly any of the run's time) to 4 (half of it or more)."""
        return bisect_right(HEAT_LEVELS, self.share)

    @property
    def percent(self) -> int:
        return round(self.share * 100)


@dataclass(frozen=True, slots=True)
class TimeBreakdown:
    """How the time of a run was spent, in seconds."""

    total: float
    model: float = 0.0
    tools: float = 0.0
    waiting: float = 0.0

    @property
    def pieces(self) -> list[TimeSegment]:
        start = 0.0
        pieces = []
        for kind in ("model", "tools", "waiting"):
            width = getattr(self, kind) / self.total * 100 if self.total else 0.0
            pieces.append(TimeSegment(kind, round(start, 2), round(width, 2)))
            start += width
        return [piece for piece in pieces if piece.width > 0]

    @property
    def model_ms(self) -> float:
        return self.model * 1000

    @property
    def tools_ms(self) -> float:
        return self.tools * 1000


@dataclass
class Waterfall:
    """All steps of a finished run."""

    began: datetime
    ended: datetime
    steps: Sequence[AgentStep]
    approvals: Iterable[Approval] = ()
    first_words: Mapping[int, datetime] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.total = max(0.001, (self.ended - self.began).total_seconds())
        # When each step waited longest for its model, or for a person.
        self.waits: dict[int, Interval] = {}
        for step in self.steps:
            queue_waits = (
                projection.queue_waits(step.notes, step.ended_at) if step.notes else ()
            )
            intervals = [self._interval(start, end) for start, end in queue_waits]
            if intervals:
                self.waits[step.number] = max(intervals, key=lambda wait: wait[1] - wait[0])
        for row in self.approvals:
            if not row.granted_scope:
                self.waits[row.step] = self._interval(row.asked_at, row.decided_at)
        self.parents = {step.parent for step in self.steps}
        self._waits_below: dict[int, list[Interval]] = defaultdict(list)
        parent_by_number = {step.number: step.parent for step in self.steps}
        for number, wait in self.waits.items():
            parent = parent_by_number.get(number)
            while parent is not None:
                self._waits_below[parent].append(wait)
                parent = parent_by_number.get(parent)
        self.gaps = [
            gap for gap in self._idle_intervals() if gap[1] - gap[0] > LONG_WAIT_SECONDS
        ]
        self.busy = self.total - sum(end - start for start, end in self.gaps)
        self._parallel_counts = Counter(map(_parallel_key, filter(_was_started, self.steps)))

    @property
    def is_compressible(self) -> bool:
        return bool(self.gaps)

    def bar(self, step: AgentStep) -> StepBar:
        start, end = self._interval(step.started_at, step.ended_at)
        kind = "failed" if step.status == AgentStep.Status.FAILED else "work"
        waits = union(self._waits_below[step.number])
        periods = [(kind, start, end), *(("waiting", *wait) for wait in waits)]
        if (wait := self.waits.get(step.number)) is not None:
            # A call is made after its approval; a plan is written before.
            periods.insert(1 if wait[0] > start else 0, ("waiting", *wait))
            waits = union([*waits, wait])
        waited = total_length(clip(waits, start, end))
        parallel_count = self._parallel_counts[_parallel_key(step)] if _was_started(step) else 1
        short = self._segments(periods, step, self._compressed_percent_at) if self.gaps else []
        return StepBar(
            pieces=self._segments(periods, step, self._percent_at),
            short=short,
            share=max(0.0, end - start - waited) / self.total,
            parallel_count=max(1, parallel_count),
            gaps=self._gap_segments,
        )

    @property
    def ticks(self) -> list[Tick]:
        """The scale in real time."""
        return [Tick(share * 100, self.total * share * 1000) for share in (0, 0.5, 1)]

    @property
    def short_ticks(self) -> list[Tick]:
        """The compressed scale: time worked, and the length of each gap."""
        middles = [(self._compressed_percent_at((s + e) / 2), e - s) for s, e in self.gaps]
        gaps = [
            Tick(round(percent, 2), seconds * 1000, is_gap=True)
            for percent, seconds in middles[:MAX_GAP_TICKS]
        ]
        return [Tick(0, 0), *gaps, Tick(100, self.busy * 1000)]

    @cached_property
    def _gap_segments(self) -> list[TimeSegment]:
        spans = [tuple(map(self._compressed_percent_at, gap)) for gap in self.gaps]
        return [TimeSegment("gap", round(s, 2), round(e - s, 2)) for s, e in spans]

    def split(self) -> TimeBreakdown:
        """Attribute each moment once: to a person first, then a tool, then the model."""
        waiting = union(self.waits.values())
        tools = union(self._kind_intervals(AgentStep.Kind.TOOL))
        model = union(i for kind in THINKING_KINDS for i in self._kind_intervals(kind))
        waited = total_length(waiting)
        used = total_length(union([*waiting, *tools])) - waited
        thought = total_length(union([*waiting, *tools, *model])) - waited - used
        return TimeBreakdown(self.total, model=thought, tools=used, waiting=waited)

    def _kind_intervals(self, kind: str) -> Iterable[Interval]:
        """Yield when steps of a kind ran; for a handoff, when the other agent worked."""
        for step in self.steps:
            if step.kind == kind and step.number not in self.parents:
                yield self._interval(step.started_at, step.ended_at)

    def _idle_intervals(self) -> Iterable[Interval]:
        """Yield when nothing was done: between steps, and while waiting for a person."""
        work = (
            i
            for kind in (*THINKING_KINDS, AgentStep.Kind.TOOL)
            for i in self._kind_intervals(kind)
        )
        busy = subtract(union(work), union(self.waits.values()))
        moments = [0.0, *(moment for interval in busy for moment in interval), self.total]
        return zip(moments[::2], moments[1::2], strict=True)

    def _segments(
        self,
        periods: Iterable[tuple[str, float, float]],
        step: AgentStep,
        percent_at: Callable[[float], float],
    ) -> list[TimeSegment]:
        pieces = []
        for kind, start, end in periods:
            position = min(percent_at(start), 100 - MIN_WIDTH_PERCENT)
            width = max(MIN_WIDTH_PERCENT, percent_at(end) - position)
            width = round(min(width, 100 - position), 2)
            pieces.append(TimeSegment(kind, round(position, 2), width))
        if (first_word_at := self.first_words.get(step.number)) is not None:
            moment, _ = self._interval(first_word_at, first_word_at)
            pieces.append(TimeSegment("first", round(min(percent_at(moment), 99.4), 2), 0.6))
        return pieces

    def _percent_at(self, moment: float) -> float:
        return moment / self.total * 100

    def _compressed_percent_at(self, moment: float) -> float:
        """Return a moment's position on the timeline with compressed waits."""
        short = GAP_SHARE * max(self.busy, 0.001)
        passed = moment
        for start, end in self.gaps:
            if moment > start:
                share = min(1.0, (moment - start) / (end - start))
                passed -= min(moment, end) - start - share * short
        return passed / (self.busy + short * len(self.gaps)) * 100

    def _interval(self, start: datetime, end: datetime | None) -> Interval:
        """Return the interval in seconds since the run's start, clamped to the run."""
        first = (start - self.began).total_seconds()
        last = ((end or self.ended) - self.began).total_seconds()
        first = min(max(0.0, first), self.total)
        return first, min(max(first, last), self.total)


def _was_started(step: AgentStep) -> bool:
    return step.status != AgentStep.Status.UNSTARTED


def _parallel_key(step: AgentStep) -> tuple[int | None, int, str | int]:
    """Return a key for parallel steps: calls of the same turn share one."""
    is_call = step.kind == AgentStep.Kind.TOOL
    return step.parent, step.turn, "calls" if is_call else step.number
