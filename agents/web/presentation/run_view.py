"""A run for display: its rows, answer and feedback."""

from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.utils.functional import cached_property
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.access import masking
from agents.access.masking import ANSWER_STEP, Masker, Row
from agents.access.names import display_name
from agents.db.compiled_queries import compiled_query
from agents.engine.loop import StopReason
from agents.models import AgentStep, Approval, Run
from agents.runs import clocks, event_store, projection
from agents.runs.engine_messages import translate

from . import panel_view, status_text
from .approvals import ApprovalView
from .comments import MAX_BRIEF_CHARS, MAX_COMMENTS_CHARS, CommentThread, threads_by_step
from .effects import EffectsView, effects_view
from .evidence import STEP_LINK, Evidence, Sources, find_evidence, observed, sources_of
from .formatting import MAX_ROW_CHARS, MAX_SHOWN_CHARS, format_value
from .links import chat_url, milliseconds, text_url, trace_url
from .markdown import (
    MAX_ANSWER_CHARS,
    BoundedMarkdown,
    StreamingMarkdown,
    render_excerpt,
    render_markdown,
)
from .plan_view import MAX_CHAT_STEPS, PlanView, is_folded
from .side_effects import SideEffects
from .step_order import sort_steps
from .step_view import StepView, WaitInterval
from .structured_output import OutputView, build_output_view
from .waterfall import THINKING_KINDS, TimeBreakdown, Waterfall

MAX_FINDINGS = 5
MAX_ROWS = 100
# Fields not needed where all steps are loaded at once.
DEFERRED_FIELDS = {"compare": ("request",), "shared": ()}
WRITTEN_KINDS = {AgentStep.Kind.PLAN, AgentStep.Kind.EVALUATION}
DEMO_MODEL = "demo"
EFFORT_LABELS = {
    "low": gettext_lazy("low effort"),
    "medium": gettext_lazy("medium effort"),
    "high": gettext_lazy("high effort"),
}
# How much of a run is rendered: everything that fits, rows without content, or little more than
# the answer.
FULL, BRIEF, BARE = range(3)
BARE_ROWS = 20
MAX_THREAD_CHARS = {
    FULL: MAX_COMMENTS_CHARS,
    BRIEF: MAX_BRIEF_CHARS,
    BARE: 0,
}  # characters per thread
# Pages that display one answer in full.
FULL_ANSWER_PLACES = {"compare", "shared"}
# Pages whose answers have links to the steps.
EVIDENCE_PLACES = {"chat", "trace", "shared"}


@dataclass(frozen=True)
class CorrectionView:
    """A reviewer's correction, with its author."""

    review: Any

    @cached_property
    def _excerpt(self) -> tuple[SafeString, int]:
        return render_excerpt(self.review.correction)

    @property
    def text(self) -> SafeString:
        return self._excerpt[0]

    @property
    def left_out(self) -> int:
        """Number of characters that aren't displayed."""
        return len(self.review.correction) - self._excerpt[1]

    @property
    def href(self) -> str:
        return text_url(self.review.run_id, "correction")

    @property
    def at(self) -> datetime:
        return self.review.corrected_at

    @property
    def by(self) -> str:
        return display_name(self.review.corrected_by)


