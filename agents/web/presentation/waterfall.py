"""Steps on the clock of their run: where each began and ended, and what time went into."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from agents.models import AgentStep, Approval
from agents.runs.intervals import Interval, length, union, within, without

# A wait longer than this may be drawn shorter, as so much of what is left of the clock.
LONG_WAIT = 2.0
SHORTENED = 0.03
HEAT = (0.05, 0.15, 0.3, 0.5)
NARROWEST = 0.8
THINKING = {AgentStep.Kind.THOUGHT, AgentStep.Kind.ANSWER}


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a bar, in percent of the clock."""

    kind: str
    start: float
    width: float


@dataclass(frozen=True, slots=True)
class Bar:
    """One step: on the clock as it ran, and on the one whose long waits are shortened."""

    pieces: list[Piece]
    short: list[Piece]
    share: float
    beside: int = 1

    @property
    def heat(self) -> int:
        """0 for what took hardly any of the run's time, 4 for half of it and more."""
        return bisect_right(HEAT, self.share)

    @property
    def percent(self) -> int:
        return round(self.share * 100)


@dataclass(frozen=True, slots=True)
class Split:
    """What the time of a run went into, in seconds."""

    whole: float
    model: float = 0.0
    tools: float = 0.0
    waiting: float = 0.0

    @property
    def pieces(self) -> list[Piece]:
        start, pieces = 0.0, []
        for kind in ("model", "tools", "waiting"):
            width = getattr(self, kind) / self.whole * 100 if self.whole else 0.0
            pieces.append(Piece(kind, round(start, 2), round(width, 2)))
            start += width
        return [piece for piece in pieces if piece.width > 0]

    @property
    def model_ms(self) -> float:
        return self.model * 1000

    @property
    def tools_ms(self) -> float:
        return self.tools * 1000

    @property
    def waiting_ms(self) -> float:
        return self.waiting * 1000


@dataclass
class Waterfall:
    """All steps of a run that is over."""

    began: datetime
    ended: datetime
    steps: Sequence[AgentStep]
    approvals: Iterable[Approval] = ()
    first_words: Mapping[int, datetime] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.whole = max(0.001, (self.ended - self.began).total_seconds())
        self.waits = {
            row.step: self._between(row.asked_at, row.decided_at) for row in self.approvals
        }
        self.parents = {step.parent for step in self.steps}
        self._below = self._waits_below()
        self.gaps = [gap for gap in self._idle() if gap[1] - gap[0] > LONG_WAIT]
        self.kept = self.whole - sum(end - start for start, end in self.gaps)
        self._beside = Counter(map(_call, filter(_was_begun, self.steps)))

    @property
    def is_compressible(self) -> bool:
        return bool(self.gaps)

    def bar(self, step: AgentStep) -> Bar:
        start, end = self._between(step.started_at, step.ended_at)
        parts, waits = [(_kind(step), start, end)], union(self._below[step.number])
        parts += [("waiting", *wait) for wait in waits]
        if (wait := self.waits.get(step.number)) is not None:
            # A call is made after it was asked about; a plan is written before.
            parts.insert(1 if wait[0] > start else 0, ("waiting", *wait))
            waits = union([*waits, wait])
        waited = length(within(waits, start, end))
        return Bar(
            pieces=self._drawn(parts, step, self._at),
            short=self._drawn(parts, step, self._at_short) if self.gaps else [],
            share=max(0.0, end - start - waited) / self.whole,
            beside=max(1, self._beside[_call(step)] * _was_begun(step)),
        )

    def _waits_below(self) -> Mapping[int, list[Interval]]:
        """When a person was waited for in what is a part of each step."""
        above = {step.number: step.parent for step in self.steps}
        found: dict[int, list[Interval]] = defaultdict(list)
        for number, wait in self.waits.items():
            while (number := above.get(number)) is not None:
                found[number].append(wait)
        return found

    def split(self) -> Split:
        """Each moment counts once: for a person first, then for a tool, then for the model."""
        waiting = union(self.waits.values())
        tools = union(self._of(AgentStep.Kind.TOOL))
        model = union(i for kind in THINKING for i in self._of(kind))
        waited = length(waiting)
        used = length(union([*waiting, *tools])) - waited
        thought = length(union([*waiting, *tools, *model])) - waited - used
        return Split(self.whole, model=thought, tools=used, waiting=waited)

    def _of(self, kind: str) -> Iterable[Interval]:
        """When steps of a kind ran; a task for another agent is what that one did."""
        for step in self.steps:
            if step.kind == kind and step.number not in self.parents:
                yield self._between(step.started_at, step.ended_at)

    def _idle(self) -> Iterable[Interval]:
        """When nothing was done: between steps, and while a person was waited for."""
        work = (i for kind in (*THINKING, AgentStep.Kind.TOOL) for i in self._of(kind))
        busy = without(union(work), union(self.waits.values()))
        moments = [0.0, *(moment for interval in busy for moment in interval), self.whole]
        return zip(moments[::2], moments[1::2], strict=True)

    def _drawn(self, parts, step, at) -> list[Piece]:
        pieces = []
        for kind, start, end in parts:
            left = min(at(start), 100 - NARROWEST)
            width = max(NARROWEST, at(end) - left)
            pieces.append(Piece(kind, round(left, 2), round(min(width, 100 - left), 2)))
        if (first := self.first_words.get(step.number)) is not None:
            moment, _ = self._between(first, first)
            pieces.append(Piece("first", round(min(at(moment), 99.4), 2), 0.6))
        return pieces

    def _at(self, moment: float) -> float:
        return moment / self.whole * 100

    def _at_short(self, moment: float) -> float:
        """The same moment where every long wait takes but a little of the clock."""
        short = SHORTENED * max(self.kept, 0.001)
        passed = moment
        for start, end in self.gaps:
            if moment > start:
                share = min(1.0, (moment - start) / (end - start))
                passed -= min(moment, end) - start - share * short
        return passed / (self.kept + short * len(self.gaps)) * 100

    def _between(self, start: datetime, end: datetime | None) -> Interval:
        """In seconds since the run began, and within it."""
        first = (start - self.began).total_seconds()
        last = ((end or self.ended) - self.began).total_seconds()
        first = min(max(0.0, first), self.whole)
        return first, min(max(first, last), self.whole)


def _kind(step: AgentStep) -> str:
    return "failed" if step.status == AgentStep.Status.FAILED else "work"


def _was_begun(step: AgentStep) -> bool:
    return step.status != AgentStep.Status.UNSTARTED


def _call(step: AgentStep) -> tuple[int | None, int, str | int]:
    """Calls of the same turn stand beside each other; everything else stands alone."""
    is_call = step.kind == AgentStep.Kind.TOOL
    return step.parent, step.turn, "calls" if is_call else step.number
