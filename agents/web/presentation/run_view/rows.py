"""A run's rows for display: its steps, plan and comments."""

from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self

from django.db.models import QuerySet
from django.utils.functional import cached_property

from agents.access import masking
from agents.access.masking import Masker, Row
from agents.db.compiled_queries import compiled_query
from agents.models import AgentStep, Approval, Run
from agents.runs import event_store, projection

from ..comments import MAX_BRIEF_CHARS, MAX_COMMENTS_CHARS, CommentThread, threads_by_step
from ..decisions.approvals import ApprovalView
from ..formats.formatting import MAX_SHOWN_CHARS
from ..markdown import StreamingMarkdown
from ..memory_cards import MemoryCard, memory_cards
from ..plans import panel_view
from ..plans.plan_view import MAX_CHAT_STEPS, PlanView, is_folded
from ..steps.context_lines import ContextLine, context_lines
from ..steps.effects import EffectsView, effects_view
from ..steps.side_effects import SideEffects
from ..steps.step_order import sort_steps
from ..steps.step_view import StepView, WaitInterval
from ..steps.waterfall import THINKING_KINDS, TimeBreakdown, Waterfall

MAX_FINDINGS = 5
MAX_ROWS = 100
MANY_ROWS = 15
PROBLEMS = {AgentStep.Status.FAILED, AgentStep.Status.BLOCKED, AgentStep.Status.UNKNOWN}
# Fields not needed where all steps are loaded at once.
DEFERRED_FIELDS = {"compare": ("request",), "shared": ()}
# Chats in other sites: with or without a line that says what the agent does.
EMBED = "embed"
EMBED_QUIET = "embed_quiet"
WRITTEN_KINDS = {AgentStep.Kind.PLAN, AgentStep.Kind.EVALUATION}
# How much of a run is rendered: everything that fits, rows without content, or little more than
# the answer.
FULL, BRIEF, BARE = range(3)
BARE_ROWS = 20
MAX_THREAD_CHARS = {
    FULL: MAX_COMMENTS_CHARS,
    BRIEF: MAX_BRIEF_CHARS,
    BARE: 0,
}  # characters per thread


