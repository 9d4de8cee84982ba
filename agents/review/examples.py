"""Examples: saved runs whose question is asked again and compared with the recording.

Tools answer from the recording, so nothing outside is affected. Such a run has no row: it
belongs to no user and would count in every list and figure.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.access import audit, masking
from agents.catalog import agent_factory, mcp_servers, planner_factory
from agents.engine.errors import AgentError
from agents.engine.events import Event, EventType, StatusKind
from agents.engine.loop import HANDOFF_PREFIX, AskPersonTool, Events
from agents.engine.tool import Tool, ToolInput, ToolRegistry, ToolResult, specification
from agents.models import Agent, AgentStep, Run, ToolRegistration
from agents.review.models import Example

from .feedback import MAX_ANSWER_CHARS, FeedbackRejected, clean_text
from .similarity import overlap, text_similarity

MAX_NAME_CHARS = 120
ERROR_PREFIX = "Error: "
NOT_RECORDED = (
    "This run replays recorded tool results, and this call wasn't recorded, so nothing was "
    "done. Continue without it."
)
NEEDS_PERSON = "The run needs approval, and nobody can approve while examples run."


def save(user: User, run: Run, name: str, expected: str) -> Example:
    """Save a finished run with its tool results; raise FeedbackRejected."""
    name = " ".join(clean_text(name).split())
    if run.is_live:
        raise FeedbackRejected(
            _("This run is still in progress. Try again when it has finished.")
        )
    if run.workflow_id is not None:
        raise FeedbackRejected(
            _("Workflow runs can't be saved as examples. Only agent runs can.")
        )
    if not 0 < len(name) <= MAX_NAME_CHARS:
        raise FeedbackRejected(
            _("Name must be 1–%(most)d characters.") % {"most": MAX_NAME_CHARS}
        )
    try:
        with transaction.atomic():
            saved = Example.objects.create(
                name=name,
                run=run,
                agent=run.agent,
                agent_name=run.agent_name,
                question=run.query,
                history=run.history,
                observations=observations(run),
                expected=clean_text(expected, MAX_ANSWER_CHARS),
                saved_by=user,
            )
            if not masking.is_own(run, user):
                audit.record(user, audit.EXAMPLE_SAVED, run, example=saved.pk)
            return saved
    except IntegrityError:
        raise FeedbackRejected(_("An example with this name already exists.")) from None


def observations(run: Run) -> list[dict[str, Any]]:
    """Return the results of tools and people in order, without handoffs, which run again."""
    is_colleague = Q(action__startswith=HANDOFF_PREFIX) & ~Q(action=AskPersonTool.name)
    calls = run.steps.filter(kind=AgentStep.Kind.TOOL).exclude(is_colleague)
    return [
        {
            "tool": _called_tool(step),
            "arguments": step.action_input,
            "observation": step.observation,
            "is_error": step.status != AgentStep.Status.DONE,
        }
        for step in calls.order_by("number")
    ]


def _called_tool(step: AgentStep) -> str:
    """Return the tool the model called, even if a fallback was used."""
    replaced = (
        note["tool"] for note in step.notes if note.get("kind") == StatusKind.TOOL_FALLBACK
    )
    return next(replaced, step.action)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleResult:
    """The result of rerunning an example."""

    name: str
    agent: str
    model: str
    answer: str = ""
    calls: float = 0.0  # share of equal tool calls with equal arguments
    likeness: float | None = None  # of the answers; None without an expected one
    not_recorded: tuple[str, ...] = ()
    problem: str = ""

    @property
    def score(self) -> float:
        parts = [self.calls] if self.likeness is None else [self.calls, self.likeness]
        return 0.0 if self.problem else sum(parts) / len(parts)


class RecordedCalls:
    """The recorded tool results; a repeated call gets the results in order."""

    def __init__(self, recorded: Iterable[Mapping[str, Any]]) -> None:
        self.expected: list[str] = []
        self.calls: list[str] = []
        self._results: dict[str, list[ToolResult]] = {}
        for row in recorded:
            key = call_key(row["tool"], row["arguments"])
            self.expected.append(key)
            self._results.setdefault(key, []).append(_tool_result(row))

    def answer(self, tool: str, input: ToolInput) -> ToolResult:
        key = call_key(tool, input)
        self.calls.append(key)
        results = self._results.get(key)
        if results is None:
            return ToolResult(error=NOT_RECORDED, mendable=True)
        return results.pop(0) if len(results) > 1 else results[0]

    @property
    def not_recorded(self) -> tuple[str, ...]:
        return tuple(key for key in self.calls if key not in self._results)

    async def registry(
        self,
        rows: Sequence[ToolRegistration],
        own: Iterable[Tool],
        more: Iterable[Tool] = (),
    ) -> ToolRegistry:
        """Return the agent's current tools, answering from the recording."""
        tools = [RecordedTool(self, specification(tool)) for tool in own]
        tools += [
            RecordedTool(self, _remote_spec(row)) for row in rows if mcp_servers.is_offered(row)
        ]
        others = {tool.name: self._wrap_tool(tool) for tool in more}
        return ToolRegistry([*(t for t in tools if t.name not in others), *others.values()])

    def _wrap_tool(self, tool: Tool) -> Tool:
        return RecordedPerson(self, tool) if isinstance(tool, AskPersonTool) else tool


