"""Plans and agents to execute them, for tests."""

from typing import Any

from agents.engine import ReActPlanner
from agents.engine.events import Event, EventFactory, EventType
from agents.engine.plans.definition.plan import ExecutionPlan, ExecutionStep
from agents.engine.plans.workflow import WorkflowRuntime
from agents.engine.testing import ScriptedModel
from tests.engine.conftest import make_runtime


def step(name: str, tool: str = "echo", *depends_on: str, **more: Any) -> ExecutionStep:
    more.setdefault("arguments", {"text": name})
    return ExecutionStep(tool, name=name, depends_on=depends_on, **more)


def workflow(
    *steps: ExecutionStep, tools=(), script=(), parameters=None, **options
) -> WorkflowRuntime:
    planner = ReActPlanner(ScriptedModel(*script), "scripted")
    return make_runtime(
        planner,
        tools,
        kind=WorkflowRuntime,
        plan=ExecutionPlan("A test", steps, parameters or {}),
        name="flow",
        **options,
    )


async def run_to_end(runtime, query="Go."):
    return [event async for event in runtime.stream(query)]


def of(events, type: EventType):
    return [event.data for event in events if event.type is type]


def outcomes(events) -> dict[str, str]:
    """Return each step's outcome, by name."""
    ends = [data for data in of(events, EventType.STEP) if data["kind"] == "task"]
    return {data["action"]: data["status"] for data in ends}


def outputs(events) -> dict[str, Any]:
    ends = [data for data in of(events, EventType.STEP) if data["kind"] == "task"]
    return {data["action"]: data["output"] for data in ends}


def decision_event(events, words: str, *, is_approved: bool = True) -> Event:
    """Return the event of a decision about the pending request."""
    asked = of(events, EventType.APPROVAL_REQUESTED)[-1]
    stamp = EventFactory("flow", after=events[-1].seq)
    stamp.parent = asked.get("parent")
    facts = {"id": asked["id"], "step": asked["step"], "is_approved": is_approved}
    said = {"arguments": None, "reason": words, "by": 1, "by_name": "ada"}
    return stamp(EventType.APPROVAL_RESOLVED, **facts, **said)
