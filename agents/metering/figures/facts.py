"""Reads what summaries are computed from, for many runs at once: steps, usage, feedback."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from django.db.models import Max, Q

from agents.engine.events import EventType, StatusKind
from agents.metering.budgets import pricing
from agents.models import AgentStep, HiddenTopic, Run, RunEvent, ToolRegistration
from agents.models.runs.runs import EXPERIMENT_TOPIC_PREFIX
from agents.models.sentence_fields import first_chars

from .models import RunSummary, TitleUsage

RUN_COLUMNS = (
    "pk",
    "user_id",
    "topic",
    "agent_name",
    "agent_version",
    "model",
    "status",
    "stopped_reason",
    "started_at",
    "ended_at",
    "seconds",
    "waited",
    "origin_step",
)
FAILED = AgentStep.Status.FAILED
Kind = AgentStep.Kind
# Saved sentences of the engine are in English; pages translate them.
TIMEOUT = re.compile(r"(didn't respond|No response|sent no answer) within|timed out|timeout\.")
MAX_TEXT = 300


@dataclass(frozen=True, slots=True)
class Step:
    number: int
    kind: str
    status: str
    action: str
    failed_tool: str
    parent: int | None
    depth: int
    attempts: int
    first_seq: int
    started_at: datetime
    ended_at: datetime | None


@dataclass(slots=True)
class Facts:
    """Everything a summary is computed from."""

    run: Mapping[str, Any]
    steps: dict[int, Step] = field(default_factory=dict)
    usage: list[Mapping[str, Any]] = field(default_factory=list)
    title: TitleUsage | None = None
    free_models: set[str] = field(default_factory=set)  # of those without a recorded cost
    plan_versions: dict[int, int] = field(default_factory=dict)
    fallbacks: int = 0
    has_model_timeout: bool = False
    late_calls: set[int] = field(default_factory=set)
    unknown_tools: set[str] = field(default_factory=set)  # names that a model made up
    feedback: Counter[str] = field(default_factory=Counter)  # by measure
    is_regenerated: bool = False
    regenerated: list[int] = field(default_factory=list)
    is_hidden: bool = False
    last_seq: int = 0

    def is_replayed(self, number: int) -> bool:
        return number < (self.run["origin_step"] or 0)

    def model_of(self, used: Mapping[str, Any]) -> str:
        """Return the model that was called; old events say only what a run started with."""
        model: str = used.get("model") or self.run["model"]
        return model

    def ancestors(self, number: int) -> Iterator[Step]:
        """Yield a step and what it is part of, the innermost first."""
        while (step := self.steps.get(number)) is not None:
            yield step
            if step.parent is None or step.parent >= step.number:
                return
            number = step.parent


# Returns runs and those that answered the same message again, where one is among the given
# ones. The chat registers it.
Regenerations = Callable[[Sequence[int]], Iterable[tuple[int, int]]]
regenerations: list[Regenerations] = []
# Returns a run and the measure of each rating and correction of these runs. The review
# registers it.
Feedback = Callable[[Sequence[int]], Iterable[tuple[int, str]]]
feedback: list[Feedback] = []


def read_facts(pks: Sequence[int]) -> Iterable[Facts]:
    """Return the facts of these runs, as far as they have ended."""
    runs = Run.objects.executed().filter(pk__in=pks).exclude(status__in=Run.LIVE)
    facts = {
        run["pk"]: Facts(run=run)
        for run in runs.order_by("pk").values(*RUN_COLUMNS)
        if not run["topic"].startswith(EXPERIMENT_TOPIC_PREFIX)
    }
    if not facts:
        return ()
    _add_steps(facts)
    _add_events(facts)
    _add_unknown_tools(facts)
    for title in TitleUsage.objects.filter(run__in=list(facts)):
        facts[title.run_id].title = title
    unpriced = {
        run_facts.model_of(usage)
        for run_facts in facts.values()
        for usage in run_facts.usage
        if usage["cost"] is None
    }
    unpriced |= {run_facts.title.model for run_facts in facts.values() if run_facts.title}
    free = pricing.free_models(unpriced) if unpriced else set()
    for run_facts in facts.values():
        run_facts.free_models = free
    add_feedback(facts)
    return facts.values()


def _add_steps(facts: dict[int, Facts]) -> None:
    rows = AgentStep.objects.filter(run__in=list(facts)).order_by()
    columns = [column.name for column in fields(Step)]
    for run_id, *values in rows.values_list("run_id", *columns):
        step = Step(*values)
        facts[run_id].steps[step.number] = step
    steps = [step for run_facts in facts.values() for step in run_facts.steps.values()]
    if any(step.kind == Kind.PLAN for step in steps):
        plans = rows.filter(kind=Kind.PLAN).values_list("run_id", "number", "action_input")
        for run_id, number, arguments in plans:
            facts[run_id].plan_versions[number] = (arguments or {}).get("plan") or 1
    if any(step.kind == Kind.TOOL and step.status == FAILED for step in steps):
        failed = rows.filter(kind=Kind.TOOL, status=FAILED)
        for run_id, number, text in failed.values_list(
            "run_id", "number", first_chars("observation", MAX_TEXT)
        ):
            if TIMEOUT.search(text):
                facts[run_id].late_calls.add(number)


def _add_events(facts: dict[int, Facts]) -> None:
    events = RunEvent.objects.filter(run__in=list(facts)).order_by()
    counted = Q(type__in=[EventType.USAGE, EventType.ERROR])
    counted |= Q(type=EventType.STATUS, data__kind=StatusKind.MODEL_FALLBACK)
    for run_id, type_, data in (
        events.filter(counted).order_by("run_id", "seq").values_list("run_id", "type", "data")
    ):
        if type_ == EventType.STATUS:
            facts[run_id].fallbacks += 1
        elif data.get("replayed"):
            continue
        elif type_ == EventType.USAGE:
            facts[run_id].usage.append(data)
        elif data.get("type") == "ModelTimeout":
            facts[run_id].has_model_timeout = True
    for run_id, last in events.values_list("run_id").annotate(Max("seq")):
        facts[run_id].last_seq = last


def _add_unknown_tools(facts: dict[int, Facts]) -> None:
    """Add the names of called tools that don't exist: a model can write anything there."""
    called: dict[int, set[str]] = {}
    for run_id, run_facts in facts.items():
        calls = [step for step in run_facts.steps.values() if step.kind == Kind.TOOL]
        worked = {step.action for step in calls if step.status == AgentStep.Status.DONE}
        called[run_id] = {step.action for step in calls} - worked
    names = set().union(*called.values())
    existing = ToolRegistration.objects.filter(name__in=names) if names else ()
    names -= {tool.name for tool in existing}
    doubtful = [run_id for run_id, called_names in called.items() if called_names & names]
    if not doubtful:
        return
    # Tools that were deleted since, and handoffs: their run was given them.
    start_events = RunEvent.objects.filter(
        run__in=doubtful, type__in=[EventType.RUN_STARTED, EventType.HANDOFF]
    )
    for data in start_events.values_list("data", flat=True):
        names -= {tool["function"]["name"] for tool in data.get("tools", ())}
        names -= set(data.get("unsent_tools", ()))
    for run_id in doubtful:
        facts[run_id].unknown_tools = called[run_id] & names


def add_feedback(facts: dict[int, Facts]) -> None:
    pks = list(facts)
    for run_id, measure in (row for source in feedback for row in source(pks)):
        facts[run_id].feedback[measure] += 1
    for older, newer in (pair for source in regenerations for pair in source(pks)):
        if older in facts:
            facts[older].is_regenerated = True
        if newer in facts:
            facts[newer].regenerated.append(older)
    topics = {run_facts.run["topic"] for run_facts in facts.values()}
    rows = list(HiddenTopic.objects.filter(topic__in=topics).values_list("topic", "user"))
    hidden = {topic for topic, user in rows if user is not None}
    if deleted_topics := {topic for topic, user in rows if user is None}:
        # A temporary chat that is being deleted is hidden from its user, too: it stays out.
        temporary = RunSummary.objects.filter(
            run__in=pks, is_hidden=True, topic__in=deleted_topics
        )
        hidden |= set(temporary.values_list("topic", flat=True))
    for run_facts in facts.values():
        run_facts.is_hidden = run_facts.run["topic"] in hidden