class RecordedPerson(AskPersonTool):
    """A person asked by a plan, who gives the recorded answer."""

    waits = False

    def __init__(self, recorded_calls: RecordedCalls, person: AskPersonTool) -> None:
        super().__init__(person.experts, asker_approves=person.asker_approves)
        self.recorded_calls = recorded_calls

    async def execute(self, input: ToolInput, /) -> ToolResult:
        return self.recorded_calls.answer(self.name, input)


@dataclass(slots=True)
class RecordedTool:
    """A tool with the real specification that does nothing."""

    recorded_calls: RecordedCalls
    definition: Mapping[str, Any]
    name: str = field(init=False)
    description: str = field(init=False)
    parameters: Mapping[str, Any] = field(init=False)
    effect: str = "read"
    needs_approval: bool = False

    def __post_init__(self) -> None:
        function = self.definition["function"]
        self.name, self.description = function["name"], function["description"]
        self.parameters = function["parameters"]

    async def execute(self, input: ToolInput, /) -> ToolResult:
        return self.recorded_calls.answer(self.name, input)


def call_key(tool: str, arguments: Any) -> str:
    """Return a key for a call, independent of the order of arguments."""
    text = json.dumps(arguments, sort_keys=True, ensure_ascii=False, default=dict)
    return f"{tool} {text}"


async def evaluate(example: Example, agent: Agent, model: str = "") -> ExampleResult:
    """Run the example with the current agent, and compare."""
    model = model or planner_factory.model_name(agent)
    result = partial(ExampleResult, name=example.name, agent=agent.name, model=model)
    recorded_calls = RecordedCalls(example.observations)
    run = Run(agent=agent, model=model, query=example.question, history=example.history)
    try:
        last = await _last_event(await agent_factory.dry_run(run, recorded_calls.registry))
    except AgentError as error:
        return result(problem=str(error))
    if last.type is EventType.RUN_PAUSED:
        return result(problem=NEEDS_PERSON)
    ending = last.data
    return result(
        answer=ending["answer"],
        calls=overlap(recorded_calls.expected, recorded_calls.calls),
        likeness=text_similarity(example.expected, ending["answer"])
        if example.expected
        else None,
        not_recorded=recorded_calls.not_recorded,
        problem="" if ending["answer"] else ending["detail"] or ending["stopped_reason"],
    )


async def _last_event(stream: Events) -> Event:
    async with aclosing(stream) as events:
        async for event in events:
            last = event
    return last


def save_score(example: Example, score: float) -> None:
    Example.objects.filter(pk=example.pk).update(score=score, scored_at=timezone.now())


def _tool_result(row: Mapping[str, Any]) -> ToolResult:
    text = row["observation"]
    if row["is_error"]:
        return ToolResult(error=text.removeprefix(ERROR_PREFIX), mendable=True)
    return ToolResult(text)


def _remote_spec(row: ToolRegistration) -> Mapping[str, Any]:
    """Return an MCP tool's accepted definition, without contacting the server."""
    about = row.definition or {}
    return {
        "function": {
            "name": row.name,
            "description": row.description or about.get("description", ""),
            "parameters": about.get("parameters", {"type": "object"}),
        }
    }