@dataclass(frozen=True)
class RunRows:
    """A run with its rows; with `until`, as it was after that event."""

    run: Run
    place: str = "chat"
    until: int | None = None
    may_decide: bool = True
    speaker: str = ""  # agent of the last event, if known
    viewer: int | None = None  # the viewer, if it may not be the run's user
    is_discussed: bool = False  # True if several people can comment
    has_asked: bool = True  # False if there were no approvals
    is_whole: bool = False  # True if a page starts with all rows
    is_judged: bool = True  # False if it just ended and can't have feedback yet
    grown: StreamingMarkdown | None = None  # the answer, if it was streamed to this page
    masker: Masker | None = None  # set for another user's run: `run` and its rows are masked
    now: datetime | None = None  # the time of a replayed moment
    size: int = FULL
    shows_results: bool = True  # False if the page leaves out what the steps returned

    def __getattr__(self, name: str) -> Any:
        return getattr(self.run, name)

    @property
    def is_embedded(self) -> bool:
        """Whether visitors of another site see it: nothing links into the product."""
        return self.place in {EMBED, EMBED_QUIET}

    @property
    def says_activity(self) -> bool:
        return self.place != EMBED_QUIET

    @property
    def is_own(self) -> bool:
        return self.viewer is None or self.viewer == self.run.user_id

    def visible_row(self, row: Row) -> Row:
        if self.masker is not None:
            return masking.mask_row(row)
        return row if self.is_own else masking.hide_private_parts(row)

    def approval_view(self, row: Approval | None, step: AgentStep) -> ApprovalView | None:
        """Return a step's approval request, if any, and whether the viewer can decide it."""
        if row is None:
            return None
        viewer = self.run.user_id if self.viewer is None else self.viewer
        may_decide = self.may_decide and not (row.is_waiting and row.is_forbidden_for(viewer))
        return ApprovalView(
            self.visible_row(row), may_decide, is_in_row=True, viewer=viewer, step_row=step
        )

    @property
    def is_unstarted(self) -> bool:
        """Whether the run was only created so far."""
        return self.until == 0

    @cached_property
    def steps(self) -> list[StepView]:
        if self.is_unstarted:
            return []
        waterfall = self.waterfall
        if waterfall is None:
            return step_views(self)
        approvals = {row.step: row for row in waterfall.approvals}
        return [
            StepView(
                visible := self.visible_row(step),
                self.run,
                self.place,
                approval=self.approval_view(approvals.get(step.number), visible),
                bar=waterfall.bar(step),
                waits=tuple(self.waits.get(step.number, ())),
                thread=self.thread(step.number),
                path=self.path(step),
                job=self.job(step),
                is_brief=self.is_brief,
            )
            for step in waterfall.steps
        ]

    @cached_property
    def first_steps(self) -> list[StepView]:
        """The rows a page starts with; the others are loaded on request."""
        if self.size == BARE:
            return self.steps[:BARE_ROWS]
        if self.place == "chat":
            return visible_steps(self.steps, set())
        return self.steps[:MAX_ROWS] if self.waterfall and not self.is_whole else self.steps

    def of(self, size: int) -> Self:
        """Return a smaller version of the view."""
        return replace(self, size=size)

    @property
    def is_brief(self) -> bool:
        return self.size > FULL

    @property
    def more_steps(self) -> int:
        """The number of rows loaded later on this page."""
        return 0 if self.place == "chat" else len(self.steps) - len(self.first_steps)

    @property
    def is_searchable(self) -> bool:
        """Whether it has too many rows to take in at a glance."""
        return self.place == "trace" and not self.run.is_live and len(self.steps) >= MANY_ROWS

    @property
    def problem_count(self) -> int:
        return sum(step.status in PROBLEMS for step in self.steps)

    @property
    def folded_count(self) -> int:
        """The number of rows that are only in the trace."""
        return len(self.steps) - len(self.first_steps) if self.place == "chat" else 0

    @cached_property
    def plan(self) -> PlanView | None:
        """The run's plan, if it has one and it fits."""
        return self._plan_view if self.size < BARE else None

    @cached_property
    def _plan_view(self) -> PlanView | None:
        plans = (step for step in self.steps if step.kind == AgentStep.Kind.PLAN)
        is_there = any(step.parent is None for step in plans)
        return PlanView.of(self.run, self.place, self.visible_row) if is_there else None

    def path(self, step: AgentStep) -> tuple[str, ...]:
        """Return the agents a step was handed through, ending with its own."""
        if step.agent_name == self.run.agent_name or not step.depth:
            return ()
        names = [step.agent_name]
        parent = step.parent
        while parent in self._parents_by_step:
            parent, name, _kind = self._parents_by_step[parent]
            if name != names[-1]:
                names.append(name)
        return tuple(reversed(names))

    def job(self, step: AgentStep) -> str:
        """Return who writes a plan or an evaluation in this step, if any."""
        if not step.depth or step.kind not in THINKING_KINDS:
            return ""
        parent = self._parents_by_step.get(step.parent)
        return step.agent_name if parent is not None and parent[2] in WRITTEN_KINDS else ""

    @cached_property
    def _parents_by_step(self) -> dict[int | None, tuple[int | None, str, str]]:
        """Each step's parent, agent and kind."""
        rows = _parents(self.run.pk)
        return {number: (parent, agent, kind) for number, parent, agent, kind in rows}

    @cached_property
    def active_agent(self) -> str:
        """The agent currently working, and for whom."""
        if not self.run.is_live or self.is_unstarted:
            return ""
        speaker = self.speaker or event_store.last_speaker(self.run)
        if speaker == self.run.agent_name:
            return ""
        speaking = [
            step
            for step in self.steps
            if step.is_open and step.path and speaker in {"", step.agent_name}
        ]
        return speaking[-1].full_path if speaking else ""

    def thread(self, step: int = 0) -> CommentThread | None:
        """Return the comments on a step or on the run; None if comments are off."""
        if not self.is_discussed:
            return None
        empty = CommentThread(run=self.run.pk, step=step, viewer=self.viewer)
        max_chars = MAX_THREAD_CHARS[self.size]
        return replace(self._threads.get(step, empty), max_chars=max_chars)

    @cached_property
    def _threads(self) -> dict[int, CommentThread]:
        return threads_by_step(self.run, self.viewer)

    @cached_property
    def waterfall(self) -> Waterfall | None:
        """The steps on a timeline, once the run has ended."""
        if self.place != "trace" or self.run.ended_at is None or self.run.is_imported:
            return None  # the times of an imported answer's notes are unknown
        return Waterfall(
            self.run.started_at,
            self.run.ended_at,
            steps=sort_steps(event_store.brief_steps(self.run)),
            approvals=list(self.run.approvals.select_related("decided_by")),
            first_words=event_store.first_delta_times(self.run),
        )

    @cached_property
    def split(self) -> TimeBreakdown | None:
        return self.waterfall.split() if self.waterfall else None

    @cached_property
    def side_effects(self) -> SideEffects | None:
        """The run's side effects, without those of replayed steps."""
        done = [step for step in self.steps if not step.is_replayed]
        return SideEffects.of(done) if self.waterfall else None

    @cached_property
    def effects(self) -> EffectsView | None:
        """Side effects to list next to the answer of a finished run."""
        if self.place != "chat" or self.run.is_live:
            return None
        return effects_view(self.run, self.steps, self.folded_count, self._plan_view)

    @cached_property
    def context_lines(self) -> list[ContextLine]:
        """What a chat says about the context of an answer."""
        return context_lines(self.steps) if self.place == "chat" else []

    @cached_property
    def memory_cards(self) -> list[MemoryCard]:
        """What was saved or suggested, for the user themselves."""
        is_here = self.place == "chat" and self.is_own and not self.run.is_live
        return memory_cards(self.run, self.steps) if is_here else []

    @cached_property
    def questions(self) -> list[Approval]:
        """The run's approvals, if there were any."""
        return (
            list(self.run.approvals.all()) if self.has_asked and not self.is_unstarted else []
        )

    @property
    def _waited_for(self) -> list[Approval]:
        """The approvals that a person decided, without the automatic ones."""
        return [row for row in self.questions if not row.granted_scope]

    @cached_property
    def waits(self) -> dict[int, list[WaitInterval]]:
        """Times waited for a person, per step and its parents."""
        intervals: dict[int, list[WaitInterval]] = {}
        for row in self._waited_for:
            number: int | None = row.step
            while number is not None:
                intervals.setdefault(number, []).append((row.asked_at, row.decided_at))
                number = self._parents_by_step.get(number, (None, "", ""))[0]
        return intervals

    @cached_property
    def panel(self) -> panel_view.PanelView | None:
        """The panel's answers, once the run has ended."""
        steps = () if self.run.is_live or self.is_brief else self.steps
        return next((s.panel for s in steps if s.parent is None and s.panel), None)

    @cached_property
    def findings(self) -> list[StepView]:
        """Results of a run without an answer, so that they are easy to find."""
        if self.run.is_live or self.run.answer or self.run.status == Run.Status.BLOCKED:
            return []
        results = [
            step
            for step in self.steps
            if step.kind == AgentStep.Kind.TOOL
            and not step.step.has_effects  # those are listed below
            and step.status == AgentStep.Status.DONE
        ]
        return results[-MAX_FINDINGS:]


