import pytest

from agents.engine import (
    AgentRuntime,
    FallbackStrategy,
    ReActPlanner,
    RetryPolicy,
    Tool,
    ToolResult,
)
from agents.engine.loop import Citations, Termination
from agents.engine.testing import ScriptedModel


class Echo:
    """A tool that returns its input, or the result of a given function."""

    description = "Says it again."
    parameters = {"type": "object", "properties": {"text": {"type": "string"}}}

    def __init__(self, name="echo", does=None):
        self.name = name
        self.does = does
        self.inputs = []

    async def execute(self, input):
        self.inputs.append(input)
        if self.does is not None:
            return await self.does(input)
        return ToolResult(input["text"])


NEVER = RetryPolicy(max_retries=0)


def make_runtime(
    planner,
    tools=(),
    guardrails=None,
    *,
    kind=AgentRuntime,
    retry=NEVER,
    circuits=None,
    policy=None,
    capabilities=(),
    **options,
):
    """Build an agent that retries nothing, waits for nothing and checks its citations."""
    fallback = FallbackStrategy(pause=0, retry=retry, circuits=circuits)
    more = [Citations()] if policy is None else [Citations(), Termination(policy)]
    return kind(
        planner, tools, guardrails, fallback, capabilities=[*capabilities, *more], **options
    )


@pytest.fixture(params=["native", "react"])
def dialect(request):
    return request.param


@pytest.fixture
def agent(dialect):
    """Build an agent with a script, in both dialects, and check that it was used up."""
    models = []

    def build(*script, tools: list[Tool] = (), **options) -> AgentRuntime:
        models.append(ScriptedModel(*script, dialect=dialect))
        planner = ReActPlanner(models[-1], "scripted", dialect=dialect)
        return make_runtime(planner, tools, **options)

    yield build
    for model in models:
        model.assert_used_up()
