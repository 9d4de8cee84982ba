"""Approval requests for display."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth import get_user_model
from django.utils.functional import cached_property
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from agents.access.names import display_name
from agents.catalog import agent_factory
from agents.catalog.tools import tool_grants
from agents.db.sentences import translate
from agents.engine.plans import ExecutionPlan, ExecutionStep, diff_steps
from agents.models import Agent, AgentStep, Approval, ToolRegistration
from agents.runs.plan_edits import (
    MAX_EDITABLE_STEPS,
    WHOLE_PLAN,
    DraftStep,
    PlanCapabilities,
    PlanDraft,
    value_text,
)
from agents.runs.projection import decode_json

from ..formats.formatting import format_json
from ..formats.links import chat_url
from ..formats.structured_output import OutputView, split_tables
from ..markdown import render_exact, reveal_invisible
from ..plans.plan_lines import PlanLine, change_summary, plan_lines
from ..plans.plan_view import MAX_LINES
from .arguments import MAX_HTML_CHARS, ArgumentView, argument_views
from .call_heading import call_heading
from .decision_words import decision_words
from .limit_requests import LimitRequestView
from .question_form import QuestionView

# Limits for a row: characters of arguments; for their HTML, see `arguments`.
MAX_ARGUMENTS_CHARS = 20_000
MAX_EXCERPT_CHARS = 1_000
EFFECT_LABELS: Mapping[str, Callable[[], str]] = {
    AgentStep.Effect.READ: lambda: _("Read-only"),
    AgentStep.Effect.WRITE: lambda: _("Makes changes"),
    AgentStep.Effect.IRREVERSIBLE: lambda: _("Irreversible"),
}
# What was decided about a limit.
LIMIT_ACTIONS: Mapping[str, Callable[[], str]] = {
    "raise": lambda: _("raised the limit to %(limit)s"),
    "finish": lambda: _("let the run finish with what it had"),
    "stop": lambda: _("stopped the run"),
}


@dataclass(frozen=True)
class ApprovalView:
    """An approval request and its decision."""

    approval: Approval
    may_decide: bool = True
    is_inside: bool = True  # False for an expert who sees nothing else of the run
    visitor_of: str = ""  # the embedded chat of a visitor, in whose place the viewer decides
    typed: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    draft: PlanDraft | None = None  # a plan while it is edited
    problems: Mapping[int, Any] = field(default_factory=dict)  # of its steps or fields
    is_in_row: bool = False  # True inside a run, on a page with frames
    form: Mapping[int, Sequence[str]] | None = None  # what was typed into a tool's form
    viewer: int | None = None
    step_row: AgentStep | None = None  # of the call, as the viewer sees it

    def __getattr__(self, name: str) -> Any:
        return getattr(self.approval, name)

    @cached_property
    def always_scopes(self) -> tuple[str, ...]:
        """Where this viewer can allow the tool from now on."""
        if not (self.may_decide and self.approval.is_waiting):
            return ()
        return tool_grants.scopes_of_call(self.approval, self.viewer, self._tool, self.effect)

    @property
    def effect(self) -> str:
        """What the call does to the outside, as it was when it was requested."""
        return self.step_row.effect if self.step_row else ""

    @property
    def effect_label(self) -> str:
        label = EFFECT_LABELS.get(self.effect)
        return label() if label else ""

    @property
    def intention(self) -> str:
        """Why the agent makes the call, in its own words."""
        return reveal_invisible(self.step_row.thought.strip()) if self.step_row else ""

    @cached_property
    def _tool(self) -> ToolRegistration | None:
        tools = ToolRegistration.objects.select_related("server", "connection")
        return tools.filter(name=self.approval.tool).first()

    @property
    def heading(self) -> str:
        return call_heading(self.approval, self._tool)

    @property
    def connection(self) -> str:
        """Where the call goes: a database, a server or an address."""
        tool = self._tool
        if tool is None:
            return ""
        if tool.connection is not None:
            return f"{tool.connection.name} ({tool.connection.get_kind_display()})"
        if tool.server is not None:
            return tool.server.name
        # The rest of an endpoint's address is the administrators' business.
        return urlsplit(tool.endpoint).hostname or ""

    @property
    def is_call(self) -> bool:
        """Whether it is about a tool's call, which can be approved together with others."""
        return self.approval.why in tool_grants.ELIGIBLE_REASONS

    @property
    def automatic_sentence(self) -> str:
        """Why a call was approved automatically: its user always allows the tool."""
        if self.approval.granted_scope == tool_grants.IN_CHAT:
            sentence = _(
                "Approved automatically: %(person)s always allows %(tool)s in this chat."
            )
        else:
            sentence = _("Approved automatically: %(person)s always allows %(tool)s.")
        return sentence % {
            "person": self.decided_by_name or _("a user"),
            "tool": self.approval.tool,
        }

    @property
    def chat_url(self) -> str:
        return chat_url(self.approval.run)

    @cached_property
    def limit(self) -> LimitRequestView:
        """The limit that the run has reached."""
        facts = decode_json(self.approval.arguments)
        return LimitRequestView.of(facts if isinstance(facts, dict) else {})

    @cached_property
    def may_raise(self) -> bool:
        """Whether this viewer can raise the limit; others can only finish or stop the run."""
        if not self.may_decide or self.viewer is None:
            return False
        if self.viewer == self.approval.run.user_id and not self.approval.role:
            return True
        person = get_user_model().objects.filter(pk=self.viewer).first()
        return person is not None and self.approval.can_be_raised_by(person)

    @property
    def why_label(self) -> str:
        if self.approval.why == Approval.Why.AGENT:
            params = {"agent": self.approval.agent_name}
            return _("%(agent)s asks before every tool call.") % params
        return self.approval.get_why_display()

    @property
    def is_in_words(self) -> bool:
        """Whether it has been decided, and the step's row says so in a few words.

        What a person was asked and answered is part of the conversation and stays.
        """
        is_asked = self.approval.asks_person or self.approval.is_elicitation
        return not self.approval.is_waiting and not is_asked

    @property
    def decision(self) -> str:
        """What was decided and by whom, in a few words."""
        return decision_words(
            self.approval,
            self.verdict_label,
            self.decided_by_name,
            is_viewer=self.viewer is not None and self.viewer == self.approval.decided_by_id,
        )

    @property
    def is_detailed(self) -> bool:
        """Whether there is more to say about the decision than fits in the step's row."""
        is_edited = bool(self.approval.new_arguments) and not self.approval.is_budget
        return is_edited or bool(self.approval.reason or self.approval.granted_scope)

    @property
    def verdict_label(self) -> str:
        labels: dict[str, str] = {
            Approval.Verdict.APPROVED: _("retry approved"),
            Approval.Verdict.REJECTED: _("marked as done"),
        }
        if self.approval.is_unknown and self.approval.verdict in labels:
            return labels[self.approval.verdict]
        if self.approval.is_budget and self.approval.new_arguments in LIMIT_ACTIONS:
            return LIMIT_ACTIONS[self.approval.new_arguments]() % {
                "limit": self.limit.amount(self.limit.raised)
            }
        return self.approval.get_verdict_display()

    @property
    def question(self) -> str:
        """The question, in the agent's words."""
        arguments = decode_json(self.approval.arguments)
        return (
            str(arguments.get("question", "")) if isinstance(arguments, dict) else self.readable
        )

    @property
    def question_parts(self) -> list[OutputView]:
        """The question with tables rendered and invisible characters revealed."""
        return [_reveal_output(output) for output in split_tables(self.question)]

    @cached_property
    def asked(self) -> QuestionView:
        """What a running tool asks."""
        return QuestionView(self.approval, self.form, self.problems)

    @property
    def closed_why(self) -> str:
        """Why a tool's question has no answer."""
        return translate(self.approval.reason)

    @property
    def hides_personal_data(self) -> bool:
        """Whether personal data in an answer is masked, because the agent stores none."""
        policy = agent_factory.personal_data_policy(self.approval.run)
        return policy == Agent.PersonalData.UNKEPT

    @property
    def asker_name(self) -> str:
        return display_name(self.approval.run.user)

    @cached_property
    def has_recipients(self) -> bool:
        """Whether the role has members; otherwise the run's user decides."""
        return self.approval.role_members.exists()

    @cached_property
    def readable(self) -> str:
        """The full arguments: approval needs all of them."""
        return format_json(decode_json(self.approval.arguments))

    @property
    def editable(self) -> str:
        return self.typed.get("arguments") or self.readable

    @property
    def is_json_changed(self) -> bool:
        return self.editable != self.readable

    @property
    def is_changed(self) -> bool:
        if self.approval.is_plan:
            return self.is_json_changed
        are_typed = any(argument.text != argument.original for argument in self.arguments)
        return self.is_json_changed or are_typed

    @cached_property
    def arguments(self) -> list[ArgumentView]:
        """The arguments as they are meant to be read."""
        return argument_views(
            self.approval.pk, decode_json(self.approval.arguments), self.typed
        )

    @property
    def is_empty(self) -> bool:
        """Whether the call has no arguments."""
        return decode_json(self.approval.arguments) == {}

    @cached_property
    def exact(self) -> SafeString:
        return render_exact(self.readable)

    @cached_property
    def is_long(self) -> bool:
        """Whether it is too long for a row and has a page of its own."""
        if self.approval.is_elicitation or self.approval.is_budget:
            return False  # its form has limits of its own
        if not self.is_in_row or len(self.approval.arguments) <= MAX_EXCERPT_CHARS:
            return False
        return (
            len(self.approval.arguments) > MAX_ARGUMENTS_CHARS
            or len(self.exact) > MAX_HTML_CHARS
        )

    @property
    def excerpt(self) -> SafeString:
        """The beginning, for viewers of the run."""
        return render_exact(self.readable[:MAX_EXCERPT_CHARS])

    @property
    def size(self) -> int:
        return len(self.readable)

    @cached_property
    def lines(self) -> list[PlanLine]:
        """The steps of the plan to approve."""
        return plan_lines(self.plan)

    @cached_property
    def plan(self) -> ExecutionPlan:
        return _parse_plan(self.approval.arguments)

    @property
    def first_lines(self) -> list[PlanLine]:
        return self.lines[:MAX_LINES]

    @property
    def more_lines(self) -> int:
        return len(self.lines) - len(self.first_lines)

    @property
    def description(self) -> str:
        return self.plan.description

    @cached_property
    def steps(self) -> "list[EditedStep]":
        """The plan's steps as editable forms."""
        draft = self.draft or PlanDraft.of(self.plan)
        if len(self.lines) > MAX_EDITABLE_STEPS:
            return []
        return [EditedStep(step, draft, self) for step in draft.steps]

    @property
    def plan_problems(self) -> list[str]:
        """Problems of the plan as a whole."""
        return list(self.problems.get(WHOLE_PLAN, []))

    @property
    def keys(self) -> str:
        return " ".join(str(step.draft.key) for step in self.steps)

    @cached_property
    def capabilities(self) -> PlanCapabilities:
        return PlanCapabilities.of(self.approval)

    @cached_property
    def changes(self) -> dict[str, str]:
        """The user's changes to the plan."""
        changed = self.approval.new_arguments
        if not changed:
            return {}
        return diff_steps(
            self.plan.with_step_names().steps, _parse_plan(changed).with_step_names().steps
        )

    @property
    def difference(self) -> str:
        return change_summary(self.changes)

    @property
    def changed_lines(self) -> list[PlanLine]:
        """The changed steps."""
        plan = _parse_plan(self.approval.new_arguments)
        return [
            line for line in plan_lines(plan, self.changes) if line.change not in ("", "kept")
        ]

    @property
    def decided_by_name(self) -> str:
        return display_name(self.approval.decided_by)


