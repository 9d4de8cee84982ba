"""The rows that events change: collected, and written once per batch."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from agents.db.compiled_queries import compiled_query
from agents.db.fast_writes import Increment, insert_many, update
from agents.engine.events import Event
from agents.memory.tool import NAME as REMEMBER
from agents.models import AgentStep, Approval, GuardrailHit, OutsideTextTopic, Run
from agents.models.runs.runs import DRAFT_TOPIC_PREFIX

from .search_tags import MAX_TAGS, step_tags
from .waiting_time import Wait, load_queue_waits


class ProjectedRows:
    """Collects changes to runs and steps, so that each row is written once per batch."""

    def __init__(self) -> None:
        self._runs: dict[int, dict[str, Any]] = {}
        self._steps: dict[tuple[int, int], dict[str, Any]] = {}
        self._new_steps: dict[tuple[int, int], AgentStep] = {}
        self._new_hits: list[GuardrailHit] = []

    def update_run(self, run: int, **changes: Any) -> None:
        self._runs.setdefault(run, {}).update(changes)

    def count(self, run: int, **amounts: float) -> None:
        changes = self._runs.setdefault(run, {})
        for name, amount in amounts.items():
            changes[name] = changes.get(name, Increment(0)) + Increment(amount)

    def add_step(self, step: AgentStep) -> None:
        self._new_steps[step.run_id, step.number] = step

    def add_hit(self, hit: GuardrailHit) -> None:
        self._new_hits.append(hit)

    def update_step(self, run: int, event: Event, **changes: Any) -> None:
        key = run, event.data["step"]
        if (step := self._new_steps.get(key)) is not None:
            vars(step).update(changes)
        else:
            self._steps.setdefault(key, {}).update(changes)

    def steps(self, run: int, event: Event) -> QuerySet[AgentStep]:
        """Return the step with all pending changes written."""
        self._write_steps()
        return AgentStep.objects.filter(run=run, number=event.data["step"])

    def step_types(self, run: int) -> str:
        """Return the run's search tags as one string, because scanning all steps takes long."""
        self._write_steps()
        tags = {tag for step in _step_summaries(run) for tag in step_tags(*step)}
        return f"|{'|'.join(sorted(tags)[:MAX_TAGS])}|"

    def was_declined(self, run: int, number: int) -> bool:
        """Whether a step failed only because a person rejected it."""
        self._write_steps()
        children = AgentStep.objects.filter(run=run, parent=number)
        statuses = set(children.values_list("status", flat=True))
        return AgentStep.Status.REJECTED in statuses and AgentStep.Status.FAILED not in statuses

    def depth(self, run: int, number: int) -> int:
        if (step := self._new_steps.get((run, number))) is not None:
            return step.depth
        return AgentStep.objects.values_list("depth", flat=True).get(run=run, number=number)

    def beginning(self, run: int) -> tuple[datetime, bool]:
        """Return when the run started, and whether it has waited for a model's turn."""
        started, waited = _beginnings(run)[0]
        return started, bool(self._runs.get(run, {}).get("waited", waited))

    def mark_outside_text(self, run: int) -> None:
        """Have the run's chat remember that tools have returned text from outside.

        In the transaction that ends the run, because the chat's next one can start after it.
        """
        calls = AgentStep.objects.filter(run=run, kind=AgentStep.Kind.TOOL)
        calls = calls.exclude(action=REMEMBER).exclude(status=AgentStep.Status.UNSTARTED)
        topic = calls.values_list("run__topic", flat=True).first()
        if topic and not topic.startswith(DRAFT_TOPIC_PREFIX):
            OutsideTextTopic.objects.mark(topic)

    def waits(self, run: int, *, has_queued: bool) -> Sequence[Wait]:
        """Return when approvals were requested and decided, and when models were waited for."""
        if not has_queued:
            return _approval_times(run)
        self._write_steps()
        return [*_approval_times(run), *load_queue_waits(run)]

    def ask(self, run: int, step: int, columns: dict[str, Any]) -> None:
        Approval.objects.update_or_create(columns, run_id=run, step=step)

    def decide(self, run: int, step: int, **columns: Any) -> None:
        Approval.objects.filter(run=run, step=step).update(**columns)

    def withdraw(self, run: int, time: datetime, **filters: Any) -> None:
        """Withdraw pending approvals, because a decision would change nothing."""
        changes = {"verdict": Approval.Verdict.WITHDRAWN, "decided_at": time}
        update(Approval, changes, run=run, verdict=Approval.Verdict.WAITING, **filters)

    def write(self) -> None:
        self._write_steps()
        if self._new_hits:
            GuardrailHit.objects.bulk_create(self._new_hits)
        for run, changes in self._runs.items():
            update(Run, changes, id=run)
        self._runs = {}
        self._new_hits = []

    def _write_steps(self) -> None:
        if self._new_steps:
            insert_many(AgentStep, self._new_steps.values())
        for (run, number), changes in self._steps.items():
            update(AgentStep, changes, run=run, number=number)
        self._new_steps = {}
        self._steps = {}


@compiled_query
def _step_summaries(run: int) -> QuerySet[AgentStep, tuple[str, str, str, str]]:
    columns = ("kind", "action", "failed_tool", "status")
    return AgentStep.objects.filter(run=run).values_list(*columns)


@compiled_query
def _approval_times(run: int) -> QuerySet[Approval, tuple[datetime, datetime | None]]:
    by_users = Approval.objects.filter(run=run, granted_scope="")  # not automatic
    return by_users.values_list("asked_at", "decided_at")


@compiled_query
def _beginnings(pk: int) -> QuerySet[Run, tuple[datetime, float]]:
    return Run.objects.filter(pk=pk).values_list("started_at", "waited")


def step_columns(rows: ProjectedRows, run: int, event: Event) -> dict[str, Any]:
    """Return the columns that every new step has."""
    parent = event.data.get("parent")
    return {
        "run_id": run,
        "number": event.data["step"],
        "turn": event.data["turn"],
        "agent_name": event.agent,
        "first_seq": event.seq,
        "parent": parent,
        "depth": 0 if parent is None else rows.depth(run, parent) + 1,
    }