def step_views(
    view: RunRows,
    only: Collection[int] | None = None,
    loaded: Iterable[AgentStep] | None = None,
) -> list[StepView]:
    """Return a run's rows, or `only` some, with their approvals; or those that are `loaded`."""
    run = view.run
    until = view.until
    approvals = {row.step: row for row in view.questions}
    return [
        StepView(
            visible := view.visible_row(step),
            run,
            view.place,
            until,
            view.approval_view(approvals.get(step.number), visible),
            masker=view.masker,
            now=view.now,
            waits=(
                *view.waits.get(step.number, ()),
                *projection.queue_waits(step.notes, step.ended_at),
            ),
            thread=view.thread(step.number),
            path=view.path(step),
            job=view.job(step),
            is_brief=view.is_brief,
        )
        for step in sort_steps(_load_steps(view, only) if loaded is None else loaded)
        if until is None or step.first_seq <= until
    ]


def visible_steps(
    steps: Sequence[StepView], folded: set[int], numbers: Set[int] = frozenset()
) -> list[StepView]:
    """Return the rows that fit in a chat besides those `shown`: the first that started.

    Work for the items of a list is omitted, unless it waits for approval.
    """
    remaining_rows = MAX_CHAT_STEPS - len(numbers - folded)
    for view in sorted(steps, key=lambda view: view.number):
        if view.number in numbers or view.number in folded:
            continue
        if remaining_rows <= 0 or is_folded(view.step, folded):
            folded.add(view.number)
        else:
            remaining_rows -= 1
    return [v for v in steps if v.number not in folded or v.approval is not None]


def _load_steps(view: RunRows, only: Collection[int] | None) -> Iterable[AgentStep]:
    run = view.run
    if view.place in DEFERRED_FIELDS:
        return event_store.brief_steps(
            run, MAX_SHOWN_CHARS, without=DEFERRED_FIELDS[view.place]
        )
    if "steps" in getattr(run, "_prefetched_objects_cache", ()):
        return [step for step in run.steps.all() if only is None or step.number in only]
    if only is not None:
        return [step for number in sorted(only) for step in _step_by_number(run.pk, number)]
    return _all_steps(run.pk)


@compiled_query
def _parents(run: int) -> QuerySet[AgentStep, tuple[int, int | None, str, str]]:
    steps = AgentStep.objects.filter(run=run).order_by()
    return steps.values_list("number", "parent", "agent_name", "kind")


@compiled_query
def _step_by_number(run: int, number: int) -> QuerySet[AgentStep]:
    return AgentStep.objects.filter(run=run, number=number)


@compiled_query
def _all_steps(run: int) -> QuerySet[AgentStep]:
    return AgentStep.objects.filter(run=run)