@dataclass(frozen=True)
class RunView:
    """A run with its rows and answer; with `until`, as it was after that event."""

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
    def is_own(self) -> bool:
        return self.viewer is None or self.viewer == self.run.user_id

    @property
    def template(self) -> str:
        """The template: a run's own page starts with the answer."""
        return "trace/_run.html" if self.place == "trace" else "run/_run.html"

    def visible_row(self, row: Row) -> Row:
        return row if self.masker is None else masking.mask_row(row)

    def approval_view(self, row: Approval) -> ApprovalView:
        """Return an approval request and whether the viewer can decide it."""
        viewer = self.run.user_id if self.viewer is None else self.viewer
        may_decide = self.may_decide and not (row.is_waiting and row.is_forbidden_for(viewer))
        return ApprovalView(self.visible_row(row), may_decide, is_in_row=True, viewer=viewer)

    @property
    def is_unstarted(self) -> bool:
        """Whether the run was only created so far."""
        return self.until == 0

    @cached_property
    def steps(self) -> list[StepView]:
        if self.is_unstarted:
            return []
        return (
            step_views(self)
            if self.waterfall is None
            else self._waterfall_steps(self.waterfall)
        )

    def _waterfall_steps(self, waterfall: Waterfall) -> list[StepView]:
        approvals = {row.step: self.approval_view(row) for row in waterfall.approvals}
        return [
            StepView(
                self.visible_row(step),
                self.run,
                self.place,
                approval=approvals.get(step.number),
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

    def of(self, size: int) -> "RunView":
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
        names, parent = [step.agent_name], step.parent
        while parent in self._parents_by_step:
            parent, name, _kind = self._parents_by_step[parent]
            names += [name] if name != names[-1] else []
        return tuple(reversed(names))

    def job(self, step: AgentStep) -> str:
        """Return who writes a plan or an evaluation in this step, if any."""
        if (
            not step.depth
            or step.kind not in THINKING_KINDS
            or step.parent not in self._parents_by_step
        ):
            return ""
        return step.agent_name if self._parents_by_step[step.parent][2] in WRITTEN_KINDS else ""

    @cached_property
    def _parents_by_step(self) -> dict[int | None, tuple[int | None, str, str]]:
        """Each step's parent, agent and kind."""
        known = _parents(self.run.pk)
        return {number: (parent, agent, kind) for number, parent, agent, kind in known}

    @cached_property
    def active_agent(self) -> str:
        """The agent currently working, and for whom."""
        if not self.run.is_live:
            return ""
        speaker = self.speaker or event_store.last_speaker(self.run)
        if speaker == self.run.agent_name:
            return ""
        named = [s for s in self.steps if s.is_open and s.path]
        speaking = [s for s in named if speaker in {"", s.agent_name}]
        return speaking[-1].full_path if speaking else ""

    def thread(self, step: int = 0) -> CommentThread | None:
        """Return the comments on a step or on the run; None if comments are off."""
        if not self.is_discussed:
            return None
        empty = CommentThread(run=self.run.pk, step=step, viewer=self.viewer)
        return replace(self._threads.get(step, empty), most=MAX_THREAD_CHARS[self.size])

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
    def markdown(self) -> StreamingMarkdown:
        text = "" if self.is_unstarted else event_store.streamed_answer(self.run, self.until)
        visible = text if self.masker is None else self.masker.begin(ANSWER_STEP, text)
        markdown_class = (
            StreamingMarkdown if self.place in FULL_ANSWER_PLACES else BoundedMarkdown
        )
        return markdown_class(visible, f"answer-{self.run.pk}")

    @property
    def frozen_html(self) -> SafeString:
        return self.markdown.frozen_html if self.run.is_live else self.evidence.html

    @cached_property
    def evidence(self) -> Evidence:
        """The answer's HTML with links to what it is based on, once it is complete."""
        html = self._answer_excerpt[0]
        if not self.has_evidence:
            return Evidence(html)
        page = "" if self.place == "shared" else trace_url(self.run.pk)
        return find_evidence(html, self.sources, f"{page}{STEP_LINK}")

    @property
    def has_evidence(self) -> bool:
        """Whether the page says what the answer is based on."""
        is_text = bool(self.run.answer) and self.run.output is None
        is_here = self.place in EVIDENCE_PLACES and self.shows_results
        return is_text and is_here and not self.run.is_live

    @cached_property
    def sources(self) -> Sources:
        """The run's observations and passages."""
        if self.waterfall is not None:  # its rows have only the beginning of a result
            has_calls = any(s.kind == AgentStep.Kind.TOOL for s in self.waterfall.steps)
            return sources_of(self.run, self.visible_row) if has_calls else ()
        return observed(sorted((step.step for step in self.steps), key=lambda s: s.number))

    @cached_property
    def _answer_excerpt(self) -> tuple[SafeString, int]:
        """The answer's HTML and how many characters it has."""
        answer = self.run.answer
        if self.place in FULL_ANSWER_PLACES:
            return render_markdown(answer), len(answer)
        grown = None if self.is_brief else self.grown
        if grown is not None and grown.is_whole(answer) and grown.is_short:
            return grown.whole, len(answer)
        return render_excerpt(answer, MAX_ROW_CHARS if self.is_brief else MAX_ANSWER_CHARS)

    @property
    def answer_size(self) -> int:
        """The answer's full length; in lists, only the displayed part is loaded."""
        if self.run.is_live:
            return self.answer_shown + self.answer_left_out
        return vars(self.run).get("answer_size") or len(self.run.answer)

    @property
    def answer_shown(self) -> int:
        return self.markdown.shown_chars if self.run.is_live else self._answer_excerpt[1]

    @property
    def answer_left_out(self) -> int:
        """Number of characters that aren't displayed."""
        if self.run.is_live:
            return self.markdown.left_out
        return self.answer_size - self._answer_excerpt[1]

    @property
    def answer_href(self) -> str:
        return text_url(self.run.pk, "answer")

    @property
    def tail(self) -> SafeString:
        return self.markdown.tail_html if self.run.is_live else SafeString()

    @cached_property
    def output_view(self) -> OutputView | None:
        """The structured answer; a trace displays the JSON itself."""
        is_there = self.run.output is not None and self.place == "chat" and not self.is_brief
        return build_output_view(self.run.output) if is_there else None

    @cached_property
    def panel(self) -> panel_view.PanelView | None:
        """The panel's answers, once the run has ended."""
        steps = () if self.run.is_live or self.is_brief else self.steps
        return next((s.panel for s in steps if s.parent is None and s.panel), None)

    @property
    def output_text(self) -> str:
        if self.run.output is None:
            return ""
        return format_value(
            self.run.output, MAX_ROW_CHARS if self.is_brief else MAX_SHOWN_CHARS
        )

    @property
    def pk(self) -> str:
        """The id for elements, not localized like a number."""
        return str(self.run.pk)

    @property
    def href(self) -> str:
        return trace_url(self.run.pk)

    @property
    def status_label(self) -> str:
        return str(Run.Status(self.run.status).label)

    @property
    def is_demo(self) -> bool:
        return self.run.model == DEMO_MODEL

    @property
    def model_label(self) -> str:
        return model_label(self.run.model)

    @property
    def tuning_label(self) -> str:
        """The effort or temperature that the user chose, if any."""
        effort, temperature = self.run.tuning
        if effort:
            return str(EFFORT_LABELS.get(effort, effort))
        if temperature is None:
            return ""
        return _("temperature %(value)g") % {"value": temperature}

    @property
    def route_label(self) -> str:
        """How the model was called, for the trace; imported answers say so everywhere."""
        if self.run.is_imported:
            return _("imported")
        if self.place != "trace":
            return ""
        roads = {"direct": _("direct"), "litellm": _("via LiteLLM")}
        return roads.get(self.run.road, "")

    @property
    def duration_ms(self) -> float | None:
        """How long the run worked, without waiting for people."""
        return None if self.run.active is None else self.run.active * 1000

    @property
    def elapsed_ms(self) -> float:
        """How long the run has worked so far."""
        since = milliseconds(self.run.started_at, self._now) or 0
        # In whole microseconds, so that float noise doesn't change it while nothing happens.
        return max(0.0, round(since - self.waited_ms, 3))

    @cached_property
    def waited_ms(self) -> float:
        """How long the run waited for people, or has so far."""
        if not self.run.is_live:
            return self.run.waited * 1000
        intervals = [(row.asked_at, row.decided_at) for row in self._waited_for]
        return projection.waited_seconds(intervals, self._now) * 1000

    @property
    def has_waited(self) -> bool:
        """Whether anyone was waited for, known as soon as there is a request."""
        return bool(self._waited_for) if self.run.is_live else self.run.waited > 0

    @property
    def is_waiting_now(self) -> bool:
        """Whether a person is being waited for; only that time is running."""
        return self.run.is_live and any(row.is_waiting for row in self.questions)

    @cached_property
    def _now(self) -> datetime:
        # Read once, or the time of a run that waits would grow by what lies between.
        return self.now or clocks.now(self.run.pk)

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
        found: dict[int, list[WaitInterval]] = {}
        for row in self._waited_for:
            number: int | None = row.step
            while number is not None:
                found.setdefault(number, []).append((row.asked_at, row.decided_at))
                number = self._parents_by_step.get(number, (None, "", ""))[0]
        return found

    @property
    def tokens(self) -> int:
        return self.run.total_tokens

    @property
    def user_name(self) -> str:
        return display_name(self.run.user)

    @property
    def chat_url(self) -> str:
        return chat_url(self.run)

    @property
    def sentence(self) -> str:
        return status_text.ending_sentence(self.run, is_shared=self.is_discussed)

    @cached_property
    def findings(self) -> list[StepView]:
        """Results of a run without an answer, so that they are easy to find."""
        if self.run.is_live or self.run.answer or self.run.status == Run.Status.BLOCKED:
            return []
        calls = [step for step in self.steps if step.kind == AgentStep.Kind.TOOL]
        done = [call for call in calls if not call.step.has_effects]  # those are listed below
        found = [step for step in done if step.status == AgentStep.Status.DONE]
        return found[-MAX_FINDINGS:]

    @property
    def can_rate(self) -> bool:
        """Whether the viewer can rate the answer: their own, once it is there."""
        return self.is_own and self.masker is None and bool(self.run.answer)

    @property
    def can_continue(self) -> bool:
        """Whether another run can continue: this one ran out of steps or was cut off."""
        is_cut = self.run.stopped_reason == StopReason.COMPLETED and bool(self.run.detail)
        is_out = self.run.stopped_reason == StopReason.MAX_STEPS
        goes_on = is_cut or is_out or self.run.can_continue or self.is_half_answered
        return self.place == "chat" and self.may_decide and goes_on

    @property
    def is_half_answered(self) -> bool:
        """Whether the user stopped the run in the middle of its answer."""
        return self.run.stopped_reason == StopReason.CANCELLED and bool(self.run.answer)

    @property
    def can_ask_again(self) -> bool:
        """Whether the same question can be sent again, if continuing isn't better."""
        ended_early = {Run.Status.STOPPED, Run.Status.FAILED, Run.Status.INTERRUPTED}
        is_here = self.place == "chat" and self.may_decide
        is_offered = not self.can_continue or self.is_half_answered
        return is_here and self.run.status in ended_early and is_offered

    @property
    def advice(self) -> str:
        return translate(self.run.advice)

    @cached_property
    def rating(self) -> Any:
        """The user's rating."""
        is_shown = self.is_judged and self.masker is None and not self.run.is_live
        ratings = self.run.ratings.all() if is_shown else ()
        return next((row for row in ratings if row.user_id == self.run.user_id), None)

    @cached_property
    def judgement(self) -> Any:
        """The review, if there is one."""
        is_there = self.is_judged and not self.run.is_live
        review = getattr(self.run, "review", None) if is_there else None
        return review and self.visible_row(review)

    @property
    def is_flagged(self) -> bool:
        """Whether the user asked for a review that is still open."""
        review = self.judgement
        return (
            review is not None and review.is_open and review.flagged_by_id == self.run.user_id
        )

    @property
    def correction(self) -> CorrectionView | None:
        """The corrected answer."""
        review = self.judgement
        return CorrectionView(review) if review is not None and review.correction else None


def step_views(view: RunView, only: Collection[int] | None = None) -> list[StepView]:
    """Return a run's rows, or `only` some, with their approvals."""
    run, until = view.run, view.until
    approvals = {row.step: view.approval_view(row) for row in view.questions}
    return [
        StepView(
            view.visible_row(step),
            run,
            view.place,
            until,
            approvals.get(step.number),
            masker=view.masker,
            now=view.now,
            waits=tuple(view.waits.get(step.number, ())),
            thread=view.thread(step.number),
            path=view.path(step),
            job=view.job(step),
            is_brief=view.is_brief,
        )
        for step in sort_steps(_load_steps(view, only))
        if until is None or step.first_seq <= until
    ]


def visible_steps(
    steps: Sequence[StepView], folded: set[int], numbers: Set[int] = frozenset()
) -> list[StepView]:
    """Return the rows that fit in a chat besides those `shown`: the first that started.

    Work for the items of a list is omitted, unless it waits for approval.
    """
    room = MAX_CHAT_STEPS - len(numbers - folded)
    for view in sorted(steps, key=lambda view: view.number):
        if view.number in numbers or view.number in folded:
            continue
        if room <= 0 or is_folded(view.step, folded):
            folded.add(view.number)
        else:
            room -= 1
    return [v for v in steps if v.number not in folded or v.approval is not None]


def _load_steps(view: RunView, only: Collection[int] | None) -> Iterable[AgentStep]:
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


def run_views(runs: Iterable[Run]) -> list[RunView]:
    return [RunView(run, place="trace") for run in runs]


def model_label(name: str) -> str:
    return _("Demo model") if name == DEMO_MODEL else name
