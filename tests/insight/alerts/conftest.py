import pytest
from django.utils import timezone

from agents.insight.alerts.models import AlertChannel, AlertRule
from agents.insight.problems.models import Problem, ProblemChange

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
def problem(agent):
    now = timezone.now()
    return Problem.objects.create(
        fingerprint="a", algorithm=1, kind="tool_error", stage="tool", subject="weather",
        message="City ‹number› is unknown", agent=agent, agent_name=agent.name,
        first_seen=now, last_seen=now, count=3,
    )  # fmt: skip


@pytest.fixture
def happen(problem):
    """Let something happen to the problem."""

    def change(action="found", **values):
        about = {"at": timezone.now(), "version": 2, "is_announced": False} | values
        return ProblemChange.objects.create(problem=problem, action=action, **about)

    return change


@pytest.fixture
def webhook(db):
    return AlertChannel.objects.create(
        name="Slack", kind="webhook", url="https://hooks.example.com/a", secret=SECRET,
        base_url="https://ashiato.example.com/",
    )  # fmt: skip


@pytest.fixture
def add_rule(db):
    def add(*channels, event="problem.new", **values):
        rule = AlertRule.objects.create(name=event, event=event, **values)
        rule.channels.set(channels)
        return rule

    return add
