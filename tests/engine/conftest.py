import pytest

from agents.engine import (
    AgentRuntime,
    FallbackStrategy,
    Guardrails,
    ReActPlanner,
    RetryPolicy,
    Tool,
    ToolRegistry,
    ToolResult,
)
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


@pytest.fixture(params=["native", "react"])
def dialect(request):
    return request.param


@pytest.fixture
def agent(dialect):
    """Build an agent with a script, in both dialects, and check that it was used up."""
    models = []

    def build(*script, tools: list[Tool] = (), **options) -> AgentRuntime:
        models.append(ScriptedModel(*script, dialect=dialect))
        guardrails = options.pop("guardrails", Guardrails())
        planner = ReActPlanner(models[-1], "scripted", dialect=dialect)
        fallback = FallbackStrategy(pause=0)
        options.setdefault("retry", RetryPolicy(max_retries=0))
        return AgentRuntime(planner, ToolRegistry(tools), guardrails, fallback, **options)

    yield build
    for model in models:
        model.assert_used_up()
