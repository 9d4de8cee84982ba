import pytest
from django.utils import timezone

from agents.catalog import agent_versions
from agents.insight.problems import collector
from agents.models import AgentStep, Run
from agents.review.models import Rating


@pytest.fixture
def make_run(person, agent):
    """Create a completed run of the agent's current version."""
    agent_versions.save(agent, None)

    def make(**values) -> Run:
        known = {"status": "completed", "stopped_reason": "completed", "answer": "Done."}
        known |= {"user": person, "agent_version": agent.version, "query": "What is it?"}
        topic = f"chat.{Run.objects.count() + 1}"
        about = {"agent": agent, "agent_name": agent.name, "topic": topic}
        return Run.objects.create(ended_at=timezone.now(), **about, **known | values)

    return make


@pytest.fixture
def make_calls(make_run):
    """Create runs with one call each, of which the first ones failed."""

    def make(
        tool: str,
        count: int,
        failures: int,
        error: str = "No such column: total",
        failed_tool: str = "",
    ):
        now = timezone.now()
        for number in range(count):
            is_failed = number < failures
            run = make_run(step_types="|tool|")
            AgentStep.objects.create(
                run=run, number=1, kind="tool", action=tool, action_input={},
                status="failed" if is_failed else "done", started_at=now, ended_at=now,
                observation=f"Error: {error}" if is_failed else "12",
                failed_tool=failed_tool,
            )  # fmt: skip
        collector.collect_history()

    return make


@pytest.fixture
def complain(make_run):
    """Rate answers as bad, with these comments of these users."""

    def rate(*comments, user=None):
        runs = []
        for who, text in comments:
            run = make_run(user=who)
            Rating.objects.create(
                run=run, user=who, is_good=False, reason="wrong", comment=text
            )
            runs.append(run)
        return runs

    return rate