def steps_of(approvals: Sequence[Approval]) -> dict[int, AgentStep]:
    """Return the steps of pending approvals, without what they returned."""
    if not approvals:
        return {}
    runs = {approval.run_id for approval in approvals}
    steps = AgentStep.objects.filter(run__in=runs, status=AgentStep.Status.WAITING)
    by_number = {
        (step.run_id, step.number): step for step in steps.defer("observation", "request")
    }
    found = {row.pk: by_number.get((row.run_id, row.step)) for row in approvals}
    return {pk: step for pk, step in found.items() if step is not None}


def _reveal_output(output: OutputView) -> OutputView:
    return replace(
        output,
        text=reveal_invisible(output.text),
        caption=reveal_invisible(output.caption),
        items=tuple(map(_reveal_output, output.items)),
        fields=tuple(
            (reveal_invisible(name), _reveal_output(value)) for name, value in output.fields
        ),
        columns=tuple(
            replace(column, label=reveal_invisible(column.label)) for column in output.columns
        ),
        rows=tuple(tuple(map(_reveal_output, row)) for row in output.rows),
    )


def _parse_plan(text: str) -> ExecutionPlan:
    """Parse a plan as far as readable: a masked one may not be."""
    value = decode_json(text)
    return ExecutionPlan.from_dict(value if isinstance(value, dict) else {}).with_step_names()


