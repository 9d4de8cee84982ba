"""A step as people see it: one row."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.functional import cached_property
from django.utils.translation import gettext as _

from agents.access.masking import Masker
from agents.engine.loop import HANDOFF_PREFIX, AskPersonTool
from agents.engine.plans import JUDGE, MODERATOR, MONITOR, PLANNER
from agents.models import AgentStep, Run
from agents.runs import clocks, event_store, projection
from agents.runs.engine_messages import translate

from . import panel_view, status_text
from .approvals import ApprovalView
from .comments import CommentThread
from .formatting import (
    MAX_ROW_CHARS,
    MAX_SHOWN_CHARS,
    format_compact,
    format_value,
    one_line,
    parse_json_text,
    unwrap_single,
)
from .links import milliseconds, trace_url
from .markdown import reveal_invisible, truncate
from .plan_view import PlanFacts
from .structured_output import OutputView, inline_text, table_preview
from .waterfall import THINKING_KINDS, StepBar

MAX_EXCERPT_CHARS = 300
MAX_THOUGHT_CHARS = 8_000  # of what is being thought; all of it is in the trace afterwards
# What differs from one plain step to another; in all else they have nothing.
VARIABLE_FIELDS = {
    *("id", "run", "number", "turn", "first_seq", "agent_name", "kind", "status", "request"),
    *("prompt_tokens", "completion_tokens", "cost", "started_at", "ended_at"),
}
EMPTY_DEFAULTS = {
    field.attname: field.get_default()
    for field in AgentStep._meta.concrete_fields
    if field.name not in VARIABLE_FIELDS
}
ERROR_PREFIX = "Error: "
Wait = tuple[datetime, datetime | None]  # asked and answered
JOB_LABELS: dict[str, Callable[[], str]] = {
    PLANNER: lambda: _("Writing the plan"),
    MONITOR: lambda: _("Checking the result"),
    MODERATOR: lambda: _("Comparing the answers"),
    JUDGE: lambda: _("Judging the answers"),
}


@dataclass(frozen=True)
class StepView:
    """One row. `place` is the page it stands on: there are many runs in a chat."""

    step: AgentStep
    run: Run
    place: str = "chat"
    until: int | None = None
    approval: ApprovalView | None = None
    words: str | None = None  # what it has said so far, where that is known
    veil: Masker | None = None
    now: datetime | None = None  # the time of a moment that is looked at again, if not ours
    waits: tuple[Wait, ...] = ()  # when a person was waited for in it
    bar: StepBar | None = None  # on the run's clock, where that has stopped
    thread: CommentThread | None = None  # where several people can talk about it
    path: tuple[str, ...] = ()  # through which agents it was handed on, where it was
    job: str = ""  # whose it is, where a plan or a check is written: data, not words to read
    is_brief: bool = False  # True where there is no room for what is in it

    def __getattr__(self, name: str) -> Any:
        return getattr(self.step, name)

    @property
    def pk(self) -> str:
        """The name of its element on the page."""
        number = str(self.step.number)
        return number if self.place == "trace" else f"{self.run.pk}-{number}"

    @property
    def href(self) -> str:
        return f"{trace_url(self.run.pk)}#step-{self.step.number}"

    @property
    def is_plain(self) -> bool:
        """Whether it only thinks or answers, in a chat, and nobody has said anything of it."""
        about = self.approval, self.thread, self.bar, self.veil, self.run.origin_step
        return (
            self.place == "chat"
            and self.step.kind in THINKING_KINDS
            and not (self.path or self.job or self.run.is_waiting or any(about))
            and not (self.is_brief or self.is_cut)
            and all(getattr(self.step, name) == value for name, value in EMPTY_DEFAULTS.items())
        )

    @property
    def detail_href(self) -> str:
        """All of it: the request, what was new in it, what it cost, its events."""
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
        """What became of a call with effects, in words that leave no doubt about the doubt."""
        is_unknown = self.status == AgentStep.Status.UNKNOWN
        return _("may have completed") if is_unknown else self.status_label

    @property
    def kind(self) -> str:
        """A plan or a check that is written is no answer."""
        return AgentStep.Kind.THOUGHT.value if self.job else self.step.kind

    @property
    def kind_label(self) -> str:
        return str(AgentStep.Kind(self.kind).label)

    @property
    def thought(self) -> str:
        """Of what broke off in a form there is only data, which whoever opens the step sees."""
        is_data = self.job and self.step.status != AgentStep.Status.DONE
        return "" if is_data else self.step.thought

    @property
    def thought_excerpt(self) -> str:
        """As much of it as a row has room for."""
        thought = self.thought
        return thought if len(thought) <= self.most else f"{truncate(thought, self.most)}…"

    @property
    def is_replayed(self) -> bool:
        """Whether another run did this, and it was only told again in this one."""
        return self.step.number < (self.run.origin_step or 0)

    @property
    def is_live(self) -> bool:
        """While a person is waited for, nothing moves: not even what has begun."""
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
        """Who does this, where that is not the agent that was asked; through whom, if any."""
        return " → ".join(self.path[1:])

    @property
    def full_path(self) -> str:
        return " → ".join(self.path)

    @property
    def colleague(self) -> str:
        """Which agent is given a task here; such a call has no effect of its own."""
        is_asked = self.step.action.startswith(HANDOFF_PREFIX) and not self.step.effect
        name = self.step.action.removeprefix(HANDOFF_PREFIX)
        return name if is_asked and self.step.action != AskPersonTool.name else ""

    @property
    def _question_intent(self) -> str:
        """What a person is asked, or somebody of a group."""
        asked = self.step.action_input
        asked = asked if isinstance(asked, dict) else {"question": format_compact(asked)}
        question = reveal_invisible(inline_text(str(asked.get("question", ""))))
        about = {"question": question, "role": reveal_invisible(str(asked.get("role") or ""))}
        if about["role"]:
            return _("Question for “%(role)s”: %(question)s") % about
        return _("Question for the user: %(question)s") % about

    @property
    def _handoff_intent(self) -> str:
        about = {"agent": self.colleague, "task": format_compact(self.step.action_input)}
        if self.step.status != AgentStep.Status.FAILED:
            return _("Handoff to %(agent)s: %(task)s") % about
        about["why"] = translate(self.step.observation.removeprefix(ERROR_PREFIX))
        return _("%(agent)s failed: %(why)s") % about

    @cached_property
    def intent(self) -> str:
        """What the row says in one line."""
        step = self.step
        if panel_view.is_panel(step):
            return one_line(panel_view.summary(step))
        match step.kind:
            case AgentStep.Kind.TOOL if self.colleague:
                return one_line(self._handoff_intent)
            case AgentStep.Kind.TOOL if step.action == AskPersonTool.name:
                return one_line(self._question_intent)
            case AgentStep.Kind.TOOL:
                return one_line(f"{step.action}: {format_compact(step.action_input)}")
            case AgentStep.Kind.GUARDRAIL:
                return one_line(self._guardrail_intent)
            case AgentStep.Kind.TASK:
                return one_line(self._task_intent)
            case AgentStep.Kind.PLAN:
                return one_line(self._plan_intent)
            case AgentStep.Kind.EVALUATION:
                return one_line(self._evaluation_intent)
            case AgentStep.Kind.ANSWER if not step.thought and not self.job:
                return _("Writing the answer")
        if step.is_live and (waits := status_text.waiting_sentence(step.notes)):
            return one_line(waits)
        if step.status == AgentStep.Status.FAILED and step.observation:
            return one_line(step.observation)
        if self.job in JOB_LABELS:
            return JOB_LABELS[self.job]()
        return one_line(self.thought) or (_("Thinking…") if step.is_live else _("Thinking"))

    @property
    def _guardrail_intent(self) -> str:
        """What a guardrail says, and of which tool where it is about one."""
        tool, words = self.facts.get("tool", ""), translate(self.step.observation)
        return f"{tool}: {words}" if tool else words

    @property
    def _task_intent(self) -> str:
        """A step of a plan and who does it; or why it was not done, or not well."""
        step = self.step
        is_well = step.status not in {AgentStep.Status.FAILED, AgentStep.Status.SKIPPED}
        # A question stands in the row below, with what it refers to filled in.
        what = "" if self.facts.get("work") == "ask" else self.facts.get("what", "")
        about = what if is_well else translate(step.observation)
        is_told = about in {"", step.action}
        return step.action if is_told else f"{step.action} · {about}"

    @property
    def _plan_intent(self) -> str:
        step = self.step
        is_given_up = step.status in {AgentStep.Status.FAILED, AgentStep.Status.CANCELLED}
        if is_given_up and step.observation:
            return translate(step.observation)
        if not self.plan_facts:
            return _("Writing the plan") if step.turn < 2 else _("Revising the plan")
        words = self.plan_facts.plan.description or _("Untitled plan")
        return (
            f"{words} ({self.plan_facts.difference})" if self.plan_facts.difference else words
        )

    @property
    def _evaluation_intent(self) -> str:
        if "is_met" not in self.facts:
            return _("Checking the result: %(name)s") % {"name": self.step.action}
        said = _("As expected: %(why)s") if self.is_met else _("Not as expected: %(why)s")
        return said % {"why": translate(self.facts.get("reason", ""))}

    @property
    def facts(self) -> dict[str, Any]:
        """What the row of a plan, of a step of it, or of a check says beside its name."""
        facts = self.step.action_input
        return facts if isinstance(facts, dict) else {}

    @cached_property
    def plan_facts(self) -> PlanFacts:
        is_plan = self.step.kind == AgentStep.Kind.PLAN
        return PlanFacts.of(self.step) if is_plan else PlanFacts()

    @property
    def panel(self) -> panel_view.PanelView | None:
        """What a panel made of its answers, if that is what this row is about."""
        return panel_view.from_step(self.step)

    @property
    def is_met(self) -> bool:
        return bool(self.facts.get("is_met"))

    @property
    def why(self) -> str:
        """What a check found, in the reader's language."""
        return translate(self.facts.get("reason", ""))

    @property
    def notes(self) -> list[str]:
        return [words for note in self.step.notes if (words := status_text.note_sentence(note))]

    @property
    def duration_ms(self) -> float | None:
        """How long it worked, without the time that a person was waited for in it."""
        if self.step.status == AgentStep.Status.UNSTARTED:
            return None
        took = milliseconds(self.step.started_at, self.step.ended_at)
        if took is None or not self.waits:
            return took
        began, ended = self.step.started_at, self.step.ended_at
        within = [(max(asked, began), said) for asked, said in self.waits if asked < ended]
        return max(0.0, took - projection.waited_seconds(within, ended) * 1000)

    @property
    def elapsed_ms(self) -> float:
        return milliseconds(self.step.started_at, self.now or clocks.now(self.run.pk)) or 0

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
        """Where on its bar, and how wide, a person was waited for."""
        return [
            (self._clock_percent(asked), self._width(asked, said)) for asked, said in self.waits
        ]

    def _width(self, start: datetime, end: datetime | None) -> float:
        until = self._clock_percent(
            end or self.run.ended_at or self.now or clocks.now(self.run.pk)
        )
        return round(max(1.0, min(until, 100) - self._clock_percent(start)), 2)

    @property
    def most(self) -> int:
        """So many characters of each text are shown."""
        return MAX_ROW_CHARS if self.place == "chat" else MAX_SHOWN_CHARS

    @property
    def is_cut(self) -> bool:
        """Whether there is more in it than a chat has room for."""
        if self.place != "chat":
            return False
        texts = self.step.thought, self.input_text, self.request_text
        return self._observation_size > self.most or any(
            len(text) > self.most for text in texts
        )

    @cached_property
    def input_text(self) -> str:
        return format_value(unwrap_single(self.step.action_input), self.most)

    @cached_property
    def request_text(self) -> str:
        return format_value(self.step.request, self.most)

    @cached_property
    def result_text(self) -> str:
        """In a trace only the beginning: whoever wants more opens the step."""
        if self.left_out:
            return self.step.observation[: event_store.MAX_OBSERVATION_CHARS]
        if self._observation_size > MAX_SHOWN_CHARS:  # there may be no more at hand than that
            left_out = _("%(count)d characters omitted") % {
                "count": self._observation_size - self.most
            }
            return f"{self.step.observation[: self.most]}\n\n[… {left_out} …]"
        return format_value(parse_json_text(self.step.observation), self.most)

    @property
    def _observation_size(self) -> int:
        return getattr(self.step, "found_size", None) or len(self.step.observation)

    @property
    def left_out(self) -> int:
        """So many characters more were found than the row shows."""
        return (
            max(0, self._observation_size - event_store.MAX_OBSERVATION_CHARS)
            if self.is_trace
            else 0
        )

    @property
    def excerpt(self) -> str:
        """The beginning of what a tool said."""
        text = " ".join(self.step.observation[: MAX_EXCERPT_CHARS * 2].split())
        return text if len(text) <= MAX_EXCERPT_CHARS else f"{text[: MAX_EXCERPT_CHARS - 1]}…"

    @cached_property
    def few_rows(self) -> OutputView | None:
        """The same, where it is rows."""
        return table_preview(self.step.observation)

    @property
    def is_streaming(self) -> bool:
        """Whether its words are for people to read as they come."""
        return self.is_live and not self.job

    @cached_property
    def live_text(self) -> str:
        if not self.is_streaming or self.step.kind != AgentStep.Kind.THOUGHT:
            return ""
        if self.words is not None:
            return self.words[:MAX_THOUGHT_CHARS]
        said = event_store.streamed_thought(self.run, self.step, self.until)
        told = said if self.veil is None else self.veil.begin(self.step.number, said)
        return told[:MAX_THOUGHT_CHARS]

    def _clock_percent(self, moment: datetime) -> float:
        """Where on the run's clock, in percent."""
        start, end = (
            self.run.started_at,
            self.run.ended_at or self.now or clocks.now(self.run.pk),
        )
        whole = max((end - start).total_seconds(), 0.001)
        return round(min(99.0, max(0.0, (moment - start).total_seconds() / whole * 100)), 2)
