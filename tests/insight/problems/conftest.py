from datetime import timedelta

import pytest
from django.utils import timezone

from agents.models import AgentStep, Run, RunEvent


@pytest.fixture
def make_run(person, agent):
    """Create a finished run, by default one that failed."""

    def make(age: timedelta = timedelta(minutes=1), error: str = "ModelError", **values) -> Run:
        known = {"status": "failed", "stopped_reason": "error", "agent_version": 1}
        known |= {"detail": "The provider said no.", "model": "openai/gpt-4.1"}
        known |= {"query": "What is it?"}
        at, number = timezone.now() - age, Run.objects.count()
        run = Run.objects.create(
            user=values.pop("user", person), agent=agent, agent_name=agent.name, seconds=1.0,
            topic=f"chat.{number}", ended_at=at, **known | values,
        )  # fmt: skip
        Run.objects.filter(pk=run.pk).update(started_at=at)
        if run.status == "failed":
            data = {"type": error, "message": run.detail, "step": 1}
            RunEvent.objects.create(run=run, seq=1, type="error", time=at, data=data)
        return run

    return make


@pytest.fixture
def make_tool_error(make_run):
    """Create a completed run in which a tool failed."""

    def make(observation: str, times: int = 1, arguments=None, **values) -> Run:
        ended = {"status": "completed", "stopped_reason": "completed", "answer": "Hm."}
        run = make_run(**ended | {"step_types": "|tool|tool=weather|", "detail": ""} | values)
        for number in range(1, times + 1):
            AgentStep.objects.create(
                run=run, number=number, kind="tool", status="failed", action="weather",
                action_input=arguments or {}, observation=observation,
                started_at=run.ended_at, ended_at=run.ended_at,
            )  # fmt: skip
        return run

    return make