@dataclass(frozen=True)
class EditedStep:
    """A plan step with fields to edit it."""

    draft: DraftStep
    plan_draft: PlanDraft
    approval: ApprovalView

    @property
    def name(self) -> str:
        return self.draft.facts["name"]

    @property
    def prefix(self) -> str:
        """The prefix of its field names."""
        return f"plan-{self.approval.pk}-{self.draft.key}"

    @property
    def line(self) -> PlanLine:
        step = ExecutionStep.from_dict(self.draft.facts)
        return PlanLine(number=self.draft.key + 1, step=step)

    @property
    def is_question(self) -> bool:
        return self.draft.what == "ask:"

    @property
    def arguments(self) -> list[tuple[str, str]]:
        values = self.draft.facts.get("arguments", {})
        names = self.approval.capabilities.arguments(self.draft.facts)
        return [(name, value_text(values.get(name))) for name in names]

    @property
    def others(self) -> list[tuple[str, bool]]:
        """The other steps, and whether this one depends on them."""
        waits = self.draft.facts.get("depends_on", ())
        names = [step.facts["name"] for step in self.plan_draft.steps if step is not self.draft]
        return [(name, name in waits) for name in names if name]

    @property
    def waits_for(self) -> str:
        return ", ".join(name for name, is_waited_for in self.others if is_waited_for)

    @property
    def problems(self) -> list[str]:
        return self.approval.problems.get(self.draft.key, [])
